"""DepthToSpace-1."""

import numpy as np

from kit import *

FIRST, LAST = ({"block_size": 2, "mode": mode} for mode in ("blocks_first", "depth_first"))

VALUES = [
    Values("blocks-first", "DepthToSpace-1", [arange(1, 8, 1, 1)], [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]], FIRST),
    Values("depth-first", "DepthToSpace-1", [arange(1, 8, 1, 1)], [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]], LAST),
    Values("one-axis", "DepthToSpace-1", [[[[0, 1], [2, 3], [4, 5], [6, 7]]]], [[[0, 4, 1, 5], [2, 6, 3, 7]]], FIRST),
    Values(
        "one-axis-depth-first",
        "DepthToSpace-1",
        [[[[0, 1], [2, 3], [4, 5], [6, 7]]]],
        [[[0, 2, 1, 3], [4, 6, 5, 7]]],
        LAST,
    ),
    Values("of-one", "DepthToSpace-1", [[[[1, 2]]]], [[[1, 2]]], {"mode": "depth_first"}),
]

SHAPES = [
    Shapes("spec", "DepthToSpace-1", ["f32[5,28,2,3]"], "f32[5,7,4,6]", FIRST),
    Shapes("dims", "DepthToSpace-1", ["f32[?,8..,2..3,?]"], "f32[?,2..,4..6,?]", FIRST),
    Shapes("unknown-rank", "DepthToSpace-1", ["f32[...]"], "f32[...]", FIRST),
]

REFUSALS = [
    Refusal("c1-rank", "DepthToSpace-1", ["f32[1,4]"], FIRST),
    Refusal("c2-zero", "DepthToSpace-1", ["f32[...]"], {"block_size": 0, "mode": "depth_first"}),
    Refusal("c3-uneven", "DepthToSpace-1", ["f32[1,6,1,1]"], FIRST),
    Refusal("c3-interval", "DepthToSpace-1", ["f32[1,5..7,1,1]"], FIRST),
]

CASES = [
    Case(
        f"{mode}-{np.dtype(t).name}-{list(shape)}-{size}",
        "DepthToSpace-1",
        [random(*shape, dtype=t)],
        {"mode": mode, "block_size": size},
    )
    for mode in ("blocks_first", "depth_first")
    for shape, size in [((2, 6, 3), 3), ((1, 8, 2, 3), 2), ((0, 8, 2, 3), 2), ((2, 16, 1, 2, 3), 2), ((1, 3, 2, 2), 1)]
    for t in (*NUMERIC, np.bool_)
] + [Case("rank-6", "DepthToSpace-1", [arange(1, 32, 1, 2, 1, 2)], FIRST)]
