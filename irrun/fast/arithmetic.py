"""Arithmetic on rows of f32: copies, sums and products of two matrices, and outer products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from irrun.fast.machine.memory import data_address, row_at
from irrun.fast.machine.processor import compiled
from irrun.fast.machine.sharing import share
from irrun.kernels.elementwise import elementwise, is_outer, multiplying
from irrun.opdef import Call, Calls, Kernel, Request, Value

__all__ = ["WORK_PER_NUMBER", "add", "combined", "copied", "multiply", "offer", "outer", "scaled"]

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


def copied(x: np.ndarray, out: np.ndarray) -> Calls:
    """Return the calls that copy a matrix, or the same row again and again, to another one, unless it is the same."""
    source, target = data_address(x), data_address(out)
    same = source, _step(x), target, out.strides[0] // 4, out.shape[1]
    return [] if source == target else [Call(copy, same, len(out))]


def combined(kernel: Callable[..., None], a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Calls:
    """Return the calls that fill a matrix with what ``add`` or ``multiply`` make of two matrices, or rows of them.

    The arguments of ``kernel`` can be exchanged. ``out`` may be one of the matrices.
    """
    if data_address(b) == data_address(out):
        a, b = b, a
    places = data_address(b), _step(b), data_address(out), out.strides[0] // 4, out.shape[1]
    return [*copied(a, out), Call(kernel, places, len(out))]


def scaled(x: np.ndarray, factors: np.ndarray, out: np.ndarray) -> Calls:
    """Return the calls that fill a matrix with another one whose rows are multiplied by a number each, or all by one.

    ``out`` may be ``x``.
    """
    places = data_address(factors), _step(factors), data_address(out), out.strides[0] // 4, out.shape[1]
    return [*copied(x, out), Call(scale, places, len(out))]


def _step(x: np.ndarray) -> int:
    """Return how many floats the rows of a matrix are apart: 0 for an array of one axis, which is each row."""
    return x.strides[0] // 4 if x.ndim > 1 else 0


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


@compiled
def scale(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Multiply rows by a number each, which are ``step`` floats apart."""
    for i in range(first, last):
        factor, changed = row_at(source + 4 * i * step, 1)[0], row_at(target + 4 * i * apart, columns)
        for j in range(columns):
            changed[j] *= factor


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
