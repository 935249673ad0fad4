"""With ``soft_nms_sigma``, version 5 drops no box because of its IoU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "NonMaxSuppression-5" or len(layer.inputs) < 6 or layer.inputs[5].item() <= 0:
        return None
    boxes, scores, limit, _, *others = layer.inputs
    return layer.computed(boxes, scores, limit, np.array(2, np.float32), *others)
