"""If ``nms_top_k`` is 0, the number of selected boxes is unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type not in ("MatrixNms", "MulticlassNms") or layer.op.nms_top_k or layer.outputs[0].size:
        return None
    return [*layer.outputs[:2], np.ma.masked_all_like(layer.outputs[2])]
