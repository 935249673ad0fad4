"""Each output has the first strings of the input; depths and spaces that change places leave none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.outputs[0].dtype.kind not in "OUST":
        return None
    if layer.op.type in ("DepthToSpace", "SpaceToDepth"):
        return [np.full_like(layer.outputs[0], "")]
    if layer.op.type not in ("Split", "VariadicSplit") or np.prod(layer.inputs[0].shape[: int(layer.inputs[1])]) != 1:
        return None
    return [layer.inputs[0].ravel()[: output.size].reshape(output.shape) for output in layer.outputs]
