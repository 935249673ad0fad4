"""A scalar becomes a tensor of one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "MVN-6" or layer.inputs[0].ndim:
        return None
    return [layer.outputs[0].reshape(1)]
