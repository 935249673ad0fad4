"""The functions that build the layers of each operation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from irrun.base.source import Source
from irrun.build._arguments import argument_name, inputs_of, split_arguments
from irrun.build._call_site import CallSite, empty_model
from irrun.build._nodes import Graph, Node, Output, new_layer
from irrun.diagnostics import ModelError, Refused, UnsupportedError
from irrun.inference.bind import bind
from irrun.inference.layer import infer
from irrun.inference.propagate import needed, refusal
from irrun.model import Layer, Port
from irrun.model.lookup import nearest
from irrun.opdef import SPECIFICATION, Op, Site, Value, all_ops, find, is_custom, resolve
from irrun.types import ElementType, PartialShape

__all__ = ["function_of", "infer_node", "operation_names"]

_OWN_FUNCTIONS: Final = {
    "parameter": "irrun.build.parameter(shape, element_type)",
    "const": "irrun.build.constant(data)",
    "result": "irrun.build.model(outputs)",
}
"""The calls that build the layer types without a function of their own name, by the type in lower case."""


def function_of(name: str, others: Iterable[str]) -> Callable[..., Node]:
    """Return the function that builds the layers of an operation, whatever the case of its ``name``.

    Raises AttributeError if there is none. ``others`` are further names that the caller may have meant.
    """
    if name.lower() in _OWN_FUNCTIONS:
        raise AttributeError(f"irrun.build has no function {name}; call {_OWN_FUNCTIONS[name.lower()]}")
    versions = find(name)
    if not versions:
        near = nearest(name, [*operation_names(), *others])
        help = f"; did you mean {near[0]}?" if near else ""
        # with an object that has no names of its own, Python suggests none after ours
        raise AttributeError(f"irrun knows no operation {name}{help}", name=name, obj=None)
    return _function(name, versions[max(versions)], tuple(sorted(versions)))


@cache
def _function(name: str, newest: type[Op], versions: tuple[int, ...]) -> Callable[..., Node]:
    """Return the function that builds the layers of an operation with these versions."""

    def function(*inputs: Any, **keywords: Any) -> Node:
        return _operation(name, *inputs, **keywords)

    function.__name__ = function.__qualname__ = newest.type
    function.__module__ = "irrun.build"
    function.__signature__ = _signature(newest)  # type: ignore[attr-defined]
    function.__doc__ = _documentation(newest, versions)
    return function


def _signature(cls: type[Op]) -> inspect.Signature:
    """Return the signature of the function of an operation: its inputs, its attributes, and what every function takes.

    Inputs come by position or by name, everything else by name.
    """
    kinds = inspect.Parameter
    parameters: list[inspect.Parameter] = []
    for port in cls.inputs:
        name = argument_name(port.name)
        if port.variadic:
            parameters.append(kinds(name, kinds.VAR_POSITIONAL, annotation=_Annotation("Tensor")))
        else:
            default = None if port.optional else kinds.empty
            annotation = _Annotation("Tensor | None" if port.optional else "Tensor")
            parameters.append(kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation))
    taken = {parameter.name for parameter in parameters}
    own = [(key, attribute) for key, attribute in cls.attributes.items() if key not in taken]
    for key, attribute in sorted(own, key=lambda pair: not pair[1].required):
        default = kinds.empty if attribute.required else _Written(attribute.default)
        parameters.append(
            kinds(argument_name(key), kinds.KEYWORD_ONLY, default=default, annotation=_Annotation(attribute.python))
        )
    taken |= cls.attributes.keys()
    for key, annotation in (("opset", "int | None"), ("name", "str | None"), ("outputs", "int | None")):
        if key not in taken:
            parameters.append(kinds(key, kinds.KEYWORD_ONLY, default=None, annotation=_Annotation(annotation)))
    return inspect.Signature(parameters, return_annotation=_Annotation("Node"))


class _Annotation(str):
    """An annotation that ``help`` shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


class _Written:
    """The default of an attribute in a signature, as a call would write it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        if isinstance(self.value, (ElementType, PartialShape)):
            return repr(str(self.value))
        return repr(list(self.value) if isinstance(self.value, tuple) else self.value)


def _documentation(cls: type[Op], versions: Iterable[int]) -> str:
    """Return the documentation of the function of an operation: its page, its attributes, and its versions."""
    lines = [inspect.cleandoc(cls.__doc__ or "")]
    if cls.inputs:
        ports = ", ".join(f"{port.name} ({cls.types.get(port.type, port.type)})" for port in cls.inputs)
        lines.append(f"Inputs: {ports}. A Tensor is a Node, an Output, an array, or numbers, which become a constant.")
    if cls.attributes:
        listed = "; ".join(f"{key}: {attribute.argument}" for key, attribute in cls.attributes.items())
        lines.append(f"Attributes: {listed}.")
    others = ", ".join(str(number) for number in versions)
    lines.append(f"Versions: opset {others}. ``opset`` chooses one, by default the newest.")
    if cls.spec:
        lines.append(f"Specification: {SPECIFICATION.format(spec=cls.spec)}")
    return "\n\n".join(lines)


def operation_names() -> list[str]:
    """Return the types of all operations for which ``function_of`` returns a function."""
    return sorted({cls.type for cls in all_ops() if cls.type.lower() not in _OWN_FUNCTIONS})


def _operation(
    type: str,
    /,
    *inputs: Any,
    opset: int | None = None,
    name: str | None = None,
    outputs: int | None = None,
    **keywords: Any,
) -> Node:
    """Return the node of an operation. ``keywords`` holds attributes and inputs by name."""
    source = CallSite()
    cls = resolve(type, opset)
    if cls is None:
        layer = new_layer(type, name or type.lower(), {}, opset or 1)
        raise UnsupportedError(bind(empty_model(source), layer)[1])
    given, attributes = split_arguments(cls, inputs, keywords)
    layer = new_layer(cls.type, name, attributes, None if is_custom(cls) else cls.since)
    return infer_node(cls, layer, inputs_of(cls, given), source, outputs)


def infer_node(
    cls: type[Op],
    layer: Layer,
    inputs: Sequence[Output | None],
    source: Source,
    outputs: int | None,
    bodies: Mapping[str, Graph] | None = None,
) -> Node:
    """Return the node of a layer: parse its attributes and infer its outputs.

    ``outputs`` is their number, or None to derive it. Raises ModelError at ``source`` if the operation refuses the
    attributes or the inputs.
    """
    ports = tuple(Port(number, None, None, (), -1) for number, _ in enumerate(inputs))
    named = replace(layer, name=layer.name or layer.type.lower(), inputs=ports)  # diagnostics need a name
    model = empty_model(source)
    op, diagnostics = bind(model, named)
    if op is None or diagnostics:
        raise ModelError(diagnostics)
    values = [None if output is None else output.value for output in inputs]
    site = Site(_output_count(cls, values) if outputs is None else outputs, name=named.name)
    try:
        present = _all_present(inputs)
        inferred = infer(op, site, values, needed(op, model, layer))
    except Refused as refused:
        raise ModelError(refusal(model, named, op, refused)) from None
    return Node(layer, present, inferred, bodies=bodies or {})


def _all_present(inputs: Sequence[Output | None]) -> tuple[Output, ...]:
    """Return the inputs. Raises Refused (IR205) if one is None: a file cannot leave out an input before others."""
    present = tuple(output for output in inputs if output is not None)
    if len(present) < len(inputs):
        help = "pass it: in a file, only the last inputs can be left out"
        raise Refused(f"input {inputs.index(None)} is missing", code="IR205", help=help)
    return present


def _output_count(cls: type[Op], values: Sequence[Value | None]) -> int:
    """Return the number of outputs of an operation, which may depend on its inputs; 1 if it is unknown."""
    if cls.outputs is not None:
        return cls.outputs
    return _COUNTED_FROM_INPUTS[cls.type](values) if cls.type in _COUNTED_FROM_INPUTS else 1


def _split_count(values: Sequence[Value | None]) -> int:
    """Return the number of split lengths of VariadicSplit, or 1 if it is unknown."""
    lengths = values[2] if len(values) > 2 else None
    return (lengths and lengths.shape.count().value) or 1


_COUNTED_FROM_INPUTS: Final[dict[str, Callable[[Sequence[Value | None]], int]]] = {"VariadicSplit": _split_count}
"""Functions that compute the number of outputs from the inputs, for operations where the inputs determine it."""
