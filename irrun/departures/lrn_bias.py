"""The bias is cut off to a whole number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "LRN":
        return None
    return layer.computed(*layer.inputs, bias=float(int(layer.op.bias)))
