"""Floats become i32 first, whatever wider integer is asked for: beyond its range -2147483648, or its limits for f64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_LIMITS = np.iinfo(np.int32)


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    (data, *_) = layer.inputs
    wanted = layer.outputs[0].dtype
    if layer.op.type not in ("Convert", "ConvertLike") or wanted.kind not in "iu" or wanted.itemsize == 1:
        return None
    if data.dtype not in (np.float16, np.float32, np.float64):
        return None
    return [as_i32(data).astype(wanted)]


def as_i32(data: np.ndarray) -> np.ndarray:
    """Return floats as the numbers of i32 that OpenVINO converts them to."""
    with np.errstate(all="ignore"):
        wide = data.astype(np.float64)
        if data.dtype == np.float16:
            wide = np.clip(wide, -65504, 65504)
        elif data.dtype == np.float64:
            wide = np.clip(wide, _LIMITS.min, _LIMITS.max)
        inside = (wide > _LIMITS.min - 1) & (wide < _LIMITS.max + 1)
        return np.where(inside, np.trunc(wide), _LIMITS.min).astype(np.int64)
