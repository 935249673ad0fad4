"""Rows of an axis without elements are unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "Gather" or layer.inputs[0].shape[int(layer.inputs[2].item())]:
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
