"""The attribute ``axis`` is ignored: the second operand begins at axis 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if getattr(layer.op, "auto_broadcast", "") != "pdpd" or "axis" not in layer.given:
        return None
    try:
        return layer.computed(*layer.inputs, axis=0)
    except ValueError:
        return None
