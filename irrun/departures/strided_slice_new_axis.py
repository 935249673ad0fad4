"""With a new axis and a removed one, elements of axes that the bounds do not name are unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    op = layer.op
    if layer.name != "StridedSlice-1" or any(op.ellipsis_mask):
        return None
    slots = len(layer.inputs[1])
    are_new = sum(op.new_axis_mask[:slots])
    if not are_new or not any(op.shrink_axis_mask[:slots]) or slots - are_new >= layer.inputs[0].ndim:
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
