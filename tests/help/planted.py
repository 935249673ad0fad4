"""Plant a fault in a model: scale one weight, change one attribute, or replace the type of one layer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import irrun
from irrun.model import Layer, Model, is_constant

__all__ = ["Fault", "chosen", "faults", "plant"]


@dataclass(frozen=True)
class Fault:
    """A fault: what it is, the path of ids to the layer that it changes, and the name of the layer that goes wrong."""

    kind: str
    path: tuple[int, ...]
    layer: str


def faults(model: Model, prefix: str = "", path: tuple[int, ...] = ()) -> Iterator[Fault]:
    """Yield every fault that can be planted in a model and its bodies."""
    for id, layer in model.layers.items():
        name = prefix + model.unique_names[id]
        for body in layer.bodies.values():
            yield from faults(body, f"{name}/", (*path, id))
        if layer.type in _TYPES:
            yield Fault("type", (*path, id), name)
        if layer.type in _ATTRIBUTES:
            yield Fault("attribute", (*path, id), name)
        readers = [reader for reader, feeds in model.feeds.items() if (id, 0) in feeds]
        is_weight = is_constant(layer) and layer.attributes["element_type"] == "f32" and len(readers) == 1
        if is_weight and model.layers[readers[0]].type in ("Convolution", "MatMul", "Add", "Multiply"):
            yield Fault("weight", (*path, id), prefix + model.unique_names[readers[0]])


def plant(path: Path, fault: Fault, target: Path) -> None:
    """Write a copy of a model that has the fault."""
    model = irrun.read_model(path)
    if fault.kind == "weight":
        layer = _at(model, fault.path)
        weights = bytearray(path.with_suffix(".bin").read_bytes())
        offset, size = int(layer.attributes["offset"]), int(layer.attributes["size"])
        values = np.frombuffer(weights, np.float32, size // 4, offset)
        values[np.argmax(np.abs(values))] *= 1.5
        target.with_suffix(".bin").write_bytes(weights)
        target.write_bytes(path.read_bytes())
    else:
        irrun.save_model(_changed(model, fault.path, fault.kind), target)


def _at(model: Model, path: Sequence[int]) -> Layer:
    layer = model.layers[path[0]]
    for id in path[1:]:
        (body,) = (body for body in layer.bodies.values() if id in body.layers)
        layer = body.layers[id]
    return layer


def _changed(model: Model, path: Sequence[int], kind: str) -> Model:
    layer = model.layers[path[0]]
    if len(path) > 1:
        bodies = {
            tag: _changed(body, path[1:], kind) if path[1] in body.layers else body
            for tag, body in layer.bodies.items()
        }
        layer = replace(layer, bodies=bodies)
    elif kind == "type":
        layer = replace(layer, type=_TYPES[layer.type])
    else:
        layer = replace(layer, attributes={**layer.attributes, **_ATTRIBUTES[layer.type](layer.attributes)})
    return replace(model, layers={**model.layers, path[0]: layer})


_TYPES = {"ReLU": "Tanh", "Tanh": "Sigmoid", "Sigmoid": "Tanh", "Add": "Subtract", "Subtract": "Add", "Multiply": "Add"}


def _shifted(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return pads that move the windows by one, and keep the shape of the output."""
    begin, end = ([int(n) for n in attributes[name].split(",")] for name in ("pads_begin", "pads_end"))
    return {
        "pads_begin": ",".join(str(n + 1) for n in begin), "pads_end": ",".join(str(n - 1) for n in end),
    }  # fmt: skip


_ATTRIBUTES: dict[str, Any] = {
    "Convolution": _shifted,
    "MVN": lambda _: {"eps": "0.5"},
    "SoftMax": lambda attributes: {"axis": "0" if attributes["axis"] != "0" else "1"},
    "Gelu": lambda attributes: {"approximation_mode": {"ERF": "TANH"}.get(attributes["approximation_mode"], "ERF")},
    "Clamp": lambda _: {"max": "0.1"},
}


def chosen(model: Model, count: int, seed: int) -> list[Fault]:
    """Return ``count`` different faults at random, or all if there are fewer."""
    every = list(faults(model))
    random.Random(seed).shuffle(every)
    return every[:count]
