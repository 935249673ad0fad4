"""NaN becomes 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if not layer.op.type.startswith(("I420to", "NV12to")) or layer.outputs[0].dtype.kind not in "fV":
        return None
    return [np.where(np.isnan(layer.outputs[0].astype(np.float32)), 0, layer.outputs[0]).astype(layer.outputs[0].dtype)]
