"""What the pages of operations that sort, and of non-maximum suppression, leave open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs

__all__ = ["BEHAVIOURS"]

# ---------------------------------------------------------------------------------------------
# TopK and SearchSorted


def _any_order(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of TopK, if they need no order."""
    return op.sort == "none" and inputs[1] is not None and int(inputs[1]) > 1


def _equal_elements(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Slices of TopK in which equal elements may change places, or be taken instead of each other."""
    data, k = inputs
    if data is None or k is None or getattr(op, "stable", False):
        return False
    count = int(k)
    is_float = data.dtype.kind not in "iu"
    descending = (
        -np.sort(-data, axis=op.axis) if is_float else np.flip(np.sort(data, axis=op.axis), op.axis)
    )  # NaN last
    ranked = descending if op.mode == "max" else np.flip(descending, op.axis)
    first = max(count - 1, 0) if op.sort == "index" else 0
    near = np.moveaxis(ranked, op.axis, 0)[first : count + 1]
    equal = (near[1:] == near[:-1]) | ((near[1:] != near[1:]) & (near[:-1] != near[:-1]))
    return np.expand_dims(equal.any(axis=0), op.axis) & (count > 0)


def _no_k(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of TopK, if k is outside the range from 1 to the dim of the axis."""
    data, k = inputs
    return data is not None and k is not None and not 1 <= int(k) <= data.shape[op.axis]


def _searched_otherwise(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of SearchSorted, if a row is not in order, ranks differ, or the output is not i64."""
    rows, values = inputs
    if rows is None or values is None:
        return False
    in_order = bool((rows[..., 1:] >= rows[..., :-1]).all())
    return not in_order or rows.ndim != values.ndim or op.output_type.name != "i64"


# ---------------------------------------------------------------------------------------------
# non-maximum suppression


def _threshold(op: Any, inputs: Inputs) -> float:
    """Return the least score."""
    if hasattr(op, "score_threshold"):
        return float(op.score_threshold)
    return 0.0 if len(inputs) < 5 or inputs[4] is None else float(inputs[4].item())


def _equal_candidates(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if two scores are equal that are compared with each other."""
    scores = inputs[1]
    if scores is None:
        return False
    if hasattr(op, "sort_result_descending"):
        groups = scores.reshape(1, -1) if op.sort_result_descending else scores.reshape(-1, scores.shape[-1])
    else:
        groups = scores.reshape(1 if op.sort_result_across_batch else max(len(scores), 1), -1)
    enough = [group[group >= _threshold(op, inputs)] for group in groups]
    return any(np.unique(group).size < group.size for group in enough)


def _score_at_threshold(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if a score is the least one exactly."""
    return inputs[1] is not None and bool((inputs[1] == _threshold(op, inputs)).any())


def _overlaps(op: Any, boxes: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the IoUs of each box of each batch element with those after it."""
    for batch in boxes.astype(np.float64):
        overlap = op.overlap(batch) if hasattr(op, "overlap") else None
        for one in range(len(batch) - 1):
            others = np.arange(one + 1, len(batch))
            yield _iou(batch[one], batch[others]) if overlap is None else overlap(one, others)


def _iou(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the IoUs of boxes ``[xmin, ymin, xmax, ymax]``, 0 for those of no area."""
    sides = np.minimum(one[2:], others[:, 2:]) - np.maximum(one[:2], others[:, :2])
    common = np.maximum(sides, 0).prod(axis=1)
    areas = (others[:, 2:] - others[:, :2]).prod(axis=1) + (one[2:] - one[:2]).prod()
    return np.divide(common, areas - common, out=np.zeros(len(others)), where=areas > common)


def _suppressed_at_zero(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if a box is suppressed by a score of 0, which is not below the least score."""
    boxes = inputs[0]
    if boxes is None or _threshold(op, inputs) > 0:
        return False
    limit = op.iou_threshold if hasattr(op, "iou_threshold") else _iou_threshold(inputs)
    return any(bool((ious > limit).any()) for ious in _overlaps(op, boxes))


def _iou_threshold(inputs: Inputs) -> float:
    return 0.0 if len(inputs) < 4 or inputs[3] is None else float(inputs[3].item())


def _iou_at_threshold(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of MulticlassNms, if an IoU is the threshold but for a rounding."""
    boxes = inputs[0]
    return boxes is not None and any(bool((abs(i - op.iou_threshold) < 1e-6).any()) for i in _overlaps(op, boxes))


def _boxes_of_no_area(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if two boxes of a batch element have no area: their IoU is 0 / 0."""
    boxes = inputs[0]
    if boxes is None:
        return False
    by_size = op.type == "NMSRotated" or getattr(op, "box_encoding", "corner") == "center"
    sides = boxes[..., 2:4] if by_size else boxes[..., 2:4] - boxes[..., :2]
    empty = (sides <= 0).any(axis=-1) if op.type != "NonMaxSuppression" or by_size else (sides == 0).any(axis=-1)
    return bool((empty.sum(axis=-1) > 1).any())


def _default_iou(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of NonMaxSuppression, if boxes overlap and the threshold is left out."""
    boxes = inputs[0]
    if boxes is None or (len(inputs) > 3 and inputs[3] is not None):
        return False
    return any(bool((ious > 0).any()) for ious in _overlaps(op, boxes))


def _negative_limit(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if the largest number of boxes is negative."""
    limit = inputs[2] if len(inputs) > 2 else None
    return limit is not None and int(limit.item()) < 0


def _rows_of_one_batch(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All rows of NonMaxSuppression-1 and -3, if there are several batch elements: the rows may not suffice."""
    return inputs[0] is not None and len(inputs[0]) > 1


def _unordered(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of MatrixNms and MulticlassNms, if there are several boxes without an order by score."""
    if op.sort_result == "score" or any(array is None for array in inputs):
        return False
    return len(op.run(*inputs)[0]) > 1


def _boxes_in_pixels(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if boxes are not normalized: the page does not say whether they include their last pixel."""
    return not op.normalized


def _identical_boxes(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of MatrixNms with a linear decay, if boxes are identical: the formula divides by 0."""
    boxes = inputs[0]
    if boxes is None or op.decay_function != "linear":
        return False
    return any(len(np.unique(batch, axis=0)) < len(batch) for batch in boxes)


def _adaptive_threshold(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of MulticlassNms with a threshold that falls with each box."""
    return op.nms_eta < 1 and op.iou_threshold > 0.5


def _own_boxes(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of MulticlassNms, if each of several classes has boxes of its own."""
    return len(inputs) > 2 and inputs[2] is not None and inputs[0] is not None and len(inputs[0]) > 1


def _rest_of_rois(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Rows of ExperimentalDetectronTopKROIs behind the last region."""
    return inputs[0] is not None and (np.arange(op.max_rois) >= len(inputs[0])).reshape(-1, 1)


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "adaptive-threshold": _adaptive_threshold,
    "any-order": _any_order,
    "boxes-in-pixels": _boxes_in_pixels,
    "boxes-of-no-area": _boxes_of_no_area,
    "default-iou": _default_iou,
    "equal-candidates": _equal_candidates,
    "equal-elements": _equal_elements,
    "identical-boxes": _identical_boxes,
    "iou-at-threshold": _iou_at_threshold,
    "negative-limit": _negative_limit,
    "no-k": _no_k,
    "own-boxes": _own_boxes,
    "rest-of-rois": _rest_of_rois,
    "rows-of-one-batch": _rows_of_one_batch,
    "score-at-threshold": _score_at_threshold,
    "searched-otherwise": _searched_otherwise,
    "suppressed-at-zero": _suppressed_at_zero,
    "unordered": _unordered,
}
