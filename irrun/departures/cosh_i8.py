"""Integers of 8 and 16 bits saturate where they should wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type not in ("Cosh", "Sinh") or layer.outputs[0].dtype not in (np.int8, np.uint8, np.int16, np.uint16):
        return None
    limits = np.iinfo(layer.outputs[0].dtype)
    with np.errstate(all="ignore"):
        wide = getattr(np, layer.op.type.lower())(layer.inputs[0].astype(np.float64))
    return [np.clip(np.rint(wide), limits.min, limits.max).astype(layer.outputs[0].dtype)]
