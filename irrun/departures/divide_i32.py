"""Quotients of integers of 32 and 64 bits are computed as f32 and truncated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.departures.add_i64 import narrowed


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    dtype = layer.outputs[0].dtype
    if layer.op.type != "Divide" or dtype not in (np.int32, np.uint32, np.int64, np.uint64):
        return None
    a, b = (narrowed(array, constant) for array, constant in zip(layer.inputs, layer.constant))
    with np.errstate(all="ignore"):
        quotient = np.trunc(a.astype(np.float32) / b.astype(np.float32))
    inside = (quotient >= -(2.0**31)) & (quotient < 2.0**31)
    return [np.where(inside, quotient, -(2.0**31)).astype(np.int64).astype(dtype)]
