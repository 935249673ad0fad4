"""The loss is infinite where exp of a logit overflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "CTCLoss" or layer.outputs[0].dtype.kind not in "fV":
        return None
    logits, lengths = layer.inputs[0].astype(np.float32), layer.inputs[1]
    with np.errstate(over="ignore"):
        is_too_large = np.isinf(np.exp(logits).sum(axis=-1))
    used = np.arange(logits.shape[1]) < lengths[:, None]
    return [np.where((is_too_large & used).any(axis=-1), np.inf, layer.outputs[0]).astype(layer.outputs[0].dtype)]
