"""Of these types, the output is unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

_TYPES = (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn, ml_dtypes.uint2)


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "SegmentMax" or layer.outputs[0].dtype not in _TYPES:
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
