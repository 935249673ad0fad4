"""The greater and the lesser of a number and NaN is the first one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "ScatterElementsUpdate-12" or layer.op.reduction not in ("max", "min"):
        return None
    data, indices, updates, axis = layer.inputs
    if updates.dtype.kind != "f" or not layer.op.use_init_val:
        return None
    least = -np.inf if layer.op.reduction == "max" else np.inf
    return layer.computed(data, indices, np.where(np.isnan(updates), least, updates).astype(updates.dtype), axis)
