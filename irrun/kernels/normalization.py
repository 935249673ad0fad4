"""Normalisation along axes: by mean and standard deviation, and the exponentials and sums of SoftMax."""

import math
from typing import Final

import numpy as np

from irrun.kernels.blocks import InPlace
from irrun.kernels.matmul import matmul, row_sums

Axes = tuple[int, ...]


def total(x: np.ndarray, axes: Axes) -> np.ndarray:
    """Return the sums along ``axes``, which stay as 1."""
    if x.ndim - 1 not in axes or not x.flags.c_contiguous:  # numpy adds these one by one: shorter sums round less
        for axis in sorted(axes)[:0:-1]:
            x = np.add.reduce(x, axis, keepdims=True)
    return np.add.reduce(x, axes, keepdims=True)


def mean(x: np.ndarray, axes: Axes) -> np.ndarray:
    """Return the means along ``axes``, which stay as 1."""
    return total(x, axes) / np.asarray(math.prod(x.shape[axis] for axis in axes), x.dtype)


def standardised(x: np.ndarray, axes: Axes, eps: float, *, inside: bool = True) -> np.ndarray:
    """Return ``x`` minus its mean, divided by its standard deviation along ``axes``.

    ``eps`` is added to the variance (``inside`` the root) or to the deviation.
    """
    centred = x - mean(x, axes)
    variance = mean(centred * centred, axes)
    eps = x.dtype.type(eps)
    return centred / (np.sqrt(variance + eps) if inside else np.sqrt(variance) + eps)


def standardise(axes: Axes, rank: int, eps: float, *, inside: bool = True, deviation: bool = True) -> InPlace:
    """Return the function that fills its second argument with ``standardised`` values of the first.

    Both may be the same array. Without ``deviation``, the function only subtracts the mean. ``rank`` is that of the
    arrays.
    """
    last = sorted(axes) == list(range(rank - len(axes), rank))

    def function(x: np.ndarray, out: np.ndarray) -> None:
        if last and len(axes) > 1 and x.flags.c_contiguous and out.flags.c_contiguous:
            rows = math.prod(x.shape[: rank - len(axes)]), -1
            return by_rows(x.reshape(rows), out.reshape(rows))
        if last and len(axes) == 1:
            return by_rows(x, out)
        np.subtract(x, mean(x, axes), out)
        if deviation:
            np.divide(out, root(mean(np.multiply(out, out), axes)), out)
        return None

    def by_rows(x: np.ndarray, out: np.ndarray) -> None:
        ones, count = np.ones(x.shape[-1], x.dtype), np.asarray(x.shape[-1], x.dtype)
        np.subtract(x, row_sums(x, ones) / count, out)
        if deviation:
            np.divide(out, root(row_sums(out, out) / count), out)

    def root(variance: np.ndarray) -> np.ndarray:
        margin = variance.dtype.type(eps)
        return np.sqrt(variance + margin) if inside else np.sqrt(variance) + margin

    return function


# ---------------------------------------------------------------------------------------------
# SoftMax, which attention uses, too


def shifted(x: np.ndarray, axis: int) -> np.ndarray:
    """Return a new array, ``x`` minus its maximum along ``axis``, so that no exponential overflows."""
    return x - x.max(axis, keepdims=True, initial=-np.inf)


def exponentials(x: np.ndarray, axis: int, out: np.ndarray, *, shift: bool = False) -> bool:
    """Fill ``out`` with exp(x), or with a finite multiple of it for each row along ``axis``.

    SoftMax is ``out`` divided by its sums along ``axis``. Returns whether no element of ``out`` is above 1, which
    ``shift`` asks for.
    """
    short = not shift and axis == x.ndim - 1 and 0 < x.shape[axis] <= _MAX_SHORT_ROW_ELEMENTS
    if short and x.min() >= -_MAX_UNSHIFTED and x.max() <= _MAX_UNSHIFTED:  # faster than the maximum of every row
        np.exp(x, out)
        return False
    np.subtract(x, np.maximum.reduce(x, axis, keepdims=True, initial=-np.inf), out)
    np.exp(out, out)
    return True


_MAX_UNSHIFTED: Final = 60
"""The largest absolute value whose exponential needs no shift. exp(60), exp(-60) and the sum of any possible number of
them are normal numbers."""


_MAX_SHORT_ROW_ELEMENTS: Final = 384
"""The most elements in a row for which the overhead of each row dominates the time."""


def sums(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the sums along ``axis``, which stays as 1."""
    if axis == x.ndim - 1:
        return matmul(x, np.ones(x.shape[-1], x.dtype))[..., None]  # faster than np.sum
    return np.add.reduce(x, axis, keepdims=True)
