"""Without axes, each element is divided by its own norm with ``eps``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "NormalizeL2" or layer.inputs[1].size:
        return None
    data = layer.inputs[0].astype(np.float32)
    square = np.maximum(data * data, layer.op.eps) if layer.op.eps_mode == "max" else data * data + layer.op.eps
    return [(data / np.sqrt(square)).astype(layer.outputs[0].dtype)]
