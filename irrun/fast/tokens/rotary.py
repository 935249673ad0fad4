"""Rotary embeddings: rotate pairs of numbers in rows."""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.fast.functions import contracted
from irrun.fast.machine.memory import data_address, row_at
from irrun.fast.machine.processor import compiled
from irrun.fast.machine.sharing import share
from irrun.kernels.attention import rotated

__all__ = ["rotate", "rotate_row"]

_ONE: Final = np.float32(1)
_WORK_PER_NUMBER: Final = 16
"""The time that a number takes, in units of ``threads.WORTH``."""


def rotate(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """Return what ``kernels.attention.rotated`` does. Raises ValueError for shapes that do not fit each other.

    Machine code rotates ``x`` f32 [B, H, L, E] of contiguous rows by ``cos`` and ``sin`` f32 [B or 1, 1, L, E], which
    have the same strides; numpy does the rest.
    """
    batch, heads, rows, width = x.shape if x.ndim == 4 else (0, 0, 0, 0)
    angles = ((batch, 1, rows, width), (1, 1, rows, width))
    same = cos.shape == sin.shape in angles and cos.strides == sin.strides
    if not same or width % 2 or not all(map(_has_rows, (x, cos, sin))) or x.size == 0:
        return rotated(x, cos, sin, out=out)
    result = np.empty(x.shape, np.float32) if out is None else out
    if not result.flags.carray or result.shape != x.shape:
        return rotated(x, cos, sin, out=out)
    apart = cos.strides[0] if cos.shape[0] > 1 else 0, cos.strides[2]
    places = data_address(x), *x.strides[:3], data_address(cos), data_address(sin), *apart, data_address(result)
    share(_rotate_rows, batch * heads * rows, _WORK_PER_NUMBER * x.size, *places, heads, rows, width)
    return result


def _has_rows(array: np.ndarray) -> bool:
    """Return whether the rows of an array of f32 are contiguous, and each number is aligned."""
    return array.dtype == np.float32 and array.strides[-1] == 4 and array.flags.aligned


@compiled
def _rotate_rows(
    x: int, x_batch: int, x_head: int, x_row: int, cosines: int, sines: int, angle_batch: int, angle_row: int, out: int,
    heads: int, rows: int, width: int, first: int, last: int,
) -> None:  # fmt: skip
    """Rotate the rows from ``first`` to before ``last`` of all heads. Strides are in bytes."""
    for n in range(first, last):
        b, h, row = n // rows // heads, n // rows % heads, n % rows
        angle = b * angle_batch + row * angle_row
        given = x + b * x_batch + h * x_head + row * x_row
        rotate_row(given, cosines + angle, sines + angle, out + 4 * width * n, width, _ONE)


@contracted
def rotate_row(x: int, cosines: int, sines: int, out: int, width: int, factor: np.float32) -> None:
    """Rotate the pairs of numbers of both halves of a row (see ``kernels.attention.rotated``), times ``factor``."""
    half = width // 2
    low, high = row_at(x, half), row_at(x + 4 * half, half)
    for i in range(half):
        row_at(out, half)[i] = (low[i] * row_at(cosines, half)[i] - high[i] * row_at(sines, half)[i]) * factor
    cosines, sines, out = cosines + 4 * half, sines + 4 * half, out + 4 * half
    for i in range(half):
        row_at(out, half)[i] = (high[i] * row_at(cosines, half)[i] + low[i] * row_at(sines, half)[i]) * factor
