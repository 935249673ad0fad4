"""The inputs and outputs of models, and access to them by position or name."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, cast

from irrun.compat.openvino._building.nodes import LayerNode, Node, Output
from irrun.compat.openvino._errors import Covered, OpenVINOError
from irrun.compat.openvino._shapes import PartialShape, Shape, partial_shape_of
from irrun.compat.openvino._types import Type, type_of
from irrun.model import Layer
from irrun.running.executor import Executable
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["ConstOutput", "ModelOutput", "Port", "Ports", "position_in", "printed"]


class Port(Covered):
    """An input or output of a model. Ports are equal if they are the same port of the same Executable."""

    def __init__(
        self, executable: Executable, layer: Layer, position: int, names: Iterable[str], slot: tuple[int, int]
    ) -> None:
        value = executable.plan.values[slot]
        self._executable, self._layer, self._position = executable, layer, position
        self._names, self._shape = frozenset(names), value.shape
        self._inner_type = value.type
        is_v10 = executable.model.version == 10
        self._type = type_of(_outer_type(value.type, bool(layer.inputs)) if is_v10 else value.type)

    index = property(lambda self: 0)
    names = property(lambda self: set(self._names))
    element_type = property(lambda self: self._type)
    partial_shape = property(lambda self: partial_shape_of(self._shape))
    shape = property(lambda self: self.partial_shape.to_shape())
    any_name = property(lambda self: self.get_any_name())
    node = property(lambda self: self.get_node())

    def get_any_name(self) -> str:
        if not self._names:
            raise OpenVINOError(f'the port of "{self._layer.name}" has no name; use its position')
        return min(self._names)

    def get_names(self) -> set[str]:
        return self.names

    def get_element_type(self) -> Type:
        return self._type

    def get_partial_shape(self) -> PartialShape:
        return self.partial_shape

    def get_shape(self) -> Shape:
        return self.shape

    def get_index(self) -> int:
        return 0

    def get_node(self) -> Node:
        return LayerNode(self._executable, self._layer)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key == cast(Port, other)._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, int]:
        return id(self._executable), self._layer.id

    def __repr__(self) -> str:
        return self._printed("ConstOutput")

    def _printed(self, kind: str) -> str:
        return f"<{kind}: names[{', '.join(sorted(self._names))}] shape{self._shape} type: {self._type.type_name}>"


def _outer_type(inner: ElementType, is_output: bool) -> ElementType:
    """Return the type that users see of a port of an IR v10 model. ``inner`` is its type within the model."""
    if not is_output:
        return ELEMENT_TYPES["f32" if inner.name == "f16" else inner.name]
    return ELEMENT_TYPES["i32" if inner.name in ("i32", "i64", "u32", "u64") else "f32"]


class ModelOutput(Port, Output):
    """A port of a Model."""

    _model: Any = None
    """The Model, of an input."""

    def __repr__(self) -> str:
        return self._printed("Output")


class ConstOutput(Port):
    """A port of a CompiledModel. The ports of its outputs are the keys of results."""


class Ports(Covered):
    """Base of Model and CompiledModel: access to inputs and outputs by position or name."""

    inputs: list[Any]
    outputs: list[Any]

    def _take_ports(self, executable: Executable, kind: type[Port]) -> None:
        """Set ``inputs`` and ``outputs`` to the ports of a model, which become objects of the class ``kind``."""
        self.inputs, self.outputs = _inputs(executable, kind), _outputs(executable, kind)

    def input(self, key: int | str | None = None) -> Any:
        return _selected(self.inputs, "input", key)

    def output(self, key: int | str | None = None) -> Any:
        return _selected(self.outputs, "output", key)

    def __repr__(self) -> str:
        return printed(f"{type(self).__name__}:", self.inputs, self.outputs)


def printed(title: str, inputs: Iterable[Port], outputs: Iterable[Port]) -> str:
    """Return the text of an object with inputs and outputs, as openvino prints it."""
    sides = [",\n".join(port._printed("ConstOutput") for port in ports) for ports in (inputs, outputs)]
    return f"<{title}\ninputs[\n{sides[0]}\n]\noutputs[\n{sides[1]}\n]>"


def _selected(ports: Sequence[Port], side: str, key: Any) -> Any:
    """Return the port with this name or position; without a key, the only port."""
    if key is None:
        if len(ports) != 1:
            raise OpenVINOError(f"the model has {len(ports)} {side}s; choose one by its name or position")
        return ports[0]
    if isinstance(key, str):
        for port in ports:
            if key in port._names:
                return port
        known = ", ".join(sorted(name for port in ports for name in port._names))
        raise OpenVINOError(f"the model has no {side} {key!r}; its {side}s are {known}")
    position = position_in(key)
    if position >= len(ports):
        raise IndexError(f"the model has {len(ports)} {side}s, so it has no {side} at position {position}")
    return ports[position]


def position_in(index: Any) -> int:
    """Return a position among ports as an int. Raises TypeError if it is negative or no integer."""
    position = operator.index(index)
    if position < 0:
        raise TypeError(f"the position of a port is counted from 0, so it cannot be {position}")
    return position


def _inputs(executable: Executable, kind: type[Port]) -> list[Port]:
    model = executable.model
    return [
        kind(executable, p, position, _names(model.version, kind, p.outputs[0].names, p), (p.id, 0))
        for position, p in enumerate(model.parameters)
    ]


def _outputs(executable: Executable, kind: type[Port]) -> list[Port]:
    model = executable.model
    outputs: list[Port] = []
    for position, result in enumerate(model.results):
        slot, producer = model.feeds[result.id][0], model.fed_by(result, 0)
        assert slot is not None
        assert producer is not None
        layer, port = producer
        tensor_names = tuple(dict.fromkeys((*result.output_names, *port.names)))
        named_after = layer if model.version == 10 else result
        suffix = f".{slot[1]}" if len(layer.outputs) > 1 else ""
        outputs.append(
            kind(executable, result, position, _names(model.version, kind, tensor_names, named_after, suffix), slot)
        )
    return outputs


def _names(
    version: int, kind: type[Port], tensor_names: Iterable[str], layer: Layer, suffix: str = ""
) -> tuple[str, ...]:
    """Return the names of a port: those of its tensor and, where openvino adds it, the name of ``layer``."""
    own = tuple(tensor_names)
    if version == 10:  # in IR v10, the name of a layer is a name of its ports, too
        return (*own, layer.name + suffix)
    return own or ((layer.name,) if kind is ConstOutput else ())
