"""Concat-1."""

import numpy as np

from kit import *

VALUES = [
    Values("rows", "Concat-1", [[[1, 2]], [[3, 4], [5, 6]]], [[1, 2], [3, 4], [5, 6]], {"axis": 0}),
    Values("columns", "Concat-1", [[[1], [2]], [[3, 4], [5, 6]]], [[1, 3, 4], [2, 5, 6]], {"axis": -1}),
    Values("one", "Concat-1", [[1, 2]], [1, 2], {"axis": 0}),
    Values("with-nothing", "Concat-1", [[1, 2], np.empty(0, np.int64)], [1, 2], {"axis": 0}),
    Values("strings", "Concat-1", [np.array(["a"]), np.array(["bcd", ""])], np.array(["a", "bcd", ""]), {"axis": 0}),
]

SHAPES = [
    Shapes("spec-1", "Concat-1", ["f32[1,8,50,50]", "f32[1,16,50,50]", "f32[1,32,50,50]"], "f32[1,56,50,50]", {"axis": 1}),
    Shapes("spec-2", "Concat-1", ["f32[1,8,50,50]", "f32[1,16,50,50]", "f32[1,32,50,50]"], "f32[1,56,50,50]", {"axis": -3}),
    Shapes("dims-meet", "Concat-1", ["f32[?,2,1..5]", "f32[3,?,4..8]"], "f32[3,2..,4..5]", {"axis": 1}),
    Shapes("unknown-rank", "Concat-1", ["f32[2,3]", "f32[...]"], "f32[2,3..]", {"axis": 1}),
    Shapes("unknown-ranks", "Concat-1", ["f32[...]", "f32[...]"], "f32[...]", {"axis": 1}),
    Shapes("carries-contents", "Concat-1", ["i64{?,3}", "i64{1..8}", "i64{7}"], "i64{?,3,1..8,7}", {"axis": 0}),
    Shapes("carries-columns", "Concat-1", ["i64[2,1]{1,?}", "i64[2,1]{3,4}"], "i64[2,2]{1,3,?,4}", {"axis": 1}),
    Shapes("unknown-contents", "Concat-1", ["i64{?,3}", "i64[1]"], "i64{unknown}", {"axis": 0}),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-ranks", "Concat-1", ["f32[2]", "f32[...]", "f32[2,3]"], {"axis": 0}),
    Refusal("c1-scalars", "Concat-1", ["f32[]", "f32[]"], {"axis": 0}),
    Refusal("c2-axis", "Concat-1", ["f32[2,3]", "f32[2,3]"], {"axis": 2}),
    Refusal("c2-negative-axis", "Concat-1", ["f32[2,3]", "f32[2,3]"], {"axis": -3}),
    Refusal("c3-other-dim", "Concat-1", ["f32[2,3]", "f32[2,3]", "f32[3,3]"], {"axis": 1}),
    Refusal("ir302-types", "Concat-1", ["f32[2,3]", "f16[2,3]"], {"axis": 1}),
    Refusal("ir205-none", "Concat-1", [], {"axis": 1}),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{axis}",
        "Concat-1",
        [random(*shape[:axis], n, *shape[axis:], dtype=t, seed=n) for n in lengths],
        {"axis": axis},
    )
    for shape, axis, lengths in [
        ((), 0, (2, 1)), ((3,), 0, (2, 1, 3)), ((3,), 1, (2, 0)), ((0,), 1, (2, 3)), ((2, 3), 1, (1, 2)),
        ((2, 3, 2), 2, (1, 2)), ((1, 2, 2, 3), 4, (1, 2, 3, 1)),
    ]
    for t in (*NUMERIC, np.bool_)
] + [
    Case("negative-axis", "Concat-1", [arange(2, 1, 3), arange(2, 2, 3)], {"axis": -2}),
    Case("constant", "Concat-1", [arange(2, 1, 3), arange(2, 2, 3)], {"axis": -2}, constants=[1]),
]  # fmt: skip
