"""SoftMax, LogSoftmax, MVN and RMS along the last axis: rows are normalised in place, in the first-level cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from irrun.fast.arithmetic import moved
from irrun.fast.functions import Number, contracted, exp_of_negative, in_order, number_at, summing
from irrun.fast.machine.processor import compiled
from irrun.fast.row_change import RowChange
from irrun.kernels.blocks import whole_along
from irrun.opdef import Kernel, Op, Request, Value

__all__ = ["offer", "weigh"]

_ZERO: Final = np.float32(0)
_ONE: Final = np.float32(1)
_LEAST_IN_ORDER: Final = int(np.array(-np.inf, np.float32).view(np.int32)) ^ 0x7FFFFFFF
"""``in_order`` of -Inf."""


class _SoftMax(Protocol):
    axis: int


class _MVN(Protocol):
    normalize_variance: bool
    eps: float
    eps_mode: str


class _RMS(Protocol):
    epsilon: float

    def factors(self, data: Value, gamma: Value | None, /) -> np.ndarray | None: ...


def offer(op: Op, request: Request) -> Kernel | None:
    """Return the kernel of SoftMax, LogSoftmax, MVN or RMS for f32 along the last axis, or None for others."""
    data = request.inputs[0]
    if data is None or data.type.name != "f32" or not data.rank or request.channels_last:
        return None
    changes: dict[str, Callable[..., RowChange | None]] = {
        "SoftMax": _of_softmax,
        "LogSoftmax": _of_log_softmax,
        "MVN": _of_mvn,
        "RMS": _of_rms,
    }
    change = changes[op.type](op, data, *request.inputs[1:])
    return None if change is None else whole_along(change.fill, (data.rank - 1,), change.rows)


def _of_softmax(op: _SoftMax, data: Value) -> RowChange | None:
    rank = data.rank or 1
    return RowChange(_softmax) if op.axis % rank == rank - 1 else None


def _of_log_softmax(op: _SoftMax, data: Value) -> RowChange | None:
    rank = data.rank or 1
    return RowChange(_log_softmax) if op.axis % rank == rank - 1 else None


def _of_mvn(op: _MVN, data: Value, axes: Value | None = None) -> RowChange | None:
    numbers, rank = None if axes is None else axes.exact, data.rank or 1
    if numbers is None or {int(axis) % rank for axis in numbers.flat} != {rank - 1} or not op.normalize_variance:
        return None
    eps, none = np.float32(op.eps), np.float32(0)
    return RowChange(_standardise, *((eps, none) if op.eps_mode == "inside_sqrt" else (none, eps)))


def _of_rms(op: _RMS, data: Value, gamma: Value | None = None) -> RowChange | None:
    factors, width = op.factors(data, gamma), data.shape[-1].value
    if factors is None or width is None or factors.size not in (1, width):
        return None
    factors = np.ascontiguousarray(np.broadcast_to(factors.reshape(-1), (width,)))
    return RowChange(_root_mean_square, np.float32(op.epsilon), factors)


# ---------------------------------------------------------------------------------------------
# machine code


@contracted
def _largest(row: np.ndarray) -> Number:
    """Return the largest number of a row, or NaN of a row that holds NaN."""
    most = np.int32(_LEAST_IN_ORDER)
    for j in range(row.size):
        place = in_order(row[j])
        most = place if place > most else most
    return number_at(most)


@summing
def weigh(row: np.ndarray) -> Number:
    """Replace the numbers of a row by their exponentials, divided by the largest of them, and return their sum."""
    most = _largest(row)
    total = _ZERO
    for j in range(row.size):
        power = exp_of_negative(row[j] - most)
        row[j] = power
        total += power
    return total


@compiled
def _softmax(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Divide the exponentials of each row by their sum."""
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        factor = _ONE / weigh(row)
        for j in range(columns):
            row[j] *= factor


@compiled
def _log_softmax(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Subtract from each row its largest number, and the logarithm of the sum of the exponentials."""
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        most = _largest(row)
        less = np.float32(np.log(_sum_of_powers(row, most)))
        for j in range(columns):
            row[j] = (row[j] - most) - less


@summing
def _sum_of_powers(row: np.ndarray, most: Number) -> Number:
    total = _ZERO
    for j in range(row.size):
        total += exp_of_negative(row[j] - most)
    return total


@summing
def _mean(row: np.ndarray) -> Number:
    total = _ZERO
    for j in range(row.size):
        total += row[j]
    return total / np.float32(row.size)


@summing
def _mean_square(row: np.ndarray, mean: Number) -> Number:
    total = _ZERO
    for j in range(row.size):
        total += (row[j] - mean) * (row[j] - mean)
    return total / np.float32(row.size)


@compiled
def _standardise(
    source: int, step: int, target: int, apart: int, columns: int, inside: Number, outside: Number, first: int,
    last: int,
) -> None:  # fmt: skip
    """Subtract the mean of each row, and divide by its standard deviation.

    ``inside`` is added to the variance, ``outside`` to the deviation.
    """
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        mean = _mean(row)
        factor = _ONE / (np.sqrt(_mean_square(row, mean) + inside) + outside)
        for j in range(columns):
            row[j] = (row[j] - mean) * factor


@compiled
def _root_mean_square(
    source: int, step: int, target: int, apart: int, columns: int, eps: Number, gamma: np.ndarray, first: int, last: int
) -> None:
    """Divide each row by the root of ``eps`` plus its mean square, and multiply it by ``gamma``."""
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        factor = _ONE / np.sqrt(_mean_square(row, _ZERO) + eps)
        for j in range(columns):
            row[j] *= factor * gamma[j]
