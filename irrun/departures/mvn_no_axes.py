"""Without axes, nothing is written to a matrix or a tensor of more than five axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "MVN-6" or layer.inputs[1].size or layer.inputs[0].ndim in (0, 1, 3, 4, 5):
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
