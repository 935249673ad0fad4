"""The arguments of a call: how Python values become the inputs and attributes of an operation."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irrun.build._constants import constant, constant_of, preferred_type
from irrun.build._errors import bad_call
from irrun.build._nodes import Node, Output
from irrun.build._text import attribute_text
from irrun.inference.layer import input_at
from irrun.opdef import Input, Op
from irrun.types import ElementType, array_from, as_text, type_set

__all__ = ["argument_name", "inputs_of", "listed", "output_of", "split_arguments"]


def argument_name(name: str) -> str:
    """Return the name of an input or attribute as an argument: a keyword of Python gets an underscore (``else_``)."""
    return f"{name}_" if keyword.iskeyword(name) else name


def split_arguments(
    cls: type[Op], positional: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[list[Any], dict[str, str]]:
    """Return the inputs of a call in order, None for each omitted one, and its attributes as the text of an IR.

    A keyword names an attribute, in the IR or in Python, or an input. Raises BuildError if an input is passed twice.
    ``output_type`` is written also by default: OpenVINO refuses a ShapeOf and a Bucketize without it.
    """
    keywords = {name[:-1] if keyword.iskeyword(name[:-1]) else name: value for name, value in keywords.items()}
    spellings = {key: attribute.name for key, attribute in cls.attributes.items()}
    spellings |= {s: s for attribute in cls.attributes.values() for s in (attribute.name, *attribute.aliases)}
    ports = {port.name for port in cls.inputs} - spellings.keys()
    attributes = {
        spellings.get(name, name): attribute_text(value)
        for name, value in keywords.items()
        if name not in ports and value is not None
    }
    output_type = cls.attributes.get("output_type")
    if output_type is not None and not output_type.required:
        attributes.setdefault(output_type.name, attribute_text(output_type.default))
    inputs = list(positional)
    for position, port in enumerate(cls.inputs):
        if port.name in ports and port.name in keywords:
            if position < len(positional):
                raise bad_call(f"{cls.type} gets its input {port.name} twice: by position and by keyword; pass it once")
            value = keywords[port.name]
            inputs += [None] * (position - len(inputs))
            inputs += value if port.variadic else [value]
    return inputs, attributes


def inputs_of(cls: type[Op], given: Sequence[Any]) -> list[Output | None]:
    """Return the inputs of an operation as outputs of nodes; None for an omitted input.

    Python values become constants, with element types that the other inputs and the operation allow.
    """
    if cls.inputs and cls.inputs[-1].variadic:
        first = len(cls.inputs) - 1
        if len(given) == first + 1 and isinstance(given[-1], (list, tuple)) and any(map(_is_output, given[-1])):
            given = [*given[:first], *given[-1]]  # accept Concat([a, b]) for Concat(a, b)
    outputs = [output_of(item) if _has_type(item) else None for item in given]
    bound: dict[str, ElementType] = {}
    for position, output in enumerate(outputs):
        port = input_at(cls.inputs, position)
        if output is not None and port is not None and output.type.kind != "dynamic":
            bound.setdefault(port.type, output.type)
    for position, item in enumerate(given):
        if item is not None and outputs[position] is None:
            outputs[position] = _constant_input(cls, input_at(cls.inputs, position), item, bound)
    while outputs and outputs[-1] is None:
        outputs.pop()
    return outputs


def output_of(item: Any) -> Output:
    """Return a node, output, array or Python value as an output. Raises BuildError for None."""
    if item is None:
        raise bad_call("None is not a tensor; pass an output, an array or a number")
    if isinstance(item, Output):
        return item
    return (item if isinstance(item, Node) else constant(item)).output


def listed(items: Any) -> list[Any]:
    """Return a list, a tuple or the outputs of a node as a list, and any other item as a list of one."""
    return list(items) if isinstance(items, (tuple, list, Node)) else [items]


def _constant_input(cls: type[Op], port: Input | None, item: Any, bound: dict[str, ElementType]) -> Output:
    """Return a Python value as a constant of the type that its port requires.

    ``bound`` holds the element types of type variables such as T. A variable without one gets the type of the constant.
    """
    array = array_from(item)
    if array.dtype == object and as_text(array) is None:
        raise bad_call(f"{item!r} cannot be an input of {cls.type}; pass an output, an array, or numbers")
    if port is None:  # one input too many: inference refuses it later
        return constant(array).output
    element_type = bound.get(port.type) if port.type in cls.types else None
    if element_type is None:
        element_type = preferred_type(array, type_set(cls.types.get(port.type, port.type)))
        bound[port.type] = element_type
    return constant_of(array, element_type).output


def _is_output(item: Any) -> bool:
    return isinstance(item, (Node, Output))


def _has_type(item: Any) -> bool:
    """Return whether an input has an element type of its own: it is an output or an array, not a Python value."""
    return isinstance(item, (Node, Output, np.ndarray, np.generic))
