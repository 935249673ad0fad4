"""What the pages of operations on boxes and regions leave open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs

__all__ = ["BEHAVIOURS"]

_SCORES: Final[Mapping[str, Callable[[Any, Inputs], np.ndarray | None]]] = {
    "GenerateProposals": lambda op, inputs: inputs[3],
    "ExperimentalDetectronGenerateProposalsSingleImage": lambda op, inputs: _one_row(inputs[3]),
    "ExperimentalDetectronTopKROIs": lambda op, inputs: _one_row(inputs[1]),
    "Proposal": lambda op, inputs: None if inputs[0] is None else inputs[0][:, inputs[0].shape[1] // 2 :],
}
"""The scores by which an operation sorts boxes: a row for each image."""


def _one_row(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else array[np.newaxis]


def _repeated(numbers: np.ndarray) -> bool:
    """Return whether a number occurs twice."""
    return np.unique(numbers).size < numbers.size


def _equal_scores(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if two boxes of an image have the same score."""
    scores = _SCORES[op.type](op, inputs)
    return scores is not None and any(_repeated(row) for row in scores)


def _equal_confidences(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of DetectionOutput, if two detections of an image have the same confidence."""
    scores, proposals = inputs[1:3]
    if scores is None or proposals is None:
        return False
    priors = proposals.shape[2] // (4 if op.normalized else 5)
    classes = scores.shape[1] // max(priors, 1)
    scores = scores[:, : priors * classes].reshape(len(scores), priors, classes)
    foreground = np.arange(scores.shape[-1]) != op.background_label_id
    images = [row[..., foreground] for row in scores]
    return any(_repeated(row[row >= op.confidence_threshold]) for row in images)


def _no_classes(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of DetectionOutput, if there are no classes."""
    return inputs[1] is None or not inputs[1].shape[-1]


def _ended_priors(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of DetectionOutput, if a prior box in pixels is one of image -1."""
    proposals = inputs[2]
    return proposals is not None and not op.normalized and bool((proposals[:, 0, ::5] == -1).any())


def _rest_of_detections(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Rows of DetectionOutput behind the one of batch -1, and what this one holds besides -1."""
    if inputs[0] is None or inputs[1] is None or inputs[2] is None:
        return False
    return _behind_the_end(op.run(*inputs)[0, 0])


def _rest_of_proposals(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """What Proposal writes behind the last proposal, besides -1: with several outputs or images, everything."""
    if any(array is None for array in inputs):
        return False
    rows, *others = op.run(*inputs)
    rest = _behind_the_end(rows)
    return bool(rest.any()) if others or len(rows) > op.post_nms_topn else rest


def _behind_the_end(rows: np.ndarray) -> np.ndarray:
    """Return which elements of rows ``[batch, …]`` follow the first batch of -1."""
    ended = np.logical_or.accumulate(rows[:, 0] == -1)
    rest = np.repeat(ended[:, np.newaxis], rows.shape[1], axis=1)
    if ended.any():
        rest[np.argmax(ended), 0] = False
    return rest


def _scaled_size(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if the image has a scale other than 1: the page does not say what it does to ``min_size``."""
    scales = inputs[2] if op.type == "Proposal" else inputs[0]
    return op.min_size > 0 and scales is not None and bool((scales[..., 2:] != 1).any())


def _tensorflow_boxes(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of Proposal with the framework tensorflow, which the page does not describe."""
    return op.framework == "tensorflow"


def _end_of_regions(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Regions from the first one of batch -1 on."""
    rois = inputs[1]
    return rois is not None and np.logical_or.accumulate(rois[:, 0] == -1).reshape(-1, 1, 1, 1)


def _malformed_region(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Regions that end before they begin."""
    rois = inputs[1]
    return rois is not None and (rois[:, 3:5] < rois[:, 1:3]).any(axis=1).reshape(-1, 1, 1, 1)


def _outside_region(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Regions ``[…, x1, y1, x2, y2]`` that reach beyond the feature map."""
    maps, rois = inputs[:2]
    if maps is None or rois is None:
        return False
    aligned, scale = getattr(op, "aligned_mode", "asymmetric"), op.spatial_scale
    shift = {"asymmetric": 0, "half_pixel_for_nn": -0.5, "half_pixel": scale / 2 - 0.5}[aligned]
    begin, end = rois[:, -4:-2] * scale + shift, rois[:, -2:] * scale + shift
    if op.type == "ROIAlign" and aligned == "asymmetric":
        end = np.maximum(end, begin + 1)
    last = np.array(maps.shape[:1:-1]) - 1
    outside = (np.minimum(begin, end) < 0) | (np.maximum(begin, end) > last)
    return outside.any(axis=1).reshape(-1, 1, 1, 1)


def _outside_rotated_region(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Regions ``[x, y, width, height, angle]`` whose circumscribed circle reaches beyond the feature map."""
    maps, rois = inputs[:2]
    if maps is None or rois is None:
        return False
    centre, radius = rois[:, :2] * op.spatial_scale - 0.5, np.hypot(rois[:, 2:3], rois[:, 3:4]) / 2 * op.spatial_scale
    last = np.array(maps.shape[:1:-1]) - 1
    return ((centre - radius < 0) | (centre + radius > last)).any(axis=1).reshape(-1, 1, 1, 1)


def _no_samples(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Regions of no area, in which an adaptive number of samples is 0."""
    rois = inputs[1]
    if rois is None or op.sampling_ratio or getattr(op, "aligned_mode", "") == "asymmetric":
        return False
    sides = rois[:, 2:4] if op.type == "ROIAlignRotated" else rois[:, 2:] - rois[:, :2]
    return (sides <= 0).any(axis=1).reshape(-1, 1, 1, 1)


def _negative_maximum(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs in mode max, if a feature map has a negative element: the maximum of a bin may be negative."""
    return op.mode == "max" and inputs[0] is not None and bool((inputs[0] < 0).any())


def _bilinear_places(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs in mode bilinear: the page does not say at which points it interpolates."""
    return op.mode == "bilinear"


def _pyramid_levels(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if a region has no level, lies on the limit of two levels, or follows one of a greater level."""
    rois = inputs[0]
    if rois is None:
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = 2 + np.log2(np.sqrt((rois[:, 2] - rois[:, 0]) * (rois[:, 3] - rois[:, 1])) / 224)
        on_limit = ~(abs(levels - np.rint(levels)) > 1e-5)
    whole = np.floor(levels)
    beyond = ~((whole >= 0) & (whole < len(inputs) - 1))
    return bool(on_limit.any() or beyond.any() or (np.diff(whole) < 0).any())


def _rest_of_grid(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """What ExperimentalDetectronPriorGridGenerator writes behind the cells of a grid of ``h`` by ``w``."""
    priors, maps, _ = inputs
    if priors is None or maps is None:
        return False
    height, width = maps.shape[2:]
    filled = (op.h or height) * (op.w or width) * priors.size
    shape = (-1, 4) if op.flatten else (height, width, *priors.shape)
    return (np.arange(height * width * priors.size) >= filled).reshape(shape)


def _clustered_ends(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """xmax and ymax of PriorBoxClustered, which the page gives the formulas of xmin and ymin."""
    return np.stack([np.tile([False, False, True, True], _boxes(op, inputs)), np.zeros(4 * _boxes(op, inputs), bool)])


def _default_variance(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """The variances, if the attribute is empty."""
    return np.array([[False], [not op.variance]])


def _boxes(op: Any, inputs: Inputs) -> int:
    """Return the number of boxes of PriorBoxClustered."""
    return 0 if inputs[0] is None else int(np.prod(np.maximum(inputs[0], 0))) * len(op.width)


def _yolo_entries(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Entries of RegionYolo about which the page is silent.

    They are classes without softmax, channels that belong to no region, and everything with fewer than 2 coordinates.
    """
    data = inputs[0]
    if data is None or op.coords < 2:
        return data is not None
    size = op.coords + op.classes + 1
    if not op.do_softmax:
        return (np.arange(size * len(op.mask)) % size > op.coords).reshape(1, -1, 1, 1)
    rest = np.broadcast_to((np.arange(data.shape[1]) >= size * op.num).reshape(1, -1, 1, 1), data.shape)
    axis, end = op.axis % 4, op.end_axis % 4
    joined = int(np.prod(data.shape[axis : end + 1]))
    return rest.reshape(*data.shape[:axis], joined, *data.shape[end + 1 :])


def _odd_channels(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of ReorgYolo, if the channels do not divide into blocks of stride by stride."""
    return inputs[0] is not None and inputs[0].shape[1] % op.stride[0] ** 2 != 0


def _empty_map(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All regions of a map without elements."""
    return inputs[0] is not None and inputs[0].size == 0


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "bilinear-places": _bilinear_places,
    "clustered-ends": _clustered_ends,
    "default-variance": _default_variance,
    "empty-map": _empty_map,
    "end-of-regions": _end_of_regions,
    "ended-priors": _ended_priors,
    "no-classes": _no_classes,
    "equal-confidences": _equal_confidences,
    "equal-scores": _equal_scores,
    "malformed-region": _malformed_region,
    "negative-maximum": _negative_maximum,
    "no-samples": _no_samples,
    "odd-channels": _odd_channels,
    "outside-region": _outside_region,
    "outside-rotated-region": _outside_rotated_region,
    "pyramid-levels": _pyramid_levels,
    "rest-of-detections": _rest_of_detections,
    "rest-of-grid": _rest_of_grid,
    "rest-of-proposals": _rest_of_proposals,
    "scaled-size": _scaled_size,
    "tensorflow-boxes": _tensorflow_boxes,
    "yolo-entries": _yolo_entries,
}
