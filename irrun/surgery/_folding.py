"""Compute constant values once, and store them in the place of the layers that compute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.api import PathLike, as_model
from irrun.diagnostics import Refused
from irrun.inference.bind import bind_all
from irrun.inference.propagate import needed
from irrun.inference.settled import settled
from irrun.model import Edge, Layer, Model, is_constant
from irrun.model.weights import Weights, pack
from irrun.opdef import Op
from irrun.surgery._models import rebuilt
from irrun.types import ElementType

__all__ = ["fold_constants"]

Output = tuple[int, int]
"""An output: the id of its layer, and its position among the outputs of the layer."""


def fold_constants(model: Model | PathLike) -> Model:
    """Return the model with a Const for each value that depends only on constants, and without the layers behind it.

    That also happens inside bodies. Weights stored in a narrower type, such as f16 or int8, stay as they are, with the
    layers that decompress or quantise them. So does a value that takes over 64 KiB more than the inputs of its layer.
    If a value is folded, the weights are copied into memory.
    """
    model = as_model(model)
    blob = bytearray() if model.weights is None else bytearray(model.weights.data)
    layers, edges = _folded(model, blob)
    return model if layers is model.layers else rebuilt(model, layers, edges, Weights(data=bytes(blob)))


def _folded(model: Model, blob: bytearray) -> tuple[Mapping[int, Layer], Sequence[Edge]]:
    """Return the layers and edges of a model, or the same objects if nothing is folded. Add the values to ``blob``."""
    layers = {id: _inside(layer, blob) for id, layer in model.layers.items()}
    types = {key: value.type for key, value in settled(model).items()}
    arrays = _arrays(model, types)
    constant = {id for id, _ in arrays}
    read = {feed for id, feeds in model.feeds.items() if id not in constant for feed in feeds if feed is not None}
    folded = [key for key in arrays if key in read and not is_constant(model.layers[key[0]])]
    if not folded:
        same = all(layers[id] is layer for id, layer in model.layers.items())
        return (model.layers if same else layers), model.edges
    moved: dict[Output, int] = {}
    fresh = max(layers) + 1
    for key in folded:
        id, position = key
        old = model.layers[id]
        own = id if len(old.outputs) == 1 else fresh
        fresh += own == fresh
        layers[own] = _constant(old, position, own, model.output_name(*key), arrays[key], types[key], blob)
        moved[id, old.outputs[position].id] = own
    replaced = set(moved.values())  # a Const has no inputs
    edges = [
        replace(e, from_layer=moved[e.from_layer, e.from_port], from_port=0)
        if (e.from_layer, e.from_port) in moved
        else e
        for e in model.edges
        if e.to_layer not in replaced
    ]
    kept = _kept(model, layers, edges, constant)
    edges = [e for e in edges if e.from_layer in kept and e.to_layer in kept]
    return {id: layer for id, layer in layers.items() if id in kept}, edges


def _inside(layer: Layer, blob: bytearray) -> Layer:
    """Return a layer with folded bodies, or the same object if nothing is folded."""
    bodies = {}
    for tag, body in layer.bodies.items():
        layers, edges = _folded(body, blob)
        same = layers is body.layers
        bodies[tag] = body if same else replace(body, layers=layers, edges=tuple(edges))
    return layer if all(bodies[tag] is body for tag, body in layer.bodies.items()) else replace(layer, bodies=bodies)


def _kept(model: Model, layers: dict[int, Layer], edges: list[Edge], constant: set[int]) -> set[int]:
    """Return the layers without the constant ones that nobody reads any longer."""
    producers: dict[int, list[int]] = {}
    for edge in edges:
        producers.setdefault(edge.to_layer, []).append(edge.from_layer)
    waiting = [id for id in layers if id not in constant and id in model.layers]
    kept = set(waiting)
    while waiting:
        for producer in producers.get(waiting.pop(), ()):
            if producer not in kept:
                kept.add(producer)
                waiting.append(producer)
    return kept


_MOST_GROWTH: Final = 1 << 16
"""The bytes by which a folded value may exceed the inputs of its layer."""
_ALIGNMENT: Final = 64


_QUANTISING: Final = ("fakequantize", "fakeconvert")
"""Operations, in lower case, by which a plugin knows that it may compute in a narrower type."""


def _arrays(model: Model, types: Mapping[Output, ElementType]) -> dict[Output, np.ndarray]:
    """Return the values of the outputs that depend only on constants and are worth folding, constants included."""
    arrays: dict[Output, np.ndarray] = {}
    ops = {layer.id: op for layer, op, _ in bind_all(model)}
    for id in model.order:
        layer, op = model.layers[id], ops[id]
        if (
            op is None
            or layer.bodies
            or not layer.outputs
            or layer.type.lower() in _QUANTISING
            or not (is_constant(layer) or (op.pure and model.feeds[id]))
        ):
            continue
        if any(feed is None or feed not in arrays for feed in model.feeds[id]):
            continue
        feeds = model.feeds[id]
        if feeds and feeds[0] and _widens(types[feeds[0]], types.get((id, 0))):
            continue
        inputs = [arrays[feed] for feed in model.feeds[id] if feed is not None]
        outputs = _run(model, layer, op, inputs)
        most = sum(array.nbytes for array in inputs) + _MOST_GROWTH
        if len(outputs) >= len(layer.outputs) and (not inputs or sum(a.nbytes for a in outputs) <= most):
            arrays |= {(id, position): array for position, array in enumerate(outputs[: len(layer.outputs)])}
    return arrays


def _widens(before: ElementType, after: ElementType | None) -> bool:
    """Return whether numbers become floating-point numbers of more bits."""
    return after is not None and after.kind == "float" and after.bits > before.bits


def _run(model: Model, layer: Layer, op: Op, inputs: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the outputs of a layer, or nothing if it refuses its inputs: a run then reports it."""
    try:
        with np.errstate(all="ignore"):
            results = op.run(*inputs, **needed(op, model, layer))
    except Refused:
        return ()
    return tuple(np.asarray(result) for result in (results if isinstance(results, tuple) else (results,)))


def _constant(
    old: Layer, position: int, id: int, name: str, array: np.ndarray, element_type: ElementType, blob: bytearray
) -> Layer:
    """Return a Const in the place of an output, and add its value to ``blob``."""
    raw = pack(array, element_type)
    blob += bytes(-len(blob) % _ALIGNMENT)
    attributes = {
        "element_type": element_type.name, "shape": ",".join(map(str, array.shape)), "offset": str(len(blob)),
        "size": str(len(raw)),
    }  # fmt: skip
    blob += raw
    port = replace(old.outputs[position], id=0)
    return Layer(id, name, "Const", "opset1", attributes, (), (port,), old.node if id == old.id else -1)
