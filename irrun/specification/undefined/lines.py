"""What the pages of operations along axes leave open: reductions, softmax, running sums and segments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from irrun.opdef import Op
from irrun.specification.undefined.forms import (
    Behaviour,
    Inputs,
    doubles,
    element_type,
    fits,
    is_float,
    is_integer,
    whole,
)

__all__ = ["BEHAVIOURS"]


def _reduced(op: Op, flags: np.ndarray, axes: np.ndarray, fold: Callable[..., Any] = np.any) -> np.ndarray:
    """Return flags, or other elements, folded over the axes of a reduction, in the shape of its output."""
    places = tuple({int(axis) % max(flags.ndim, 1) for axis in axes.flat})
    folded = np.asarray(fold(np.atleast_1d(flags), axis=places, keepdims=True))
    if getattr(op, "keep_dims", False):
        return folded.reshape(folded.shape[: flags.ndim])
    return folded.reshape([n for axis, n in enumerate(flags.shape) if axis not in places])


def _product(array: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    return np.multiply.reduce(array, axis=axis, keepdims=keepdims, initial=1)


def _sum(array: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    return np.add.reduce(array, axis=axis, keepdims=keepdims, initial=0)


_FOLDS: Final[Mapping[str, Callable[..., Any]]] = {
    "ReduceL1": lambda x, **how: _sum(abs(x), **how),
    "ReduceL2": lambda x, **how: np.frompyfunc(math.isqrt, 1, 1)(_sum(x * x, **how)),
    "ReduceProd": _product,
    "ReduceSum": _sum,
}
"""The result of a reduction of Python's integers, rounded down."""


def _line_overflow(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """A sum, product or norm beyond the range of the integer type; in CumSum, this sum or an earlier one."""
    data, axes = inputs[0], inputs[1] if len(inputs) > 1 else None
    if data is None or not is_integer(data):
        return False
    to, numbers = element_type(data), whole(data)
    if op.type == "CumSum":
        axis = 0 if axes is None else int(axes.item())
        order = slice(None, None, -1 if getattr(op, "reverse", False) else 1)
        lines = np.moveaxis(numbers, axis, 0)[order]
        if getattr(op, "exclusive", False) and len(lines):
            lines = np.concatenate([lines[:1] * 0, lines[:-1]])
        beyond = np.logical_or.accumulate(~fits(np.add.accumulate(lines), to))
        return np.moveaxis(beyond[order], 0, axis)
    if axes is None or not axes.size:
        return False
    return ~fits(_reduced(op, numbers, axes, _FOLDS[op.type]), to)


def _line_rounding(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """A mean, norm or softmax of integers that is not an integer: no page says how it is rounded."""
    data, axes = inputs[0], inputs[1] if len(inputs) > 1 else None
    if data is None or is_float(data):
        return False
    if op.type == "SoftMax":
        return data.ndim > 0 and data.shape[getattr(op, "axis", 1)] != 1
    if axes is None or not axes.size:
        return False
    numbers = whole(data)
    if op.type == "ReduceL2":
        squares = _reduced(op, numbers * numbers, axes, _sum)
        return np.asarray(np.frompyfunc(math.isqrt, 1, 1)(squares) ** 2 != squares, bool)
    count = _reduced(op, np.ones(data.shape, np.int64), axes, np.sum)
    return np.asarray(_reduced(op, numbers, axes, _sum) % np.maximum(count, 1) != 0, bool)


def _line_of_nan(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """An element of a line with NaN, in operations whose page does not speak of NaN.

    A softmax is open, too, if the line has a positive infinity, or no finite number: its formula divides infinities or
    zeros.
    """
    data = inputs[0]
    if data is None or not is_float(data):
        return False
    numbers = doubles(data)
    if op.type in ("SoftMax", "LogSoftmax"):
        if not data.ndim or not data.size:
            return bool(np.isnan(numbers).any())
        axis = getattr(op, "axis", 1)
        least = (numbers == -math.inf).all(axis, keepdims=True)
        return (np.isnan(numbers) | (numbers == math.inf)).any(axis, keepdims=True) | least
    second = inputs[1]
    if second is None:
        return False
    if op.type == "SegmentMax":
        ids = second.astype(np.int64)
        count = int(ids.max(initial=-1)) + 1
        if len(inputs) > 2 and inputs[2] is not None:
            count = max(count, int(inputs[2]))
        beyond = np.zeros((count, *data.shape[1:]), bool)
        np.logical_or.at(beyond, ids, np.isnan(numbers))
        return beyond
    return _reduced(op, np.isnan(numbers), second) if second.size else False


def _nothing(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """The maximum, minimum or mean of no elements.

    In SegmentMax, the number of segments where ``num_segments`` asks for more than ``segment_ids`` has, and the lowest
    value of a float type, which may be finite or not.
    """
    data, second = inputs[0], inputs[1]
    if data is None or second is None:
        return False
    if op.type == "SegmentMax":
        count = int(second.max(initial=-1)) + 1
        if not count or (len(inputs) > 2 and inputs[2] is not None and int(inputs[2]) > count):
            return True
        if getattr(op, "fill_mode", "zero") == "zero" or not is_float(data):
            return False
        return (np.bincount(second.astype(np.int64), minlength=count) == 0).reshape(-1, *(1,) * (data.ndim - 1))
    return bool(second.size) and math.prod(data.shape[int(axis) % data.ndim] for axis in second.flat if data.ndim) == 0


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "line-of-nan": _line_of_nan,
    "line-overflow": _line_overflow,
    "line-rounding": _line_rounding,
    "nothing": _nothing,
}
