"""Inputs and outputs of element types that numpy has, so that onnxruntime takes and returns arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import onnx

from irrun.export.convert import Exported
from irrun.export.functions import DOMAIN
from irrun.export.graph import ONNX_TYPES
from irrun.types import ELEMENT_TYPES

__all__ = ["PlainEnds", "plain_ends", "without_functions"]

_NAMES: Final = {number: name for name, number in ONNX_TYPES.items()}
_F32: Final = ONNX_TYPES["f32"]


@dataclass(frozen=True, slots=True)
class PlainEnds:
    """An exported model, whose inputs and outputs of other types than numpy's are f32, which hold all their values.

    ``inputs`` and ``outputs`` are the names of the element types before that.
    """

    exported: Exported
    inputs: Sequence[str]
    outputs: Sequence[str]

    def fed(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the inputs of the model."""
        return [array if _is_plain(type) else array.astype(np.float32) for array, type in zip(arrays, self.inputs)]

    def restored(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return its outputs in their own element types."""
        return [
            array if _is_plain(type) else array.astype(ELEMENT_TYPES[type].dtype)
            for array, type in zip(arrays, self.outputs)
        ]

    def run(
        self, call: Callable[[Mapping[str, np.ndarray]], Sequence[np.ndarray]], arrays: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Return the outputs that ``call`` gives for inputs by name."""
        names = [value.name for value in self.exported.proto.graph.input]
        return self.restored(call(dict(zip(names, self.fed(arrays)))))


def plain_ends(exported: Exported) -> PlainEnds:
    """Return an exported model with inputs and outputs of element types that numpy has."""
    graph = exported.proto.graph
    inputs, outputs = ([_NAMES[v.type.tensor_type.elem_type] for v in ends] for ends in (graph.input, graph.output))
    if all(map(_is_plain, (*inputs, *outputs))):
        return PlainEnds(exported, inputs, outputs)
    proto = onnx.ModelProto()
    proto.CopyFrom(exported.proto)
    nodes = list(proto.graph.node)
    for value, type in zip(proto.graph.input, inputs):
        if not _is_plain(type):
            nodes.insert(0, _cast(f"{value.name}/f32", value.name, ONNX_TYPES[type]))
            _retyped(value)
    for value, type in zip(proto.graph.output, outputs):
        if not _is_plain(type):
            nodes.append(_cast(value.name, f"{value.name}/f32", _F32))
            _retyped(value)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    return PlainEnds(replace(exported, proto=proto), inputs, outputs)


def without_functions(exported: Exported) -> Exported:
    """Return a model without its functions: inputs give what they compute, and outputs show what they read.

    Both stand behind the other inputs and outputs, in the order of ``functions``.
    """
    if not exported.functions:
        return exported
    proto = onnx.ModelProto()
    proto.CopyFrom(exported.proto)
    graph = proto.graph
    kept = [node for node in graph.node if not node.domain.startswith(DOMAIN)]
    del graph.node[:]
    graph.node.extend(kept)
    graph.input.extend(info for function in exported.functions for info in function.outputs)
    graph.output.extend(info for function in exported.functions for _, info in function.inputs)
    return replace(exported, proto=proto)


def _is_plain(type: str) -> bool:
    """Return whether numpy has an element type."""
    return type == "string" or ELEMENT_TYPES[type].dtype.isbuiltin == 1


def _cast(source: str, target: str, to: int) -> onnx.NodeProto:
    node = onnx.helper.make_node("Cast", [source], [target], to=to)
    if _NAMES[to].startswith("f8"):
        node.attribute.append(onnx.helper.make_attribute("saturate", 0))
    return node


def _retyped(value: Any) -> None:
    """Make an input or output f32, under another name."""
    value.name += "/f32"
    value.type.tensor_type.elem_type = _F32
