"""Without an axis, the second operand begins at axis 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    is_pdpd = getattr(layer.op, "auto_broadcast", "") == "pdpd" and layer.op.axis == -1
    if not is_pdpd or len(layer.inputs) != 2 or layer.inputs[1].ndim > layer.inputs[0].ndim:
        return None
    try:
        return layer.computed(*layer.inputs, axis=0)
    except ValueError:
        return None
