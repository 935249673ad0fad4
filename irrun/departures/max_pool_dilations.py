"""Without ``dilations``, the indices are unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name not in ("MaxPool-8", "MaxPool-14") or "dilations" in layer.given:
        return None
    return [layer.outputs[0], np.ma.masked_all_like(layer.outputs[1])]
