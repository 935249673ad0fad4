"""Indices and counts of slices of one byte are copied in part: the others are unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "Unique-10" or len(layer.inputs) < 2 or layer.inputs[0].dtype.itemsize != 1:
        return None
    unique, first, inverse, counts = layer.outputs
    return [unique, np.ma.masked_all_like(first), inverse, np.ma.masked_all_like(counts)]
