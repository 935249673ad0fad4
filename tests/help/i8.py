"""Rows quantized to i8 in groups, for tests."""

from __future__ import annotations

import numpy as np

__all__ = ["in_i8"]


def in_i8(rows: np.ndarray) -> np.ndarray:
    """Return what the codes of rows of f32 stand for, in f64: one unit for 32 numbers, or for a row of another size.

    The unit is the size of the largest number, divided by 127. A group with a number that is not finite is NaN, and
    one whose unit would be subnormal is 0.
    """
    length = rows.shape[-1]
    found = np.zeros(rows.shape, np.float64)
    flat, given = found.reshape(-1, length), np.array(rows, np.float32).reshape(-1, length)
    size = 32 if length % 32 == 0 else length
    for row, numbers in zip(flat, given):
        for first in range(0, length, size):
            group = numbers[first : first + size]
            unit = np.float32(max(abs(float(number)) for number in group)) / np.float32(127)
            if not np.isfinite(group).all():
                row[first : first + size] = np.nan
            elif unit >= np.finfo(np.float32).tiny:
                row[first : first + size] = [float(round(float(number / unit))) * float(unit) for number in group]
    return found
