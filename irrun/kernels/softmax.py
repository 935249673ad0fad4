"""The exponentials and sums of SoftMax, also within attention."""

from typing import Final

import numpy as np

from irrun.kernels.matmul import matmul


def shifted(x: np.ndarray, axis: int) -> np.ndarray:
    """x less its maximum along the axis, so that no exponential overflows; a new array."""
    return x - x.max(axis, keepdims=True, initial=-np.inf)


def exponentials(x: np.ndarray, axis: int, out: np.ndarray) -> None:
    """Fill ``out`` with what each row along ``axis`` is then divided by the sum of: exp(x), or a finite multiple."""
    short = axis == x.ndim - 1 and 0 < x.shape[axis] <= _SHORT
    if short and x.min() >= -_SAFE and x.max() <= _SAFE:  # quicker than the maximum of every row
        np.exp(x, out)
    else:
        np.subtract(x, np.maximum.reduce(x, axis, keepdims=True, initial=-np.inf), out)
        np.exp(out, out)


_SAFE: Final = 60
"""Whose exponential, and sums of as many of them as there can be, are normal numbers, as is that of its negative."""


_SHORT: Final = 384
"""Elements in a row below which a call for each row is what takes the time."""


def sums(x: np.ndarray, axis: int) -> np.ndarray:
    """The sums along an axis, which stays as 1."""
    if axis == x.ndim - 1:
        return matmul(x, np.ones(x.shape[-1], x.dtype))[..., None]  # faster than sums by numpy
    return np.add.reduce(x, axis, keepdims=True)
