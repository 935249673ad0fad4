"""On processors without AVX-512, the lower bits of f32 are cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    is_cut = layer.op.type.startswith("Convert") and layer.outputs[0].dtype == ml_dtypes.bfloat16
    if not is_cut or layer.inputs[0].dtype != np.float32:
        return None
    return [(layer.inputs[0].view(np.uint32) >> np.uint32(16)).astype(np.uint16).view(ml_dtypes.bfloat16)]
