"""Where all dims are open, slopes are channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    data, slope = layer.inputs[:2] if layer.op.type == "PReLU" else (np.array(0), np.array(0))
    if not layer.dynamic or slope.ndim != 1 or data.ndim < 3 or data.shape[1] != 1:
        return None
    wide = slope.reshape(-1, *[1] * (data.ndim - 2))
    return [np.where(data < 0, data * wide, np.broadcast_to(data, np.broadcast_shapes(data.shape, wide.shape)))]
