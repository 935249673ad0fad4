"""In mode ``bicubic_pillow``, the coefficient is always -0.5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "Interpolate" or layer.op.mode != "bicubic_pillow":
        return None
    return layer.computed(*layer.inputs, cube_coeff=-0.5)
