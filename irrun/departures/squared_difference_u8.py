"""The square is 0, or the first negative one of two operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "SquaredDifference" or layer.outputs[0].dtype not in (np.uint8, np.int8):
        return None
    if layer.op.auto_broadcast == "pdpd":
        return None
    a, b = np.broadcast_arrays(*layer.inputs)
    return [np.where(a < 0, a, np.minimum(b, 0)).astype(layer.outputs[0].dtype)]
