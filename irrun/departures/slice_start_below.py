"""A start before element 0 is clamped to element 0 where a slice goes backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "Slice-8":
        return None
    data, start, stop, step, *rest = layer.inputs
    axes = rest[0] if rest and rest[0] is not None else np.arange(len(start))
    below = (step < 0) & (start < -np.array([data.shape[int(axis)] for axis in axes]))
    return layer.computed(data, np.where(below, 0, start), stop, step, axes) if below.any() else None
