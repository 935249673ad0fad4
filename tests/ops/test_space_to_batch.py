"""SpaceToBatch-2."""

import numpy as np

from kit import *

VALUES = [
    Values("whole", "SpaceToBatch-2", [[[1, 2, 3, 4]], i64(1, 2), i64(0, 0), i64(0, 0)], [[1, 3], [2, 4]]),
    Values("padded", "SpaceToBatch-2", [[[1, 2]], i64(1, 2), i64(0, 1), i64(0, 1)], [[0, 2], [1, 0]]),
    Values(
        "two-axes",
        "SpaceToBatch-2",
        [arange(1, 2, 4), i64(1, 2, 2), i64(0, 0, 0), i64(0, 0, 0)],
        [[[0, 2]], [[1, 3]], [[4, 6]], [[5, 7]]],
    ),
    Values("of-nothing", "SpaceToBatch-2", [np.empty((1, 0)), i64(1, 2), i64(0, 1), i64(0, 1)], [[0], [0]]),
]

SHAPES = [
    Shapes(
        "spec",
        "SpaceToBatch-2",
        ["f32[2,6,10,3,3]", "i64{1,2,4,3,1}", "i64{0,0,1,0,0}", "i64{0,0,1,0,0}"],
        "f32[48,3,3,1,3]",
    ),
    Shapes("dims", "SpaceToBatch-2", ["f32[?,2..5,3]", "i64{1,2,1}", "i64{0,1,0}", "i64{0,0,?}"], "f32[?,1..3,3..]"),
    Shapes("unknown-contents", "SpaceToBatch-2", ["f32[2,3]", "i64[2]", "i64[2]", "i64[?]"], "f32[2..,?]"),
    Shapes("rank-from-blocks", "SpaceToBatch-2", ["f32[...]", "i64[3]", "i64[3]", "i64[3]"], "f32[?,?,?]"),
    Shapes("unknown-rank", "SpaceToBatch-2", ["f32[...]", "i64[?]", "i64[?]", "i64[?]"], "f32[...]"),
]

REFUSALS = [
    Refusal("c1-rank", "SpaceToBatch-2", ["f32[4]", "i64[1]", "i64[1]", "i64[1]"]),
    Refusal("c2-scalar", "SpaceToBatch-2", ["f32[4,1]", "i64[]", "i64[2]", "i64[2]"]),
    Refusal("c2-count", "SpaceToBatch-2", ["f32[4,1]", "i64[2]", "i64[2]", "i64[3]"]),
    Refusal("c3-zero", "SpaceToBatch-2", ["f32[4,1]", "i64{1,0}", "i64[2]", "i64[2]"]),
    Refusal("c3-of-batch", "SpaceToBatch-2", ["f32[4,1]", "i64{2,1}", "i64[2]", "i64[2]"]),
    Refusal("c4-negative", "SpaceToBatch-2", ["f32[4,1]", "i64{1,1}", "i64{0,-1}", "i64[2]"]),
    Refusal("c4-of-batch", "SpaceToBatch-2", ["f32[4,1]", "i64{1,1}", "i64{0,0}", "i64{1,0}"]),
    Refusal("c5-uneven", "SpaceToBatch-2", ["f32[4,2]", "i64{1,2}", "i64{0,1}", "i64{0,0}"]),
    Refusal("ir302-types", "SpaceToBatch-2", ["f32[4,1]", "i64[2]", "i32[2]", "i64[2]"]),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{blocks}",
        "SpaceToBatch-2",
        [random(*shape, dtype=t), i64(*blocks), i64(*begins), i64(*ends)],
        shapes=[1, 2, 3],
    )
    for shape, blocks, begins, ends in [
        ((2, 3), (1, 3), (0, 2), (0, 1)), ((1, 1, 3), (1, 2, 2), (0, 1, 0), (0, 0, 1)), ((4, 2, 2), (1, 1, 2), (0, 0, 0), (0, 0, 0)),
        ((4, 1, 2, 3), (1, 1, 2, 1), (0, 0, 0, 1), (0, 0, 2, 1)), ((1, 3, 2, 3, 2), (1, 2, 1, 3, 1), (0, 0, 1, 0, 0), (0, 1, 0, 3, 1)),
    ]
    for t in NUMERIC
] + [
    Case(
        "more-pads-than-elements",
        "SpaceToBatch-2",
        [arange(1, 3, 2, 1, 2, start=1), i64(1, 1, 1, 3, 1), i64(0, 0, 0, 0, 0), i64(0, 0, 0, 2, 0)],
        shapes=[1, 2, 3],
        how="core",  # OpenVINO: the CPU plugin gives 0 for some elements where a block is wider than the dim
    ),
    Case("i32", "SpaceToBatch-2", [arange(2, 3), *(np.array(n, np.int32) for n in ([1, 2], [0, 1], [0, 0]))], shapes=[1, 2, 3]),
]  # fmt: skip
