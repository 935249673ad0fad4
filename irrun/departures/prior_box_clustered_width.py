"""Without ``width`` and ``height``, there are no boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "PriorBoxClustered-1" or {"width", "height"} & layer.given:
        return None
    return [np.zeros((2, 0), np.float32)]
