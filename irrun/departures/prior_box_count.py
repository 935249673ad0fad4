"""The output has as many boxes as the attributes seem to ask for, not as many as are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "PriorBox":
        return None
    height, width = (int(number) for number in layer.inputs[0].tolist())
    boxes, variances = _written(layer)
    elements = max(height, 0) * max(width, 0) * _count(layer.op) * 4
    if elements == boxes.size and not layer.op.max_size:
        return None
    output = np.ma.masked_all((2, elements), boxes.dtype)
    output[0, : boxes.size] = boxes[:elements]
    output[1] = np.resize(variances[:4] if variances.size else layer.op.variance or (0.1,), elements)
    return [output]


def _written(layer: Any) -> np.ndarray:
    """Return the boxes that are written, and their variances: with those of ``max_size`` in every case."""
    op, (height, _), (image_height, _) = layer.op, layer.inputs[0].tolist(), layer.inputs[1].tolist()
    if op.scale_all_sizes or not op.max_size or len(op.min_size) != 1:
        return layer.outputs[0]
    step = image_height / max(height, 1) if op.step == -1 else op.step * image_height
    (boxes,) = layer.computed(
        *layer.inputs, scale_all_sizes=True, min_size=(op.min_size[0] * image_height,), step=float(step)
    )
    return boxes


def _count(op: Any) -> int:
    """Return the number of boxes of a point in the shape of the output."""
    ratios = {1.0, *(round(ratio, 6) for ratio in op.aspect_ratio)}
    ratios |= {round(1 / ratio, 6) for ratio in op.aspect_ratio} if op.flip else set()
    count = len(ratios) + len(op.min_size) - 1
    if op.scale_all_sizes:
        count = len(ratios) * len(op.min_size) + len(op.max_size)
    if op.fixed_size:
        count = len(ratios) * len(op.fixed_size)
    return count + sum((int(density) ** 2 - 1) * (len(op.fixed_ratio) or len(ratios)) for density in op.density)
