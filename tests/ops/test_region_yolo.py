"""RegionYolo-1."""

import math

import ml_dtypes
import numpy as np

from kit import Case, Refusal, Shapes, Values, against_openvino, f32, random, refusals, shapes, values

V3 = {"axis": 1, "end_axis": 3, "coords": 4, "num": 6, "do_softmax": False}
V2 = {"axis": 1, "end_axis": 3, "coords": 4, "do_softmax": True}


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


VALUES = [
    Values("sigmoid-of-classes", "RegionYolo-1", [f32([1, 2, 3, 4, 5, 6]).reshape(1, 6, 1, 1)], np.reshape([sigmoid(1), sigmoid(2), 3, 4, sigmoid(5), sigmoid(6)], (1, 6, 1, 1)), {**V3, "classes": 1, "mask": 3}),
    Values("softmax-of-classes", "RegionYolo-1", [f32([1, 2, 3, 4, 5, 6, 7]).reshape(1, 7, 1, 1)], [[sigmoid(1), sigmoid(2), 3, 4, sigmoid(5), sigmoid(-1), sigmoid(1)]], {**V2, "classes": 2, "num": 1}),
    Values("large", "RegionYolo-1", [f32([-1000, 1000, 0, 0, 0, 1000, -1000]).reshape(1, 7, 1, 1)], [[0, 1, 0, 0, 0.5, 1, 0]], {**V2, "classes": 2, "num": 1}),
]  # fmt: skip

SHAPES = [
    Shapes("spec-v3", "RegionYolo-1", ["f32[1,255,26,26]"], "f32[1,255,26,26]", {"anchors": "10,14,23,27,37,58,81,82,135,169,344,319", "axis": 1, "classes": 80, "coords": 4, "do_softmax": 0, "end_axis": 3, "mask": "0,1,2", "num": 6}),
    Shapes("spec-v2", "RegionYolo-1", ["f32[1,125,13,13]"], "f32[1,21125]", {"axis": 1, "classes": 20, "coords": 4, "do_softmax": 1, "end_axis": 3, "num": 5}),
    Shapes("unknown-v3", "RegionYolo-1", ["f16[?,?,?,26]"], "f16[?,12,?,26]", {**V3, "classes": 1, "mask": "0,1"}),
    Shapes("unknown-v2", "RegionYolo-1", ["f16[?,12,3,1..4]"], "f16[?,36..144]", {**V2, "classes": 1, "num": 2}),
    Shapes("unknown-rank-v3", "RegionYolo-1", ["f32[...]"], "f32[?,12,?,?]", {**V3, "classes": 1, "mask": "0,1"}),
    Shapes("unknown-rank-v2", "RegionYolo-1", ["f32[...]"], "f32[?,?]", {**V2, "classes": 1, "num": 2}),
    Shapes("all-axes", "RegionYolo-1", ["f32[2,12,3,5]"], "f32[360]", {**V2, "axis": 0, "end_axis": -1, "classes": 1, "num": 2}),
    Shapes("one-axis", "RegionYolo-1", ["f32[2,12,3,5]"], "f32[2,12,3,5]", {**V2, "axis": -2, "end_axis": 2, "classes": 1, "num": 2}),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-rank", "RegionYolo-1", ["f32[12,2,2]"], {**V2, "classes": 1, "num": 2}),
    Refusal("c2-num", "RegionYolo-1", ["f32[1,15,2,2]"], {**V2, "classes": 1, "num": 2}),
    Refusal("c2-mask", "RegionYolo-1", ["f32[1,12,2,2]"], {**V3, "classes": 1, "mask": "0,1,2"}),
    Refusal("c3-axis", "RegionYolo-1", ["f32[1,12,2,2]"], {**V2, "classes": 1, "num": 2, "axis": 4}),
    Refusal("c3-end-axis", "RegionYolo-1", ["f32[1,12,2,2]"], {**V2, "classes": 1, "num": 2, "end_axis": -5}),
    Refusal("c3-backwards", "RegionYolo-1", ["f32[...]"], {**V2, "classes": 1, "num": 2, "axis": -1, "end_axis": 1}),
    Refusal("ir301-int", "RegionYolo-1", ["i32[1,12,2,2]"], {**V2, "classes": 1, "num": 2}),
]

CASES = [
    Case(f"v3-{list(shape)}-{t.__name__}", "RegionYolo-1", [random(*shape, dtype=t)], {**V3, "classes": classes, "mask": mask})
    for shape, classes, mask in [((1, 18, 2, 3), 1, [0, 1, 2]), ((2, 16, 4, 3), 3, [3, 4]), ((3, 10, 1, 1), 5, [1])]
    for t in (np.float32, np.float16, np.float64)
] + [
    Case(f"v2-{list(shape)}-{axis}-{end}-{t.__name__}", "RegionYolo-1", [random(*shape, dtype=t)], {**V2, "classes": classes, "num": num, "axis": axis, "end_axis": end})
    for shape, classes, num, axis, end in [((1, 18, 2, 3), 1, 3, 1, 3), ((2, 16, 4, 3), 3, 2, 0, -1), ((3, 10, 2, 1), 5, 1, -2, 3), ((2, 20, 0, 3), 5, 2, 1, 3)]
    for t in (np.float32, np.float16, np.float64)
] + [
    Case("few-coords", "RegionYolo-1", [random(1, 8, 2, 3)], {**V2, "coords": 1, "classes": 2, "num": 2}),
    Case("no-coords", "RegionYolo-1", [random(1, 6, 2, 3)], {**V2, "coords": 0, "classes": 2, "num": 2}),
    Case("no-coords-v3", "RegionYolo-1", [random(1, 6, 2, 3)], {**V3, "coords": 0, "classes": 2, "mask": [0, 1]}),
    Case("bf16", "RegionYolo-1", [random(1, 14, 2, 3, dtype=ml_dtypes.bfloat16)], {**V2, "classes": 2, "num": 2}),
]  # fmt: skip

test_values = values(VALUES)
test_shapes = shapes(SHAPES)
test_refusals = refusals(REFUSALS)
test_against_openvino = against_openvino(CASES)
