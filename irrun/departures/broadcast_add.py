"""An operation on two tensors reads the data of a Broadcast before it instead of its output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if len(layer.inputs) != 2 or not any(source.op.type == "Broadcast" for source in layer.before):
        return None
    data = {id(source.outputs[0]): source.inputs[0] for source in layer.before if source.op.type == "Broadcast"}
    inputs = [data.get(id(array), array) for array in layer.inputs]
    with np.errstate(all="ignore"):
        return None if inputs[0] is layer.inputs[0] and inputs[1] is layer.inputs[1] else [layer.op.run(*inputs)]
