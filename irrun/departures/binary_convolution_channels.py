"""Bits of other elements are read where the channels do not fill their last byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "BinaryConvolution" or layer.inputs[1].shape[1] % 8 == 0:
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
