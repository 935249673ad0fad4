"""A box is dropped whose IoU equals the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name not in ("NonMaxSuppression-5", "NonMaxSuppression-9"):
        return None
    boxes, scores, limit, threshold, *others = [*layer.inputs, None, None][: max(4, len(layer.inputs))]
    sigma = others[1] if len(others) == 2 else None
    if sigma is not None and sigma.item() > 0:
        return None
    least = np.float32(0 if threshold is None else threshold.item())
    below = np.array(np.nextafter(least, np.float32(-1)))
    return layer.computed(boxes, scores, limit, below, *others)
