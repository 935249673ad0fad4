"""ExperimentalDetectronPriorGridGenerator-6."""

import ml_dtypes
import numpy as np

from kit import *

OP = "ExperimentalDetectronPriorGridGenerator-6"


def maps(*of_size):
    return [np.zeros((1, 3, *size), np.float32) for size in of_size]


PRIOR = f32([[-1, -2, 3, 4]])
FIRST = [0, 1, 4, 7]
"""Of the first of 3 x 2 cells of 6 x 2 pixels."""

VALUES = [
    Values("strides-of-the-image", OP, [PRIOR, *maps((3, 2), (18, 4))], f32([FIRST, [2, 1, 6, 7], [0, 7, 4, 13], [2, 7, 6, 13], [0, 13, 4, 19], [2, 13, 6, 19]])),
    Values("not-flat", OP, [PRIOR, *maps((1, 2), (6, 4))], f32([[[FIRST], [[2, 1, 6, 7]]]]), {"flatten": False}),
    Values("strides", OP, [f32([[0, 0, 0, 0], [0, 0, 1, 1]]), *maps((1, 2), (6, 4))], f32([[4, 5, 4, 5], [4, 5, 5, 6], [12, 5, 12, 5], [12, 5, 13, 6]]), {"stride_x": 8, "stride_y": 10}),
    Values("part-of-the-grid", OP, [PRIOR, *maps((3, 2), (6, 2))], f32([FIRST, *[[0] * 4] * 5]), {"h": 1, "w": 1}),
    Values("part-not-flat", OP, [PRIOR, *maps((2, 2), (6, 4))], f32([[[FIRST], [[2, 1, 6, 7]]], [[[0] * 4]] * 2]), {"h": 1, "flatten": False}),
    Values("no-cells", OP, [PRIOR, *maps((0, 2), (6, 4))], np.zeros((0, 4), np.float32)),
]  # fmt: skip

SHAPES = [
    Shapes("spec", OP, ["f32[3,4]", "f32[1,256,25,42]", "f32[1,3,800,1344]"], "f32[3150,4]", {"stride_x": 32, "stride_y": 32}),
    Shapes("not-flat", OP, ["f32[3,4]", "f32[1,256,25,42]", "f32[1,3,800,1344]"], "f32[25,42,3,4]", {"flatten": False}),
    Shapes("unknown", OP, ["f32[?,?]", "f32[1,?,25,1..2]", "f32[?,3,?,?]"], "f32[25,1..2,?,4]", {"flatten": False}),
    Shapes("unknown-flat", OP, ["f32[3,?]", "f32[1,?,25,1..2]", "f32[...]"], "f32[75..150,4]", {"w": 2}),
    Shapes("unknown-ranks", OP, ["f32[...]", "f32[...]", "f32[...]"], "f32[?,4]", {"h": 3}),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-priors-rank", OP, ["f32[12]", "f32[1,3,5,6]", "f32[1,3,5,6]"]),
    Refusal("c1-priors", OP, ["f32[3,5]", "f32[1,3,5,6]", "f32[1,3,5,6]"]),
    Refusal("c1-map-rank", OP, ["f32[3,4]", "f32[3,5,6]", "f32[1,3,5,6]"]),
    Refusal("c1-image-rank", OP, ["f32[3,4]", "f32[1,3,5,6]", "f32[5,6]"]),
    Refusal("c2-image", OP, ["f32[3,4]", "f32[1,3,5,6]", "f32[2,3,5,6]"]),
    Refusal("c2-map", OP, ["f32[3,4]", "f32[2,3,5,6]", "f32[1,3,5,6]"]),
    Refusal("c3-h", OP, ["f32[3,4]", "f32[1,3,5,6]", "f32[1,3,5,6]"], {"h": 6}),
    Refusal("c3-w", OP, ["f32[3,4]", "f32[1,3,5,6]", "f32[1,3,5,6]"], {"w": 7}),
    Refusal("c3-negative", OP, ["f32[3,4]", "f32[1,3,5,6]", "f32[1,3,5,6]"], {"w": -1}),
    Refusal("c4-x", OP, ["f32[3,4]", "f32[1,3,5,6]", "f32[1,3,5,6]"], {"stride_x": -1}),
    Refusal("c4-y", OP, ["f32[3,4]", "f32[1,3,5,6]", "f32[1,3,5,6]"], {"stride_y": -1}),
    Refusal("ir301-int", OP, ["i32[3,4]", "i32[1,3,5,6]", "i32[1,3,5,6]"]),
    Refusal("ir302-types", OP, ["f32[3,4]", "f16[1,3,5,6]", "f32[1,3,5,6]"]),
]

CASES = [
    Case(f"{id}-{flatten}-{t.__name__}", OP, [random(2, 4, dtype=t), np.zeros((batch, 3, *cells), t), np.zeros((batch, 5, 30, 41), t)], {"flatten": flatten, **attributes})
    for id, batch, cells, attributes in [
        ("image", 1, (3, 4), {}),
        ("high", 1, (5, 2), {}),
        ("strides", 1, (3, 4), {"stride_x": 3.0, "stride_y": 2.5}),
        ("one-stride", 1, (3, 4), {"stride_y": 2.5}),
        ("whole-grid", 1, (3, 4), {"h": 3, "w": 4}),
    ]
    for flatten in (True, False)
    for t in (np.float32, np.float16, np.float64, ml_dtypes.bfloat16)
]  # fmt: skip
