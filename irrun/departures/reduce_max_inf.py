"""No maximum is below the lowest finite number, and no minimum above the greatest one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if (
        layer.op.type not in ("ReduceMax", "ReduceMin")
        or layer.outputs[0].dtype != np.float32
        or not layer.inputs[1].size
    ):
        return None
    limit = np.finfo(np.float32)
    if layer.op.type == "ReduceMax":
        return [np.maximum(layer.outputs[0], limit.min)]
    return [np.minimum(layer.outputs[0], limit.max)]
