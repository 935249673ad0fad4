"""A value that is no constant counts as 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "Pad" or len(layer.inputs) < 4 or not all(layer.constant[1:3]) or layer.constant[3]:
        return None
    return layer.computed(*layer.inputs[:3], np.zeros_like(layer.inputs[3]))
