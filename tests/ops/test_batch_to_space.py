"""BatchToSpace-2."""

import numpy as np

from kit import *

VALUES = [
    Values(
        "cropped",
        "BatchToSpace-2",
        [arange(4, 1, 2), i64(1, 2, 2), i64(0, 0, 0), i64(0, 0, 1)],
        [[[0, 2, 1], [4, 6, 5]]],
    ),
    Values("whole", "BatchToSpace-2", [[[1], [2]], i64(1, 2), i64(0, 0), i64(0, 0)], [[1, 2]]),
    Values("cropped-away", "BatchToSpace-2", [[[1], [2]], i64(1, 2), i64(0, 1), i64(0, 1)], np.empty((1, 0))),
]

SHAPES = [
    Shapes("spec-1", "BatchToSpace-2", ["f32[10,2]", "i64{1,5}", "i64{0,2}", "i64{0,0}"], "f32[2,8]"),
    Shapes(
        "spec-2",
        "BatchToSpace-2",
        ["f32[48,3,3,1,3]", "i64{1,2,4,3,1}", "i64{0,0,1,0,0}", "i64{0,0,1,0,0}"],
        "f32[2,6,10,3,3]",
    ),
    Shapes("dims", "BatchToSpace-2", ["f32[4..9,?,3]", "i64{1,1,2}", "i64{0,1,0}", "i64{0,0,?}"], "f32[2..4,?,..6]"),
    Shapes("unknown-contents", "BatchToSpace-2", ["f32[4,3]", "i64[2]", "i64[2]", "i64[?]"], "f32[..4,?]"),
    Shapes("rank-from-blocks", "BatchToSpace-2", ["f32[...]", "i64[3]", "i64[3]", "i64[3]"], "f32[?,?,?]"),
    Shapes("unknown-rank", "BatchToSpace-2", ["f32[...]", "i64[?]", "i64[?]", "i64[?]"], "f32[...]"),
]

REFUSALS = [
    Refusal("c1-rank", "BatchToSpace-2", ["f32[4]", "i64[1]", "i64[1]", "i64[1]"]),
    Refusal("c2-scalar", "BatchToSpace-2", ["f32[4,1]", "i64[]", "i64[2]", "i64[2]"]),
    Refusal("c2-count", "BatchToSpace-2", ["f32[4,1]", "i64[2]", "i64[2]", "i64[3]"]),
    Refusal("c3-zero", "BatchToSpace-2", ["f32[4,1]", "i64{1,0}", "i64[2]", "i64[2]"]),
    Refusal("c3-of-batch", "BatchToSpace-2", ["f32[4,1]", "i64{2,1}", "i64[2]", "i64[2]"]),
    Refusal("c4-negative", "BatchToSpace-2", ["f32[4,1]", "i64{1,2}", "i64{0,-1}", "i64[2]"]),
    Refusal("c4-of-batch", "BatchToSpace-2", ["f32[4,1]", "i64{1,2}", "i64{0,0}", "i64{1,0}"]),
    Refusal("c5-uneven", "BatchToSpace-2", ["f32[4,1]", "i64{1,3}", "i64[2]", "i64[2]"]),
    Refusal("c6-too-much", "BatchToSpace-2", ["f32[4,1]", "i64{1,2}", "i64{0,1}", "i64{0,2}"]),
    Refusal("ir302-types", "BatchToSpace-2", ["f32[4,1]", "i64[2]", "i32[2]", "i64[2]"]),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{blocks}",
        "BatchToSpace-2",
        [random(*shape, dtype=t), i64(*blocks), i64(*begins), i64(*ends)],
        shapes=[1, 2, 3],
    )
    for shape, blocks, begins, ends in [
        ((6, 2), (1, 3), (0, 2), (0, 1)), ((4, 1, 3), (1, 2, 2), (0, 1, 0), (0, 0, 2)), ((4, 2, 2), (1, 1, 2), (0, 0, 0), (0, 0, 0)),
        ((4, 1, 2, 3), (1, 1, 2, 1), (0, 0, 0, 1), (0, 0, 1, 1)), ((12, 3, 2, 1, 2), (1, 2, 1, 3, 1), (0, 0, 1, 0, 0), (0, 1, 0, 1, 1)),
    ]
    for t in NUMERIC
] + [
    Case("i32", "BatchToSpace-2", [arange(4, 2), *(np.array(n, np.int32) for n in ([1, 2], [0, 1], [0, 0]))], shapes=[1, 2, 3]),
]  # fmt: skip
