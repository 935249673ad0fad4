"""Rows of numbers in i8, with a unit for each group: what products with integer codes multiply."""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["GROUP", "LEAST_QUANTIZED", "MOST_CODE", "in_groups"]

GROUP: Final = 32
"""Numbers of a row that are quantized with one unit, if they divide the row; else the whole row has one."""
MOST_CODE: Final = 127
LEAST_QUANTIZED: Final = 2.0**-119
"""The least size of the largest number of a group. With less, the unit would be subnormal, and the codes are 0."""


def in_groups(rows: np.ndarray, group: int = GROUP) -> np.ndarray:
    """Return the numbers of rows as codes of i8 stand for them, as a new array of f32.

    Each ``group`` of numbers along the last axis has a unit, the size of its largest number divided by 127. A code is
    the whole number nearest to number / unit, halves the even one. A group that holds NaN or an infinite number is NaN.
    """
    length = rows.shape[-1]
    numbers = np.asarray(rows, np.float32).reshape(-1, group if length and length % group == 0 else length)
    largest = np.abs(numbers).max(axis=1, keepdims=True, initial=0)
    units = np.where(largest >= LEAST_QUANTIZED, largest / np.float32(MOST_CODE), np.float32(np.inf))
    units = np.where(largest < np.inf, units, np.float32(np.nan))
    codes = np.rint(numbers / units)
    return (codes * np.where(np.isinf(units), np.float32(0), units)).reshape(rows.shape)
