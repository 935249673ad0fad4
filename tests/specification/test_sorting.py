"""Which elements the pages of operations that sort, and of sparse ones, leave open."""

from __future__ import annotations

from typing import Any

import numpy as np

from grouped import each
from kit import f32, i64
from left_open import check_left_open

_MAX = {"axis": -1, "mode": "max", "sort": "value"}
_NONE, _INDEX = _MAX | {"sort": "none"}, _MAX | {"sort": "index"}
_X, _TWO = f32([5, 3, 1, 5]), np.array(2)
_NAN = f32([np.nan, np.nan, 1])
_ROW, _ONE = f32([[1, 3, 5]]), f32([[3]])

# the IoU of the first two is a half
_BOXES = f32([[[0, 0, 1, 2], [0, 0, 1, 1], [5, 5, 6, 6]]])
_APART = f32([[[0, 0, 1, 1], [5, 5, 6, 6]]])
_FLAT = f32([[[0, 0, 0, 1], [5, 5, 5, 6]]])
_ROTATED = f32([[[0, 0, 2, 2, 0], [0, 0, 2, 2, 1]]])
_CENTER = {"box_encoding": "center"}


def _nms(boxes: np.ndarray, *scores: Any, limit: int = 9, iou: float = 0.4, least: float = 0.1) -> list[np.ndarray]:
    return [boxes, f32([scores]), np.array(limit), f32(iou), f32(least)]


def _multi(boxes: np.ndarray, *scores: Any) -> list[np.ndarray]:
    return [boxes, f32([scores])]


_TABLE = np.array([[1], [2], [4]])
_BAGS = [_TABLE, i64(0, 1, 1), i64(0, 2)]

_THREE, _TIED = [0.9, 0.8, 0.7], [0.9, 0.8, 0.8]
_BY_SCORE = {"sort_result": "score"}


@each(
    "behaviour, name, attributes, inputs, expected",
    [
        ("any-order", "TopK-3", _NONE, [_X, _TWO], True),
        ("any-order", "TopK-3", _NONE, [_X, np.array(1)], False),
        ("any-order", "TopK-3", _MAX, [_X, _TWO], False),
        ("equal-elements", "TopK-3", _MAX, [_X, _TWO], [True]),
        ("equal-elements", "TopK-3", _MAX, [f32([[5, 3, 1], [5, 3, 3]]), _TWO], [[False], [True]]),
        ("equal-elements", "TopK-3", _MAX | {"axis": 0}, [f32([[5, 5], [5, 3], [1, 1]]), _TWO], [[True, False]]),
        ("equal-elements", "TopK-3", _MAX | {"mode": "min"}, [f32([5, 5, 3, 1]), _TWO], [False]),
        ("equal-elements", "TopK-3", _INDEX, [_X, _TWO], [False]),
        ("equal-elements", "TopK-3", _INDEX, [_X, np.array(1)], [True]),
        ("equal-elements", "TopK-3", _MAX, [_NAN, np.array(3)], [True]),
        ("equal-elements", "TopK-3", _MAX, [_NAN, np.array(1)], [False]),
        ("equal-elements", "TopK-3", _MAX, [_X, np.array(0)], [False]),
        ("equal-elements", "TopK-11", _MAX | {"stable": True}, [_X, _TWO], False),
        ("no-k", "TopK-11", _MAX, [_X, np.array(0)], True),
        ("no-k", "TopK-11", _MAX, [_X, np.array(4)], False),
        ("searched-otherwise", "SearchSorted-15", {}, [_ROW, _ONE], False),
        ("searched-otherwise", "SearchSorted-15", {}, [_ROW[:, ::-1], _ONE], True),
        ("searched-otherwise", "SearchSorted-15", {}, [_ROW[0], _ONE], True),
        ("searched-otherwise", "SearchSorted-15", {"output_type": "i32"}, [_ROW, _ONE], True),
        ("equal-scores", "ExperimentalDetectronTopKROIs-6", {"max_rois": 2}, [None, f32([0.5, 0.5])], True),
        ("rest-of-rois", "ExperimentalDetectronTopKROIs-6", {"max_rois": 2}, [_X.reshape(1, 4), f32([1])], [[False], [True]]),
        ("equal-candidates", "NonMaxSuppression-9", {}, _nms(_BOXES, _TIED), True),
        ("equal-candidates", "NonMaxSuppression-9", {}, _nms(_BOXES, _TIED, least=0.85), False),
        ("equal-candidates", "NonMaxSuppression-9", {}, _nms(_BOXES, _THREE, _THREE), True),
        ("equal-candidates", "NonMaxSuppression-9", {"sort_result_descending": False}, _nms(_BOXES, _THREE, _THREE), False),
        ("equal-candidates", "MatrixNms-8", {}, _multi(_BOXES, _THREE, _THREE), True),
        ("equal-candidates", "MatrixNms-8", {}, [np.concatenate([_BOXES] * 2), f32([[_THREE], [_THREE]])], False),
        ("equal-candidates", "MatrixNms-8", {"sort_result_across_batch": True}, [np.concatenate([_BOXES] * 2), f32([[_THREE], [_THREE]])], True),
        ("score-at-threshold", "NonMaxSuppression-9", {}, _nms(_BOXES, [0.5, 0.25, 1], least=0.25), True),
        ("score-at-threshold", "NonMaxSuppression-9", {}, _nms(_BOXES, [0.5, 0.25, 1]), False),
        ("suppressed-at-zero", "NonMaxSuppression-9", {}, _nms(_BOXES, _THREE, least=0), True),
        ("suppressed-at-zero", "NonMaxSuppression-9", {}, _nms(_BOXES, _THREE), False),
        ("suppressed-at-zero", "NonMaxSuppression-9", {}, _nms(_BOXES, _THREE, least=0, iou=0.6), False),
        ("suppressed-at-zero", "NonMaxSuppression-9", {}, _nms(_BOXES, _THREE)[:3], True),
        ("suppressed-at-zero", "NMSRotated-13", {}, _nms(_ROTATED, [0.9, 0.8], least=0), True),
        ("suppressed-at-zero", "MulticlassNms-8", {"iou_threshold": 0.4}, _multi(_BOXES, _THREE), True),
        ("suppressed-at-zero", "MulticlassNms-8", {"iou_threshold": 0.6}, _multi(_BOXES, _THREE), False),
        ("iou-at-threshold", "MulticlassNms-8", {"iou_threshold": 0.5}, _multi(_BOXES, _THREE), True),
        ("iou-at-threshold", "MulticlassNms-8", {"iou_threshold": 0.4}, _multi(_BOXES, _THREE), False),
        ("boxes-of-no-area", "NonMaxSuppression-9", {}, _nms(_FLAT, [0.9, 0.8]), True),
        ("boxes-of-no-area", "NonMaxSuppression-9", {}, _nms(f32([[[0, 0, 0, 1], [5, 5, 4, 4]]]), [0.9, 0.8]), False),
        ("boxes-of-no-area", "NonMaxSuppression-9", _CENTER, _nms(f32([[[0, 0, 0, 1], [5, 5, 0, 6]]]), [0.9, 0.8]), True),
        ("boxes-of-no-area", "NMSRotated-13", {}, _nms(_ROTATED, [0.9, 0.8]), False),
        ("boxes-of-no-area", "MatrixNms-8", {}, _multi(_FLAT, [0.9, 0.8]), True),
        ("default-iou", "NonMaxSuppression-9", {}, _nms(_BOXES, _THREE)[:3], True),
        ("default-iou", "NonMaxSuppression-9", {}, _nms(_APART, [0.9, 0.8])[:3], False),
        ("default-iou", "NonMaxSuppression-9", {}, _nms(_BOXES, _THREE), False),
        ("negative-limit", "NonMaxSuppression-9", {}, _nms(_BOXES, _THREE, limit=-1), True),
        ("negative-limit", "NonMaxSuppression-9", {}, _nms(_BOXES, _THREE, limit=0), False),
        ("rows-of-one-batch", "NonMaxSuppression-3", {}, [np.concatenate([_BOXES] * 2), None], True),
        ("rows-of-one-batch", "NonMaxSuppression-3", {}, [_BOXES, None], False),
        ("unordered", "MatrixNms-8", {}, _multi(_BOXES, _THREE), True),
        ("unordered", "MatrixNms-8", _BY_SCORE, _multi(_BOXES, _THREE), False),
        ("unordered", "MatrixNms-8", {"keep_top_k": 1}, _multi(_BOXES, _THREE), False),
        ("boxes-in-pixels", "MatrixNms-8", {"normalized": False}, _multi(_BOXES, _THREE), True),
        ("boxes-in-pixels", "MatrixNms-8", {}, _multi(_BOXES, _THREE), False),
        ("identical-boxes", "MatrixNms-8", {}, _multi(np.concatenate([_APART] * 2, axis=1), [0.9, 0.8, 0.7, 0.6]), True),
        ("identical-boxes", "MatrixNms-8", {"decay_function": "gaussian"}, _multi(np.concatenate([_APART] * 2, axis=1), [0.9, 0.8, 0.7, 0.6]), False),
        ("identical-boxes", "MatrixNms-8", {}, _multi(_BOXES, _THREE), False),
        ("adaptive-threshold", "MulticlassNms-8", {"nms_eta": 0.9, "iou_threshold": 0.6}, _multi(_BOXES, _THREE), True),
        ("adaptive-threshold", "MulticlassNms-8", {"nms_eta": 0.9, "iou_threshold": 0.4}, _multi(_BOXES, _THREE), False),
        ("own-boxes", "MulticlassNms-9", {}, [np.concatenate([_APART] * 2), f32([[0.9, 0.8], [0.7, 0.6]]), i64(2)], True),
        ("own-boxes", "MulticlassNms-9", {}, _multi(_BOXES, _THREE), False),
        ("mean-of-integers", "EmbeddingBagOffsets-15", {"reduction": "mean"}, _BAGS, [[True], [False]]),
        ("mean-of-integers", "EmbeddingBagOffsets-15", {}, _BAGS, False),
        ("mean-of-nothing", "EmbeddingBagPacked-15", {"reduction": "mean"}, [_TABLE, np.zeros((2, 0), np.int64)], True),
        ("mean-of-nothing", "EmbeddingBagPacked-15", {"reduction": "mean"}, [_TABLE, np.zeros((2, 1), np.int64)], False),
        ("segments-out-of-order", "EmbeddingSegmentsSum-3", {}, [_TABLE, i64(0, 1), i64(1, 0), _TWO], True),
        ("segments-out-of-order", "EmbeddingSegmentsSum-3", {}, [_TABLE, i64(0, 1), i64(0, 1), _TWO], False),
        ("default-of-minus-one", "EmbeddingSegmentsSum-3", {}, [_TABLE, i64(0), i64(1), _TWO, np.array(-1)], [[True], [False]]),
        ("default-of-minus-one", "EmbeddingSegmentsSum-3", {}, [_TABLE, i64(0), i64(1), _TWO, np.array(0)], False),
        ("default-of-minus-one", "EmbeddingSegmentsSum-3", {}, [_TABLE, i64(0), i64(1), _TWO], False),
        ("sum-overflow", "EmbeddingBagPacked-15", {}, [np.array([[100], [1]], np.int8), i64(0, 0, 0, 1).reshape(2, 2), None], [[True], [False]]),
        ("places-named-twice", "SparseFillEmptyRows-16", {}, [None, None, i64(0, 1, 0, 1).reshape(2, 2), None], True),
        ("places-named-twice", "SparseFillEmptyRows-16", {}, [None, None, i64(0, 1, 0, 2).reshape(2, 2), None], False),
    ],
)  # fmt: skip
def test_what_a_page_leaves_open(
    behaviour: str, name: str, attributes: dict[str, Any], inputs: list[np.ndarray | None], expected: Any
) -> None:
    check_left_open(behaviour, name, attributes, inputs, expected)
