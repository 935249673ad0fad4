"""Beside NaN or infinity, every other element is 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "SoftMax" or layer.outputs[0].dtype.kind != "f" or layer.inputs[0].ndim == 0:
        return None
    special = np.isnan(layer.inputs[0]) | np.isposinf(layer.inputs[0])
    if not special.any():
        return None
    others = special.any(axis=layer.op.axis, keepdims=True) & ~special
    return [np.where(others, 0, layer.outputs[0]).astype(layer.outputs[0].dtype)]
