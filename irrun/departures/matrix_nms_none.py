"""If no box is selected, their number is unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "MatrixNms" or layer.outputs[0].size:
        return None
    return [*layer.outputs[:2], np.ma.masked_all_like(layer.outputs[2])]
