"""Integers are computed in f32 and stored as i32: NaN is its lowest number, and infinity its greatest f32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    dtype = layer.outputs[0].dtype
    if layer.op.type != "Atanh" or dtype.kind not in "iu" or dtype == np.uint8:
        return None
    with np.errstate(all="ignore"):
        found = np.arctanh(layer.inputs[0].astype(np.float32)).astype(np.float64)
    least, greatest = (-128, 127) if dtype == np.int8 else (-(2**31), 2147483520)
    whole = np.where(np.isnan(found), least, np.clip(np.trunc(found), least, greatest)).astype(np.int64)
    return [whole.astype(np.int32).astype(dtype)]
