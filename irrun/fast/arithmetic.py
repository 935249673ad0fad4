"""Arithmetic on rows of f32: copies, sums and products of two matrices, limits, and outer products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from irrun.fast.functions import Number, contracted
from irrun.fast.machine.memory import data_address, row_at
from irrun.fast.machine.processor import compiled
from irrun.fast.machine.sharing import share
from irrun.kernels.elementwise import elementwise, is_outer, multiplying
from irrun.opdef import Call, Calls, Kernel, Request, Value

__all__ = ["WORK_PER_NUMBER", "add", "clamped", "combined", "moved", "multiply", "offer", "outer", "place", "scaled"]

WORK_PER_NUMBER: Final = 16
"""The time that a function takes for a number, in units of ``threads.WORTH``."""


class _Multiply(Protocol):
    def as_numpy(self, *inputs: Value) -> bool: ...


def offer(op: _Multiply, request: Request) -> Kernel | None:
    """Return the kernel of Multiply for large outer products of f32, or None for others."""
    a, b = request.inputs
    if a is None or b is None or a.type.name != "f32" or not is_outer(a, b) or not op.as_numpy(a, b):
        return None
    return elementwise(multiplying(outer), a, b, formula=("multiply",))


def combined(kernel: Callable[..., None], a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Calls:
    """Return the calls that fill a matrix with what ``add`` or ``multiply`` make of two matrices, or rows of them.

    The arguments of ``kernel`` can be exchanged. ``out`` may be one of the matrices.
    """
    if data_address(b) == data_address(out):
        a, b = b, a
    return [Call(kernel, (*place(a), *place(b), *place(out), out.shape[1]), len(out))]


def scaled(x: np.ndarray, factors: np.ndarray, out: np.ndarray) -> Calls:
    """Return the calls that fill a matrix with another one whose rows are multiplied by a number each, or all by one.

    ``out`` may be ``x``.
    """
    return [Call(scale, (*place(x), *place(factors), *place(out), out.shape[1]), len(out))]


def clamped(x: np.ndarray, out: np.ndarray, low: float, high: float) -> Calls:
    """Return the calls that fill a matrix with another one between two limits. NaN stays. ``out`` may be ``x``."""
    limits = np.float32(low), np.float32(high)
    return [Call(clamp, (*place(x), *place(out), out.shape[1], *limits), len(out))]


def place(x: np.ndarray) -> tuple[int, int]:
    """Return the address of a matrix, and how many floats its rows are apart: 0 for one row, which stands for each."""
    return data_address(x), x.strides[0] // 4 if x.ndim > 1 else 0


@contracted
def moved(source: int, target: int, columns: int) -> np.ndarray:
    """Return the row of f32 at an address, after that at another one was copied to it."""
    filled = row_at(target, columns)
    if source != target:
        row = row_at(source, columns)
        for j in range(columns):
            filled[j] = row[j]
    return filled


@compiled
def add(
    a: int, step: int, b: int, other_step: int, target: int, apart: int, columns: int, first: int, last: int
) -> None:
    """Fill rows with the sums of the rows of two matrices. ``a`` may be the matrix that is filled.

    The rows at an address are the number of floats apart that follows it.
    """
    for i in range(first, last):
        changed, row = moved(a + 4 * i * step, target + 4 * i * apart, columns), row_at(b + 4 * i * other_step, columns)
        for j in range(columns):
            changed[j] += row[j]


@compiled
def multiply(
    a: int, step: int, b: int, other_step: int, target: int, apart: int, columns: int, first: int, last: int
) -> None:
    """Fill rows with the products of the rows of two matrices. ``a`` may be the matrix that is filled.

    The rows at an address are the number of floats apart that follows it.
    """
    for i in range(first, last):
        changed, row = moved(a + 4 * i * step, target + 4 * i * apart, columns), row_at(b + 4 * i * other_step, columns)
        for j in range(columns):
            changed[j] *= row[j]


@compiled
def scale(
    a: int, step: int, factors: int, other_step: int, target: int, apart: int, columns: int, first: int, last: int
) -> None:
    """Fill rows with those of a matrix, multiplied by a number each: see ``add``."""
    for i in range(first, last):
        changed = moved(a + 4 * i * step, target + 4 * i * apart, columns)
        factor = row_at(factors + 4 * i * other_step, 1)[0]
        for j in range(columns):
            changed[j] *= factor


@compiled
def clamp(
    a: int, step: int, target: int, apart: int, columns: int, low: Number, high: Number, first: int, last: int
) -> None:
    """Fill rows with the rows of a matrix, and limit each number: see ``add``."""
    for i in range(first, last):
        changed = moved(a + 4 * i * step, target + 4 * i * apart, columns)
        for j in range(columns):
            least = low if changed[j] < low else changed[j]
            changed[j] = high if least > high else least


def outer(columns: np.ndarray, rows: np.ndarray, out: np.ndarray, shared: int) -> None:
    """Do the same as ``irrun.kernels.matmul.outer`` for f32."""
    left, right, width = np.ascontiguousarray(columns), np.ascontiguousarray(rows), out.shape[-1]
    each = math.prod(out.shape[shared:-1])
    places = data_address(left), data_address(right), each, data_address(out)
    share(_outer, out.size // width, WORK_PER_NUMBER * out.size, *places, width)


@compiled
def _outer(left: int, right: int, each: int, target: int, columns: int, first: int, last: int) -> None:
    """Fill rows: a number of ``left`` times a row of ``right``, which is the same for ``each`` rows."""
    for i in range(first, last):
        row, filled = row_at(right + 4 * (i // each) * columns, columns), row_at(target + 4 * i * columns, columns)
        factor = row_at(left + 4 * i, 1)[0]
        for j in range(columns):
            filled[j] = factor * row[j]
