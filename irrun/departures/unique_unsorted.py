"""Without the third output, only the first element is written, and every index is 0 and every count 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "Unique-10" or layer.op.sorted or (len(layer.inputs) > 1 and layer.inputs[1] is not None):
        return None
    unique, first, inverse, counts = layer.outputs
    found = np.zeros_like(unique)
    found[:1] = unique[:1]
    return [found, np.zeros_like(first), inverse, np.ones_like(counts)]
