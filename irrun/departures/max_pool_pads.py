"""A window of pads alone gives the lowest finite number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    output = layer.outputs[0]
    if layer.op.type != "MaxPool" or output.dtype.kind not in "fV":
        return None
    with np.errstate(over="ignore"):
        lowest = ml_dtypes.finfo(np.float32 if output.dtype == np.float64 else output.dtype).min
    return [np.where(np.isneginf(output.astype(np.float64)), lowest, output).astype(output.dtype), *layer.outputs[1:]]
