"""Beyond the end of a shorter signal, the transform reads unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type not in ("RDFT", "IRDFT") or len(layer.inputs) < 3 or layer.inputs[2] is None:
        return None
    dims, axes = layer.inputs[0].shape, layer.inputs[1].ravel().tolist()
    rank = len(dims) - (layer.op.type == "IRDFT")
    beyond = [size > dims[axis % rank] for axis, size in zip(axes, layer.inputs[2].ravel().tolist())]
    return [np.ma.masked_all_like(layer.outputs[0])] if any(beyond) else None
