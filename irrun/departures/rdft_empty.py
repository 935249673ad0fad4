"""An axis of length 0 keeps its length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "RDFT-9" or layer.inputs[0].size or len(layer.inputs) > 2:
        return None
    last = int(layer.inputs[1].ravel()[-1])
    axis = last % layer.inputs[0].ndim
    shape = list(layer.outputs[0].shape)
    shape[axis] = 0 if layer.inputs[0].shape[axis] == 0 else shape[axis]
    return [np.zeros(shape, layer.outputs[0].dtype)]
