"""With an open dim, a backward slice that begins before element 0 has no elements, as in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    op = layer.op
    if layer.name != "StridedSlice-1" or not layer.dynamic or len(layer.inputs) < 4:
        return None
    if any((*op.new_axis_mask, *op.shrink_axis_mask, *op.ellipsis_mask, *op.begin_mask, *op.end_mask)):
        return None
    bounds = zip(*(array.tolist() for array in layer.inputs[1:4]))
    return [layer.inputs[0][tuple(slice(*bound) for bound in bounds)]]
