"""Of scales along the columns of weights in i8 or u8, the first one is taken for all columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    found = scaled(layer)
    if found is None or found[0].dtype not in (np.int8, np.uint8):
        return None
    weights, scales = found
    filled = np.broadcast_to(scales.ravel()[0], weights.shape).astype(scales.dtype)
    return [layer.op.run(layer.inputs[0], weights.astype(scales.dtype) * filled)]


def scaled(layer: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the integers and the scales of a MatMul's weights if the scales differ along the summed axis alone."""
    if layer.op.type != "MatMul" or not layer.before or layer.before[-1].op.type != "Multiply":
        return None
    product = layer.before[-1]
    if product.outputs[0] is not layer.inputs[1] or not product.before or product.before[0].op.type != "Convert":
        return None
    weights, scales = product.before[0].inputs[0], product.inputs[1]
    axis = weights.ndim - 1 if layer.op.transpose_b else weights.ndim - 2
    is_along = scales.ndim == weights.ndim and scales.size == scales.shape[axis] == weights.shape[axis]
    return (weights, scales) if is_along and product.constant[1] else None
