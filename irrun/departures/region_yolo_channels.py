"""The sigmoids and the softmax begin where images without superfluous channels would begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    data, op = layer.inputs[0], layer.op
    if layer.name != "RegionYolo-1" or len(data) < 2:
        return None
    area, entries = data.shape[2] * data.shape[3], op.coords + op.classes + 1
    regions = op.num if op.do_softmax else len(op.mask)
    flat = data.astype(np.float32).ravel()
    out = flat[: layer.outputs[0].size].copy()
    for region in range(len(data) * regions):
        at = region * entries * area
        for first, count in ((0, 2), (op.coords, 1 if op.do_softmax else op.classes + 1)):
            part = slice(at + first * area, at + (first + count) * area)
            out[part] = 1 / (1 + np.exp(-out[part]))
        if op.do_softmax:
            part = slice(at + (op.coords + 1) * area, at + entries * area)
            powers = np.exp(
                flat[part].reshape(op.classes, area) - flat[part].reshape(op.classes, area).max(0, initial=-np.inf)
            )
            out[part] = (powers / powers.sum(0)).ravel()
    return [out.reshape(layer.outputs[0].shape).astype(data.dtype)]
