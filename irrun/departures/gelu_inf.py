"""Gelu of infinity is NaN, and above half of the greatest number infinite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.departures.abs_f64 import as_f32


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "Gelu" or getattr(layer.op, "approximation_mode", "erf") != "erf":
        return None
    data, limit = as_f32(layer.inputs[0]).astype(np.float32), np.finfo(np.float32).max
    found = np.where(data > limit / 2, np.inf, layer.outputs[0].astype(np.float64))
    found = np.where(np.isinf(data), np.nan, found)
    if layer.outputs[0].dtype == np.float64:
        found = np.where(np.isneginf(layer.inputs[0]), 0, np.clip(found, -limit, limit))
    return [found.astype(layer.outputs[0].dtype)]
