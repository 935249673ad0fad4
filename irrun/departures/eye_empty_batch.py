"""With an empty ``batch_shape``, the matrix is unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "Eye" or len(layer.inputs) < 4 or layer.inputs[3].size:
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
