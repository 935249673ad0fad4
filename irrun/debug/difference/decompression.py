"""Find the weights of a model: constants with the layers that decompress or quantize them, and compute their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from irrun.debug.difference.constants import Constant, Numbers, constant
from irrun.inference.bind import bind
from irrun.inference.compressed import decompression, number_path, weight_form
from irrun.model import Layer, Model, is_constant
from irrun.model.weights import Weights
from irrun.types import PartialShape

__all__ = ["Weight", "numbers", "weight_parts", "weights_of"]


@dataclass(frozen=True, slots=True)
class Weight:
    """A constant and the layers that compute a matrix of it: ``layers``, from the Const of the codes to the output.

    ``others`` are the layers that supply scales, zero points, ranges and shapes to these layers, and to no others.
    ``form`` says how the file stores the weight, such as ``u4 asymmetric, groups of 128``.
    """

    layers: tuple[int, ...]
    others: tuple[int, ...]
    form: str

    @property
    def output(self) -> int:
        """The id of the layer whose output is the matrix."""
        return self.layers[-1]

    @property
    def hidden(self) -> tuple[int, ...]:
        """The layers but the last one."""
        return (*self.layers[:-1], *self.others)


def weights_of(model: Model) -> dict[int, Weight]:
    """Return the weights of a model that take more than a Const, by the id of the layer whose output is the matrix.

    No layer belongs to two weights, except those that supply numbers to several.
    """
    chains = [_chain(model, id) for id, layer in model.layers.items() if is_constant(layer)]
    claimed: set[int] = set()
    kept: list[tuple[tuple[int, ...], str]] = []
    for layers, form in sorted(chains, key=lambda chain: -len(chain[0])):
        if len(layers) > 1 and claimed.isdisjoint(layers):
            suppliers = {id for layer in layers[1:] for id in _suppliers(model, layer)}
            claimed |= {*layers, *suppliers}
            kept.append((layers, form))
    inside = {id for layers, _ in kept for id in layers}
    found: dict[int, Weight] = {}
    for layers, form in kept:
        others = [id for layer in layers[1:] for id in _suppliers(model, layer) if id not in inside]
        only = [id for id in others if all(_is_inside(model, r, inside, claimed) for r in model.consumers[id])]
        found[layers[-1]] = Weight(layers, tuple(dict.fromkeys(only)), form)
    return found


def _is_inside(model: Model, id: int, inside: set[int], claimed: set[int]) -> bool:
    """Return whether a layer belongs to weights, or supplies numbers to weights alone."""
    if id in inside:
        return True
    return id in claimed and all(_is_inside(model, reader, inside, claimed) for reader in model.consumers.get(id, ()))


def _chain(model: Model, codes: int) -> tuple[tuple[int, ...], str]:
    """Return the layers from a Const to the last one that decompresses or quantizes it, and the form of the weight."""
    found = decompression(model, codes)
    layers = _evaluable(model, found.layers)
    type = model.layers[codes].attributes.get("element_type", "")
    if len(layers) < len(found.layers):
        return layers, type
    readers = model.readers.get((layers[-1], 0), ())
    if len(readers) == 1 and readers[0][1] == 0 and model.layers[readers[0][0]].type == "FakeQuantize":
        whole = (*layers, readers[0][0])
        limits = [number_path(model, readers[0][0], position) for position in range(1, 5)]
        if all(limits) and _evaluable(model, whole) == whole:
            return whole, f"{type}, FakeQuantize"
    return layers, weight_form(model, replace(found, quantized=False))


def _evaluable(model: Model, layers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the layers of a chain up to the first one whose numbers cannot be broadcast to the codes."""
    codes = _shape(model.layers[layers[0]])
    if codes is None:
        return layers[:1]
    for position, id in enumerate(layers[1:], 1):
        if model.layers[id].type in ("Reshape", "Convert"):
            continue
        shapes = [_shape(model.layers[c]) for c in _suppliers(model, id) if is_constant(model.layers[c])]
        is_numpy = model.layers[id].attributes.get("auto_broadcast", "numpy").lower() != "pdpd"
        if not is_numpy or any(shape is None or not _reaches(shape, codes) for shape in shapes):
            return layers[:position]
    return layers


def _suppliers(model: Model, id: int) -> Iterator[int]:
    """Yield the layers that supply numbers or a shape to a layer of a weight."""
    layer = model.layers[id]
    feeds = model.feeds[id]
    if layer.type == "Reshape":
        if len(feeds) > 1 and feeds[1] is not None and is_constant(model.layers[feeds[1][0]]):
            yield feeds[1][0]
    elif layer.type != "Convert":
        for position in range(len(feeds)):
            yield from number_path(model, id, position)


def _shape(layer: Layer) -> tuple[int, ...] | None:
    shape = PartialShape.parse(layer.attributes.get("shape", ""))
    return None if shape is None else shape.static


def _reaches(shape: tuple[int, ...], codes: tuple[int, ...]) -> bool:
    """Return whether numbers of a shape can be broadcast to the shape of the codes."""
    return len(shape) <= len(codes) and all(n in (1, of) for n, of in zip(reversed(shape), reversed(codes)))


def weight_parts(model: Model, weight: Weight) -> list[str]:
    """Return the types of the layers of a weight."""
    return [model.layers[id].type for id in (*weight.hidden, weight.output)]


# ---------------------------------------------------------------------------------------------
# values

Step = tuple[str, tuple[np.ndarray, ...], Any]
"""What a layer computes of the codes: its type, the numbers that it takes, and its operation."""


@dataclass(frozen=True)
class _Decompressed:
    """The values of a weight in f32, which ``elements`` computes. ``shape`` is that of the matrix."""

    codes: Constant
    steps: tuple[Step, ...]
    shape: tuple[int, ...]

    @property
    def weights(self) -> Weights:
        return self.codes.weights

    @property
    def count(self) -> int:
        return self.codes.count

    def elements(self, start: int, stop: int) -> np.ndarray:
        """Return elements ``start`` to ``stop`` [stop - start]. ``start`` is a multiple of 8. Raises ModelError."""
        values = self.codes.elements(start, stop).astype(np.float32)
        with np.errstate(all="ignore"):
            for type, numbers, operation in self.steps:
                values = _STEPS[type](operation, values, *(self._at(n, start, stop) for n in numbers))
        return values

    def raw(self, start: int, stop: int) -> np.ndarray:
        """Return the bytes of the codes ``start`` to ``stop``. Raises ModelError."""
        return self.codes.raw(start, stop)

    def _at(self, numbers: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Return the number for each of the codes ``start`` to ``stop``, or the one number for all."""
        if numbers.size == 1:
            return numbers.reshape(1)
        return np.broadcast_to(numbers, self.codes.shape)[np.unravel_index(np.arange(start, stop), self.codes.shape)]

    @cached_property
    def meaning(self) -> tuple[object, ...]:
        """What the bytes of the codes mean: of two weights with equal meanings, equal bytes are equal values."""
        steps = tuple(
            (type, *(n.tobytes() for n in numbers), getattr(op, "levels", 0)) for type, numbers, op in self.steps
        )
        return self.codes.type, self.codes.shape, steps


_STEPS: Final[dict[str, Callable[..., np.ndarray]]] = {
    "Subtract": lambda _, values, zeros: values - zeros,
    "Multiply": lambda _, values, scales: values * scales,
    "FakeQuantize": lambda operation, values, *limits: operation.run(values, *limits),
}


def numbers(model: Model, layer: Layer, weight: Weight | None, weights: Weights) -> Numbers | None:
    """Return the values of a Const or, if ``weight`` is not None, of a weight; None if attributes do not say the place.

    ``weights`` are those of the whole model. Raises ModelError.
    """
    if weight is None:
        return constant(model, layer, weights)
    codes = constant(model, model.layers[weight.layers[0]], weights)
    if codes is None:
        return None
    steps: list[Step] = []
    for before, id in zip(weight.layers, weight.layers[1:]):
        layer = model.layers[id]
        if layer.type not in _STEPS:
            continue
        held: list[np.ndarray] = []
        for position, feed in enumerate(model.feeds[id]):
            if feed is not None and feed[0] == before:
                continue
            path = number_path(model, id, position)
            supplier = constant(model, model.layers[path[-1]], weights) if path else None
            if supplier is None:
                return None
            held.append(supplier.elements(0, supplier.count).astype(np.float32).reshape(supplier.shape))
        operation, _ = bind(model, layer)
        if operation is None:
            return None
        steps.append((layer.type, tuple(held), operation))
    return _Decompressed(codes, tuple(steps), _output_shape(model, weight, codes))


def _output_shape(model: Model, weight: Weight, codes: Constant) -> tuple[int, ...]:
    """Return the shape of the matrix, as its layer declares it; that of the codes if there is no such shape."""
    outputs = model.layers[weight.output].outputs
    declared = outputs[0].shape if outputs else None
    shape = None if declared is None else declared.static
    return shape if shape is not None and math.prod(shape) == codes.count else codes.shape
