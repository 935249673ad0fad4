"""Integers of 64 bits are truncated to bf16."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    (data, *_) = layer.inputs
    if layer.op.type != "Convert" or layer.outputs[0].dtype != ml_dtypes.bfloat16 or data.dtype.kind not in "iu":
        return None
    bits = data.astype(np.float32).view(np.uint32) >> 16
    return [bits.astype(np.uint16).view(ml_dtypes.bfloat16)]
