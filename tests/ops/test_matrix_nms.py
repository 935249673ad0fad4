"""MatrixNms-8."""

import math

import numpy as np

from detections import BOXES, MODES, SCORES, boxes_and_scores, refusals_of, rows, shapes_of
from kit import *

_OP = "MatrixNms-8"
_BY_SCORE, _BY_CLASS, _ACROSS = {"sort_result": "score"}, {"sort_result": "class"}, {"sort_result_across_batch": True}
# the second overlaps the first by a half, the third the second by a half and the first by a quarter
_NESTED = f32([[[0, 0, 4, 1], [0, 0, 2, 1], [0, 0, 1, 1]]])
_THREE = f32([[[0.9, 0.8, 0.7]]])
_LINEAR = [(0, 0, 0.9), (0, 2, 0.7 * 0.75), (0, 1, 0.8 * 0.5)]
# half overlaps nothing better itself; the third sinks by its overlap with it less the half that it has with the first
_GAUSSIAN = [(0, 0, 0.9), (0, 2, 0.7 * math.exp(-2 / 16)), (0, 1, 0.8 * math.exp(-2 / 4))]
_APART = f32([[[0, 0, 1, 1], [2, 2, 3, 3]]])
_TWO = np.concatenate([_APART, _APART])

VALUES = [
    Values("linear", _OP, [_NESTED, _THREE], rows(_NESTED, _LINEAR, [3])),
    Values("gaussian", _OP, [_NESTED, _THREE], rows(_NESTED, _GAUSSIAN, [3]), {"decay_function": "gaussian"}),
    Values("sigma", _OP, [_NESTED, _THREE], rows(_NESTED, [(0, 0, 0.9), (0, 2, 0.7 * math.exp(-4 / 16)), (0, 1, 0.8 * math.exp(-1))], [3]), {"decay_function": "gaussian", "gaussian_sigma": 4}),
    # OpenVINO's reference tests
    *[Values(f"reference-{function}", _OP, [BOXES[None], f32([[SCORES, [0.95, 0.75, 0.6, 0.8, 0.5, 0.3]]])],
             (f32([[1, 0.95, 0, 0, 1, 1], [1, 0.8, 0, 10, 1, 11], [1, sunk, 0, 0.1, 1, 1.1]]), i64(0, 3, 1)[:, None], i64(3)),
             {"nms_top_k": 3, "background_class": 0, "decay_function": function})
      for function, sunk in (("linear", 0.13636364), ("gaussian", 0.1966116))],
    # both thresholds have to be exceeded
    Values("score-threshold", _OP, [_NESTED, _THREE], rows(_NESTED, _LINEAR[:1], [1]), {"score_threshold": 0.8}),
    Values("post-threshold", _OP, [_NESTED, _THREE], rows(_NESTED, _LINEAR[:2], [2]), {"post_threshold": 0.5}),
    Values("post-at-threshold", _OP, [_APART, f32([[[0.5, 0.6]]])], rows(_APART, [(0, 1, 0.6)], [1]), {"post_threshold": 0.5}),
    Values("nms-top-k", _OP, [_NESTED, _THREE], rows(_NESTED, [_LINEAR[0], _LINEAR[2]], [2]), {"nms_top_k": 2}),
    Values("keep-top-k", _OP, [_NESTED, _THREE], rows(_NESTED, _LINEAR[:2], [2]), {"keep_top_k": 2}),
    Values("identical", _OP, [f32([[[0, 0, 1, 1]] * 3]), _THREE], rows(f32([[[0, 0, 1, 1]] * 3]), [(0, 0, 0.9)], [1])),
    Values("no-area", _OP, [f32([[[0, 0, 0, 1]] * 3]), _THREE], rows(f32([[[0, 0, 0, 1]] * 3]), [(0, 0, 0.9), (0, 1, 0.8), (0, 2, 0.7)], [3])),
    Values("not-normalized", _OP, [f32([[[0, 0, 3, 0], [0, 0, 1, 0]]]), f32([[[0.9, 0.8]]])], rows(f32([[[0, 0, 3, 0], [0, 0, 1, 0]]]), [(0, 0, 0.9), (0, 1, 0.4)], [2]), {"normalized": False}),
    Values("background", _OP, [_APART, f32([[[0.5, 0.6], [0.9, 0.8]]])], rows(_APART, [(0, 1, 0.6), (0, 0, 0.5)], [2]), {"background_class": 1}),
    Values("by-score", _OP, [_APART, f32([[[0.5, 0.7], [0.6, 0.8]]])], rows(_APART, [(1, 1, 0.8), (0, 1, 0.7), (1, 0, 0.6), (0, 0, 0.5)], [4]), _BY_SCORE),
    Values("across-by-score", _OP, [_TWO, f32([[[0.5, 0.7]], [[0.6, 0.8]]])], rows(_TWO, [(0, 3, 0.8), (0, 1, 0.7), (0, 2, 0.6), (0, 0, 0.5)], [2, 2]), _BY_SCORE | _ACROSS),
    Values("across-by-class", _OP, [_TWO, f32([[[0.5, 0], [0, 0.7]], [[0.6, 0], [0, 0.8]]])], rows(_TWO, [(0, 0, 0.5), (0, 2, 0.6), (1, 1, 0.7), (1, 3, 0.8)], [2, 2]), _BY_CLASS | _ACROSS),
    # OpenVINO: sorts by score, where the specification says by class
    Values("by-class", _OP, [_APART, f32([[[0.5, 0.7], [0.6, 0.8]]])], rows(_APART, [(1, 1, 0.8), (0, 1, 0.7), (1, 0, 0.6), (0, 0, 0.5)], [4]), _BY_CLASS),
    Values("many", _OP, [BOXES[None], SCORES[None, None]], rows(BOXES[None], [(0, 3, 0.95), (0, 0, 0.9), (0, 5, 0.3)], [3]), {"post_threshold": 0.2}),
    Values("few-bits", _OP, [_APART, f32([[[0.5, 1]]])], rows(_APART, [(0, 1, 1), (0, 0, 0.5)], [2])),
    Values("no-boxes", _OP, [np.ones((2, 0, 4), np.float32), np.ones((2, 3, 0), np.float32)], rows(_APART, [], [0, 0])),
    Values("nothing-in-the-first", _OP, [_TWO, f32([[[0, 0]], [[0, 0.8]]])], rows(_TWO, [(0, 3, 0.8)], [0, 1])),
    Values("i32", _OP, [_APART, f32([[[0.5, 0.6]]])], (rows(_APART, [(0, 1, 0.6), (0, 0, 0.5)], [2])[0], i64(1, 0)[:, None].astype(np.int32), np.array([2], np.int32)), {"output_type": "i32"}),
]  # fmt: skip

CASES = [
    Case(f"{id}-{function}", _OP, boxes_and_scores(3, 2, 20), attributes | {"decay_function": function})
    for function in ("linear", "gaussian")
    for id, attributes in [*MODES, ("post-threshold", {"post_threshold": 0.3}), ("sigma", {"gaussian_sigma": 0.5})]
] + [
    Case("f16", _OP, boxes_and_scores(2, 2, 9, np.float16), {}),
    Case("one", _OP, boxes_and_scores(1, 1, 1), {}),
]  # fmt: skip

SHAPES = shapes_of(_OP)
REFUSALS = refusals_of(_OP)
