"""Strings are copied as if they were numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    moves = ("Identity", "OneHot", "Reverse", "Slice", "StridedSlice", "VariadicSplit")
    if layer.op.type not in moves or layer.outputs[0].dtype != object:
        return None
    return [np.ma.masked_all_like(output) for output in layer.outputs]
