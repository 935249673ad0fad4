"""Shared by normalisations: the axes along which they run."""

import numpy as np

from irrun.kernels.normalization import Axes
from irrun.opdef import Site, Value


def check_axes(at: Site, data: Value, axes: Value) -> None:
    """Refuse (C2) axes outside ``data``."""
    for axis in axes.ints() or ():
        at.axis(axis, data.rank, "C2")


def places(axes: np.ndarray, rank: int) -> Axes:
    """Return the axes counted from the front, each once."""
    return tuple({int(axis) % rank for axis in axes.flat})
