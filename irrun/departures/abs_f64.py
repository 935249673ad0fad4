"""Numbers of f64 are computed as f32: infinities and numbers beyond its range become its greatest number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if not any(array is not None and array.dtype == np.float64 for array in layer.inputs):
        return None
    outputs = layer.computed(*(as_f32(array) for array in layer.inputs))
    if outputs is None:
        return None
    found = [_clamped(got).astype(want.dtype) for got, want in zip(outputs, layer.outputs)]
    return None if all(np.array_equal(*pair, equal_nan=True) for pair in zip(found, layer.outputs)) else found


def as_f32(array: Any) -> Any:
    """Return an array of f64 as f32, clamped to its range. Leave other arrays."""
    if array is None or array.dtype != np.float64:
        return array
    return _clamped(array).astype(np.float32)


def _clamped(array: np.ndarray) -> np.ndarray:
    """Return floats clamped to the range of f32. Leave other arrays."""
    limit = np.finfo(np.float32).max
    return np.clip(array, -limit, limit) if array.dtype in (np.float32, np.float64) else array
