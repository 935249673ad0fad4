"""A scalar counts as a tensor of one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "NonZero" or layer.inputs[0].ndim:
        return None
    return [np.zeros((1, int(bool(layer.inputs[0]))), layer.outputs[0].dtype)]
