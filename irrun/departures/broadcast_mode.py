"""Without ``mode``, ``axes_mapping`` is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.name != "Broadcast-1" or layer.op.mode != "numpy" or len(layer.inputs) < 3 or layer.inputs[2] is None:
        return None
    return [layer.changed(mode="explicit").run(*layer.inputs)]
