"""Shared by normalisations: the axes along which they run, and the numbers that keep a divisor above 0."""

import numpy as np

from irrun.kernels.normalization import Axes
from irrun.opdef import Site, Value


def check_axes(at: Site, data: Value, axes: Value) -> None:
    """Refuse (C2) axes outside ``data``."""
    for axis in axes.ints() or ():
        at.axis(axis, data.rank, "C2")


def check_count(at: Site, label: str, data: Value, axes: Value) -> None:
    """Refuse ``axes`` that certainly have more entries than ``data`` has axes."""
    count = axes.shape.count()
    message = f"axes has length {count}, but data is {data.shape}"
    at.require(data.rank is None or count.lo <= data.rank, label, message)


def check_positive(at: Site, label: str, name: str, number: float) -> None:
    """Refuse an attribute that is not positive."""
    at.require(number > 0, label, f"{name} is {number}, not positive")


def places(axes: np.ndarray, rank: int) -> Axes:
    """Return the axes counted from the front, each once."""
    return tuple({int(axis) % rank for axis in axes.flat})
