"""Integers of 8 bits are added as f32 and saturate; u8 takes a result of more than 15 bits for 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_COMPUTED = {
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceL1": lambda data, **how: np.abs(data).sum(**how),
}


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    compute = _COMPUTED.get(layer.op.type)
    if compute is None or layer.outputs[0].dtype not in (np.uint8, np.int8) or not layer.inputs[0].ndim:
        return None
    axes = tuple({axis % layer.inputs[0].ndim for axis in layer.inputs[1].ravel().tolist()})
    if not axes:
        return None
    found = compute(layer.inputs[0].astype(np.float32), axis=axes, keepdims=layer.op.keep_dims)
    limits = np.iinfo(layer.outputs[0].dtype)
    found = np.where((found > 32767) & (limits.min == 0), 0, found.clip(limits.min, limits.max))
    return [np.asarray(found).astype(layer.outputs[0].dtype)]
