"""The axis is ignored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    is_pdpd = getattr(layer.op, "auto_broadcast", "") == "pdpd" and layer.op.axis != -1
    if not is_pdpd or not layer.op.type.startswith(("Subtract", "Divide", "Bitwise")):
        return None
    try:
        return layer.computed(*layer.inputs, auto_broadcast="numpy")
    except ValueError:
        return None
