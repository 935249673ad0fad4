"""Means along axes, and normalisation by mean and standard deviation."""

import math

import numpy as np

from irrun.kernels.blocks import InPlace
from irrun.kernels.matmul import row_sums

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
