"""Nodes: layers of a model, or operations that are being built, and their inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

import irrun.build as build
from irrun.compat.openvino._building.layouts import Layout
from irrun.compat.openvino._errors import Covered, NotCovered, OpenVINOError, translated
from irrun.compat.openvino._shapes import PartialShape, Shape, partial_shape_of
from irrun.compat.openvino._types import Type, type_of
from irrun.diagnostics import IrrunError
from irrun.inference.bind import bind
from irrun.model import Layer
from irrun.opdef import Value
from irrun.running.executor import Executable
from irrun.types import ElementType
from irrun.types import PartialShape as OwnShape

__all__ = ["BuiltNode", "BuiltOutput", "DiscreteTypeInfo", "Input", "LayerNode", "Node", "Output", "made", "unwrapped"]

_TYPE_NAMES: Final = {"Const": "Constant", "PReLU": "PRelu", "ReLU": "Relu", "SoftMax": "Softmax"}
"""The names that openvino gives to layer types, where they differ from those in an IR."""


class DiscreteTypeInfo(Covered):
    """The type of a node and the operation set that it comes from."""

    def __init__(self, layer: Layer) -> None:
        self.name, self.version_id = _type_name(layer), layer.version or "opset1"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DiscreteTypeInfo) and (self.name, self.version_id) == (other.name, other.version_id)

    def __hash__(self) -> int:
        return hash((self.name, self.version_id))

    def __repr__(self) -> str:
        return f"<DiscreteTypeInfo: {self.name} {self.version_id}>"


class Node(Covered):
    """A layer of a model, or an operation that is being built. Operators such as ``+`` build further nodes."""

    _layer: Layer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotCovered("Node(…); call a function of openvino.opset1 to openvino.opset17")

    # -- what the two kinds of nodes know

    @property
    def _name(self) -> str:
        raise NotImplementedError

    @property
    def _values(self) -> Sequence[Value]:
        """What is known of the outputs."""
        raise NotImplementedError

    def inputs(self) -> list[Input]:
        raise NotImplementedError

    def outputs(self) -> list[Any]:
        raise NotImplementedError

    # -- the interface of openvino

    def get_friendly_name(self) -> str:
        return self._name

    def set_friendly_name(self, name: str) -> None:
        raise NotCovered("renaming a layer of a model; use `irrun edit --rename`")

    def get_name(self) -> str:
        return self._name

    def get_type_name(self) -> str:
        return _type_name(self._layer)

    def get_type_info(self) -> DiscreteTypeInfo:
        return DiscreteTypeInfo(self._layer)

    def get_attributes(self) -> dict[str, Any]:
        """Return the attributes by name, as Python values."""
        op, _ = bind(build.model([build.parameter()]), self._layer)
        if op is None or self._layer.type == "Const":
            return {}
        return {a.name: _plain(getattr(op, key)) for key, a in op.attributes.items() if getattr(op, key) is not None}

    def input(self, index: int) -> Input:
        return self.inputs()[index]

    def output(self, index: int) -> Any:
        return self.outputs()[index]

    def input_values(self) -> list[Any]:
        return [input.get_source_output() for input in self.inputs()]

    def input_value(self, index: int) -> Any:
        return self.input_values()[index]

    def get_input_size(self) -> int:
        return len(self.inputs())

    def get_output_size(self) -> int:
        return len(self._values)

    def get_output_partial_shape(self, index: int) -> PartialShape:
        return partial_shape_of(self._values[index].shape)

    def get_output_shape(self, index: int) -> Shape:
        return self.get_output_partial_shape(index).to_shape()

    def get_output_element_type(self, index: int) -> Type:
        return type_of(self._values[index].type)

    def get_element_type(self) -> Type:
        return self.get_output_element_type(0)

    def get_shape(self) -> Shape:
        return self.get_output_shape(0)

    def get_partial_shape(self) -> PartialShape:
        return self.get_output_partial_shape(0)

    friendly_name = property(get_friendly_name, lambda self, name: self.set_friendly_name(name))
    name, type_info, shape = property(get_name), property(get_type_info), property(get_shape)
    partial_shape, element_type = property(get_partial_shape), property(get_element_type)

    def __repr__(self) -> str:
        shapes = [str(partial_shape_of(value.shape)) for value in self._values]
        if self._layer.type == "Parameter":
            shapes.append(_c_type(self._values[0].type))
        return f"<{self.get_type_name()}: '{self._name}' ({', '.join(shapes)})>"


class LayerNode(Node):
    """A layer of a model."""

    def __init__(self, executable: Executable, layer: Layer) -> None:
        self._executable, self._layer = executable, layer

    @property
    def _name(self) -> str:
        return self._layer.name

    @property
    def _values(self) -> list[Value]:
        if self._layer.type == "Result":  # it has an output in openvino: its input
            return [input.get_source_output()._value for input in self.inputs()]
        return [_value(self._executable, (self._layer.id, i)) for i in range(len(self._layer.outputs))]

    def inputs(self) -> list[Input]:
        graph = self._executable.model
        feeds = [feed for feed in graph.feeds[self._layer.id] if feed is not None]
        return [
            Input(self, i, LayerOutput(LayerNode(self._executable, graph.layers[feed[0]]), feed[1]))
            for i, feed in enumerate(feeds)
        ]

    def outputs(self) -> list[LayerOutput]:
        return [LayerOutput(self, i) for i in range(len(self._values))]

    @property
    def data(self) -> np.ndarray:
        """The contents of a constant."""
        weights, layer = self._executable.model.weights, self._layer
        op, _ = bind(self._executable.model, layer)
        if layer.type != "Const" or weights is None or op is None:
            raise OpenVINOError(f'"{layer.name}" is no constant, so that it has no data')
        return np.array(op.run(weights=weights, element_type=layer.outputs[0].type))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LayerNode)
            and (self._layer.id, id(self._executable)) == (other._layer.id, id(other._executable))
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((id(self._executable), self._layer.id))


def _value(executable: Executable, slot: tuple[int, int]) -> Value:
    """Return what is known of a slot. The planner forgets slots that it fused or folded away."""
    known = executable.plan.values.get(slot)
    if known is not None:
        return known
    port = executable.model.layers[slot[0]].outputs[slot[1]]
    assert port.type is not None
    return Value(port.type, port.shape or OwnShape(()))


def _plain(value: Any) -> Any:
    if isinstance(value, ElementType):
        return value.name
    if isinstance(value, OwnShape):
        return [d.lo if d.is_static else -1 for d in value.dims or ()]
    return list(value) if isinstance(value, tuple) else value


def _type_name(layer: Layer) -> str:
    return _TYPE_NAMES.get(layer.type, layer.type)


def _c_type(own: ElementType) -> str:
    """Return the name of an element type in the C++ interface of openvino, which it prints for a Parameter."""
    special = {"f32": "float", "f16": "float16", "bf16": "bfloat16", "f64": "double", "boolean": "char"}
    special["nf4"] = "nfloat4"
    return special.get(own.name, f"{own.kind}{own.bits}_t" if own.is_integer else own.name)


class Input(Covered):
    """An input of a node."""

    def __init__(self, node: Node, index: int, source: Any) -> None:
        self._node, self._index, self._source = node, index, source

    def get_node(self) -> Node:
        return self._node

    def get_index(self) -> int:
        return self._index

    def get_source_output(self) -> Any:
        return self._source

    def get_element_type(self) -> Type:
        return self._source.get_element_type()

    def get_partial_shape(self) -> PartialShape:
        return self._source.get_partial_shape()

    def get_shape(self) -> Shape:
        return self.get_partial_shape().to_shape()

    element_type, partial_shape, shape = property(get_element_type), property(get_partial_shape), property(get_shape)

    def __repr__(self) -> str:
        return f"<Input: shape{self.partial_shape} type: {self.element_type.type_name}>"


class Output(Covered):
    """An output of a node, or a port of a Model."""

    def get_node(self) -> Node:
        raise NotImplementedError

    def get_index(self) -> int:
        raise NotImplementedError

    def get_names(self) -> set[str]:
        raise NotImplementedError

    def get_partial_shape(self) -> PartialShape:
        raise NotImplementedError

    def get_element_type(self) -> Type:
        raise NotImplementedError

    def get_shape(self) -> Shape:
        return self.get_partial_shape().to_shape()

    def get_any_name(self) -> str:
        names = self.get_names()
        if not names:
            name = self.get_node().get_friendly_name()
            raise OpenVINOError(f'the output of "{name}" has no name; use its position, or give it one with set_names')
        return min(names)

    index = property(lambda self: self.get_index())
    names = property(lambda self: self.get_names())
    any_name = property(lambda self: self.get_any_name())
    node = property(lambda self: self.get_node())
    shape = property(lambda self: self.get_shape())
    partial_shape = property(lambda self: self.get_partial_shape())
    element_type = property(lambda self: self.get_element_type())

    def __repr__(self) -> str:
        names = ", ".join(sorted(self.get_names()))
        return f"<Output: names[{names}] shape{self.get_partial_shape()} type: {self.get_element_type().type_name}>"


class _NodeOutput(Output):
    """An output of a node."""

    _node: Node
    _index: int

    @property
    def _value(self) -> Value:
        return self._node._values[self._index]

    def get_node(self) -> Node:
        return self._node

    def get_index(self) -> int:
        return self._index

    def get_partial_shape(self) -> PartialShape:
        return partial_shape_of(self._value.shape)

    def get_element_type(self) -> Type:
        return type_of(self._value.type)


class LayerOutput(_NodeOutput):
    """An output of a layer of a model."""

    def __init__(self, node: LayerNode, index: int) -> None:
        self._node, self._index = node, index

    def get_names(self) -> set[str]:
        node = self._node
        assert isinstance(node, LayerNode)
        if node._layer.type == "Result":
            return set(node._layer.output_names) or node.input_value(0).get_names()
        return set(node._layer.outputs[self._index].names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayerOutput) and (self._node, self._index) == (other._node, other._index)

    def __hash__(self) -> int:
        return hash((self._node, self._index))


class BuiltOutput(_NodeOutput):
    """An output of a node that is being built."""

    def __init__(self, node: BuiltNode, index: int) -> None:
        self._node, self._index = node, index
        self._own: build.Output = node._built[index]

    def get_names(self) -> set[str]:
        assert isinstance(self._node, BuiltNode)
        return set(self._node._notes.names.get(self._index, ()))

    def set_names(self, names: Iterable[str]) -> None:
        assert isinstance(self._node, BuiltNode)
        self._node._notes.names[self._index] = set(names)

    def add_names(self, names: Iterable[str]) -> None:
        self.set_names(self.get_names() | set(names))


class BuiltNode(Node):
    """An operation that is being built."""

    def __init__(self, built: build.Node) -> None:
        self._built = built
        self._notes = _NOTES.setdefault(built, _Notes())

    @property
    def _layer(self) -> Layer:  # type: ignore[override]
        return self._built.layer

    @property
    def _name(self) -> str:
        return self._built.layer.name or f"{self.get_type_name()}_{self._built.serial}"

    @property
    def _values(self) -> Sequence[Value]:
        return self._built.values

    def set_friendly_name(self, name: str) -> None:
        self._built.layer = replace(self._built.layer, name=name)

    def inputs(self) -> list[Input]:
        return [
            Input(self, i, BuiltNode(output.node).output(output.index)) for i, output in enumerate(self._built.inputs)
        ]

    def outputs(self) -> list[BuiltOutput]:
        return [BuiltOutput(self, i) for i in range(len(self._built.values))]

    def get_layout(self) -> Layout:
        return self._notes.layout

    def set_layout(self, layout: Layout) -> None:
        self._notes.layout = layout

    layout = property(get_layout, set_layout)

    @property
    def data(self) -> np.ndarray:
        """The contents of a constant."""
        if self._built.data is None:
            raise OpenVINOError(f'"{self._name}" is no constant, so that it has no data')
        return self._built.data

    # operators build nodes, as in openvino
    def __add__(self, other: Any) -> BuiltNode:
        return _operator("Add", self, other)

    def __radd__(self, other: Any) -> BuiltNode:
        return _operator("Add", other, self)

    def __sub__(self, other: Any) -> BuiltNode:
        return _operator("Subtract", self, other)

    def __rsub__(self, other: Any) -> BuiltNode:
        return _operator("Subtract", other, self)

    def __mul__(self, other: Any) -> BuiltNode:
        return _operator("Multiply", self, other)

    def __rmul__(self, other: Any) -> BuiltNode:
        return _operator("Multiply", other, self)

    def __truediv__(self, other: Any) -> BuiltNode:
        return _operator("Divide", self, other)

    def __rtruediv__(self, other: Any) -> BuiltNode:
        return _operator("Divide", other, self)

    def __pow__(self, other: Any) -> BuiltNode:
        return _operator("Power", self, other)

    def __neg__(self) -> BuiltNode:
        return _operator("Negative", self)

    def __lt__(self, other: Any) -> BuiltNode:
        return _operator("Less", self, other)

    def __le__(self, other: Any) -> BuiltNode:
        return _operator("LessEqual", self, other)

    def __gt__(self, other: Any) -> BuiltNode:
        return _operator("Greater", self, other)

    def __ge__(self, other: Any) -> BuiltNode:
        return _operator("GreaterEqual", self, other)


@dataclass
class _Notes:
    """What openvino keeps with a node, and irrun.build does not: names of its output tensors, and a layout."""

    names: dict[int, set[str]] = field(default_factory=dict)
    layout: Layout = field(default_factory=Layout)


_NOTES: Final[WeakKeyDictionary[build.Node, _Notes]] = WeakKeyDictionary()


def _operator(type: str, *operands: Any) -> BuiltNode:
    return made(getattr(build, type), *operands)


def made(function: Callable[..., build.Node], *inputs: Any, **attributes: Any) -> BuiltNode:
    """Call a function of irrun.build with nodes of the stand-in. Raises OpenVINOError if it refuses the arguments."""
    try:
        return BuiltNode(function(*map(unwrapped, inputs), **{k: unwrapped(v) for k, v in attributes.items()}))
    except (IrrunError, ValueError) as error:
        raise translated(error) if isinstance(error, IrrunError) else OpenVINOError(str(error)) from error


def unwrapped(item: Any) -> Any:
    """Return an argument as irrun.build takes it."""
    if isinstance(item, BuiltNode):
        return item._built
    if isinstance(item, BuiltOutput):
        return item._own
    if isinstance(item, (LayerNode, LayerOutput)):
        raise NotCovered("operations on layers of a model; build the whole model, or use PrePostProcessor")
    if isinstance(item, Type):
        return item._own.name
    return item
