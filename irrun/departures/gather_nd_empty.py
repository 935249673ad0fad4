"""Index tuples of length 0 give unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "GatherND" or layer.inputs[1].shape[-1]:
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
