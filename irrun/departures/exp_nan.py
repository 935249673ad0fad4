"""The exponential of NaN is infinite, as f64 the greatest f32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.departures.abs_f64 import as_f32


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    (data, *_) = layer.inputs
    if layer.op.type != "Exp" or data.dtype.kind not in "fV" or not np.isnan(data).any():
        return None
    found = np.where(np.isnan(data), np.inf, layer.outputs[0])
    return [as_f32(found).astype(data.dtype) if data.dtype == np.float64 else found.astype(data.dtype)]
