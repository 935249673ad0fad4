"""Split-1."""

import numpy as np

from kit import *

ROWS = ([[1, 2], [3, 4]], [[5, 6], [7, 8]])

VALUES = [
    Values("rows", "Split-1", [ROWS[0] + ROWS[1], 0], ROWS, {"num_splits": 2}),
    Values("columns", "Split-1", [[[1, 2], [3, 4]], -1], ([[1], [3]], [[2], [4]]), {"num_splits": 2}),
    Values("one", "Split-1", [[1, 2], 0], ([1, 2],), {"num_splits": 1}),
    Values("no-elements", "Split-1", [np.empty((0, 2)), 0], (np.empty((0, 2)),) * 3, {"num_splits": 3}),
]

SHAPES = [
    Shapes(id, "Split-1", inputs, expected, {"num_splits": len(expected)}, len(expected))
    for id, inputs, expected in [
        ("spec", ["f32[6,12,10,24]", "i64[]{1}"], ["f32[6,4,10,24]"] * 3),
        ("dims", ["f32[?,4..9]", "i64[]{-1}"], ["f32[?,1..3]"] * 3),
        ("unknown-axis", ["f32[4,?,6]", "i64[]"], ["f32[2..4,?,3..6]"] * 2),
        ("the-only-axis", ["f32[4]", "i64[]"], ["f32[2]"] * 2),
        ("unknown-rank", ["f32[...]", "i64[]{1}"], ["f32[...]"] * 2),
        ("carries-contents", ["i64{?,3}", "i64[]{0}"], ["i64{?}", "i64{3}"]),
    ]
]

REFUSALS = [
    Refusal("c1-zero", "Split-1", ["f32[2,3]", "i64[]{0}"], {"num_splits": 0}),
    Refusal("c1-beyond-memory", "Split-1", ["f32[...]", "i64[]"], {"num_splits": 2**63}),
    Refusal("c2-1d", "Split-1", ["f32[2,3]", "i64{0}"], {"num_splits": 2}, 2),
    Refusal("c3-outside", "Split-1", ["f32[2,3]", "i64[]{2}"], {"num_splits": 2}, 2),
    Refusal("c3-negative", "Split-1", ["f32[2,3]", "i64[]{-3}"], {"num_splits": 2}, 2),
    Refusal("c3-scalar", "Split-1", ["f32[]", "i64[]{0}"], {"num_splits": 2}, 2),
    Refusal("c4-uneven", "Split-1", ["f32[2,3]", "i64[]{1}"], {"num_splits": 2}, 2),
    Refusal("c4-interval", "Split-1", ["f32[2,5..7]", "i64[]{1}"], {"num_splits": 4}, 4),
    Refusal("ir301-float-axis", "Split-1", ["f32[2,3]", "f32[]"], {"num_splits": 3}, 3),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{axis}-{count}",
        "Split-1",
        [random(*shape, dtype=t), np.array(axis, np.int64)],
        {"num_splits": count},
        shapes=[1],
    )
    for shape, axis, count in [
        ((3,), 0, 3), ((4, 6), 1, 2), ((0, 3), 1, 3), ((0, 3), 0, 2), ((2, 4, 3), -2, 4), ((1, 4, 2, 3), 1, 1),
        ((1, 2, 2, 1, 6), -1, 2),
    ]
    for t in (*NUMERIC, np.bool_)
] + [Case("i32-axis", "Split-1", [arange(4, 3), np.array(0, np.int32)], {"num_splits": 2}, shapes=[1])]  # fmt: skip
