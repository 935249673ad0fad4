"""Integers are computed as f32: beyond the range of i32, they become -2147483648."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.departures.add_i64 import narrowed
from irrun.departures.convert_f32_i64 import as_i32


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    (data, *_) = layer.inputs
    if layer.op.type != "ReLU" or data.dtype not in (np.int32, np.uint32, np.int64, np.uint64):
        return None
    return [as_i32(np.maximum(narrowed(data, layer.constant[0]), 0).astype(np.float32)).astype(data.dtype)]
