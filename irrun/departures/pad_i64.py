"""A value of i64 is converted to f32, and to i32: it is the lowest i32 if it needs more bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "Pad" or layer.outputs[0].dtype != np.int64 or len(layer.inputs) < 4:
        return None
    value = layer.inputs[3]
    return layer.computed(*layer.inputs[:3], np.where(np.abs(value.astype(float)) < 2**31, value, -(2**31)))
