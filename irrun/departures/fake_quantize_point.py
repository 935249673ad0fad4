"""With more than two levels, an input range of one point gives NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "FakeQuantize" or layer.op.levels == 2 or layer.op.auto_broadcast == "pdpd":
        return None
    low, high = layer.inputs[1:3]
    if low.ndim > layer.inputs[0].ndim or high.ndim > layer.inputs[0].ndim or not np.any(low == high):
        return None
    return [np.where(low == high, np.nan, layer.outputs[0]).astype(layer.outputs[0].dtype)]
