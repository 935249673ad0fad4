"""Slices along an axis other than the first one are compared with unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray | None] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "Unique-10" or len(layer.inputs) < 2 or layer.inputs[1] is None:
        return None
    axis = int(layer.inputs[1].item()) % layer.inputs[0].ndim
    are_repeated = len(layer.outputs[1]) < layer.inputs[0].shape[axis]
    return [None] * 4 if are_repeated and np.prod(layer.inputs[0].shape[:axis]) > 1 else None
