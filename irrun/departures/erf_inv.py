"""Results for arguments above 0.9985 are up to half a percent too small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer. Results that are only known to lie in a range are masked."""
    if layer.op.type != "ErfInv":
        return None
    x = np.abs(layer.inputs[0].astype(np.float64))
    return [np.ma.array(layer.outputs[0], mask=(x > 0.9985) & (x < 1))]
