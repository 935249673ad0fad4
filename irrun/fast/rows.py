"""Rows of f32 in memory: SoftMax and normalisation of each row, in place, while the row is in the first-level cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.fast.functions import Number, contracted, exp_of_negative, in_order, number_at, summing
from irrun.fast.machine.memory import data_address, row_at
from irrun.fast.machine.processor import compiled
from irrun.fast.machine.sharing import share
from irrun.opdef import Calls

__all__ = ["OnRows", "add", "combined", "multiply", "outer", "root_mean_square", "softmax", "standardise", "weigh"]

_f32: Final = np.float32
_ZERO: Final = _f32(0)
_ONE: Final = _f32(1)
_LEAST: Final = int(np.array(-np.inf, np.float32).view(np.int32)) ^ 0x7FFFFFFF
"""``in_order`` of -Inf."""


class OnRows:
    """The function that changes an array of f32 in place with ``kernel``, on all threads.

    ``kernel(address, columns, apart, *numbers, first, last)`` gets rows that are ``apart`` floats apart. A row is the
    last axis if that must stay ``whole``; otherwise a contiguous array has rows of any length.
    """

    def __init__(self, kernel: Callable[..., None], *numbers: np.float32 | np.ndarray, whole: bool = True) -> None:
        self.kernel, self.numbers, self.whole = kernel, numbers, whole

    def __call__(self, x: np.ndarray) -> None:
        if not x.size:
            return
        columns = x.shape[-1] if x.ndim else 1
        apart = columns if x.flags.c_contiguous else _apart(x)
        if apart is None:
            copy = np.ascontiguousarray(x)
            self._change(data_address(copy), x.size // columns, columns, columns)
            np.copyto(x, copy)
        elif self.whole or not x.flags.c_contiguous:
            self._change(data_address(x), x.size // columns, columns, apart)
        else:
            rows, rest = divmod(x.size, _ROW)
            self._change(data_address(x), rows, _ROW, _ROW)
            self._change(data_address(x) + 4 * rows * _ROW, 1, rest, rest)

    def _change(self, address: int, rows: int, columns: int, apart: int) -> None:
        share(self.kernel, rows, _WORK * rows * columns, address, columns, apart, *self.numbers)

    def fill(self, x: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` with what becomes of ``x``."""
        np.copyto(out, x)
        self(out)

    def calls(self, x: np.ndarray) -> Calls:
        """Return the calls that change a matrix whose rows are contiguous."""
        return [(self.kernel, (data_address(x), x.shape[1], x.strides[0] // 4, *self.numbers))]

    def rows(self, x: np.ndarray, *_: np.ndarray | None, out: np.ndarray) -> Calls:
        """Return the calls that fill ``out`` with what becomes of ``x``: see ``Kernel.rows``."""
        return [*copied(x, out), *self.calls(out)]


def copied(x: np.ndarray, out: np.ndarray) -> Calls:
    """Return the calls that copy a matrix, or the same row again and again, to another one, unless it is the same."""
    source, target = data_address(x), data_address(out)
    return [] if source == target else [(copy, (source, _step(x), target, out.strides[0] // 4, out.shape[1]))]


def combined(kernel: Callable[..., None], a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Calls:
    """Return the calls that fill a matrix with what ``add`` or ``multiply`` make of two matrices, or rows of them.

    The arguments of ``kernel`` can be exchanged. ``out`` may be one of the matrices.
    """
    if data_address(b) == data_address(out):
        a, b = b, a
    combine = kernel, (data_address(b), _step(b), data_address(out), out.strides[0] // 4, out.shape[1])
    return [*copied(a, out), combine]


def _step(x: np.ndarray) -> int:
    """Return how many floats the rows of a matrix are apart: 0 for an array of one axis, which is each row."""
    return x.strides[0] // 4 if x.ndim > 1 else 0


_ROW: Final = 1 << 10
"""Floats of a row, where rows have no meaning: enough for the compiler's loops, little enough to be shared evenly."""
_WORK: Final = 16
"""The time that a function takes for a number, in units of ``threads.WORTH``."""


@compiled
def copy(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Copy rows that are ``step`` floats apart."""
    for i in range(first, last):
        row, filled = row_at(source + 4 * i * step, columns), row_at(target + 4 * i * apart, columns)
        for j in range(columns):
            filled[j] = row[j]


@compiled
def add(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Add rows that are ``step`` floats apart to others."""
    for i in range(first, last):
        row, changed = row_at(source + 4 * i * step, columns), row_at(target + 4 * i * apart, columns)
        for j in range(columns):
            changed[j] += row[j]


@compiled
def multiply(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Multiply rows by others that are ``step`` floats apart."""
    for i in range(first, last):
        row, changed = row_at(source + 4 * i * step, columns), row_at(target + 4 * i * apart, columns)
        for j in range(columns):
            changed[j] *= row[j]


def outer(columns: np.ndarray, rows: np.ndarray, out: np.ndarray, shared: int) -> None:
    """Do the same as ``irrun.kernels.matmul.outer`` for f32."""
    left, right, width = np.ascontiguousarray(columns), np.ascontiguousarray(rows), out.shape[-1]
    each = math.prod(out.shape[shared:-1])
    places = data_address(left), data_address(right), each, data_address(out)
    share(_outer, out.size // width, _WORK * out.size, *places, width)


@compiled
def _outer(left: int, right: int, each: int, target: int, columns: int, first: int, last: int) -> None:
    """Fill rows: a number of ``left`` times a row of ``right``, which is the same for ``each`` rows."""
    for i in range(first, last):
        row, filled = row_at(right + 4 * (i // each) * columns, columns), row_at(target + 4 * i * columns, columns)
        factor = row_at(left + 4 * i, 1)[0]
        for j in range(columns):
            filled[j] = factor * row[j]


def _apart(array: np.ndarray) -> int | None:
    """Return how many elements the rows of an array are apart, or None if they are not evenly so."""
    if array.strides[-1] != array.itemsize and array.shape[-1] > 1:
        return None
    apart = count = 0
    for n, step in zip(array.shape[-2::-1], array.strides[-2::-1]):
        if n > 1:
            if count and step != apart * count:
                return None
            apart, count = (apart, count * n) if count else (step, n)
    return apart // array.itemsize


@contracted
def largest(row: np.ndarray) -> Number:
    """Return the largest number of a row, or NaN of a row that holds NaN."""
    most = np.int32(_LEAST)
    for j in range(row.size):
        place = in_order(row[j])
        most = place if place > most else most
    return number_at(most)


@summing
def weigh(row: np.ndarray) -> Number:
    """Replace the numbers of a row by their exponentials, divided by the largest of them, and return their sum."""
    most = largest(row)
    total = _ZERO
    for j in range(row.size):
        power = exp_of_negative(row[j] - most)
        row[j] = power
        total += power
    return total


@compiled
def softmax(address: int, columns: int, apart: int, first: int, last: int) -> None:
    """Divide the exponentials of each row by their sum."""
    for i in range(first, last):
        row = row_at(address + 4 * i * apart, columns)
        factor = _ONE / weigh(row)
        for j in range(columns):
            row[j] *= factor


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
def standardise(address: int, columns: int, apart: int, inside: Number, outside: Number, first: int, last: int) -> None:
    """Subtract the mean of each row, and divide by its standard deviation.

    ``inside`` is added to the variance, ``outside`` to the deviation.
    """
    for i in range(first, last):
        row = row_at(address + 4 * i * apart, columns)
        mean = _mean(row)
        factor = _ONE / (np.sqrt(_mean_square(row, mean) + inside) + outside)
        for j in range(columns):
            row[j] = (row[j] - mean) * factor


@compiled
def root_mean_square(
    address: int, columns: int, apart: int, eps: Number, gamma: np.ndarray, first: int, last: int
) -> None:
    """Divide each row by the root of ``eps`` plus its mean square, and multiply it by ``gamma``."""
    for i in range(first, last):
        row = row_at(address + 4 * i * apart, columns)
        factor = _ONE / np.sqrt(_mean_square(row, _ZERO) + eps)
        for j in range(columns):
            row[j] *= factor * gamma[j]
