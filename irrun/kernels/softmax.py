"""The exponentials and sums of SoftMax, which attention uses, too."""

from typing import Final

import numpy as np

from irrun.kernels.matmul import matmul


def shifted(x: np.ndarray, axis: int) -> np.ndarray:
    """Return a new array, ``x`` minus its maximum along ``axis``, so that no exponential overflows."""
    return x - x.max(axis, keepdims=True, initial=-np.inf)


def exponentials(x: np.ndarray, axis: int, out: np.ndarray) -> None:
    """Fill ``out`` with exp(x), or with a finite multiple of it for each row along ``axis``.

    SoftMax is ``out`` divided by its sums along ``axis``.
    """
    short = axis == x.ndim - 1 and 0 < x.shape[axis] <= _SHORT
    if short and x.min() >= -_SAFE and x.max() <= _SAFE:  # faster than the maximum of every row
        np.exp(x, out)
    else:
        np.subtract(x, np.maximum.reduce(x, axis, keepdims=True, initial=-np.inf), out)
        np.exp(out, out)


_SAFE: Final = 60
"""The largest absolute value whose exponential needs no shift. exp(60), exp(-60) and the sum of any possible number of
them are normal numbers."""


_SHORT: Final = 384
"""The most elements in a row for which the overhead of each row dominates the time."""


def sums(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the sums along ``axis``, which stays as 1."""
    if axis == x.ndim - 1:
        return matmul(x, np.ones(x.shape[-1], x.dtype))[..., None]  # faster than np.sum
    return np.add.reduce(x, axis, keepdims=True)
