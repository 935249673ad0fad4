"""What GridSample and Interpolate share: weights of cubic interpolation, and conversion back to integers."""

import ml_dtypes
import numpy as np

from irrun.types import ElementType


def cubic_weights(part: np.ndarray, a: float) -> np.ndarray:
    """Return the weights of the four neighbours of each point, along a new last axis.

    A point lies a ``part`` of a step beyond its second neighbour. ``a`` is the coefficient of the cubic.
    """
    near, far = part, 1 - part
    outer = [((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a for t in (near, far)]
    inner = [((a + 2) * t - (a + 3)) * t * t + 1 for t in (near, far)]
    return np.stack([outer[0], inner[0], inner[1], outer[1]], axis=-1)


def is_integer(dtype: np.dtype) -> bool:
    """Return whether this is the dtype of an integer type."""
    element_type = ElementType.of(dtype)
    return element_type is not None and element_type.is_integer


def saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return whole numbers as integers of ``dtype``. Those beyond its range become its limits."""
    limits = ml_dtypes.iinfo(dtype)
    return np.clip(x, float(limits.min), float(limits.max)).astype(dtype)
