"""Sums of a table of one axis are unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if not layer.op.type.startswith("Embedding") or layer.inputs[0].ndim != 1:
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
