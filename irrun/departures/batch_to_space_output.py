"""A BatchToSpace that changes nothing takes the first output of the layer before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "BatchToSpace" or not layer.before or layer.outputs[0].shape != layer.inputs[0].shape:
        return None
    first = layer.before[0].outputs[0]
    return None if first.shape != layer.inputs[0].shape else [first]
