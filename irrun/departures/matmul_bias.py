"""An Add whose constant has more axes than the product loses these axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    is_sum = layer.op.type == "Add" and len(layer.before) == 1 and layer.before[0].op.type == "MatMul"
    if not is_sum or layer.outputs[0].size != layer.before[0].outputs[0].size:
        return None
    return [layer.outputs[0].reshape(layer.before[0].outputs[0].shape)]
