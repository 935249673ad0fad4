"""What GridSample and Interpolate share: weights of cubic interpolation, and the way back to integers."""

import ml_dtypes
import numpy as np

from irrun.types import ElementType


def cubic_weights(part: np.ndarray, a: float) -> np.ndarray:
    """The weights of the four neighbours of points a ``part`` of a step beyond the second, along a last axis."""
    near, far = part, 1 - part
    outer = [((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a for t in (near, far)]
    inner = [((a + 2) * t - (a + 3)) * t * t + 1 for t in (near, far)]
    return np.stack([outer[0], inner[0], inner[1], outer[1]], axis=-1)


def is_integer(dtype: np.dtype) -> bool:
    found = ElementType.of(dtype)
    return found is not None and found.is_integer


def saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Whole numbers as integers of ``dtype``, those beyond its range as its ends."""
    limits = ml_dtypes.iinfo(dtype)
    return np.clip(x, float(limits.min), float(limits.max)).astype(dtype)
