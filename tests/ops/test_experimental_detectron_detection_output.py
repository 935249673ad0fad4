"""ExperimentalDetectronDetectionOutput-6."""

from typing import Any

import numpy as np

from kit import *

OP = "ExperimentalDetectronDetectionOutput-6"
SOME = {
    "score_threshold": 0.1,
    "nms_threshold": 0.5,
    "post_nms_count": 9,
    "max_detections_per_image": 4,
    "max_delta_log_wh": 2,
}
SOME |= {"deltas_weights": "1,1,1,1", "num_classes": 2}
INFO = f32([[20, 40, 1]])
ZERO = [0, 0, 0, 0]
LEFT, MIDDLE, RIGHT = [0, 0, 3, 3], [1, 0, 4, 3], [10, 10, 13, 17]
THREE = [f32([LEFT, MIDDLE, RIGHT]), np.zeros((3, 8), np.float32), f32([[0.9, 0.2], [0.9, 0.3], [0.9, 0.15]]), INFO]


def found(*detections, count=4):
    """The outputs for detections of boxes, classes and scores; then zeros."""
    filled = [*detections, *[(ZERO, 0, 0)] * (count - len(detections))]
    boxes, classes, scores = zip(*filled)
    return f32(boxes), np.array(classes, np.int32), f32(scores)


VALUES = [
    # LEFT and MIDDLE share 12 of 20 pixels
    Values("overlapping", OP, THREE, found((MIDDLE, 1, 0.3), (RIGHT, 1, 0.15)), SOME),
    Values("just-not", OP, THREE, found((MIDDLE, 1, 0.3), (LEFT, 1, 0.2), (RIGHT, 1, 0.15)), {**SOME, "nms_threshold": 0.61}),
    Values("of-a-class", OP, THREE, found((MIDDLE, 1, 0.3), (LEFT, 1, 0.2)), {**SOME, "nms_threshold": 0.61, "post_nms_count": 2}),
    Values("of-all", OP, THREE, found((MIDDLE, 1, 0.3), count=1), {**SOME, "max_detections_per_image": 1}),
    Values("certain", OP, THREE, found((MIDDLE, 1, 0.3)), {**SOME, "score_threshold": 0.15}),
    Values("moved", OP, [f32([RIGHT]), f32([[*ZERO, 1, -2, np.log(4), 9]]), f32([[0, 0.5]]), INFO], found(([10, 0, 17, 41], 1, 0.5)), {**SOME, "deltas_weights": "2,4,2,1", "max_delta_log_wh": np.log(8)}),
    Values("few-bits", OP, [f32([[0, 0, 2, 2], [3, 3, 4, 4]]), np.zeros((2, 8), np.float32), f32([[0, 0.5], [0, 1]]), f32([[6, 6, 1]])], found(([3, 3, 4, 4], 1, 1), ([0, 0, 2, 2], 1, 0.5)), SOME),
    Values("empty-region", OP, [f32([[3, 3, 3, 5], LEFT]), np.zeros((2, 8), np.float32), f32([[0, 0.5], [0, 0.4]]), INFO], found((LEFT, 1, 0.4)), SOME),
    Values("classes", OP, [f32([LEFT, RIGHT]), np.zeros((2, 12), np.float32), f32([[0, 0.5, 0.6], [0, 0.8, 0.7]]), INFO], found((RIGHT, 1, 0.8), (LEFT, 1, 0.5), (RIGHT, 2, 0.7), (LEFT, 2, 0.6)), {**SOME, "num_classes": 3}),
    Values("best-of-classes", OP, [f32([LEFT, RIGHT]), np.zeros((2, 12), np.float32), f32([[0, 0.5, 0.6], [0, 0.8, 0.7]]), INFO], found((RIGHT, 1, 0.8), (RIGHT, 2, 0.7), (LEFT, 2, 0.6), count=3), {**SOME, "num_classes": 3, "max_detections_per_image": 3}),
    Values("none", OP, THREE, (np.zeros((0, 4), np.float32), np.zeros(0, np.int32), f32([])), {**SOME, "max_detections_per_image": 0}),
]  # fmt: skip

SHAPES = [
    Shapes("spec", OP, ["f32[1000,4]", "f32[1000,324]", "f32[1000,81]", "f32[1,3]"], ["f32[100,4]", "i32[100]", "f32[100]"], {"class_agnostic_box_regression": False, "deltas_weights": "10.0,10.0,5.0,5.0", "max_delta_log_wh": 4.135, "max_detections_per_image": 100, "nms_threshold": 0.5, "num_classes": 81, "post_nms_count": 2000, "score_threshold": 0.05}),
    Shapes("unknown", OP, ["f16[?,?]", "f16[?,?]", "f16[?,2]", "f16[?,3]"], ["f16[4,4]", "i32[4]", "f16[4]"], SOME),
    Shapes("unknown-ranks", OP, ["f32[...]", "f32[...]", "f32[...]", "f32[...]"], ["f32[4,4]", "i32[4]", "f32[4]"], SOME),
]  # fmt: skip

REFUSALS = [
    Refusal(id, OP, inputs, {**SOME, **attributes})
    for id, inputs, attributes in [
        ("c1-rois-rank", ["f32[9]", "f32[9,8]", "f32[9,2]", "f32[1,3]"], {}),
        ("c1-rois", ["f32[9,5]", "f32[9,8]", "f32[9,2]", "f32[1,3]"], {}),
        ("c1-deltas", ["f32[9,4]", "f32[9,4]", "f32[9,2]", "f32[1,3]"], {}),
        ("c1-scores", ["f32[9,4]", "f32[9,8]", "f32[9,1]", "f32[1,3]"], {}),
        ("c1-info", ["f32[9,4]", "f32[9,8]", "f32[9,2]", "f32[2,3]"], {}),
        ("c1-info-rank", ["f32[9,4]", "f32[9,8]", "f32[9,2]", "f32[3]"], {}),
        ("c2-deltas", ["f32[9,4]", "f32[8,8]", "f32[9,2]", "f32[1,3]"], {}),
        ("c2-scores", ["f32[9,4]", "f32[?,8]", "f32[8,2]", "f32[1,3]"], {}),
        ("c3-weights", ["f32[9,4]", "f32[9,8]", "f32[9,2]", "f32[1,3]"], {"deltas_weights": "1,1,1"}),
        ("c4-most", ["f32[9,4]", "f32[9,8]", "f32[9,2]", "f32[1,3]"], {"max_detections_per_image": -1}),
        ("c4-of-a-class", ["f32[9,4]", "f32[9,8]", "f32[9,2]", "f32[1,3]"], {"post_nms_count": -1}),
        ("c4-classes", ["f32[9,4]", "f32[...]", "f32[...]", "f32[1,3]"], {"num_classes": -1}),
        ("c4-score", ["f32[9,4]", "f32[9,8]", "f32[9,2]", "f32[1,3]"], {"score_threshold": -0.5}),
        ("c4-iou", ["f32[9,4]", "f32[9,8]", "f32[9,2]", "f32[1,3]"], {"nms_threshold": -0.5}),
        ("c4-weights", ["f32[9,4]", "f32[9,8]", "f32[9,2]", "f32[1,3]"], {"deltas_weights": "1,1,-1,1"}),
        ("ir301-int", ["i32[9,4]", "i32[9,8]", "i32[9,2]", "i32[1,3]"], {}),
        ("ir302-types", ["f16[9,4]", "f32[9,8]", "f32[9,2]", "f32[1,3]"], {}),
    ]
]


def case(id, count=20, classes=4, dtype: Any = np.float32, **attributes):
    rng = np.random.default_rng(5)
    corners = rng.uniform(0, 30, (count, 2))
    regions = np.concatenate([corners, corners + rng.uniform(-1, 15, (count, 2))], -1)
    scores = rng.permutation(count * classes).reshape(count, classes) / (count * classes)
    inputs = [regions, random(count, classes * 4) / 2, scores, np.array([[30, 40, 1]])]
    attributes = {
        "score_threshold": 0.2,
        "nms_threshold": 0.3,
        "post_nms_count": 9,
        "max_detections_per_image": 15,
        "max_delta_log_wh": 0.6,
        "deltas_weights": [1.0, 2.0, 1.5, 0.8],
        **attributes,
    }
    return Case(f"{id}-{dtype.__name__}", OP, [x.astype(dtype) for x in inputs], {"num_classes": classes, **attributes})


CASES = [
    *(case("some", dtype=t) for t in (np.float32, np.float16, np.float64)),
    case("fewer-than-most", max_detections_per_image=100),
    case("of-a-class", post_nms_count=2),
    case("agnostic", class_agnostic_box_regression=True),
    case("nothing", score_threshold=2.0),
    case("background-only", classes=1),
]
