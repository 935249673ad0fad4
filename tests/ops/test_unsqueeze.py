"""Unsqueeze-1."""

import numpy as np

from kit import *

VALUES = [
    Values("spec-1", "Unsqueeze-1", [[[1, 2], [3, 4]], i64(0, 3)], [[[[1], [2]], [[3], [4]]]]),
    Values("spec-2", "Unsqueeze-1", [7, i64(0)], [7]),
    Values("negative", "Unsqueeze-1", [[1, 2], i64(-1)], [[1], [2]]),
    Values("scalar-axis", "Unsqueeze-1", [[1, 2], np.array(0, np.int64)], [[1, 2]]),
    Values("unordered", "Unsqueeze-1", [[1, 2], i64(2, 0)], [[[1], [2]]]),
    Values("no-elements", "Unsqueeze-1", [np.empty((0, 2)), i64(1)], np.empty((0, 1, 2))),
    Values("no-axes", "Unsqueeze-1", [[1, 2], i64()], [1, 2]),
    # OpenVINO: inserts an axis that is named twice once
    Values("twice", "Unsqueeze-1", [[1, 2], i64(0, 0)], [[1, 2]]),
]

SHAPES = [
    Shapes("spec-1", "Unsqueeze-1", ["f32[2,3]", "i64{0,3}"], "f32[1,2,3,1]"),
    Shapes("spec-2", "Unsqueeze-1", ["f32[]", "i64{0}"], "f32[1]"),
    Shapes("dims", "Unsqueeze-1", ["f32[?,3..5]", "i32{-2}"], "f32[?,1,3..5]"),
    Shapes("unknown-axis", "Unsqueeze-1", ["f32[2,3]", "i64[1]"], "f32[?,?,?]"),
    Shapes("unknown-axes", "Unsqueeze-1", ["f32[2,3]", "i64[2]"], "f32[...]"),
    Shapes("unknown-rank", "Unsqueeze-1", ["f32[...]", "i64{0}"], "f32[...]"),
    Shapes("carries-contents", "Unsqueeze-1", ["i64[]{?}", "i64{0}"], "i64{?}"),
    Shapes("no-axes", "Unsqueeze-1", ["f32[2,3]", "i64[0]{}"], "f32[2,3]"),
]

REFUSALS = [
    Refusal("c1-2d", "Unsqueeze-1", ["f32[3]", "i64[1,1]"]),
    Refusal("c2-outside", "Unsqueeze-1", ["f32[2,3]", "i64{3}"]),
    Refusal("c2-negative", "Unsqueeze-1", ["f32[2,3]", "i64{0,-5}"]),
    Refusal("ir301-float-axes", "Unsqueeze-1", ["f32[2,3]", "f32[1]"]),
    Refusal("ir205-no-axes", "Unsqueeze-1", ["f32[3]"]),
]

CASES = [
    Case(f"{np.dtype(t).name}-{list(shape)}-{axes}", "Unsqueeze-1", [random(*shape, dtype=t), i64(*axes)], shapes=[1])
    for shape, axes in [
        ((), (0,)), ((), (1, 0)), ((3,), (-1,)), ((0,), (0,)), ((2, 3), (0, 3)), ((2, 3), (1, -1, 0)), ((1, 2, 3, 2), (2,)),
    ]
    for t in (*NUMERIC, np.bool_)
] + [
    Case("scalar-axis", "Unsqueeze-1", [arange(2, 3), np.array(1, np.int32)], shapes=[1]),
    Case("twice", "Unsqueeze-1", [arange(2, 3), i64(0, 0)], shapes=[1]),
    Case("twice-from-either-end", "Unsqueeze-1", [arange(2, 3), i64(0, -4)], shapes=[1]),
]  # fmt: skip
