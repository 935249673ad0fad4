"""Sorted by index, any of the equal elements at the limit are taken, though ``stable`` is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "TopK-11" or layer.op.sort != "index" or not layer.op.stable or layer.inputs[0].dtype.kind == "U":
        return None
    data, values, axis = layer.inputs[0], layer.outputs[0], layer.op.axis
    if not values.size:
        return None
    limit = (values.max if layer.op.mode == "min" else values.min)(axis=axis, keepdims=True)
    of_data, taken = (data == limit).sum(axis=axis, keepdims=True), (values == limit).sum(axis=axis, keepdims=True)
    is_open = np.broadcast_to(of_data > taken, values.shape)
    return [np.ma.array(output, mask=is_open) for output in layer.outputs]
