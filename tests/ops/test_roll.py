"""Roll-7."""

import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

DATA = arange(4, 3, start=1)
SCALAR = np.array(1)

VALUES = [
    Values("spec-1", "Roll-7", [DATA, SCALAR, np.array(0)], [[10, 11, 12], [1, 2, 3], [4, 5, 6], [7, 8, 9]]),
    Values("spec-2", "Roll-7", [DATA, i64(-1, 2), i64(0, 1)], [[5, 6, 4], [8, 9, 7], [11, 12, 10], [2, 3, 1]]),
    Values("spec-3", "Roll-7", [DATA, i64(1, 2, 1), i64(0, 1, 0)], [[8, 9, 7], [11, 12, 10], [2, 3, 1], [5, 6, 4]]),
    Values("one-shift", "Roll-7", [[[1, 2], [3, 4]], SCALAR, i64(0, 1)], [[4, 3], [2, 1]]),
    Values("one-shift-1d", "Roll-7", [[[1, 2], [3, 4]], i64(1), i64(0, 1)], [[4, 3], [2, 1]]),
    Values("far", "Roll-7", [[1, 2, 3], i64(-(2**62)), i64(-1)], [2, 3, 1]),
    Values("no-axes", "Roll-7", [[1, 2, 3], i64(), i64()], [1, 2, 3]),
    Values("no-elements", "Roll-7", [np.empty((0, 2)), i64(1), i64(0)], np.empty((0, 2))),
]

SHAPES = [
    Shapes("spec-1", "Roll-7", ["f32[3,10,100,200]", "i64[2]", "i64[2]"], "f32[3,10,100,200]"),
    Shapes("spec-2", "Roll-7", ["f32[3,10,100,200]", "i64[]", "i64[2]"], "f32[3,10,100,200]"),
    # the specification shows a shift of shape [1], and calls it a scalar
    Shapes("spec-2-shown", "Roll-7", ["f32[3,10,100,200]", "i64[1]", "i64[2]"], "f32[3,10,100,200]"),
    Shapes("dims", "Roll-7", ["f32[?,2..3]", "i64[?]", "i32[...]"], "f32[?,2..3]"),
    Shapes("unknown-rank", "Roll-7", ["f32[...]", "i64{1}", "i64{3}"], "f32[...]"),
    Shapes("carries-contents", "Roll-7", ["i64{?,3,4}", "i64{1}", "i64{0}"], "i64{4,?,3}"),
]

REFUSALS = [
    Refusal("c1-shift", "Roll-7", ["f32[2,3]", "i64[1,1]", "i64[1]"]),
    Refusal("c1-axes", "Roll-7", ["f32[2,3]", "i64[]", "i64[1,1]"]),
    Refusal("c2-count", "Roll-7", ["f32[2,3]", "i64[3]", "i64[2]"]),
    Refusal("c2-scalar-axes", "Roll-7", ["f32[2,3]", "i64[1]", "i64[]"]),
    Refusal("c3-outside", "Roll-7", ["f32[2,3]", "i64[2]", "i64{0,2}"]),
    Refusal("c3-negative", "Roll-7", ["f32[2,3]", "i64[1]", "i64{-3}"]),
    Refusal("ir301-i16", "Roll-7", ["f32[2,3]", "i16[1]", "i64{0}"]),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{shift}-{axes}",
        "Roll-7",
        [random(*shape, dtype=t), np.array(shift), np.array(axes)],
        shapes=[1, 2],
    )
    for shape, shift, axes in [
        ((3,), 1, 0), ((4, 3), (-1, 2), (0, 1)), ((0, 3), (1,), (0,)), ((2, 3, 4), (5, -7), (-1, 0)),
        ((2, 1, 3, 2), (1, 1, 1), (3, 0, 2)), ((1, 2, 3, 1, 2), (1, 2), (1, 2)),
    ]
    for t in (*NUMERIC, np.bool_)
] + [
    Case("types-differ", "Roll-7", [arange(4, 3), np.array([1], np.int32), i64(0)], shapes=[1, 2]),
    Case("repeated-axis", "Roll-7", [DATA, i64(1, 2, 1), i64(0, 1, 0)], shapes=[1, 2]),
    Case(
        "one-shift-of-two-axes",
        "Roll-7",
        [DATA, SCALAR, i64(0, 1)],
        shapes=[1, 2],
        # OpenVINO: the CPU plugin wants as many shifts as axes
        expected=np.array([[12, 10, 11], [3, 1, 2], [6, 4, 5], [9, 7, 8]], np.float32),
    ),
]  # fmt: skip


def test_an_axis_seen_by_the_run_only():
    with pytest.raises(Refused) as caught:
        operation("Roll-7").run(DATA, i64(1), i64(2))
    assert caught.value.label == "C3"
