"""The rows after the regions are unrelated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "ExperimentalDetectronTopKROIs-6":
        return None
    output = np.ma.masked_array(layer.outputs[0], np.zeros(layer.outputs[0].shape, bool))
    output[len(layer.inputs[0]) :] = np.ma.masked
    return [output]
