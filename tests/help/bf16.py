"""Numbers rounded to bf16, for tests."""

from __future__ import annotations

import ml_dtypes
import numpy as np

__all__ = ["in_bf16"]


def in_bf16(array: np.ndarray) -> np.ndarray:
    """Return f32 rounded to bf16, in f64. Subnormal numbers are zeros, as for ``vdpbf16ps``."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(array, np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)
    return np.where(np.abs(array) < np.finfo(np.float32).tiny, np.copysign(0.0, array), rounded)
