"""Rows of f32 in memory: SoftMax and normalisation of each row, in place, while the row is in the first-level cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np
from llvmlite import ir

from irrun.kernels.blocks import InPlace
from irrun.kernels.compiled.functions import Number, contracted, exp_of_negative, in_order, number_at, summing
from irrun.kernels.compiled.late import array_at, emitted, types
from irrun.kernels.compiled.processor import compiled

__all__ = ["by_rows", "floats_at", "on_rows", "root_mean_square", "row_at", "softmax", "standardise", "weigh"]

_f32: Final = np.float32
_ZERO: Final = _f32(0)
_ONE: Final = _f32(1)
_LEAST: Final = int(np.array(-np.inf, np.float32).view(np.int32)) ^ 0x7FFFFFFF
"""``in_order`` of -Inf."""


def _pointer(context: Any, address: Any) -> Any:
    """Return an address as a pointer to f32."""
    type = types.CPointer(types.float32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        return builder.inttoptr(arguments[0], context.get_value_type(type))

    return type(types.intp), generate


floats_at: Final = cast(Callable[[int], Any], emitted(_pointer))


@contracted
def row_at(address: int, count: int) -> np.ndarray:
    """Return ``count`` numbers of f32 from an address on as an array. The compiler knows that they are contiguous."""
    return array_at(floats_at(address), count)


def on_rows(
    kernel: Callable[..., None], *numbers: np.float32 | np.ndarray, whole: bool
) -> Callable[[np.ndarray], None]:
    """Return the function that changes an array of f32 in place with ``kernel``.

    ``kernel(address, rows, columns, apart, *numbers)`` gets rows that are ``apart`` floats apart. A row is the last
    axis if that must stay ``whole``; otherwise a contiguous array is one row.
    """

    def function(x: np.ndarray) -> None:
        if not x.size:
            return
        columns = x.shape[-1] if whole or not x.flags.c_contiguous else x.size
        apart = columns if x.flags.c_contiguous else _apart(x)
        if apart is not None:
            kernel(_address(x), x.size // columns, columns, apart, *numbers)
        else:
            copy = np.ascontiguousarray(x)
            kernel(_address(copy), x.size // columns, columns, columns, *numbers)
            np.copyto(x, copy)

    return function


def by_rows(kernel: Callable[..., None], *numbers: np.float32 | np.ndarray) -> InPlace:
    """Return the function that fills its second argument from its first, row by row: see ``on_rows``."""
    change = on_rows(kernel, *numbers, whole=True)

    def function(x: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out, x)
        change(out)

    return function


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


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
def softmax(address: int, rows: int, columns: int, apart: int) -> None:
    """Divide the exponentials of each row by their sum."""
    for i in range(rows):
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
def standardise(address: int, rows: int, columns: int, apart: int, inside: Number, outside: Number) -> None:
    """Subtract the mean of each row, and divide by its standard deviation.

    ``inside`` is added to the variance, ``outside`` to the deviation.
    """
    for i in range(rows):
        row = row_at(address + 4 * i * apart, columns)
        mean = _mean(row)
        factor = _ONE / (np.sqrt(_mean_square(row, mean) + inside) + outside)
        for j in range(columns):
            row[j] = (row[j] - mean) * factor


@compiled
def root_mean_square(address: int, rows: int, columns: int, apart: int, eps: Number, gamma: np.ndarray) -> None:
    """Divide each row by the root of ``eps`` plus its mean square, and multiply it by ``gamma``."""
    for i in range(rows):
        row = row_at(address + 4 * i * apart, columns)
        factor = _ONE / np.sqrt(_mean_square(row, _ZERO) + eps)
        for j in range(columns):
            row[j] *= factor * gamma[j]
