"""VariadicSplit-1."""

import numpy as np

from kit import *

VALUES = [
    Values("rows", "VariadicSplit-1", [[[1, 2], [3, 4], [5, 6]], 0, i64(1, 2)], ([[1, 2]], [[3, 4], [5, 6]])),
    Values("columns", "VariadicSplit-1", [[[1, 2, 3]], i64(-1), i64(1, -1)], ([[1]], [[2, 3]])),
    Values("nothing-left", "VariadicSplit-1", [[1, 2], 0, i64(2, -1)], ([1, 2], np.empty(0))),
    Values("nothing-wanted", "VariadicSplit-1", [[1, 2], 0, i64(0, 2, 0)], (np.empty(0), [1, 2], np.empty(0))),
    Values("one", "VariadicSplit-1", [[1, 2], 0, i64(-1)], ([1, 2],)),
]

SHAPES = [
    Shapes(id, "VariadicSplit-1", inputs, expected, outputs=len(expected))
    for id, inputs, expected in [
        ("spec-1", ["f32[6,12]", "i64[]{0}", "i64{1,2,3}"], ["f32[1,12]", "f32[2,12]", "f32[3,12]"]),
        ("spec-2", ["f32[6,12]", "i64[]{0}", "i64{-1,2}"], ["f32[4,12]", "f32[2,12]"]),
        ("left-of-unknown", ["f32[?,4]", "i64{0}", "i64{-1,2}"], ["f32[?,4]", "f32[2,4]"]),
        ("left-of-interval", ["f32[3..8,4]", "i64{0}", "i64{-1,2}"], ["f32[1..6,4]", "f32[2,4]"]),
        ("dim-tells-length", ["f32[5]", "i64{0}", "i64{?,2}"], ["f32[3]", "f32[2]"]),
        ("dim-bounds-lengths", ["f32[5]", "i64{0}", "i64{1..,3..}"], ["f32[1..2]", "f32[3..4]"]),
        ("unknown-lengths", ["f32[4,5]", "i64{1}", "i64[2]"], ["f32[4,..5]"] * 2),
        ("unknown-count", ["f32[4,5]", "i64{1}", "i64[?]"], ["f32[4,..5]"] * 2),
        ("unknown-axis", ["f32[4,?]", "i64[]", "i64{1,2}"], ["f32[..4,?]"] * 2),
        ("the-only-axis", ["f32[3]", "i64[]", "i64{1,2}"], ["f32[1]", "f32[2]"]),
        ("unknown-rank", ["f32[...]", "i64[]{0}", "i64{1,2}"], ["f32[...]"] * 2),
        ("carries-contents", ["i64{?,3,1..8}", "i64{0}", "i64{1,-1}"], ["i64{?}", "i64{3,1..8}"]),
    ]
]

REFUSALS = [
    Refusal("c1-two-axes", "VariadicSplit-1", ["f32[2,3]", "i64{0,1}", "i64{1,1}"], outputs=2),
    Refusal("c1-2d", "VariadicSplit-1", ["f32[2,3]", "i64[1,1]", "i64{1,1}"], outputs=2),
    Refusal("c2-outside", "VariadicSplit-1", ["f32[2,3]", "i64{2}", "i64{1,1}"], outputs=2),
    Refusal("c3-scalar", "VariadicSplit-1", ["f32[2,3]", "i64{1}", "i64[]"]),
    Refusal("c3-count", "VariadicSplit-1", ["f32[2,3]", "i64{1}", "i64[3]"], outputs=4),
    Refusal("c4-negative", "VariadicSplit-1", ["f32[2,3]", "i64{1}", "i64{-2,5}"], outputs=2),
    Refusal("c4-two-left", "VariadicSplit-1", ["f32[2,3]", "i64{1}", "i64{-1,2,-1}"], outputs=3),
    Refusal("c5-too-short", "VariadicSplit-1", ["f32[2,3]", "i64{1}", "i64{1,1}"], outputs=2),
    Refusal("c5-too-long", "VariadicSplit-1", ["f32[2,3]", "i64{1}", "i64{4,-1}"], outputs=2),
    Refusal("c5-interval", "VariadicSplit-1", ["f32[2,5..8]", "i64{1}", "i64{1,2}"], outputs=2),
    Refusal("ir301-float-axis", "VariadicSplit-1", ["f32[2,3]", "f32[1]", "i64{1,2}"], outputs=2),
    Refusal("ir301-float-lengths", "VariadicSplit-1", ["f32[2,3]", "i64{0}", "f32[2]"], outputs=2),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{axis}-{lengths}",
        "VariadicSplit-1",
        [random(*shape, dtype=t), i64(axis), i64(*lengths)],
        shapes=[1, 2],
    )
    for shape, axis, lengths in [
        ((3,), 0, (1, 2)), ((4, 6), 1, (3, -1, 2)), ((0, 3), 1, (1, 2)), ((2, 3), 1, (3, -1)), ((2, 4, 3), -2, (0, 4)),
        ((1, 4, 2, 3), 1, (4,)), ((1, 2, 2, 1, 6), -1, (1, 2, 3)),
    ]
    for t in (*NUMERIC, np.bool_)
] + [
    Case("i32", "VariadicSplit-1", [arange(4, 3), np.array(0, np.int32), np.array([3, 1], np.int32)], shapes=[1, 2]),
]  # fmt: skip
