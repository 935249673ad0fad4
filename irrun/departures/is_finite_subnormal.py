"""Subnormal numbers of f32 do not count as finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.departures.abs_f64 import as_f32


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "IsFinite":
        return None
    data = np.abs(as_f32(layer.inputs[0]).astype(np.float32))
    return [np.isfinite(data) & ((data == 0) | (data >= np.finfo(np.float32).tiny))]
