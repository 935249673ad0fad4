"""NaN becomes 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "ReLU" or layer.inputs[0].dtype.kind != "f":
        return None
    return [np.where(np.isnan(layer.inputs[0]), 0, layer.outputs[0]).astype(layer.outputs[0].dtype)]
