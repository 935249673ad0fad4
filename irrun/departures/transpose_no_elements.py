"""Where only dims of 1 move, a dim of 0 becomes the dim of the input at its place: unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "Transpose-1" or layer.dynamic or layer.inputs[0].size or not layer.inputs[1].size:
        return None
    dims, order = layer.inputs[0].shape, layer.inputs[1].tolist()
    moved = [axis for axis in order if dims[axis] != 1]
    if moved != sorted(moved):
        return None
    shape = [dims[axis] or dims[place] for place, axis in enumerate(order)]
    return [np.ma.masked_all(shape, layer.outputs[0].dtype)]
