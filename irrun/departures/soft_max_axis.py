"""Without ``axis``, version 1 normalises along axis 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "SoftMax-1" or "axis" in layer.given:
        return None
    return layer.computed(*layer.inputs, axis=0)
