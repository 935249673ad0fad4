"""Infer the outputs of one layer: check the number and types of its inputs, apply its shape rule, compute contents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from irrun.base.memory import lacks_memory
from irrun.base.text import counted
from irrun.diagnostics import Refused
from irrun.opdef import Input, Op, Site, Value, arity
from irrun.opdef.values import CONTENTS_LIMIT, array_of
from irrun.types import ElementType, PartialShape, UnknownDimError, as_dim, type_set

__all__ = ["infer", "input_at", "input_name"]


def infer(
    op: Op, at: Site, inputs: Sequence[Value | None], needed: dict[str, Any], *, contents: bool = True
) -> tuple[Value, ...]:
    """Return the outputs of one layer.

    Check the number and the element types of the inputs, apply the shape rule of the operation, and compute the
    contents of the outputs if those of all inputs are known (unless ``contents`` is false). ``needed`` holds the
    keyword arguments in ``Op.needs``. Raises Refused if the operation does not accept the inputs.
    """
    _check_arity(op, len(inputs), inputs)
    _check_types(op, inputs)
    outputs = op.infer(at, *inputs, **needed)
    values = outputs if isinstance(outputs, tuple) else (outputs,)
    return _contents(op, inputs, values, needed) if contents else values


def input_at(declared: tuple[Input, ...], position: int) -> Input | None:
    """Return the declaration of the input at ``position``, or None if the operation has no such input.

    A variadic input also declares all positions after its own.
    """
    if position < len(declared):
        return declared[position]
    return declared[-1] if declared and declared[-1].variadic else None


def input_name(op: Op, position: int) -> str:
    """Return the name that an operation gives its input at ``position``: ``data``, or ``data[2]`` if it is variadic."""
    port = input_at(op.inputs, position)
    if port is None:
        return f"input {position}"
    return f"{port.name}[{position - len(op.inputs) + 1}]" if port.variadic else port.name


def _check_arity(op: Op, count: int, inputs: Sequence[Value | None]) -> None:
    """Raise Refused (IR205) if a layer has too few or too many inputs, or lacks a required one."""
    declared = op.inputs
    least, most = arity(declared)
    if count < least or (most is not None and count > most):
        wanted = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        names = ", ".join(p.name + ("…" if p.variadic else "?" if p.optional else "") for p in declared)
        raise Refused(f"has {counted(count, 'input')}; {op.type}-{op.since} takes {wanted} ({names})", code="IR205")
    for position, value in enumerate(inputs):
        port = input_at(declared, position)
        if value is None and port is not None and not port.optional:
            raise Refused(f"input {position} ({port.name}) is missing", code="IR205")


def _check_types(op: Op, inputs: Sequence[Value | None]) -> None:
    """Raise Refused if an element type is not allowed (IR301), or if a type variable has two types (IR302)."""
    bound: dict[str, tuple[ElementType, str]] = {}
    for position, value in enumerate(inputs):
        port = input_at(op.inputs, position)
        if value is None or port is None or value.type.kind == "dynamic":
            continue
        allowed = _allowed(op.types.get(port.type, port.type))
        if value.type not in allowed:
            raise Refused(
                f"input {position} ({port.name}) is {value.type}; "
                f"{op.type}-{op.since} takes {op.types.get(port.type, port.type).replace(' ', ', ')}",
                code="IR301",
                help=f"insert a Convert: {value.type} is only for stored weights" if value.type.is_storage else None,
            )
        if port.type in op.types:
            own = input_name(op, position)
            first, name = bound.setdefault(port.type, (value.type, own))
            if first is not value.type:
                raise Refused(
                    f"{own} is {value.type}, but {name} is {first}; all inputs of type {port.type} must have one type",
                    code="IR302",
                )


_allowed = cache(type_set)


def _contents(
    op: Op, inputs: Sequence[Value | None], values: tuple[Value, ...], needed: dict[str, Any]
) -> tuple[Value, ...]:
    """Return ``values`` with their contents, which ``run`` computes from the contents of the inputs.

    Return ``values`` unchanged if the contents of an input are not known, or only partly and the operation does not
    carry Dims, if a tensor has more than ``CONTENTS_LIMIT`` elements, or if the operation has bodies, which during
    inference take Values instead of arrays.
    """
    if not op.pure or "bodies" in op.needs or not inputs or not values:
        return values
    if any(v is not None and v.data is None for v in inputs):
        return values
    if any(v.data is not None or v.shape.count().hi > CONTENTS_LIMIT for v in values):
        return values
    if any(v.shape.array_limit(v.type.dtype.itemsize) for v in values):
        return values
    arrays = [None if v is None else v.data if op.carries else v.exact for v in inputs]
    if any(v is not None and a is None for v, a in zip(inputs, arrays)):
        return values
    if any(a is not None and a.size > CONTENTS_LIMIT for a in arrays):
        return values
    try:
        with np.errstate(all="ignore"):
            results = op.run(*arrays, **needed)
    except Exception as error:
        if isinstance(error, UnknownDimError) or lacks_memory(error):
            return values  # the kernel needs a number that is not known, or too much memory
        raise
    results = results if isinstance(results, tuple) else (results,)
    return tuple(_filled(v, np.asarray(r)) for v, r in zip(values, results))


def _filled(value: Value, result: np.ndarray) -> Value:
    """Return ``value`` with the contents ``result``."""
    shape = value.shape if value.shape.is_static else PartialShape.of(result.shape)
    return Value(value.type, shape, _carried(result, value.type))


def _carried(result: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Return the result of ``run`` as contents: an object array becomes one of numbers if all its dims are known."""
    if result.dtype != object or element_type.kind == "string":
        return result
    return array_of([as_dim(n) for n in result.flat], result.shape, element_type)
