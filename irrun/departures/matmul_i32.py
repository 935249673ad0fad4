"""Products of integers are computed in f32, and stored as i32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.departures.add_i64 import narrowed


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "MatMul" or layer.outputs[0].dtype not in (np.int32, np.int64, np.uint32, np.uint64):
        return None
    a, b = (narrowed(array, constant).astype(np.float32) for array, constant in zip(layer.inputs, layer.constant))
    found = layer.computed(a, b)
    if found is None:
        return None
    whole = np.where(found[0] >= 2**31, 2147483520, found[0]).clip(-(2**31))
    return [whole.astype(np.int64).astype(layer.outputs[0].dtype)]
