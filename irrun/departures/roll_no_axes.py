"""Without axes, the output is unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "Roll-7" or layer.inputs[2].size:
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
