"""The faults of the pairs: each changes one layer, or one constant that no other layer reads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

import irrun
from irrun.model import Layer, Model, is_constant
from irrun.model.weights import Weights

_SCALES: Final = (1.004, 1.01, 1.05, 1.3)
"""Factors of one channel. The rounding of bf16 in single elements hides the first two."""
_SUMS: Final = ("Convolution", "GroupConvolution", "MatMul")


@dataclass(frozen=True)
class Hidden:
    """A fault: its kind, the layer that goes wrong, and the file that has it."""

    kind: str
    layer: str
    path: Path


@dataclass(frozen=True)
class _Place:
    """Where a fault can be: a layer, and a change of its attributes or of the constant that an input of it reads."""

    layer: Layer
    attributes: Mapping[str, str] | None = None
    port: int = 0
    change: Callable[[np.ndarray, random.Random], None] | None = None


def hidden(model: Model, rng: random.Random, target: Path) -> Hidden:
    """Write a copy of a model with a fault to ``target``."""
    places = {kind: list(find(model)) for kind, find in _KINDS.items()}
    kind = rng.choice([kind for kind, found in places.items() if found])
    place = rng.choice(places[kind])
    irrun.save_model(_changed(model, place, rng), target)
    return Hidden(kind, model.unique_names[place.layer.id], target)


def _changed(model: Model, place: _Place, rng: random.Random) -> Model:
    if place.change is None:
        layer = replace(place.layer, attributes={**place.layer.attributes, **(place.attributes or {})})
        return replace(model, layers={**model.layers, layer.id: layer})
    constant = _constant(model, place.layer, place.port)
    assert constant is not None
    assert model.weights is not None
    values = _values(model, constant).copy()
    place.change(values, rng)
    held = bytes(model.weights.data)
    held += bytes(-len(held) % 64)
    moved = replace(constant, attributes={**constant.attributes, "offset": str(len(held))})
    weights = Weights(data=held + values.tobytes())
    return replace(model, layers={**model.layers, moved.id: moved}, weights=weights)


def _constant(model: Model, layer: Layer, port: int) -> Layer | None:
    """Return the constant that one input of a layer reads, and nothing else."""
    feeds = model.feeds[layer.id]
    feed = feeds[port] if port < len(feeds) else None
    if feed is None or not is_constant(model.layers[feed[0]]) or len(model.readers[feed]) > 1:
        return None
    return model.layers[feed[0]]


def _values(model: Model, constant: Layer) -> np.ndarray:
    assert model.weights is not None
    type, attributes = {"f32": np.float32, "i64": np.int64}[constant.attributes["element_type"]], constant.attributes
    shape = [int(dim) for dim in attributes["shape"].split(",") if dim.strip()]
    raw = model.weights.bytes_at(int(attributes["offset"]), int(attributes["size"]))
    return np.frombuffer(raw.tobytes(), type).reshape(shape)


def _reading(model: Model, *types: str, port: int = 1) -> Iterator[tuple[Layer, np.ndarray]]:
    """Yield the layers of some types of which one input is a constant, with its values."""
    for layer in model.layers.values():
        constant = _constant(model, layer, port) if layer.type in types else None
        if constant is not None and constant.attributes["element_type"] in ("f32", "i64"):
            yield layer, _values(model, constant)


def _of_type(model: Model, *types: str) -> Iterator[Layer]:
    return (layer for layer in model.layers.values() if layer.type in types)


def _channels(model: Model) -> Iterator[_Place]:
    for layer, _ in _reading(model, *_SUMS):
        is_last = layer.type == "MatMul" and layer.attributes.get("transpose_b", "false") != "true"

        def scale(values: np.ndarray, rng: random.Random, axis: int = -1 if is_last else 0) -> None:
            channels = np.moveaxis(values, axis, 0)
            channels[rng.randrange(len(channels))] *= rng.choice(_SCALES)

        yield _Place(layer, port=1, change=scale)


def _epsilons(model: Model) -> Iterator[_Place]:
    for layer in _of_type(model, "MVN"):
        yield _Place(layer, {"eps": "0.001"})
    for layer, values in _reading(model, "Add"):
        if values.size == 1 and 0 < values.flat[0] < 1e-3:
            yield _Place(layer, port=1, change=lambda values, rng: values.fill(1e-3))


def _axes(model: Model) -> Iterator[_Place]:
    for layer in _of_type(model, "SoftMax"):
        yield _Place(layer, {"axis": "0" if layer.attributes["axis"] != "0" else "1"})


def _masks(model: Model) -> Iterator[_Place]:
    for layer in _of_type(model, "ScaledDotProductAttention"):
        yield _Place(layer, {"causal": "true"})
    for layer, values in _reading(model, "Multiply"):
        if values.size == 1 and values.flat[0] == -1e4:
            yield _Place(layer, port=1, change=lambda values, rng: values.fill(0))


def _groups(model: Model) -> Iterator[_Place]:
    """Yield where groups of channels, or heads that share keys, are mixed up."""
    for layer, values in _reading(model, "GroupConvolution"):
        if len(values) > 1:
            yield _Place(layer, port=1, change=_by_one)
    for layer, values in _reading(model, "Gather"):
        if values.ndim == 1 and len(values) > 2:
            yield _Place(layer, port=1, change=_by_one)


def _tables(model: Model) -> Iterator[_Place]:
    """Yield where a rotary table is read: its first row holds the cosine, or the sine, of 0."""
    for layer, values in _reading(model, "Gather", port=0):
        if values.ndim == 2 and np.all(values[0] == values[0, 0]):
            yield _Place(layer, port=0, change=_by_one)


def _by_one(values: np.ndarray, rng: random.Random) -> None:
    values[:] = np.roll(values, 1, axis=0)


_KINDS: Final[Mapping[str, Callable[[Model], Iterator[_Place]]]] = {
    "channel": _channels, "epsilon": _epsilons, "axis": _axes, "mask": _masks, "group": _groups, "rotary": _tables,
}  # fmt: skip
