"""Layers of OpenVINO's internal operations with random dims, among them 0 and 1.

A solver does not find them: their tables of blocks, plans and sequences have to agree with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irrun.growing.graphs import Graph, Node, Ref
from irrun.growing.internal import attention, states
from irrun.growing.internal.attention import OFF
from irrun.growing.internal.draw import Draw, Layer
from irrun.opdef import resolve
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["LAYERS", "OFF", "Draw", "Layer", "add_internal"]

LAYERS: Final[dict[str, Callable[[Draw], Layer]]] = attention.LAYERS | states.LAYERS
"""A function for each type that draws a layer."""


def add_internal(graph: Graph, type: str, numbers: np.random.Generator) -> None:
    """Add a layer of an internal operation to a graph: floats are Parameters, tables and other integers constants."""
    name = ("f32", "f32", "f16", "bf16")[int(numbers.integers(4))]
    arrays, attributes = LAYERS[type](Draw(numbers, ELEMENT_TYPES[name].dtype))
    cls = resolve(type, None, "extension")
    assert cls is not None
    refs: list[Ref] = []
    for array in arrays:
        refs.append(Ref(len(graph.nodes)))
        own = ElementType.of(array.dtype)
        assert own is not None
        if own.kind == "float" and array.size and array.ndim:
            graph.nodes.append(Node("parameter", type=own.name, shape=array.shape))
        else:
            graph.nodes.append(Node("constant", type=own.name, shape=array.shape, data=array))
    texts = {key: _text(value) for key, value in attributes.items()}
    graph.nodes.append(Node("layer", cls, texts, refs, cls.outputs or 1))


def _text(value: Any) -> str:
    """Return the value of an attribute as a file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
