"""The mean of a window of pads only is NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "AvgPool" or not layer.op.exclude_pad or layer.outputs[0].dtype.kind not in "fV":
        return None
    counted = layer.changed(exclude_pad=False).run(np.ones_like(layer.inputs[0]))
    return [np.where(counted == 0, np.nan, layer.outputs[0]).astype(layer.outputs[0].dtype)]
