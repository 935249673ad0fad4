"""MulticlassNms-8 and MulticlassNms-9."""

from typing import Any

import numpy as np
import pytest

from detections import BOXES, MODES, SCORES, boxes_and_scores, refusals_of, rows, shapes_of
from irrun.diagnostics import Refused
from kit import *

_OPS = ("MulticlassNms-8", "MulticlassNms-9")
_HALF = {"iou_threshold": 0.5}
_ONE, _TWO = BOXES[None], np.stack([BOXES, BOXES])
_BY_SCORE, _BY_CLASS, _ACROSS = {"sort_result": "score"}, {"sort_result": "class"}, {"sort_result_across_batch": True}
_BEST = [(0, 3, 0.95), (0, 0, 0.9), (0, 5, 0.3)]

# the IoU of the first two is exactly a half
_EVEN = f32([[[0, 0, 1, 2], [0, 0, 1, 1], [5, 5, 6, 6]]])
_APART = f32([[[0, 0, 1, 1], [2, 2, 3, 3]]])
_TOUCHED = f32([[[0, 0, 1, 1], [0, 0.9, 1, 1.9]]])
# bars of length 10; the second overlaps the first by 0.639, the last the third by 0.504
_BARS = f32([[[x, 0, x + 10, 1] for x in (0, 2.2, 100, 200, 103.3)]])
_BAR_SCORES = f32([[[0.9, 0.5, 0.8, 0.7, 0.4]]])


def _bars(kept: list[int]) -> tuple[np.ndarray, ...]:
    return rows(_BARS, [(0, n, float(_BAR_SCORES[0, 0, n])) for n in kept], [len(kept)])


_ROWS: list[tuple[str, list[np.ndarray], tuple[np.ndarray, ...], dict[str, Any]]] = [
    ("one-class", [_ONE, SCORES[None, None]], rows(_ONE, _BEST, [3]), _HALF),
    ("score-threshold", [_ONE, SCORES[None, None]], rows(_ONE, _BEST[:2], [2]), _HALF | {"score_threshold": 0.4}),
    # OpenVINO's reference tests
    *[
        (f"reference-{sort['sort_result']}", [_ONE, f32([[SCORES, [0.95, 0.75, 0.6, 0.8, 0.5, 0.3]]])], rows(_ONE, [(0, 3, 0.95), *two, (1, 3, 0.8)], [4]), _HALF | {"nms_top_k": 3} | sort)
        for sort, two in ((_BY_SCORE, [(1, 0, 0.95), (0, 0, 0.9)]), (_BY_CLASS, [(0, 0, 0.9), (1, 0, 0.95)]))
    ],
    # unlike in NonMaxSuppression, what is exactly the threshold is enough
    ("score-at-threshold", [_ONE, SCORES[None, None]], rows(_ONE, _BEST[:2], [2]), _HALF | {"score_threshold": 0.9}),
    ("two-classes", [_ONE, np.stack([SCORES, SCORES])[None]], rows(_ONE, [(c, n, s) for _, n, s in _BEST for c in (0, 1)], [6]), _HALF | _BY_SCORE),
    ("by-class", [_ONE, np.stack([SCORES, SCORES])[None]], rows(_ONE, [(c, n, s) for c in (0, 1) for _, n, s in _BEST], [6]), _HALF | _BY_CLASS),
    ("two-batches", [_TWO, np.stack([SCORES, SCORES])[:, None]], rows(_TWO, [(0, n + b, s) for b in (0, 6) for _, n, s in _BEST], [3, 3]), _HALF),
    ("across", [_TWO, np.stack([SCORES, SCORES])[:, None]], rows(_TWO, [(0, n + b, s) for _, n, s in _BEST for b in (0, 6)], [3, 3]), _HALF | _BY_SCORE | _ACROSS),
    ("keep-top-k", [_TWO, np.stack([SCORES, SCORES])[:, None]], rows(_TWO, [(0, n + b, s) for b in (0, 6) for _, n, s in _BEST[:2]], [2, 2]), _HALF | {"keep_top_k": 2}),
    ("nms-top-k", [_ONE, SCORES[None, None]], rows(_ONE, _BEST[:2], [2]), _HALF | {"nms_top_k": 3}),
    ("background", [_ONE, SCORES[None, None]], rows(_ONE, [], [0]), _HALF | {"background_class": 0}),
    ("few-bits", [_APART, f32([[[0.5, 1]]])], rows(_APART, [(0, 1, 1), (0, 0, 0.5)], [2]), _HALF),
    # OpenVINO: drops where the IoU equals the threshold, where the specification keeps
    ("iou-at-threshold", [_EVEN, f32([[[0.9, 0.8, 0.7]]])], rows(_EVEN, [(0, 0, 0.9), (0, 2, 0.7)], [2]), _HALF),
    ("not-normalized", [_EVEN, f32([[[0.9, 0.8, 0.7]]])], rows(_EVEN, [(0, 0, 0.9), (0, 2, 0.7)], [2]), {"iou_threshold": 0.66, "normalized": False}),
    # the sides of boxes that are not normalized are one longer: the IoU were 2/3
    ("normalized-by-default", [_EVEN, f32([[[0.9, 0.8, 0.7]]])], rows(_EVEN, [(0, 0, 0.9), (0, 1, 0.8), (0, 2, 0.7)], [3]), {"iou_threshold": 0.6}),
    # the least overlap is too much: here 1/19
    ("no-threshold", [_TOUCHED, f32([[[0.9, 0.8]]])], rows(_TOUCHED, [(0, 0, 0.9)], [1]), {}),
    ("eta-1", [_BARS, _BAR_SCORES], _bars([0, 2, 3, 1, 4]), {"iou_threshold": 0.7}),
    # OpenVINO: compares with all that were kept when the turn of a box comes, the specification with each when it is kept
    ("eta-later", [_BARS, _BAR_SCORES], _bars([0, 2, 3, 4]), {"iou_threshold": 0.7, "nms_eta": 0.95}),
    ("eta-0", [_BARS, _BAR_SCORES], _bars([0, 2, 3]), {"iou_threshold": 0.7, "nms_eta": 0.7}),
]  # fmt: skip

# each class has boxes of its own: of the first batch two, of the second none, of the third one
_OWN = f32([[[0, 0, 1, 1], [5, 5, 6, 6], [7, 7, 8, 8]], [[0, 0, 2, 2], [0, 0, 2, 2], [3, 3, 4, 4]]])
_OWN_SCORES = f32([[0.9, 0.8, 0.7], [0.6, 0.5, 0.4]])
_OWN_EXPECTED = (
    f32([[0, 0.9, 0, 0, 1, 1], [0, 0.8, 5, 5, 6, 6], [1, 0.6, 0, 0, 2, 2], [0, 0.7, 7, 7, 8, 8], [1, 0.4, 3, 3, 4, 4]]),
    i64(0, 2, 1, 4, 5)[:, None],
    i64(3, 0, 2),
)

VALUES = [
    *[Values(f"{id}-{op}", op, inputs, expected, attributes) for op in _OPS for id, inputs, expected, attributes in _ROWS],
    Values("roisnum", "MulticlassNms-9", [_OWN, _OWN_SCORES, i64(2, 0, 1)], _OWN_EXPECTED, _HALF),
    Values("i32", "MulticlassNms-9", [_ONE, SCORES[None, None]], (rows(_ONE, _BEST, [3])[0], np.array([[3], [0], [5]], np.int32), np.array([3], np.int32)), _HALF | {"output_type": "i32"}),
    Values("no-boxes", "MulticlassNms-8", [np.ones((2, 0, 4), np.float32), np.ones((2, 3, 0), np.float32)], rows(_ONE, [], [0, 0])),
    Values("no-batch", "MulticlassNms-8", [np.ones((0, 2, 4), np.float32), np.ones((0, 3, 2), np.float32)], (np.ones((0, 6), np.float32), np.ones((0, 1), np.int64), i64())),
]  # fmt: skip

SHAPES = [
    *[row for op in _OPS for row in shapes_of(op)],
    Shapes("spec-roisnum", "MulticlassNms-9", ["f32[3,100,4]", "f32[3,100]", "i64[10]"], ["f32[..3000,6]", "i64[..3000,1]", "i64[10]"]),
    Shapes("unknown-roisnum", "MulticlassNms-9", ["f32[3,100,4]", "f32[3,100]", "i32[...]"], ["f32[?,6]", "i64[?,1]", "i64[?]"]),
    Shapes("roisnum-unknown-rank", "MulticlassNms-9", ["f32[...]", "f32[...]", "i32[2]"], ["f32[..20,6]", "i64[..20,1]", "i64[2]"], {"keep_top_k": 10}),
]  # fmt: skip

REFUSALS = [
    *[row for op in _OPS for row in refusals_of(op)],
    *[Refusal(f"c3-{eta}-{op}", op, ["f32[3,100,4]", "f32[3,5,100]"], {"nms_eta": eta}) for op in _OPS for eta in (-0.1, 1.1)],
    Refusal("c1-own-scores", "MulticlassNms-9", ["f32[3,100,4]", "f32[3,5,100]", "i64[10]"]),
    Refusal("c1-roisnum", "MulticlassNms-9", ["f32[3,100,4]", "f32[3,100]", "i64[]"]),
    Refusal("c2-classes", "MulticlassNms-9", ["f32[3,100,4]", "f32[2,100]", "i64[10]"]),
    Refusal("c2-own-boxes", "MulticlassNms-9", ["f32[3,100,4]", "f32[3,99]", "i64[10]"]),
    Refusal("c5-sum", "MulticlassNms-9", ["f32[3,100,4]", "f32[3,100]", "i64{50,49}"]),
    Refusal("ir205-roisnum-8", "MulticlassNms-8", ["f32[3,100,4]", "f32[3,100]", "i64[10]"]),
]  # fmt: skip


def _own(classes: int, count: int) -> list[np.ndarray]:
    boxes, _ = boxes_and_scores(classes, 1, count)
    return [boxes, random(classes, count) / 4 + 0.5]


_TIGHT = {"iou_threshold": 0.3}
CASES = [
    Case(f"{id}-{op}", op, boxes_and_scores(3, 2, 20), _TIGHT | attributes)
    for op in _OPS
    for id, attributes in [
        *MODES,
        *[(f"eta-{eta}", {"nms_eta": eta, "iou_threshold": 0.8}) for eta in (0.9, 0.5)],
    ]
] + [
    Case("f16", _OPS[0], boxes_and_scores(2, 2, 9, np.float16), _TIGHT),
    Case("nothing-kept", _OPS[0], boxes_and_scores(2, 2, 9), _TIGHT | {"score_threshold": 2}),
    *[
        Case(f"roisnum-{id}", _OPS[1], [*_own(3, 10), np.array([4, 0, 6], t)], _TIGHT | attributes, shapes=[2])
        for t, id, attributes in [(np.int64, *mode) for mode in MODES] + [(np.int32, "i32", {"sort_result_type": "score"})]
    ],
]  # fmt: skip


def test_c5_while_running() -> None:
    with pytest.raises(Refused, match="num_boxes, which is 3"):
        operation("MulticlassNms-9").run(_OWN, _OWN_SCORES, i64(2, 2))
