"""The ONNX graph that an export builds: its nodes, its constants, and the names of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx

from irrun.diagnostics import Refused
from irrun.model.weights import pack
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["ONNX_TYPES", "Constant", "Graph", "onnx_type"]

ONNX_TYPES: Final = {
    "f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "string": 8, "boolean": 9, "f16": 10, "f64": 11,
    "u32": 12, "u64": 13, "bf16": 16, "f8e4m3": 17, "f8e5m2": 19, "u4": 21, "i4": 22, "f4e2m1": 23, "f8e8m0": 24,
    "u2": 25,
}  # fmt: skip
"""The number of each element type in ``onnx.TensorProto.DataType``. Other types of the IR have none."""

_SINCE: Final = {"f8e4m3": 19, "f8e5m2": 19, "u4": 21, "i4": 21, "f4e2m1": 23, "f8e8m0": 24, "u2": 25}
"""The first operation set of ONNX with an element type, where that is not the first of all."""

_SHARED_BYTES: Final = 1 << 10
"""Constants of at most this many bytes are shared if they are equal: axes, shapes and scalars."""


def onnx_type(type: ElementType, opset: int) -> int:
    """Return the number of an element type in ONNX. Raises Refused (IR610) if the operation set has no such type."""
    if type.name not in ONNX_TYPES:
        raise Refused(f"ONNX has no element type {type}", code="IR610", help="insert a Convert to a type that ONNX has")
    if opset < _SINCE.get(type.name, 0):
        since = _SINCE[type.name]
        message = f"ONNX has {type} from operation set {since} on; this is {opset}"
        raise Refused(message, code="IR610", help=f"export with --opset {since}")
    return ONNX_TYPES[type.name]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the graph. ``read`` returns its bytes as ONNX stores them: it is called when the file is written.

    ``nbytes`` is the number of these bytes. The words of a string tensor are in ``words``.
    """

    type: ElementType
    shape: tuple[int, ...]
    nbytes: int
    read: Callable[[], Any]
    words: tuple[bytes, ...] = ()


@dataclass
class _Shared:
    """What a graph and the graphs within it have in common."""

    names: set[str] = field(default_factory=set)
    constants: dict[str, Constant] = field(default_factory=dict)
    known: dict[tuple[object, ...], str] = field(default_factory=dict)


class Graph:
    """A graph that grows node by node. A graph within another (``within``) reads the tensors of the outer one.

    Names of tensors are unique in the whole model. Constants belong to the outermost graph.
    """

    def __init__(self, opset: int, within: Graph | None = None) -> None:
        self.opset = opset
        self.shared: _Shared = _Shared() if within is None else within.shared
        self.nodes: list[onnx.NodeProto] = []
        self.producers: dict[str, onnx.NodeProto] = {}

    def fresh(self, wish: str) -> str:
        """Return ``wish`` as the name of a new tensor, with a number behind it if a tensor has this name already."""
        name, number = wish or "tensor", 1
        while name in self.shared.names:
            number += 1
            name = f"{wish}#{number}"
        self.shared.names.add(name)
        return name

    def add(self, type: str, inputs: Iterable[str], wish: str, outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node, and return the names of its outputs. Attributes that are None are left out."""
        names = [self.fresh(wish if number == 0 else f"{wish}:{number}") for number in range(outputs)]
        given = {name: value for name, value in attributes.items() if value is not None}
        read = list(inputs)
        while read and not read[-1]:
            read.pop()
        node = onnx.helper.make_node(type, read, names, names[0], **given)
        self.nodes.append(node)
        self.producers |= dict.fromkeys(names, node)
        return names

    def constant(self, array: np.ndarray, type: ElementType | None = None, wish: str = "") -> str:
        """Return the name of a constant with the contents of an array. Small equal constants are shared."""
        type = type or ElementType.of(array.dtype) or ELEMENT_TYPES["dynamic"]
        onnx_type(type, self.opset)
        words: tuple[bytes, ...] = ()
        if type.kind == "string":
            words = tuple(str(word).encode("utf-8", "surrogateescape") for word in array.flat)
            raw = b"\0".join(words)
        else:
            raw = pack(array, type) if array.size else b""
        key = (type.name, array.shape, raw)
        if len(raw) <= _SHARED_BYTES and key in self.shared.known:
            return self.shared.known[key]
        name = self.lazy(Constant(type, array.shape, len(raw), lambda: raw, words), wish or "const")
        if len(raw) <= _SHARED_BYTES:
            self.shared.known[key] = name
        return name

    def lazy(self, constant: Constant, wish: str) -> str:
        """Return the name of a constant whose bytes are read when the file is written."""
        onnx_type(constant.type, self.opset)
        name = self.fresh(wish)
        self.shared.constants[name] = constant
        return name

    def producer(self, name: str) -> onnx.NodeProto | None:
        """Return the node of this graph that computes a tensor, or None."""
        return self.producers.get(name)

    def rename(self, start: int, old: str, wish: str) -> str:
        """Rename a tensor that only the nodes from ``start`` on know, and return its new name."""
        new = self.fresh(wish)
        self.producers[new] = self.producers.pop(old)
        for node in self.nodes[start:]:
            if node.name == old:
                node.name = new
            for names in (node.input, node.output):
                names[:] = [new if name == old else name for name in names]
        return new

    def forget(self, start: int) -> None:
        """Remove the nodes from ``start`` on. No other node reads their tensors."""
        for node in self.nodes[start:]:
            for name in node.output:
                self.producers.pop(name, None)
        del self.nodes[start:]

    def drop_unused(self, outputs: Sequence[str]) -> None:
        """Drop the nodes that no output depends on."""
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                kept.append(node)
                needed |= set(node.input)
                for attribute in node.attribute:
                    needed |= _read(attribute.g)
        self.nodes = kept[::-1]


def _read(graph: onnx.GraphProto) -> set[str]:
    """Return the names of the tensors that the nodes of a graph read, and those of its outputs."""
    names = {output.name for output in graph.output}
    for node in graph.node:
        names |= set(node.input)
        for attribute in node.attribute:
            names |= _read(attribute.g)
    return names
