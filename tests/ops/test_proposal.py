"""Proposal-1 and Proposal-4."""

from typing import Any

import numpy as np

from kit import *

_OPS = ("Proposal-1", "Proposal-4")
_IMAGE = f32([100, 120, 1])
_PLAIN: dict[str, Any] = {
    "base_size": 16, "pre_nms_topn": 10, "post_nms_topn": 3, "nms_thresh": 0.5, "feat_stride": 16, "min_size": 8,
    "ratio": [1.0], "scale": [1.0],
}  # fmt: skip


def _scores(*scores: float) -> np.ndarray:
    """[1, 2, 1, W]: the background's are not looked at."""
    return f32([[[[9] * len(scores)], [scores]]])


def _deltas(*deltas: list[float]) -> np.ndarray:
    """[1, 4, 1, W]"""
    return np.ascontiguousarray(f32(deltas).T[None, :, None])


def _rows(*found: tuple[list[float], float], count: int = 3) -> tuple[np.ndarray, ...]:
    rows, scores = np.zeros((count, 5), np.float32), np.zeros(count, np.float32)
    for n, (box, score) in enumerate(found):
        rows[n, 1:], scores[n] = box, score
    if len(found) < count:
        rows[len(found), 0] = -1
    return rows, scores


_STILL = [0.0, 0, 0, 0]
# an anchor in Caffe goes from pixel 0 to pixel 15; its box is decoded to 0 ... 16
_FIRST, _SECOND = [0.0, 0, 16, 16], [16.0, 0, 32, 16]
_TWO = [_scores(0.4, 0.6), _deltas(_STILL, _STILL), _IMAGE]
_ROWS: list[tuple[str, list[np.ndarray], tuple[np.ndarray, ...], dict[str, Any]]] = [
    ("two", _TWO, _rows((_SECOND, 0.6), (_FIRST, 0.4)), {}),
    ("few-bits", [f32([[[[0, 0]], [[0.25, 0.75]]]]), _TWO[1], f32([64, 64, 1])], _rows((_SECOND, 0.75), (_FIRST, 0.25)), {}),
    ("post-nms-topn", _TWO, _rows((_SECOND, 0.6), count=1), {"post_nms_topn": 1}),
    ("pre-nms-topn", _TWO, _rows((_SECOND, 0.6)), {"pre_nms_topn": 1}),
    # they have the pixels 16 in common: 17 of 561
    ("thresh", _TWO, _rows((_SECOND, 0.6)), {"nms_thresh": 0.03}),
    ("normalize", _TWO, _rows(([16 / 120, 0, 32 / 120, 0.16], 0.6), ([0, 0, 16 / 120, 0.16], 0.4)), {"normalize": True}),
    ("too-small", [_scores(0.4, 0.6), _deltas(_STILL, [0, 0, -3, 0]), _IMAGE], _rows((_FIRST, 0.4)), {}),
    ("min-size-scaled", [*_TWO[:2], f32([100, 120, 3, 1])], _rows(), {"nms_thresh": 1}),
    ("moved", [_scores(0.4), _deltas([0.5, 0.25, np.log(2), 0]), _IMAGE], _rows(([0, 4, 32, 20], 0.4)), {}),
    ("moved-scaled", [_scores(0.4), _deltas([5, 2.5, 2 * np.log(2), 0]), _IMAGE], _rows(([0, 4, 32, 20], 0.4)), {"box_coordinate_scale": 10, "box_size_scale": 2}),
    ("clip-before", [_scores(0.4), _deltas([-0.25, 0.25, np.log(32), 0]), _IMAGE], _rows(([0, 4, 119, 20], 0.4)), {}),
    ("no-clip", [_scores(0.4), _deltas([-0.25, 0.25, np.log(32), 0]), _IMAGE], _rows(([-252, 4, 260, 20], 0.4)), {"clip_before_nms": False}),
    ("clip-after", [_scores(0.4), _deltas([-0.25, 0.25, np.log(32), 0]), _IMAGE], _rows(([0, 4, 120, 20], 0.4)), {"clip_before_nms": False, "clip_after_nms": True}),
    # the anchor is -8 ... 8, cut to the image
    ("tensorflow", [_scores(0.4), _deltas(_STILL), _IMAGE], _rows(([0, 0, 8, 8], 0.4)), {"framework": "tensorflow"}),
    ("tensorflow-height", [_scores(0.4), _deltas([0, 0, 4, 4]), _IMAGE], _rows(([0, 0, 100, 120], 0.4)), {"framework": "tensorflow"}),
    ("tensorflow-swaps", _TWO, _rows(([0, 8, 8, 24], 0.6), ([0, 0, 8, 8], 0.4)), {"framework": "tensorflow"}),
    # 16 x 16 with ratio 2: 11 x 22 (rounded), from 2 to 13 (12 + 1) and from -3 to 19 (18 + 1)
    ("ratio", [_scores(0.4), _deltas(_STILL), _IMAGE], _rows(([2.5, -3, 13.5, 19], 0.4)), {"ratio": [2], "clip_before_nms": False}),
    ("scale", [_scores(0.4), _deltas(_STILL), _IMAGE], _rows(([-8, -8, 24, 24], 0.4)), {"scale": [2], "clip_before_nms": False}),
]  # fmt: skip

VALUES = [
    *[Values(f"{id}-4", "Proposal-4", inputs, expected, _PLAIN | attributes, 1e-5) for id, inputs, expected, attributes in _ROWS],
    Values("one-output", "Proposal-1", _TWO, _rows((_SECOND, 0.6), (_FIRST, 0.4))[0], _PLAIN),
    Values("few-bits-1", "Proposal-1", _ROWS[1][1], _ROWS[1][2][0], _PLAIN),
    Values("f16", "Proposal-1", [a.astype(np.float16) for a in _TWO], _rows((_SECOND, 0.6), (_FIRST, 0.4))[0].astype(np.float16), _PLAIN),
    Values("no-batch", "Proposal-4", [np.ones((0, 2, 1, 1), np.float32), np.ones((0, 4, 1, 1), np.float32), _IMAGE], (np.ones((0, 5), np.float32), np.ones(0, np.float32)), _PLAIN),
]  # fmt: skip

_SPEC: dict[str, Any] = {
    "base_size": 16, "feat_stride": 8, "min_size": 16, "nms_thresh": 1.0, "normalize": 0, "post_nms_topn": 1000,
    "pre_nms_topn": 1000, "ratio": 1, "scale": "1,2",
}  # fmt: skip
SHAPES = [
    Shapes("spec-4", "Proposal-4", ["f32[7,4,28,28]", "f32[7,8,28,28]", "f32[3]"], ["f32[7000,5]", "f32[7000]"], _SPEC),
    Shapes("spec-1", "Proposal-1", ["f32[7,4,28,28]", "f32[7,8,28,28]", "f32[4]"], "f32[7000,5]", _SPEC),
    Shapes(
        "deltas-tell", "Proposal-4", ["f16[?,?,?,?]", "f16[7,8,28,28]", "f16[?]"], ["f16[7000,5]", "f16[7000]"], _SPEC
    ),
    Shapes("interval", "Proposal-1", ["f32[1..3,4,?,?]", "f32[2..8,8,?,?]", "f32[3]"], "f32[2000..3000,5]", _SPEC),
    Shapes("unknown-rank", "Proposal-4", ["f32[...]", "f32[...]", "f32[...]"], ["f32[?,5]", "f32[?]"], _SPEC),
]  # fmt: skip

REFUSALS = [
    Refusal(f"{id}-{op}", op, given, _SPEC)
    for op in _OPS
    for id, given in [
        ("c1-class-probs", ["f32[4,28,28]", "f32[7,8,28,28]", "f32[3]"]),
        ("c1-deltas", ["f32[7,4,28,28]", "f32[8,28,28]", "f32[3]"]),
        ("c1-image-shape", ["f32[7,4,28,28]", "f32[7,8,28,28]", "f32[2]"]),
        ("c1-image-shape-2d", ["f32[7,4,28,28]", "f32[7,8,28,28]", "f32[1,3]"]),
        ("c2-batch", ["f32[7,4,28,28]", "f32[6,8,28,28]", "f32[3]"]),
        ("c2-height", ["f32[7,4,28,28]", "f32[7,8,27,28]", "f32[3]"]),
        ("c3-class-probs", ["f32[7,6,28,28]", "f32[7,8,28,28]", "f32[3]"]),
        ("c3-deltas", ["f32[7,4,28,28]", "f32[7,4,28,28]", "f32[3]"]),
        ("ir301-integers", ["i32[7,4,28,28]", "i32[7,8,28,28]", "i32[3]"]),
        ("ir302-types", ["f16[7,4,28,28]", "f32[7,8,28,28]", "f16[3]"]),
    ]
] + [
    Refusal(f"c4-{name}-{op}", op, ["f32[7,4,28,28]", "f32[7,8,28,28]", "f32[3]"], _SPEC | {name: number})
    for op in _OPS
    for name, number in [
        ("pre_nms_topn", 0),
        ("post_nms_topn", 0),
        ("post_nms_topn", -(2**63)),
        ("base_size", 0),
        ("nms_thresh", 0),
        ("feat_stride", 0),
        ("min_size", 0),
        ("box_size_scale", 0),
        ("box_coordinate_scale", -1),
    ]
]


def _inputs(
    batches: int, anchors: int, height: int, width: int, image: list[float], dtype: Any = np.float32
) -> list[np.ndarray]:
    # scores that are all different, for the order of equal ones is nobody's promise
    count = batches * 2 * anchors * height * width
    scores = (np.random.default_rng(7).permutation(count) + 1) / count
    return [
        scores.reshape(batches, 2 * anchors, height, width).astype(dtype),
        (random(batches, 4 * anchors, height, width) / 4).astype(dtype),
        np.array(image, dtype),
    ]


_SIX = _PLAIN | {"pre_nms_topn": 50, "post_nms_topn": 15, "ratio": [0.5, 1.0, 2.0], "scale": [1.0, 2.0]}
CASES = [
    Case(f"{id}-{op}", op, _inputs(2, 6, 5, 4, image), _SIX | attributes, atol=1e-4)
    for op in _OPS
    for id, image, attributes in [
        ("plain", [200, 210, 1], {}),
        ("two-scales", [200, 210, 0.5, 0.25], {}),
        ("no-clip", [200, 210, 1], {"clip_before_nms": False}),
        ("clip-after", [60, 70, 1], {"clip_before_nms": False, "clip_after_nms": True}),
        ("normalize", [60, 70, 1], {"normalize": True}),
        ("tensorflow", [200, 210, 1], {"framework": "tensorflow"}),
        ("tensorflow-small", [40, 60, 1], {"framework": "tensorflow", "normalize": True}),
        ("tensorflow-after", [40, 60, 1, 1.5], {"framework": "tensorflow", "clip_before_nms": False, "clip_after_nms": True}),
        ("scaled-boxes", [200, 210, 1], {"box_size_scale": 5.0, "box_coordinate_scale": 10.0}),
        ("base-size", [200, 210, 1], {"base_size": 7, "ratio": [0.3, 0.7, 2.6], "scale": [1.5, 3.3]}),
        ("loose", [200, 210, 1], {"nms_thresh": 0.9}),
    ]
] + [
    # OpenVINO: does not write the probabilities of boxes that there are not
    Case("few", "Proposal-1", _inputs(2, 6, 5, 4, [200, 210, 1]), _SIX | {"pre_nms_topn": 20, "post_nms_topn": 20}, atol=1e-4),
    Case("large", "Proposal-4", _inputs(1, 9, 14, 14, [224, 224, 1]), _SIX | {"pre_nms_topn": 1000, "post_nms_topn": 100, "nms_thresh": 0.7, "ratio": [0.5, 1.0, 2.0], "scale": [2.0, 4.0, 8.0]}, atol=1e-3),
]  # fmt: skip
