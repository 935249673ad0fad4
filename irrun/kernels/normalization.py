"""Means along axes, and normalising by mean and deviation."""

import math

import numpy as np

from irrun.kernels.blocks import InPlace
from irrun.kernels.matmul import row_sums

Axes = tuple[int, ...]


def total(x: np.ndarray, axes: Axes) -> np.ndarray:
    """The sums along ``axes``, which stay as 1."""
    if x.ndim - 1 not in axes or not x.flags.c_contiguous:  # where numpy adds one by one: not through all of them
        for axis in sorted(axes)[:0:-1]:
            x = np.add.reduce(x, axis, keepdims=True)
    return np.add.reduce(x, axes, keepdims=True)


def mean(x: np.ndarray, axes: Axes) -> np.ndarray:
    return total(x, axes) / np.asarray(math.prod(x.shape[axis] for axis in axes), x.dtype)


def standardised(x: np.ndarray, axes: Axes, eps: float, *, inside: bool = True) -> np.ndarray:
    """``x`` less its mean, over its deviation along ``axes``; ``eps`` stands inside or outside of the root."""
    centred = x - mean(x, axes)
    variance = mean(centred * centred, axes)
    eps = x.dtype.type(eps)
    return centred / (np.sqrt(variance + eps) if inside else np.sqrt(variance) + eps)


def standardise(axes: Axes, rank: int, eps: float, *, inside: bool = True, deviation: bool = True) -> InPlace:
    """``standardised`` to another array, which may be the same; without the ``deviation``, centred only."""
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
