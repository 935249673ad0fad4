"""Integers of 64 bits and u32 are computed as i32: constants are clamped to its range, other numbers wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_WIDE = (np.int64, np.uint64, np.uint32)


def narrowed(array: Any, constant: bool) -> Any:
    """Return the numbers that OpenVINO has in i32 for an array of a wider type, as i64. Leave other arrays."""
    if array is None or array.dtype not in _WIDE:
        return array
    if constant:
        limits = np.iinfo(np.int32)
        return np.clip(array, max(limits.min, np.iinfo(array.dtype).min), limits.max).astype(np.int64)
    return array.astype(np.int32).astype(np.int64)


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    kept = layer.op.type.startswith("Convert") and layer.outputs[0].dtype not in (*_WIDE, np.bool_)
    if kept or not any(_is_wide(array) for array in layer.inputs):
        return None
    inputs = [narrowed(array, constant) for array, constant in zip(layer.inputs, layer.constant)]
    outputs = layer.computed(*inputs)
    if outputs is None:
        return None
    found = [_as_i32(got, want.dtype) for got, want in zip(outputs, layer.outputs)]
    return None if all(map(np.array_equal, found, layer.outputs)) else found


def _is_wide(array: np.ndarray | None) -> bool:
    return array is not None and array.dtype in _WIDE


def _as_i32(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return array.astype(np.int32).astype(dtype) if dtype in _WIDE else array
