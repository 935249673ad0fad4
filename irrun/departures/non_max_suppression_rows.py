"""Versions 1, 3 and 4 give one row for each box that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name not in ("NonMaxSuppression-1", "NonMaxSuppression-3", "NonMaxSuppression-4"):
        return None
    boxes, scores, limit, threshold, *others = [*layer.inputs, None, None][: max(4, len(layer.inputs))]
    newest = next(cls for cls in type(layer.op).__mro__ if vars(cls).get("since") == 9)
    least = np.float32(0 if threshold is None else threshold.item())
    below = np.array(np.nextafter(least, np.float32(-1)))  # a box whose IoU equals the threshold is dropped, too
    return [newest.run(layer.op, boxes, scores, limit, below, *others)[0]]
