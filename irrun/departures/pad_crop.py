"""Where more is cropped than there is, elements are unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "Pad-12":
        return None
    dims = np.array(layer.inputs[0].shape)
    beyond = (-layer.inputs[1].astype(np.int64) > dims) | (-layer.inputs[2].astype(np.int64) > dims)
    return [np.ma.masked_all_like(layer.outputs[0])] if beyond.any() else None
