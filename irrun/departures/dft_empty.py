"""A transform of no elements reads past their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type not in ("DFT", "IDFT") or layer.inputs[0].size or not layer.outputs[0].size:
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
