"""A Convert to boolean takes the first output of the layer before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "Convert" or layer.outputs[0].dtype != bool or not layer.before:
        return None
    if len(layer.before[0].outputs) < 2:
        return None
    return [layer.before[0].outputs[0] != 0]
