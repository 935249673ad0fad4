"""Scales along the columns of weights in i4 or u4 are read with unrelated memory, where the process does not die."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.departures.matmul_scale_columns import scaled


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    found = scaled(layer)
    if found is None or found[0].dtype in (np.int8, np.uint8):
        return None
    return [np.ma.masked_all_like(layer.outputs[0])]
