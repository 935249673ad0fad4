"""The types that sums and products are made in, before they are rounded to their own: for Reduce and Scatter."""

import numpy as np

from irrun.types import ElementType


def kind(x: np.ndarray) -> str:
    """The kind of the element type, or ``dims`` for an array of Dims."""
    found = ElementType.of(x.dtype)
    return "dims" if found is None else found.kind


def wide(x: np.ndarray) -> np.ndarray:
    """The array, of floats as f32 (f64 stays), of integers as i64 or u64, whose results wrap in any narrower type."""
    found = kind(x)
    if found == "float":
        return x if x.dtype == np.float64 else x.astype(np.float32, copy=False)
    return x if found == "dims" else x.astype(np.int64 if found == "int" else np.uint64, copy=False)
