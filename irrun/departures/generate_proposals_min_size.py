"""Boxes below ``min_size`` are kept, with a score of 0 and in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_MAX_BOXES = 400


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "ExperimentalDetectronGenerateProposalsSingleImage" or layer.inputs[3].size > _MAX_BOXES:
        return None
    *others, scores = layer.inputs
    kept = np.array([_is_kept(layer, place) for place in range(scores.size)], bool).reshape(scores.shape)
    found = layer.computed(*others, np.where(kept, scores, 0).astype(scores.dtype), min_size=0.0)
    if found is None:
        return None
    boxes, ranking = found
    return [np.ma.array(boxes, mask=np.broadcast_to(ranking[:, None] == 0, boxes.shape)), ranking]


def _is_kept(layer: Any, place: int) -> bool:
    """Return whether a box is large enough: whether it is chosen if it alone has a score above 0."""
    *others, scores = layer.inputs
    alone = np.zeros_like(scores)
    alone.flat[place] = 1
    found = layer.computed(*others, alone, pre_nms_count=1, post_nms_count=1)
    return found is not None and bool(found[1][0] > 0)
