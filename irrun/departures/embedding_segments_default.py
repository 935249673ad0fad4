"""An empty segment with a ``default_index`` of -1 is unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "EmbeddingSegmentsSum" or len(layer.inputs) < 5 or layer.inputs[4] is None:
        return None
    is_empty = ~np.isin(np.arange(len(layer.outputs[0])), layer.inputs[2])
    if layer.inputs[4].item() != -1:
        return None
    wide = is_empty.reshape(-1, *[1] * (layer.outputs[0].ndim - 1))
    return [np.ma.array(layer.outputs[0], mask=np.broadcast_to(wide, layer.outputs[0].shape))]
