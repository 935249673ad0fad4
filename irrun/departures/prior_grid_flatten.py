"""Without ``flatten``, the boxes keep the axes of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "ExperimentalDetectronPriorGridGenerator-6" or "flatten" in layer.given:
        return None
    (boxes,) = layer.computed(*layer.inputs, flatten=False)
    _, _, height, width = layer.inputs[1].shape
    written = (layer.op.h or height) * (layer.op.w or width) * layer.inputs[0].size
    rest = np.arange(boxes.size) >= written
    return [np.ma.masked_array(boxes, rest.reshape(boxes.shape))]
