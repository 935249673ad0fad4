"""A single channel that is repeated comes out in the order of another layout if a dim is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    tiled = layer.outputs[0]
    if layer.op.type != "Tile" or not layer.dynamic or tiled.ndim != 4 or layer.inputs[0].shape[1:2] != (1,):
        return None
    batch, channels, height, width = tiled.shape
    return [tiled.reshape(batch, height, width, channels).transpose(0, 3, 1, 2)]
