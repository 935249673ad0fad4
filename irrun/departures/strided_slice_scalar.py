"""If all axes are removed, and ``strides`` is no constant, the output is unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "StridedSlice" or len(layer.inputs) < 4 or layer.constant[3] or layer.outputs[0].ndim:
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
