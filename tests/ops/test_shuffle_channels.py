"""ShuffleChannels-1."""

import numpy as np

from kit import *

VALUES = [
    Values("row", "ShuffleChannels-1", [[[0, 1, 2, 3, 4, 5]]], [[0, 2, 4, 1, 3, 5]], {"axis": 1, "group": 3}),
    Values(
        "columns",
        "ShuffleChannels-1",
        [[[1, 2], [3, 4], [5, 6], [7, 8]]],
        [[1, 2], [5, 6], [3, 4], [7, 8]],
        {"axis": -2, "group": 2},
    ),
    Values("defaults", "ShuffleChannels-1", [[[0, 1, 2]]], [[0, 1, 2]]),
    Values("no-elements", "ShuffleChannels-1", [np.empty((2, 0))], np.empty((2, 0)), {"group": 3}),
]

SHAPES = [
    Shapes("spec", "ShuffleChannels-1", ["f32[5,12,200,400]"], "f32[5,12,200,400]", {"axis": 1, "group": 3}),
    Shapes("dims", "ShuffleChannels-1", ["f32[?,2..5,?]"], "f32[?,2..5,?]", {"group": 4}),
    Shapes("unknown-rank", "ShuffleChannels-1", ["f32[...]"], "f32[...]", {"group": 4}),
]

REFUSALS = [
    Refusal("c1-scalar", "ShuffleChannels-1", ["f32[]"], {"axis": 0}),
    Refusal("c2-outside", "ShuffleChannels-1", ["f32[4]"]),
    Refusal("c3-zero", "ShuffleChannels-1", ["f32[...]"], {"group": 0}),
    Refusal("c3-uneven", "ShuffleChannels-1", ["f32[1,6]"], {"group": 4}),
    Refusal("c3-interval", "ShuffleChannels-1", ["f32[1,5..7]"], {"group": 4}),
    Refusal("ir301-boolean", "ShuffleChannels-1", ["boolean[1,6]"], {"group": 3}),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{axis}-{group}",
        "ShuffleChannels-1",
        [random(*shape, dtype=t)],
        {"axis": axis, "group": group},
    )
    for shape, axis, group in [
        ((6,), 0, 2), ((0, 3), 0, 2), ((2, 6), 1, 3), ((2, 6, 2), -2, 2), ((2, 6, 2, 3), 1, 6), ((1, 2, 3, 1, 6), 4, 3),
        ((1, 2, 3, 1, 6), 1, 1),
    ]
    for t in NUMERIC
] + [Case("defaults", "ShuffleChannels-1", [arange(2, 6)])]  # fmt: skip
