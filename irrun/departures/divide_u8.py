"""Quotients of integers of 8 bits are rounded where the shapes are open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    dtype = layer.outputs[0].dtype
    if layer.op.type != "Divide" or not layer.dynamic or dtype not in (np.uint8, np.int8):
        return None
    a, b = (array.astype(np.float32) for array in layer.inputs)
    limits = np.iinfo(dtype)
    with np.errstate(all="ignore"):
        return [np.nan_to_num(np.clip(np.rint(a / b), limits.min, limits.max)).astype(dtype)]
