"""Pads whose ``pad_value`` is neither 0 nor 1 count as -1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "BinaryConvolution" or layer.op.pad_value in (0, 1):
        return None
    stored = np.packbits(layer.inputs[1].astype(np.uint8)) if layer.constant[1] else None
    return [layer.changed(pad_value=-1.0).run(*layer.inputs, stored=[None, stored])]
