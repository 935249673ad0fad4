"""Which elements the pages of operations on boxes and regions leave open."""

from __future__ import annotations

from typing import Any

import numpy as np

from grouped import each
from kit import f32, i64
from left_open import check_left_open

_MAP, _SMALL = np.ones((1, 1, 4, 5), np.float32), np.ones((1, 1, 2, 2), np.float32)
_BOX, _THREE = f32([[0, 0, 2, 2]]), f32([[0, 0, 0, 2, 2], [-1, 0, 0, 2, 2], [0, 0, 0, 2, 2]])
_DETECTION: dict[str, Any] = {"keep_top_k": [2], "nms_threshold": 0.5, "normalized": True}
_PRIORS = np.stack([f32([0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1]), np.ones(8, np.float32)])[None]
_STILL = np.zeros((1, 8), np.float32)
_GENERATE = {"min_size": 0, "nms_threshold": 0.5, "pre_nms_count": 9, "post_nms_count": 3}
_PROPOSAL: dict[str, Any] = {
    "base_size": 16, "pre_nms_topn": 9, "post_nms_topn": 2, "nms_thresh": 0.5, "feat_stride": 16, "min_size": 8,
    "ratio": [1], "scale": [1],
}  # fmt: skip
_PROPOSALS = [f32([[[[0.5]], [[0.7]]]]), np.zeros((1, 4, 1, 1), np.float32), f32([50, 50, 1])]
_ALIGN = {"pooled_h": 1, "pooled_w": 1, "sampling_ratio": 0, "spatial_scale": 1, "mode": "max"}
_ROTATED = {"pooled_h": 1, "pooled_w": 1, "sampling_ratio": 0, "spatial_scale": 1}
_POOL = {"output_dim": 1, "spatial_scale": 1}
_PYRAMID = {"output_size": 2, "sampling_ratio": 1, "pyramid_scales": "4,8,16"}
_LEVELS = [np.zeros((1, 1, 8, 8), np.float32)] * 3
_YOLO: dict[str, Any] = {"axis": 1, "end_axis": 3, "coords": 4, "classes": 2, "num": 1}


def _images(*rows: list[float]) -> list[np.ndarray | None]:
    """The inputs of GenerateProposals with these scores."""
    return [None, None, None, f32(rows).reshape(len(rows), -1, 1, 1)]


def _regions(*sides: float) -> list[np.ndarray]:
    return [f32([[0, 0, side, side] for side in sides]), *_LEVELS]


@each(
    "behaviour, name, attributes, inputs, expected",
    [
        ("nan", "ROIPooling-2", {"pooled_h": 1, "pooled_w": 1, "spatial_scale": 1}, [_MAP, np.full((1, 5), np.nan)], True),
        ("nan", "ROIPooling-2", {"pooled_h": 1, "pooled_w": 1, "spatial_scale": 1}, [_MAP, _THREE], False),
        ("nan", "ROIPooling-2", {"pooled_h": 1, "pooled_w": 1, "spatial_scale": 1}, [i64(1), None], False),
        ("no-definition", "ROIPooling-2", {"pooled_h": 1, "pooled_w": 1, "spatial_scale": 1}, [_MAP, _THREE], True),
        ("empty-map", "DeformablePSROIPooling-1", _POOL | {"group_size": 1}, [_MAP[:, :, :0], _THREE, None], True),
        ("empty-map", "DeformablePSROIPooling-1", _POOL | {"group_size": 1}, [_MAP, _THREE, None], False),
        ("end-of-regions", "PSROIPooling-1", _POOL, [_MAP, _THREE], [[[[False]]], [[[True]]], [[[True]]]]),
        ("malformed-region", "PSROIPooling-1", _POOL, [_MAP, f32([[0, 0, 0, 2, 2], [0, 3, 0, 2, 2]])], [[[[False]]], [[[True]]]]),
        ("outside-region", "PSROIPooling-1", _POOL, [_MAP, f32([[0, 0, 0, 4, 3], [0, 0, 0, 4, 4]])], [[[[False]]], [[[True]]]]),
        ("outside-region", "ROIAlign-3", _ALIGN, [_MAP, f32([[0, 0, 4, 3], [-1, 0, 4, 3]])], [[[[False]]], [[[True]]]]),
        ("outside-region", "ROIAlign-3", _ALIGN, [_MAP, f32([[4, 1, 4, 2], [3, 1, 3, 2]])], [[[[True]]], [[[False]]]]),
        ("outside-region", "ROIAlign-9", _ALIGN | {"aligned_mode": "half_pixel_for_nn"}, [_MAP, f32([[0, 1, 2, 2], [1, 1, 2, 2]])], [[[[True]]], [[[False]]]]),
        ("outside-region", "ROIAlign-9", _ALIGN | {"aligned_mode": "half_pixel"}, [_MAP, f32([[0, 1, 2, 2], [1, 1, 5, 2]])], [[[[False]]], [[[True]]]]),
        ("bilinear-places", "PSROIPooling-1", _POOL | {"mode": "bilinear"}, [_MAP, _THREE], True),
        ("bilinear-places", "PSROIPooling-1", _POOL, [_MAP, _THREE], False),
        ("negative-maximum", "ROIAlign-3", _ALIGN, [-_MAP, _BOX], True),
        ("negative-maximum", "ROIAlign-3", _ALIGN, [_MAP, _BOX], False),
        ("negative-maximum", "ROIAlign-3", _ALIGN | {"mode": "avg"}, [-_MAP, _BOX], False),
        ("no-samples", "ROIAlign-9", _ALIGN | {"aligned_mode": "half_pixel"}, [_MAP, f32([[1, 1, 1, 2], [1, 1, 2, 2]])], [[[[True]]], [[[False]]]]),
        ("no-samples", "ROIAlign-9", _ALIGN, [_MAP, f32([[1, 1, 1, 2]])], False),
        ("no-samples", "ROIAlignRotated-15", _ROTATED, [_MAP, f32([[1, 1, 0, 2, 0]])], [[[[True]]]]),
        ("no-samples", "ROIAlignRotated-15", _ROTATED | {"sampling_ratio": 1}, [_MAP, f32([[1, 1, 0, 2, 0]])], False),
        # around (1.5, 1.5) and (3.5, 1.5)
        ("outside-rotated-region", "ROIAlignRotated-15", _ROTATED, [_MAP, f32([[2, 2, 2, 2, 1], [4, 2, 2, 2, 1]])], [[[[False]]], [[[True]]]]),
        ("equal-scores", "GenerateProposals-9", _GENERATE, _images([0.5, 0.4], [0.3, 0.3]), True),
        ("equal-scores", "GenerateProposals-9", _GENERATE, _images([0.5, 0.4], [0.4, 0.5]), False),
        ("equal-scores", "ExperimentalDetectronGenerateProposalsSingleImage-6", _GENERATE, [None, None, None, f32([[[0.5, 0.5]]])], True),
        ("equal-scores", "ExperimentalDetectronGenerateProposalsSingleImage-6", _GENERATE, [None, None, None, f32([[[0.5, 0.4]]])], False),
        # the background does not count
        ("equal-scores", "Proposal-4", _PROPOSAL, [f32([[[[1, 1]], [[0.5, 0.4]]]]), None, None], False),
        ("equal-scores", "Proposal-4", _PROPOSAL, [f32([[[[1, 0]], [[0.5, 0.5]]]]), None, None], True),
        ("equal-scores", "Proposal-4", _PROPOSAL, [None, None, None], False),
        ("equal-confidences", "DetectionOutput-8", _DETECTION, [None, f32([[0.3, 0.5, 0.3, 0.5]]), _PRIORS], True),
        ("equal-confidences", "DetectionOutput-8", _DETECTION, [None, f32([[0.3, 0.5, 0.3, 0.4]]), _PRIORS], False),
        ("equal-confidences", "DetectionOutput-8", _DETECTION | {"confidence_threshold": 0.6}, [None, f32([[0.3, 0.5, 0.3, 0.5]]), _PRIORS], False),
        ("ended-priors", "DetectionOutput-8", _DETECTION | {"normalized": False}, [None, None, f32([[[0, 1, 1, 2, 2, -1, 1, 1, 2, 2]]])], True),
        ("ended-priors", "DetectionOutput-8", _DETECTION | {"normalized": False}, [None, None, f32([[[0, -1, -1, 2, 2]]])], False),
        ("ended-priors", "DetectionOutput-8", _DETECTION, [None, None, f32([[[-1, -1, 0, 0]]])], False),
        ("rest-of-detections", "DetectionOutput-8", _DETECTION, [_STILL, f32([[0, 0.5, 0, 0]]), _PRIORS], [[False] * 7, [False] + [True] * 6]),
        ("ended-priors", "DetectionOutput-8", _DETECTION | {"normalized": False}, [None, None, f32([[[0, 1, 1, 2, 2, -1, 1, 1, 2, 2]]])], True),
        ("ended-priors", "DetectionOutput-8", _DETECTION | {"normalized": False}, [None, None, f32([[[0, -1, -1, 2, 2]]])], False),
        ("ended-priors", "DetectionOutput-8", _DETECTION, [None, None, f32([[[-1, -1, 0, 0]]])], False),
        ("rest-of-detections", "DetectionOutput-8", _DETECTION, [_STILL, f32([[0, 0.5, 0, 0.4]]), _PRIORS], [[False] * 7] * 2),
        ("no-classes", "DetectionOutput-8", _DETECTION, [None, np.zeros((1, 0)), None], True),
        ("no-classes", "DetectionOutput-8", _DETECTION, [None, np.zeros((1, 4)), None], False),
        ("rest-of-proposals", "Proposal-1", _PROPOSAL, _PROPOSALS, [[False] * 5, [False] + [True] * 4]),
        ("rest-of-proposals", "Proposal-4", _PROPOSAL, _PROPOSALS, True),
        ("rest-of-proposals", "Proposal-4", _PROPOSAL | {"post_nms_topn": 1}, _PROPOSALS, False),
        ("scaled-size", "Proposal-4", _PROPOSAL, [None, None, f32([50, 50, 1, 2])], True),
        ("scaled-size", "Proposal-4", _PROPOSAL, [None, None, f32([50, 50, 1])], False),
        ("scaled-size", "GenerateProposals-9", _GENERATE | {"min_size": 1}, [f32([[50, 50, 2]]), None, None, None], True),
        ("scaled-size", "GenerateProposals-9", _GENERATE, [f32([[50, 50, 2]]), None, None, None], False),
        ("tensorflow-boxes", "Proposal-4", _PROPOSAL | {"framework": "tensorflow"}, _PROPOSALS, True),
        ("tensorflow-boxes", "Proposal-4", _PROPOSAL, _PROPOSALS, False),
        ("pyramid-levels", "ExperimentalDetectronROIFeatureExtractor-6", _PYRAMID, _regions(80, 150, 300), False),
        ("pyramid-levels", "ExperimentalDetectronROIFeatureExtractor-6", _PYRAMID, _regions(150, 80), True),
        ("pyramid-levels", "ExperimentalDetectronROIFeatureExtractor-6", _PYRAMID, _regions(224), True),
        ("pyramid-levels", "ExperimentalDetectronROIFeatureExtractor-6", _PYRAMID, _regions(500), True),
        ("pyramid-levels", "ExperimentalDetectronROIFeatureExtractor-6", _PYRAMID, _regions(50), True),
        ("pyramid-levels", "ExperimentalDetectronROIFeatureExtractor-6", _PYRAMID, _regions(0), True),
        ("rest-of-grid", "ExperimentalDetectronPriorGridGenerator-6", {"w": 1}, [_BOX, _SMALL, None], [[False] * 4] * 2 + [[True] * 4] * 2),
        ("rest-of-grid", "ExperimentalDetectronPriorGridGenerator-6", {"flatten": False}, [_BOX, _SMALL, None], np.zeros((2, 2, 1, 4), bool)),
        ("clustered-ends", "PriorBoxClustered-1", {"offset": 0.5, "width": [4], "height": [4]}, [i64(1, 2), None], [[False, False, True, True] * 2, [False] * 8]),
        ("default-variance", "PriorBoxClustered-1", {"offset": 0.5}, [i64(1, 2), None], [[False], [True]]),
        ("default-variance", "PriorBoxClustered-1", {"offset": 0.5, "variance": 0.1}, [i64(1, 2), None], [[False], [False]]),
        ("yolo-entries", "RegionYolo-1", _YOLO, [np.ones((1, 8, 1, 1), np.float32)], [[False] * 7 + [True]]),
        ("yolo-entries", "RegionYolo-1", _YOLO | {"do_softmax": False, "mask": [0]}, [np.ones((1, 7, 1, 1))], np.array([False] * 5 + [True] * 2).reshape(1, 7, 1, 1)),
        ("yolo-entries", "RegionYolo-1", _YOLO | {"coords": 1}, [np.ones((1, 8, 1, 1), np.float32)], True),
        ("odd-channels", "ReorgYolo-2", {"stride": 2}, [np.ones((1, 5, 2, 2))], True),
        ("odd-channels", "ReorgYolo-2", {"stride": 2}, [np.ones((1, 8, 2, 2))], False),
    ],
)  # fmt: skip
def test_what_a_page_leaves_open(
    behaviour: str, name: str, attributes: dict[str, Any], inputs: list[np.ndarray | None], expected: Any
) -> None:
    check_left_open(behaviour, name, attributes, inputs, expected)
