"""Without elements, a dynamic layer keeps the outputs of the inference before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray | None] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "Unique-10" or not layer.dynamic or layer.inputs[0].size:
        return None
    return [None] * len(layer.outputs)
