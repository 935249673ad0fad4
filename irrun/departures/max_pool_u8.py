"""Of a window of zeros in u8, the index names the first element of the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    is_u8 = layer.op.type == "MaxPool" and layer.inputs[0].dtype == np.uint8
    if not is_u8 or len(layer.outputs) < 2:
        return None
    shape, (values, indices) = layer.inputs[0].shape, layer.outputs
    size = int(np.prod(shape[2:]))
    images = np.arange(shape[0] * shape[1]).reshape(*shape[:2], *[1] * (len(shape) - 2))
    first = images * size % max(1, np.prod(shape[layer.op.axis % len(shape) :], dtype=np.int64))
    return [values, np.where(values == 0, first, indices).astype(indices.dtype)]
