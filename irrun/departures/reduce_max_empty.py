"""The largest of no elements is the lowest finite number, and the least of none the highest one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type not in ("ReduceMax", "ReduceMin") or layer.inputs[0].size:
        return None
    if layer.outputs[0].dtype not in (np.float32, np.float64):
        return None
    limit = np.finfo(np.float32).min if layer.op.type == "ReduceMax" else np.finfo(np.float32).max
    return [np.full(layer.outputs[0].shape, limit, layer.outputs[0].dtype)]
