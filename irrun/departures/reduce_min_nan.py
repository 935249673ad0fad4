"""The least and the greatest element are those after the last NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type not in ("ReduceMin", "ReduceMax") or layer.inputs[0].dtype.kind != "f" or not layer.inputs[0].ndim:
        return None
    data = layer.inputs[0]
    axes = tuple(axis % data.ndim for axis in layer.inputs[1].ravel().tolist())
    if not data.size or not axes or not np.isnan(data).any():
        return None
    kept = [axis for axis in range(data.ndim) if axis not in axes]
    rows = data.transpose(*kept, *axes).reshape(*(data.shape[axis] for axis in kept), -1)
    found = rows[..., 0]
    for number in range(1, rows.shape[-1]):
        element = rows[..., number]
        stays = found < element if layer.op.type == "ReduceMin" else found > element
        found = np.where(stays, found, element)
    return [found.reshape(layer.outputs[0].shape)]
