"""Give LayerNormalization the scale and the bias that follow it in layers of their own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from irrun.export.graph import Constant, Graph

__all__ = ["fuse"]

_NORMALIZATION: Final = "LayerNormalization"
_PARTS: Final = {"Mul": 1, "Add": 2}
"""The nodes that a LayerNormalization takes over, by the position of their constant among its inputs."""


def fuse(graph: Graph, outputs: Collection[str]) -> None:
    """Replace a LayerNormalization, the Mul with a constant behind it and the Add behind that by one node.

    The constant must have the shape of the normalized axes, or of them behind axes of length 1. No other node, and no
    output of the graph, may read the tensors between them.
    """
    readers: dict[str, list[Any]] = {}
    for node in graph.nodes:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    dropped: set[str] = set()
    for node in graph.nodes:
        if node.op_type != _NORMALIZATION:
            continue
        for type, position in _PARTS.items():
            after = readers.get(node.output[0], [])
            if len(after) != 1 or after[0].op_type != type or node.output[0] in outputs:
                break
            name = _parameter(graph, node, after[0])
            if name is None:
                break
            node.input[position:] = [name]
            dropped.add(after[0].output[0])
            node.output[0] = node.name = after[0].output[0]
            graph.producers[node.output[0]] = node
    graph.nodes = [node for node in graph.nodes if node.op_type == _NORMALIZATION or node.output[0] not in dropped]


def _parameter(graph: Graph, node: Any, after: Any) -> str | None:
    """Return the constant that ``after`` joins with the output of a LayerNormalization; None if it is no parameter."""
    others = [name for name in after.input if name != node.output[0]]
    constant = graph.shared.constants.get(others[0]) if len(others) == 1 else None
    scale = graph.shared.constants[node.input[1]]
    if constant is None or constant.type is not scale.type:
        return None
    shape = constant.shape
    while len(shape) > len(scale.shape) and shape[0] == 1:
        shape = shape[1:]
    if shape != scale.shape:
        return None
    if shape == constant.shape:
        return others[0]
    return graph.lazy(Constant(constant.type, shape, constant.nbytes, constant.read), others[0])
