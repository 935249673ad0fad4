"""The modules openvino.opset1 to openvino.opset17: functions that build nodes."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, Final

import numpy as np

import irrun.build as build
from irrun.compat.openvino._building.nodes import BuiltNode, made, unwrapped
from irrun.compat.openvino._building.signatures import PARAMETERS
from irrun.compat.openvino._errors import NotCoveredAttribute
from irrun.compat.openvino._shapes import PartialShape
from irrun.compat.openvino._types import Type
from irrun.inference.bind import LATEST_OPSET
from irrun.opdef import Op, resolve

__all__ = ["OPSETS", "Opset", "Result", "constant", "parameter"]

_TYPES: Final = {"absolute": "abs", "ceil": "ceiling"}
"""Functions that are not named after their operation."""

_RENAMED: Final = {
    "kernel_shape": "kernel", "min_value": "min", "max_value": "max", "lambda_value": "lambda",
    "broadcast_spec": "mode", "exclude_pad": "exclude-pad", "merge_repeated": "ctc_merge_repeated",
}  # fmt: skip
"""Parameters whose attribute has another name."""


class Opset(ModuleType):
    """An operation set: a module with a function for each of its operations."""

    def __init__(self, number: int) -> None:
        super().__init__(f"openvino.opset{number}", f"The functions of opset{number}, which build nodes.")
        self._number = number

    def __getattr__(self, name: str) -> Callable[..., BuiltNode]:
        if name in _OWN:
            return _OWN[name]
        versions = [since for since in PARAMETERS.get(name, ()) if since <= self._number]
        cls = _operation(name, self._number) if versions else None
        if name.startswith("__"):
            raise AttributeError(name)
        if cls is None:
            near = difflib.get_close_matches(name, dir(self), 1)
            raise NotCoveredAttribute(f"{self.__name__}.{name}", f"{self.__name__}.{near[0]}" if near else None)
        function = partial(_call, name, PARAMETERS[name][max(versions)].split(), cls)
        function.__doc__ = cls.__doc__
        return function

    def __dir__(self) -> list[str]:
        return sorted({*_OWN, *(n for n, rows in PARAMETERS.items() if min(rows) <= self._number)})


def _operation(name: str, opset: int) -> type[Op] | None:
    return resolve(_TYPES.get(name, name).replace("_", ""), opset)


def slots(cls: type[Op], parameters: list[str]) -> dict[str, str | int | None]:
    """Return what each parameter of a function sets: an attribute, the input at a position, or None for attributes.

    A parameter named after an attribute sets it, and ``attrs`` sets several; the others are the inputs in order.
    """
    attributes = {s: key for key, a in cls.attributes.items() for s in (key, a.name, *a.aliases)}
    inputs = iter(range(len(cls.inputs)))
    named = {port.name: position for position, port in enumerate(cls.inputs)}
    found: dict[str, str | int | None] = {}
    for parameter in parameters:
        attribute = attributes.get(parameter) or attributes.get(_RENAMED.get(parameter, parameter))
        if parameter in ("attrs", "attributes"):
            found[parameter] = None
        elif attribute is not None and parameter not in named:
            found[parameter] = attribute
        else:
            found[parameter] = next(inputs, len(found))
    return found


def _call(
    function: str, parameters: list[str], cls: type[Op], /, *args: Any, name: str | None = None, **kwargs: Any
) -> BuiltNode:
    """Build the node of an operation from the arguments of a function of openvino. Raises TypeError as Python does."""
    if len(args) > len(parameters):
        if len(args) > len(parameters) + 1:
            raise TypeError(f"{function}() takes {len(parameters) + 1} arguments, but {len(args)} were passed")
        args, name = args[:-1], args[-1]  # openvino takes the name as the last argument
    values = dict(zip(parameters, args))
    for keyword, value in kwargs.items():
        if keyword not in parameters:
            near = difflib.get_close_matches(keyword, parameters, 1)
            help = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(parameters)}"
            raise TypeError(f"{function}() has no parameter {keyword}{help}")
        values[keyword] = value
    inputs: dict[int, Any] = {}
    attributes: dict[str, Any] = {}
    for parameter, slot in slots(cls, parameters).items():
        value = values.get(parameter)
        if value is None:
            continue
        if slot is None:
            attributes |= {key: _attribute(item) for key, item in value.items()}
        elif isinstance(slot, str):
            attributes[slot] = _attribute(value)
        else:
            inputs[slot] = value
    if not inputs:
        raise TypeError(f"{function}() lacks its argument {parameters[0]}")
    given = [inputs.get(i) for i in range(max(inputs) + 1)]
    if len(given) == 1 and cls.inputs[0].variadic:
        given = list(inputs[0])
    return made(partial(getattr(build, cls.type), opset=cls.since, name=name), *given, **attributes)


def _attribute(value: Any) -> Any:
    """Return the value of an attribute as irrun.build takes it."""
    if isinstance(value, Type):
        return value._own.name
    if isinstance(value, (type, np.dtype)):
        return Type(value)._own.name
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value


def parameter(shape: Any, dtype: Any = np.float32, name: str | None = None) -> BuiltNode:
    """Build a Parameter."""
    element_type = dtype if isinstance(dtype, Type) else Type(dtype)
    own = PartialShape(shape)._own
    return made(partial(build.parameter, own, element_type._own.name, name=name))


def constant(value: Any, dtype: Any = None, name: str | None = None, **kwargs: Any) -> BuiltNode:
    """Build a Constant. Without ``dtype``, an array keeps its type, and numbers become i64 or f32."""
    element_type = None if dtype is None else dtype if isinstance(dtype, Type) else Type(dtype)
    own = None if element_type is None else element_type._own.name
    if own is None and not isinstance(value, (np.ndarray, np.generic)):
        value = np.array(value)
    return made(partial(build.constant, value, own, name=name))


class Result(BuiltNode):
    """An output of a model that is being built. It stands for its input, which ``Model`` makes an output."""

    def __init__(self, source: Any) -> None:
        output = unwrapped(source)
        if not isinstance(output, (build.Node, build.Output)):
            raise TypeError(f"a Result is made from a node or its output, not from a {type(source).__name__}")
        self._of = output.output if isinstance(output, build.Node) else output
        super().__init__(self._of.node)

    def __repr__(self) -> str:
        return f"<Result: '{self._name}' ({self._of.shape})>"


def result(data: Any, name: str | None = None) -> Result:
    """Build a Result. It has no name of its own: that of the tensor is the name of the output."""
    return Result(data)


_OWN: Final[dict[str, Any]] = {"parameter": parameter, "constant": constant, "result": result}

OPSETS: Final = {number: Opset(number) for number in range(1, LATEST_OPSET + 1)}
"""The modules by number."""
