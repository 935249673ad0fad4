"""Infer the outputs of one layer: check the number and types of its inputs, apply its shape rule, compute contents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from irrun.diagnostics import Refused, counted
from irrun.opdef import Input, Op, Site, Value
from irrun.opdef.values import CONTENTS_LIMIT, pack
from irrun.types import ElementType, PartialShape, UnknownDimError, as_dim, type_set

__all__ = ["infer", "input_at", "input_name"]


def infer(
    cls_op: Op, at: Site, inputs: Sequence[Value | None], needed: dict[str, Any], *, contents: bool = True
) -> tuple[Value, ...]:
    """The outputs of one layer: arity and types first, then its own rule, then contents where they follow.

    Raises Refused.
    """
    _check_arity(cls_op, len(inputs), inputs)
    _check_types(cls_op, inputs)
    outputs = cls_op.infer(at, *inputs, **needed)
    values = outputs if isinstance(outputs, tuple) else (outputs,)
    return _contents(cls_op, inputs, values, needed) if contents else values


def input_at(declared: tuple[Input, ...], position: int) -> Input | None:
    """The declaration of the input at ``position``, the last one standing for all that it repeats."""
    if position < len(declared):
        return declared[position]
    return declared[-1] if declared and declared[-1].variadic else None


def input_name(of: Op, position: int) -> str:
    """What an operation calls its input at ``position``: ``data``, or ``data[2]`` where it is repeated."""
    port = input_at(of.inputs, position)
    if port is None:
        return f"input {position}"
    return f"{port.name}[{position - len(of.inputs) + 1}]" if port.variadic else port.name


def _check_arity(cls_op: Op, count: int, inputs: Sequence[Value | None]) -> None:
    declared = cls_op.inputs
    least = sum(not p.optional for p in declared)
    most = None if declared and declared[-1].variadic else len(declared)
    if count < least or (most is not None and count > most):
        wanted = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        names = ", ".join(p.name + ("…" if p.variadic else "?" if p.optional else "") for p in declared)
        raise Refused(
            f"has {counted(count, 'input')}; {cls_op.type}-{cls_op.since} takes {wanted} ({names})", code="IR205"
        )
    for position, value in enumerate(inputs):
        port = input_at(declared, position)
        if value is None and port is not None and not port.optional:
            raise Refused(f"input {position} ({port.name}) is missing", code="IR205")


def _check_types(cls_op: Op, inputs: Sequence[Value | None]) -> None:
    bound: dict[str, tuple[ElementType, str]] = {}
    for position, value in enumerate(inputs):
        port = input_at(cls_op.inputs, position)
        if value is None or port is None or value.type.kind == "dynamic":
            continue
        allowed = _allowed(cls_op.types.get(port.type, port.type))
        if value.type not in allowed:
            raise Refused(
                f"input {position} ({port.name}) is {value.type}; "
                f"{cls_op.type}-{cls_op.since} takes {cls_op.types.get(port.type, port.type).replace(' ', ', ')}",
                code="IR301",
                help=f"put a Convert before it: {value.type} only holds weights" if value.type.is_storage else None,
            )
        if port.type in cls_op.types:
            own = input_name(cls_op, position)
            first, name = bound.setdefault(port.type, (value.type, own))
            if first is not value.type:
                raise Refused(f"{own} is {value.type} but {name} is {first}; {port.type} is one type", code="IR302")


_allowed = cache(type_set)


def _contents(
    cls_op: Op, inputs: Sequence[Value | None], values: tuple[Value, ...], needed: dict[str, Any]
) -> tuple[Value, ...]:
    """Fill in ``data`` where all inputs' contents are known: exact ones by ``run``, Dims if it ``carries``."""
    if not cls_op.pure or not inputs or not values or any(v is not None and v.data is None for v in inputs):
        return values
    if any(v.data is not None or v.shape.count().hi > CONTENTS_LIMIT for v in values):
        return values
    arrays = [None if v is None else v.data if cls_op.carries else v.exact for v in inputs]
    if any(v is not None and a is None for v, a in zip(inputs, arrays)):
        return values
    if any(a is not None and a.size > CONTENTS_LIMIT for a in arrays):
        return values
    try:
        with np.errstate(all="ignore"):
            results = cls_op.run(*arrays, **needed)
    except UnknownDimError:  # the kernel needs a number that is not known
        return values
    results = results if isinstance(results, tuple) else (results,)
    return tuple(_filled(v, np.asarray(r)) for v, r in zip(values, results))


def _filled(value: Value, result: np.ndarray) -> Value:
    shape = value.shape if value.shape.is_static else PartialShape.of(result.shape)
    return Value(value.type, shape, _carried(result, value.type))


def _carried(result: np.ndarray, element_type: ElementType) -> np.ndarray:
    if result.dtype != object:
        return result
    return pack([as_dim(n) for n in result.flat], result.shape, element_type)
