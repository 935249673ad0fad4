"""Integers of 32 bits are added as f32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_COMPUTED = {
    "ReduceSum": np.sum,
    "ReduceL1": lambda data, **how: np.abs(data).sum(**how),
    "ReduceMean": np.mean,
}


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    compute, data = _COMPUTED.get(layer.op.type), layer.inputs[0] if layer.inputs else None
    if compute is None or data is None or data.dtype not in (np.int32, np.int64) or not data.ndim:
        return None
    axes = tuple({axis % data.ndim for axis in layer.inputs[1].ravel().tolist()})
    if not axes:
        return None
    found = compute(data.astype(np.int32).astype(np.float32), axis=axes, keepdims=layer.op.keep_dims)
    found = np.where(np.abs(found) < 2.0**31, np.trunc(found), -(2.0**31))
    return [found.astype(data.dtype)]
