"""SpaceToDepth-1."""

import numpy as np

from kit import *

FIRST, LAST = ({"block_size": 2, "mode": mode} for mode in ("blocks_first", "depth_first"))

VALUES = [
    Values("blocks-first", "SpaceToDepth-1", [[[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]]], arange(1, 8, 1, 1), FIRST),
    Values("depth-first", "SpaceToDepth-1", [[[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]], arange(1, 8, 1, 1), LAST),
    Values("one-axis", "SpaceToDepth-1", [[[[0, 4, 1, 5], [2, 6, 3, 7]]]], [[[0, 1], [2, 3], [4, 5], [6, 7]]], FIRST),
    Values(
        "one-axis-depth-first",
        "SpaceToDepth-1",
        [[[[0, 2, 1, 3], [4, 6, 5, 7]]]],
        [[[0, 1], [2, 3], [4, 5], [6, 7]]],
        LAST,
    ),
    Values("of-one", "SpaceToDepth-1", [[[[1, 2]]]], [[[1, 2]]], {"mode": "depth_first"}),
]

SHAPES = [
    Shapes("spec", "SpaceToDepth-1", ["f32[5,7,4,6]"], "f32[5,28,2,3]", FIRST),
    Shapes("dims", "SpaceToDepth-1", ["f32[?,2..3,4..9,?]"], "f32[?,8..12,2..4,?]", FIRST),
    Shapes("unknown-rank", "SpaceToDepth-1", ["f32[...]"], "f32[...]", FIRST),
]

REFUSALS = [
    Refusal("c1-rank", "SpaceToDepth-1", ["f32[1,4]"], FIRST),
    Refusal("c2-zero", "SpaceToDepth-1", ["f32[...]"], {"block_size": 0, "mode": "depth_first"}),
    Refusal("c3-uneven", "SpaceToDepth-1", ["f32[1,1,2,3]"], FIRST),
]

CASES = [
    Case(
        f"{mode}-{np.dtype(t).name}-{list(shape)}-{size}",
        "SpaceToDepth-1",
        [random(*shape, dtype=t)],
        {"mode": mode, "block_size": size},
    )
    for mode in ("blocks_first", "depth_first")
    for shape, size in [((2, 2, 9), 3), ((1, 3, 4, 6), 2), ((1, 3, 0, 6), 2), ((2, 2, 2, 4, 2), 2), ((1, 3, 2, 2), 1)]
    for t in (*NUMERIC, np.bool_)
] + [Case("rank-6", "SpaceToDepth-1", [arange(1, 2, 2, 4, 2, 2)], FIRST)]
