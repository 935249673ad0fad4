"""Axes of an attribute are ignored, except that axis 1 among them means ``across_channels``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "MVN-2" or not layer.op.reduction_axes:
        return None
    return layer.computed(layer.inputs[0], reduction_axes=(), across_channels=1 in layer.op.reduction_axes)
