"""ExperimentalDetectronGenerateProposalsSingleImage-6."""

from typing import Any

import numpy as np

from kit import *

OP = "ExperimentalDetectronGenerateProposalsSingleImage-6"
SOME = {"min_size": 0, "nms_threshold": 0.7, "pre_nms_count": 9, "post_nms_count": 4}
INFO = f32([20, 40, 1])
ZERO = [0, 0, 0, 0]
LEFT, MIDDLE, RIGHT = [0, 0, 4, 4], [1, 0, 5, 4], [10, 10, 14, 18]


def deltas(*of_places):
    return f32(of_places).T.reshape(4, 1, -1)


THREE = [INFO, f32([LEFT, MIDDLE, RIGHT]), deltas(ZERO, ZERO, ZERO), f32([[[0.2, 0.3, 0.1]]])]

VALUES = [
    Values("the-best-first", OP, THREE, (f32([MIDDLE, LEFT, RIGHT, ZERO]), f32([0.3, 0.2, 0.1, 0])), SOME),
    # LEFT and MIDDLE share 12 of 20
    Values("overlapping", OP, THREE, (f32([MIDDLE, RIGHT, ZERO, ZERO]), f32([0.3, 0.1, 0, 0])), {**SOME, "nms_threshold": 0.59}),
    Values("just-not", OP, THREE, (f32([MIDDLE, LEFT, RIGHT, ZERO]), f32([0.3, 0.2, 0.1, 0])), {**SOME, "nms_threshold": 0.61}),
    Values("pre-nms", OP, THREE, (f32([MIDDLE, ZERO, ZERO, ZERO]), f32([0.3, 0, 0, 0])), {**SOME, "pre_nms_count": 1}),
    Values("post-nms", OP, THREE, (f32([MIDDLE]), f32([0.3])), {**SOME, "post_nms_count": 1}),
    Values("none", OP, THREE, (f32([]).reshape(0, 4), f32([])), {**SOME, "post_nms_count": 0}),
    Values("too-small", OP, [INFO, f32([LEFT, [10, 10, 19, 18]]), deltas(ZERO, ZERO), f32([[[0.9, 0.1]]])], (f32([[10, 10, 19, 18], ZERO, ZERO, ZERO]), f32([0.1, 0, 0, 0])), {**SOME, "min_size": 6}),
    Values("moved", OP, [INFO, f32([[10, 10, 13, 17]]), deltas([0.5, -0.5, np.log(2), 0]), f32([[[0.5]]])], (f32([[10, 6, 17, 13]]), f32([0.5])), {**SOME, "post_nms_count": 1}),
    Values("clipped", OP, [INFO, f32([RIGHT]), deltas([0, 0, 9, 9]), f32([[[0.5]]])], (f32([[0, 0, 39, 19]]), f32([0.5])), {**SOME, "post_nms_count": 1}),
]  # fmt: skip

SHAPES = [
    Shapes("spec", OP, ["f32[3]", "f32[12600,4]", "f32[12,50,84]", "f32[3,50,84]"], ["f32[1000,4]", "f32[1000]"], {**SOME, "post_nms_count": 1000}),
    Shapes("unknown", OP, ["f16[?]", "f16[?,?]", "f16[?,?,84]", "f16[3,?,?]"], ["f16[4,4]", "f16[4]"], SOME),
    Shapes("unknown-ranks", OP, ["f32[...]", "f32[...]", "f32[...]", "f32[...]"], ["f32[4,4]", "f32[4]"], SOME),
]  # fmt: skip

REFUSALS = [
    Refusal(id, OP, inputs, {**SOME, **attributes})
    for id, inputs, attributes in [
        ("c1-info", ["f32[4]", "f32[60,4]", "f32[8,5,6]", "f32[2,5,6]"], {}),
        ("c1-info-rank", ["f32[1,3]", "f32[60,4]", "f32[8,5,6]", "f32[2,5,6]"], {}),
        ("c1-anchors", ["f32[3]", "f32[60,5]", "f32[8,5,6]", "f32[2,5,6]"], {}),
        ("c1-anchors-rank", ["f32[3]", "f32[240]", "f32[8,5,6]", "f32[2,5,6]"], {}),
        ("c1-deltas-rank", ["f32[3]", "f32[60,4]", "f32[1,8,5,6]", "f32[2,5,6]"], {}),
        ("c1-scores-rank", ["f32[3]", "f32[60,4]", "f32[8,5,6]", "f32[2,30]"], {}),
        ("c2-channels", ["f32[3]", "f32[?,4]", "f32[8,5,6]", "f32[3,5,6]"], {}),
        ("c2-height", ["f32[3]", "f32[?,4]", "f32[8,5,6]", "f32[2,6,6]"], {}),
        ("c2-width", ["f32[3]", "f32[?,4]", "f32[8,5,6]", "f32[2,5,5]"], {}),
        ("c2-anchors", ["f32[3]", "f32[30,4]", "f32[?,5,6]", "f32[2,5,6]"], {}),
        ("c3-pre", ["f32[3]", "f32[60,4]", "f32[8,5,6]", "f32[2,5,6]"], {"pre_nms_count": -1}),
        ("c3-post", ["f32[3]", "f32[60,4]", "f32[8,5,6]", "f32[2,5,6]"], {"post_nms_count": -1}),
        ("c3-size", ["f32[3]", "f32[60,4]", "f32[8,5,6]", "f32[2,5,6]"], {"min_size": -1}),
        ("c3-iou", ["f32[3]", "f32[60,4]", "f32[8,5,6]", "f32[2,5,6]"], {"nms_threshold": -0.5}),
        ("ir302-types", ["f16[3]", "f32[60,4]", "f32[8,5,6]", "f32[2,5,6]"], {}),
    ]
]  # fmt: skip


def case(id, height=4, width=5, anchors=2, dtype: Any = np.float32, **attributes):
    rng = np.random.default_rng(2)
    corners = rng.uniform(0, 30, (height * width * anchors, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(5, 15, corners.shape)], -1)
    certain = rng.permutation(anchors * height * width).reshape(anchors, height, width) / 500 + 0.001
    inputs = [np.array([30, 40, 2]), boxes, random(anchors * 4, height, width) / 4, certain]
    attributes = {"min_size": 0.0, "nms_threshold": 0.3, "pre_nms_count": 30, "post_nms_count": 12, **attributes}
    return Case(f"{id}-{dtype.__name__}", OP, [x.astype(dtype) for x in inputs], attributes)


CASES = [
    case("some"),
    case("some", dtype=np.float64),
    case("some", dtype=np.float16),
    case("all", pre_nms_count=1000, post_nms_count=60, nms_threshold=0.8),
    case("few", pre_nms_count=3),
    case("min-size", min_size=8.0, post_nms_count=6),
    case("one-place", height=1, width=1, anchors=3),
]
