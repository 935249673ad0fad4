"""The loss of a label of length 0 is unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "CTCLoss" or np.all(layer.inputs[3]):
        return None
    return [np.ma.array(layer.outputs[0], mask=layer.inputs[3] == 0)]
