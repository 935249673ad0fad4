"""The final states of a length beyond the sequence are 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type not in ("RNNSequence", "GRUSequence", "LSTMSequence", "AUGRUSequence"):
        return None
    lengths = layer.inputs[3 if layer.op.type == "LSTMSequence" else 2]
    beyond = lengths > layer.inputs[0].shape[1]
    if not beyond.any():
        return None
    rows = beyond.reshape(-1, 1, 1)
    return [layer.outputs[0], *(np.where(rows, 0, state).astype(state.dtype) for state in layer.outputs[1:])]
