"""The dtypes in which Reduce and Scatter accumulate sums and products, before they convert them to their own."""

import numpy as np

from irrun.types import ElementType


def kind(x: np.ndarray) -> str:
    """Return the kind of the element type, or ``dims`` for an array of Dims."""
    if x.dtype == object:  # strings are object arrays, too, but nobody adds them up
        return "dims"
    element_type = ElementType.of(x.dtype)
    assert element_type is not None
    return element_type.kind


def wide(x: np.ndarray) -> np.ndarray:
    """Return the array in the dtype to accumulate in. Dims stay as they are.

    Floats become f32 (f64 stays). Integers become i64 or u64, whose results wrap when they are converted back.
    """
    element_kind = kind(x)
    if element_kind == "float":
        return x if x.dtype == np.float64 else x.astype(np.float32, copy=False)
    return x if element_kind == "dims" else x.astype(np.int64 if element_kind == "int" else np.uint64, copy=False)
