"""The functions that build the layers of each operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from irrun.build._arguments import inputs_of, split_arguments
from irrun.build._call_site import CallSite, empty_model
from irrun.build._nodes import Graph, Node, Output, new_layer
from irrun.diagnostics import ModelError, Refused, UnsupportedError
from irrun.inference.bind import bind
from irrun.inference.layer import infer
from irrun.inference.propagate import needed, refusal
from irrun.model import Layer
from irrun.nearest import nearest
from irrun.opdef import Op, Site, Value, all_ops, find, is_custom, resolve
from irrun.source import Source

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
        raise AttributeError(f"irrun knows no operation {name}{help}")
    function = partial(_operation, name)
    function.__doc__ = versions[max(versions)].__doc__
    return function


def operation_names() -> list[str]:
    """Return the types of all operations for which ``function_of`` returns a function."""
    return sorted({cls.type for cls in all_ops() if cls.type.lower() not in _OWN_FUNCTIONS})


def _operation(
    type: str, /, *inputs: Any, opset: int | None = None, name: str | None = None, outputs: int | None = None,
    **keywords: Any,
) -> Node:  # fmt: skip
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
    cls: type[Op], layer: Layer, inputs: Sequence[Output | None], source: Source, outputs: int | None,
    bodies: Mapping[str, Graph] | None = None,
) -> Node:  # fmt: skip
    """Return the node of a layer: parse its attributes and infer its outputs.

    ``outputs`` is their number, or None to derive it. Raises ModelError at ``source`` if the operation refuses the
    attributes or the inputs.
    """
    named = replace(layer, name=layer.name or layer.type.lower())  # diagnostics need a name
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
