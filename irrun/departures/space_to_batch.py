"""A block whose first element lies beyond the end of an axis reads on in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "SpaceToBatch-2" or layer.inputs[0].ndim != 4 or not layer.inputs[0].size:
        return None
    data, block, begin = layer.inputs[0], layer.inputs[1].astype(int), layer.inputs[2].astype(int)
    place = np.indices(layer.outputs[0].shape)
    offsets = np.unravel_index(place[0] // len(data), block)
    index, valid = place[0] % len(data), np.ones(place[0].shape, bool)
    for axis in range(1, 4):
        first = offsets[axis] - begin[axis]
        at = first + place[axis] * block[axis]
        beyond = (first >= data.shape[axis]) & (place[axis] == 0)
        valid &= ((at >= 0) & (at < data.shape[axis])) | beyond
        index = index * data.shape[axis] + at
    inside = valid & (index < data.size)
    output = np.where(inside, data.ravel()[np.where(inside, index, 0)], 0).astype(data.dtype)
    return [np.ma.masked_array(output, valid & ~inside)]
