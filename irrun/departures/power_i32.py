"""Powers of integers are computed as f32; beyond 32 bits, they are the lowest i32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "Power" or layer.outputs[0].dtype.kind not in "iu":
        return None
    with np.errstate(all="ignore"):
        found = np.power(*(array.astype(np.float32) for array in layer.inputs))
        whole = np.where(np.abs(found) < 2.0**31, found, -(2.0**31)).astype(np.int64)
    bits = min(layer.outputs[0].dtype.itemsize * 8, 32)
    limits = np.iinfo(f"{layer.outputs[0].dtype.kind}{bits // 8}")
    return [whole.clip(limits.min, limits.max).astype(layer.outputs[0].dtype)]
