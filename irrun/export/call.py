"""A layer as its converter sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import onnx

from irrun.diagnostics import Refused
from irrun.export.graph import Graph, onnx_type
from irrun.model import Layer
from irrun.opdef import Value
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["Call", "Operand"]

Operand = str | int | float | bool | Sequence[int] | np.ndarray | np.generic | None
"""An input of a node: the name of a tensor; a number, as a scalar of the type that the layer computes in; a list, as a
tensor of i64; an array; or None for an input that is left out."""


@dataclass
class Call:
    """A layer, its attributes and inputs, and the graph to which its converter adds nodes.

    ``inputs`` are names of tensors, ``values`` what is known of them; both are None for an input that is not connected.
    ``outputs`` are what is known of the outputs, and ``read`` the positions of those that are read. ``type`` is the
    type that the layer computes in. ``body`` converts a body of the layer: it takes the name of the body's element, the
    tensor of each Parameter by layer id, and the graph, and returns the tensor of each Result by layer id. ``states``
    are the variables of the model that were read so far, by their ids, and ``assigned`` the tensors that were stored.
    ``inside`` says whether the layer is in a body, and ``alone`` for each input whether no other layer reads it.
    """

    layer: Layer
    op: Any
    graph: Graph
    name: str
    inputs: list[str | None]
    values: list[Value | None]
    outputs: list[Value]
    type: ElementType
    body: Callable[[str, Mapping[int, str], Graph], dict[int, str]]
    states: dict[str, State]
    assigned: dict[str, str]
    read: frozenset[int]
    inside: bool
    alone: list[bool]

    @property
    def opset(self) -> int:
        """The operation set of ONNX that is written."""
        return self.graph.opset

    def __call__(self, type: str, *inputs: Operand, **attributes: Any) -> str:
        """Add a node with one output, and return its name."""
        return self.many(type, *inputs, outputs=1, **attributes)[0]

    def many(self, type: str, *inputs: Operand, outputs: int, **attributes: Any) -> list[str]:
        """Add a node, and return the names of its outputs."""
        names = [self.operand(operand) for operand in inputs]
        return self.graph.add(type, names, f"{self.name}/{type}", outputs, **attributes)

    def operand(self, operand: Operand) -> str:
        """Return the name of a tensor for an operand; an empty name for None."""
        if operand is None or isinstance(operand, str):
            return operand or ""
        if isinstance(operand, (np.ndarray, np.generic)):
            return self.graph.constant(np.asarray(operand))
        if isinstance(operand, (bool, int, float)):
            return self.scalar(operand, self.type)
        return self.graph.constant(np.array(list(operand), np.int64))

    def scalar(self, number: float, type: ElementType | str) -> str:
        """Return a constant without axes, of an element type."""
        type = ELEMENT_TYPES[type] if isinstance(type, str) else type
        with np.errstate(over="ignore"):
            return self.graph.constant(np.array(number).astype(type.dtype), type)

    def cast(self, name: str, type: ElementType | str) -> str:
        """Return a tensor converted to an element type. Numbers beyond an f8 become infinite or NaN."""
        type = ELEMENT_TYPES[type] if isinstance(type, str) else type
        saturate = 0 if type.name.startswith("f8") else None
        return self("Cast", name, to=onnx_type(type, self.opset), saturate=saturate)

    def given(self, position: int) -> bool:
        """Return whether an input is connected."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def input(self, position: int) -> str:
        """Return the name of a connected input."""
        name = self.inputs[position]
        assert name is not None
        return name

    def value(self, position: int) -> Value:
        """Return what is known of a connected input."""
        value = self.values[position]
        assert value is not None
        return value

    def reads(self, position: int) -> bool:
        """Return whether anything reads an output."""
        return position in self.read

    def rank(self, position: int = 0) -> int:
        """Return the rank of an input. Raises Refused (IR610) if it is not known."""
        rank = self.value(position).rank
        if rank is None:
            self.refuse(f"the rank of input {position} is not known", "export with a shape: --shape NAME=SHAPE")
        return rank

    def dim(self, position: int, axis: int) -> int | None:
        """Return a dim of an input, or None if it is not known."""
        shape = self.value(position).shape
        return None if shape.dims is None else shape.dims[axis].value

    def dims(self, position: int = 0) -> tuple[int, ...]:
        """Return the dims of an input. Raises Refused (IR610) unless all are known."""
        static = self.value(position).shape.static
        if static is None:
            self.refuse(
                f"the shape of input {position}, {self.value(position).shape}, is not known",
                "export with a shape: --shape NAME=SHAPE",
            )
        return static

    def known(self, position: int) -> np.ndarray:
        """Return the contents of an input. Raises Refused (IR610) if they are not known."""
        data = self.value(position).exact
        if data is None:
            self.refuse(f"input {position} is not constant, as ONNX wants it")
        return data

    def ints(self, position: int) -> list[int]:
        """Return the contents of an input as a list. Raises Refused (IR610) if they are not known."""
        return [int(n) for n in self.known(position).ravel()]

    def axis(self, axis: int, position: int = 0) -> int:
        """Return an axis of an input, counted from the front."""
        return axis % self.rank(position) if axis < 0 else axis

    def refuse(self, reason: str, help: str | None = None) -> NoReturn:
        """Raise Refused (IR610): ONNX cannot say what the layer does, for a ``reason`` that follows its name."""
        raise Refused(reason, code="IR610", help=help or "edit the layer, or cut it out (irrun extract)")

    def require(self, condition: bool, reason: str, help: str | None = None) -> None:
        """Refuse the layer unless ``condition`` is true."""
        if not condition:
            self.refuse(reason, help)

    def since(self, opset: int, what: str) -> None:
        """Refuse the layer if the operation set is older than ``opset``, the first that has ``what``."""
        self.require(
            self.opset >= opset, f"ONNX has {what} from operation set {opset} on", f"export with --opset {opset}"
        )

    # -- idioms of several converters -----------------------------------------------------------

    def shape_of(self, name: str, start: int | None = None, end: int | None = None) -> str:
        """Return the dims of a tensor from axis ``start`` to ``end`` as i64 [n]."""
        return self("Shape", name, start=start, end=end)

    def axes_of(self, position: int, rank: int | None = None) -> list[int]:
        """Return the known axes in an input, counted from the front of input 0, or in ``rank`` axes."""
        rank = self.rank() if rank is None else rank
        return [axis % max(rank, 1) for axis in self.ints(position)]

    def subgraph(self, name: str, graph: Graph, inputs: Sequence[Any], outputs: Sequence[Any]) -> onnx.GraphProto:
        """Return a graph within this one, as an attribute holds it."""
        graph.drop_unused([output.name for output in outputs])
        return onnx.helper.make_graph(graph.nodes, name, inputs, outputs)


@dataclass(frozen=True, slots=True)
class State:
    """A variable of a model: the graph input that holds it before a run, and the output that holds it afterwards.

    ``reader`` is the ReadValue whose output is the input of the graph. A variable that is never assigned stays.
    """

    reader: Layer
    value: Value
    input: str
    output: str
