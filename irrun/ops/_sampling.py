"""Shared by GridSample and Interpolate: the conversion of interpolated values back to integers."""

import ml_dtypes
import numpy as np

from irrun.types import ElementType


def is_integer(dtype: np.dtype) -> bool:
    """Return whether this is the dtype of an integer type."""
    element_type = ElementType.of(dtype)
    return element_type is not None and element_type.is_integer


def saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return whole numbers as integers of ``dtype``. Those beyond its range become its limits."""
    limits = ml_dtypes.iinfo(dtype)
    return np.clip(x, float(limits.min), float(limits.max)).astype(dtype)
