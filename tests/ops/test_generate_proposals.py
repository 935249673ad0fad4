"""GenerateProposals-9."""

from typing import Any

import numpy as np

from kit import *

SOME = {"min_size": 0, "nms_threshold": 0.7, "pre_nms_count": 9, "post_nms_count": 3}
INFO = f32([[20, 40, 1]])


def i32(data):
    return np.array(data, np.int32)


def grid(*of_places):
    """Anchors of places side by side."""
    return f32([of_places]).reshape(1, -1, 1, 4)


def deltas(*of_places):
    return f32(of_places).T.reshape(1, 4, 1, -1)


def scores(*of_places):
    return f32([[[of_places]]])


ZERO = [0, 0, 0, 0]
LEFT, MIDDLE, RIGHT = [0, 0, 4, 4], [1, 0, 5, 4], [10, 10, 14, 18]
STILL = deltas(ZERO, ZERO, ZERO)
THREE = [INFO, grid(LEFT, MIDDLE, RIGHT), STILL, scores(0.2, 0.3, 0.1)]

VALUES = [
    Values("the-best-first", "GenerateProposals-9", THREE, (f32([MIDDLE, LEFT, RIGHT]), f32([0.3, 0.2, 0.1]), i64(3)), SOME),
    # LEFT and MIDDLE share 12 of 20, and of 30 with the last pixels 20
    Values("overlapping", "GenerateProposals-9", THREE, (f32([MIDDLE, RIGHT]), f32([0.3, 0.1]), i64(2)), {**SOME, "nms_threshold": 0.59}),
    Values("just-not", "GenerateProposals-9", THREE, (f32([MIDDLE, LEFT, RIGHT]), f32([0.3, 0.2, 0.1]), i64(3)), {**SOME, "nms_threshold": 0.61}),
    Values("overlapping-pixels", "GenerateProposals-9", THREE, (f32([MIDDLE, RIGHT]), f32([0.3, 0.1]), i64(2)), {**SOME, "nms_threshold": 0.66, "normalized": False}),
    Values("pre-nms", "GenerateProposals-9", THREE, (f32([MIDDLE]), f32([0.3]), i64(1)), {**SOME, "pre_nms_count": 1}),
    Values("post-nms", "GenerateProposals-9", THREE, (f32([MIDDLE, LEFT]), f32([0.3, 0.2]), i64(2)), {**SOME, "post_nms_count": 2}),
    Values("too-small", "GenerateProposals-9", THREE, (np.zeros((0, 4), np.float32), np.zeros(0, np.float32), i64(0)), {**SOME, "min_size": 4.5}),
    Values("scaled-size", "GenerateProposals-9", [f32([[20, 40, 3, 2]]), *THREE[1:]], (f32([RIGHT]), f32([0.1]), i64(1)), {**SOME, "min_size": 2}),
    Values("size-of-pixels", "GenerateProposals-9", THREE, (f32([MIDDLE, LEFT, RIGHT]), f32([0.3, 0.2, 0.1]), i64(3)), {**SOME, "min_size": 4.5, "normalized": False}),
    Values("moved", "GenerateProposals-9", [INFO, grid(RIGHT), deltas([0.5, -0.5, np.log(2), 0]), scores(0.5)], (f32([[10, 6, 18, 14]]), f32([0.5]), i64(1)), SOME),
    Values("moved-pixels", "GenerateProposals-9", [INFO, grid([10, 10, 13, 17]), deltas([0.5, -0.5, np.log(2), 0]), scores(0.5)], (f32([[10, 6, 17, 13]]), f32([0.5]), i64(1)), {**SOME, "normalized": False}),
    Values("clipped", "GenerateProposals-9", [INFO, grid(RIGHT), deltas([0, 0, 9, 9]), scores(0.5)], (f32([[0, 0, 40, 20]]), f32([0.5]), i64(1)), SOME),
    Values("clipped-pixels", "GenerateProposals-9", [INFO, grid(RIGHT), deltas([0, 0, 9, 9]), scores(0.5)], (f32([[0, 0, 39, 19]]), f32([0.5]), i64(1)), {**SOME, "normalized": False}),
    # with each box kept the threshold of 0.7 falls below 0.6: LEFT goes
    Values("falling-threshold", "GenerateProposals-9", THREE, (f32([MIDDLE, RIGHT]), f32([0.3, 0.1]), i64(2)), {**SOME, "nms_eta": 0.8}),
    Values("images", "GenerateProposals-9", [np.tile(INFO, (2, 1)), THREE[1], np.tile(STILL, (2, 1, 1, 1)), f32([[[[0.2, 0.3, 0.1]]], [[[0.1, 0.2, 0.4]]]])], (f32([MIDDLE, RIGHT, RIGHT, MIDDLE]), f32([0.3, 0.1, 0.4, 0.2]), i32([2, 2])), {**SOME, "nms_threshold": 0.5, "roi_num_type": "i32"}),
    Values("none-before", "GenerateProposals-9", THREE, (np.zeros((0, 4), np.float32), np.zeros(0, np.float32), i64(0)), {**SOME, "pre_nms_count": 0}),
    Values("none-after", "GenerateProposals-9", THREE, (np.zeros((0, 4), np.float32), np.zeros(0, np.float32), i64(0)), {**SOME, "post_nms_count": 0}),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "GenerateProposals-9", ["f32[8,3]", "f32[50,84,3,4]", "f32[8,12,50,84]", "f32[8,3,50,84]"], ["f32[..8000,4]", "f32[..8000]", "i32[8]"], {**SOME, "post_nms_count": 1000, "roi_num_type": "i32"}),
    Shapes("batch-from-others", "GenerateProposals-9", ["f16[?,?]", "f16[?,?,?,?]", "f16[?,?,?,?]", "f16[2,3,50,84]"], ["f16[..6,4]", "f16[..6]", "i64[2]"], SOME),
    Shapes("unknown-ranks", "GenerateProposals-9", ["f32[...]", "f32[...]", "f32[...]", "f32[...]"], ["f32[?,4]", "f32[?]", "i64[?]"], SOME),
    Shapes("batch-within-bounds", "GenerateProposals-9", ["f32[2..5,4]", "f32[...]", "f32[...]", "f32[...]"], ["f32[..15,4]", "f32[..15]", "i64[2..5]"], SOME),
]  # fmt: skip

REFUSALS = [
    Refusal(id, "GenerateProposals-9", inputs, {**SOME, **attributes})
    for id, inputs, attributes in [
        ("c1-info-rank", ["f32[3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {}),
        ("c1-info-size", ["f32[1,5]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {}),
        ("c1-anchors-rank", ["f32[1,3]", "f32[5,12,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {}),
        ("c1-anchors-of-five", ["f32[1,3]", "f32[5,6,2,5]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {}),
        ("c1-deltas-rank", ["f32[1,3]", "f32[5,6,2,4]", "f32[8,5,6]", "f32[1,2,5,6]"], {}),
        ("c1-scores-rank", ["f32[1,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[2,5,6]"], {}),
        ("c2-info-batch", ["f32[2,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {}),
        ("c2-scores-batch", ["f32[?,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[2,2,5,6]"], {}),
        ("c2-height", ["f32[1,3]", "f32[4,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {}),
        ("c2-width", ["f32[1,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,7]"], {}),
        ("c2-anchors", ["f32[1,3]", "f32[5,6,3,4]", "f32[1,?,5,6]", "f32[1,2,5,6]"], {}),
        ("c2-deltas", ["f32[1,3]", "f32[5,6,?,4]", "f32[1,6,5,6]", "f32[1,2,5,6]"], {}),
        ("c3-pre", ["f32[1,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {"pre_nms_count": -1}),
        ("c3-post", ["f32[1,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {"post_nms_count": -1}),
        ("c3-size", ["f32[1,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {"min_size": -1}),
        ("c3-iou", ["f32[1,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {"nms_threshold": -0.5}),
        ("c3-eta", ["f32[1,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {"nms_eta": 1.5}),
        ("c4-type", ["f32[1,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {"roi_num_type": "u8"}),
        ("ir301-integers", ["i32[1,3]", "i32[5,6,2,4]", "i32[1,8,5,6]", "i32[1,2,5,6]"], {}),
        ("ir302-types", ["f16[1,3]", "f32[5,6,2,4]", "f32[1,8,5,6]", "f32[1,2,5,6]"], {}),
    ]
]  # fmt: skip


def case(id, images=2, height=4, width=5, anchors=2, scale=(1.0,), dtype: Any = np.float32, **attributes):
    rng = np.random.default_rng(2)
    corners = rng.uniform(0, 30, (height, width, anchors, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(5, 15, corners.shape)], -1)
    certain = rng.permutation(images * anchors * height * width).reshape(images, anchors, height, width) / 500
    inputs = [np.tile([30, 40, *scale], (images, 1)), boxes, random(images, anchors * 4, height, width) / 4, certain]
    attributes = {"min_size": 0.0, "nms_threshold": 0.3, "pre_nms_count": 30, "post_nms_count": 12, **attributes}
    return Case(f"{id}-{dtype.__name__}", "GenerateProposals-9", [x.astype(dtype) for x in inputs], attributes)


CASES = [
    case("normalized"),
    case("normalized", dtype=np.float64),
    case("normalized", dtype=np.float16),
    case("pixels", normalized=False),
    case("all", images=1, pre_nms_count=1000, post_nms_count=1000, nms_threshold=0.8),
    case("few", pre_nms_count=3, roi_num_type="i32"),
    case("min-size", min_size=8.0),
    case("min-sizes", min_size=8.0, scale=(0.5, 1.5), normalized=False),
    case("nothing", min_size=50.0, images=3),
    case("one-place", height=1, width=1, anchors=3),
]
