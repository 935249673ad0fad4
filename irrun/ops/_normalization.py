"""What normalisations share: the axes that they run along, means, and centring."""

import math

import numpy as np

from irrun.opdef import Site, Value

Axes = tuple[int, ...]


def check_axes(at: Site, data: Value, axes: Value) -> None:
    """Refuse axes outside ``data`` (C2)."""
    for axis in axes.ints() or ():
        at.axis(axis, data.rank, "C2")


def places(axes: np.ndarray, rank: int) -> Axes:
    """The axes counted from the front, each once."""
    return tuple({int(axis) % rank for axis in axes.flat})


def total(x: np.ndarray, axes: Axes) -> np.ndarray:
    return np.add.reduce(x, axes, keepdims=True)


def mean(x: np.ndarray, axes: Axes) -> np.ndarray:
    return total(x, axes) / np.asarray(math.prod(x.shape[axis] for axis in axes), x.dtype)


def standardised(x: np.ndarray, axes: Axes, eps: float, *, inside: bool = True) -> np.ndarray:
    """``x`` less its mean, over its deviation along ``axes``; ``eps`` stands inside or outside of the root."""
    centred = x - mean(x, axes)
    variance = mean(centred * centred, axes)
    eps = x.dtype.type(eps)
    return centred / (np.sqrt(variance + eps) if inside else np.sqrt(variance) + eps)
