"""Remainders are computed in f32 from a rounded quotient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.departures.abs_f64 import as_f32


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type not in ("Mod", "FloorMod") or layer.inputs[0].dtype.kind not in "fV":
        return None
    a, b = (as_f32(array).astype(np.float32) for array in layer.operands)
    to_whole = np.trunc if layer.op.type == "Mod" else np.floor
    with np.errstate(all="ignore"):
        return [(a - to_whole(a / b) * b).astype(layer.outputs[0].dtype)]
