"""Without boxes to select, their number is unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name not in ("NonMaxSuppression-5", "NonMaxSuppression-9") or len(layer.inputs) < 3:
        return None
    if layer.inputs[2].item() > 0:
        return None
    return [*layer.outputs[:2], np.ma.masked_all_like(layer.outputs[2])]
