"""With static shapes, integers of 8 bits give the least of both and 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "SquaredDifference" or layer.outputs[0].dtype not in (np.int8, np.uint8):
        return None
    if not layer.dynamic:
        return [np.minimum(np.minimum(*layer.operands), 0).astype(layer.outputs[0].dtype)]
    limits = np.iinfo(layer.outputs[0].dtype)
    wide = np.subtract(*(array.astype(np.int64) for array in layer.inputs)) ** 2
    return [np.minimum(wide, limits.max).astype(layer.outputs[0].dtype)]
