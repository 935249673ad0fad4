"""An empty order that is no constant gives another shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray | None] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "Transpose" or layer.inputs[1].size or layer.constant[1]:
        return None
    return [None]
