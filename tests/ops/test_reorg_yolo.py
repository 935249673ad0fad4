"""ReorgYolo-2."""

import numpy as np

from kit import NUMERIC, Case, Refusal, Shapes, Values, against_openvino, arange, random, refusals, shapes, values

VALUES = [
    # of 4 channels read as one, of 2 rows of 8 pixels
    Values("one-image", "ReorgYolo-2", [arange(1, 4, 2, 2)], np.reshape([0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15], (1, 16, 1, 1)), {"stride": 2}),
    Values("one-pixel", "ReorgYolo-2", [arange(1, 3, 2, 2)], arange(1, 3, 2, 2), {"stride": 1}),
    Values("booleans", "ReorgYolo-2", [np.eye(4).reshape(1, 4, 2, 2) > 0], np.reshape([1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1], (1, 16, 1, 1)) > 0, {"stride": 2}),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "ReorgYolo-2", ["f32[1,64,26,26]"], "f32[1,256,13,13]", {"stride": 2}),
    Shapes("unknown", "ReorgYolo-2", ["u8[?,?,?,26]"], "u8[?,?,?,13]", {"stride": 2}),
    Shapes("bounds", "ReorgYolo-2", ["f32[1..2,4..8,6..12,6]"], "f32[1..2,16..32,3..6,3]", {"stride": 2}),
    Shapes("unknown-rank", "ReorgYolo-2", ["string[...]"], "string[?,?,?,?]", {"stride": 2}),
]

REFUSALS = [
    Refusal("c1-rank", "ReorgYolo-2", ["f32[4,2,2]"], {"stride": 2}),
    Refusal("c2-zero", "ReorgYolo-2", ["f32[1,4,2,2]"], {"stride": 0}),
    Refusal("c3-height", "ReorgYolo-2", ["f32[1,4,3,2]"], {"stride": 2}),
    Refusal("c3-width", "ReorgYolo-2", ["f32[1,9,3,4]"], {"stride": 3}),
    Refusal("c4-channels", "ReorgYolo-2", ["f32[1,3,2,2]"], {"stride": 2}),
    Refusal("c4-bounds", "ReorgYolo-2", ["f32[1,1..8,3,3]"], {"stride": 3}),
]

CASES = [
    Case(f"{list(shape)}-{stride}-{t.__name__}", "ReorgYolo-2", [random(*shape, dtype=t)], {"stride": [stride]})
    for shape, stride in [((1, 4, 2, 2), 2), ((2, 8, 4, 6), 2), ((2, 9, 3, 6), 3), ((2, 5, 4, 4), 2), ((1, 17, 3, 3), 3), ((1, 3, 2, 5), 1), ((1, 4, 0, 2), 2)]
    for t in (*NUMERIC, np.bool_)
]  # fmt: skip

test_values = values(VALUES)
test_shapes = shapes(SHAPES)
test_refusals = refusals(REFUSALS)
test_against_openvino = against_openvino(CASES)
