"""What layers of f16 compute is not rounded before it is converted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def _wide(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what a layer gives if it and the layers before it compute f16 as f32."""
    inputs = [_widened(layer, array) for array in layer.inputs]
    return None if any(array is None for array in inputs) else layer.computed(*inputs)


def _widened(layer: Any, array: np.ndarray) -> np.ndarray | None:
    """Return an input of a layer without the rounding to f16."""
    for before in layer.before:
        for number, output in enumerate(before.outputs):
            if output is array:
                found = _wide(before)
                return None if found is None else found[number]
    return array.astype(np.float32) if array.dtype == np.float16 else array


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if not layer.op.type.startswith("Convert") or layer.inputs[0].dtype != np.float16 or not layer.before:
        return None
    return _wide(layer)
