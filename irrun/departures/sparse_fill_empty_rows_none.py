"""Without values, all outputs are unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "SparseFillEmptyRows" or layer.inputs[0].size:
        return None
    return [np.ma.masked_all_like(output) for output in layer.outputs]
