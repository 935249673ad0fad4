"""ReverseSequence-1."""

import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

ROWS = [[1, 2, 3, 4], [5, 6, 7, 8]]

VALUES = [
    Values("rows", "ReverseSequence-1", [ROWS, i64(2, 3)], [[2, 1, 3, 4], [7, 6, 5, 8]]),
    Values("nothing-to-do", "ReverseSequence-1", [ROWS, i64(1, 0)], ROWS),
    Values(
        "columns",
        "ReverseSequence-1",
        [ROWS, i64(2, 1, 2, 1)],
        [[5, 2, 7, 4], [1, 6, 3, 8]],
        {"batch_axis": 1, "seq_axis": 0},
    ),
    Values("float-lengths", "ReverseSequence-1", [ROWS, np.array([4, 2], np.float32)], [[4, 3, 2, 1], [6, 5, 7, 8]]),
    Values("one-axis", "ReverseSequence-1", [ROWS, i64(2, 2)], [ROWS[1], ROWS[0]], {"batch_axis": 0, "seq_axis": -2}),
    Values(
        "inner",
        "ReverseSequence-1",
        [[[[1, 2], [3, 4]]], i64(2, 1)],
        [[[3, 2], [1, 4]]],
        {"batch_axis": -1, "seq_axis": 1},
    ),
]

SHAPES = [
    Shapes(
        "spec",
        "ReverseSequence-1",
        ["f32[4,10,100,200]", "i64{2,4,8,10}"],
        "f32[4,10,100,200]",
        {"batch_axis": 0, "seq_axis": 1},
    ),
    Shapes("lengths-tell-batch", "ReverseSequence-1", ["f32[?,10]", "i64[4]"], "f32[4,10]"),
    Shapes("dims", "ReverseSequence-1", ["f32[2..5,?]", "i64[?]"], "f32[2..5,?]"),
    Shapes("unknown-rank", "ReverseSequence-1", ["f32[...]", "i64[4]"], "f32[...]"),
]

REFUSALS = [
    Refusal("c1-rank", "ReverseSequence-1", ["f32[3]", "i64[3]"]),
    Refusal("c2-outside", "ReverseSequence-1", ["f32[3,4]", "i64[3]"], {"seq_axis": 2}),
    Refusal("c2-batch", "ReverseSequence-1", ["f32[3,4]", "i64[3]"], {"batch_axis": -3}),
    Refusal("c3-scalar", "ReverseSequence-1", ["f32[3,4]", "i64[]"]),
    Refusal("c3-count", "ReverseSequence-1", ["f32[3,4]", "i64[4]"]),
    Refusal("c4-too-long", "ReverseSequence-1", ["f32[3,4]", "i64{1,5,1}"]),
    Refusal("c4-no-number", "ReverseSequence-1", ["f32[3,4]", "f32{1.0,nan,2.0}"]),
    Refusal("c4-infinite", "ReverseSequence-1", ["f32[3,4]", "f32{1.0,inf,2.0}"]),
    Refusal("c4-negative", "ReverseSequence-1", ["f32[1,4]", "i64{-1}"]),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{batch}-{along}",
        "ReverseSequence-1",
        [random(*shape, dtype=t), i64(*lengths)],
        {"batch_axis": batch, "seq_axis": along},
        shapes=[1],
    )
    for shape, batch, along, lengths in [
        ((2, 3), 0, 1, (3, 2)), ((2, 3), 1, 0, (1, 2, 2)), ((2, 3, 4), -1, 1, (1, 2, 3, 2)), ((2, 1, 3, 2), 0, 2, (3, 2)),
        ((1, 2, 3, 2, 2), 4, 2, (3, 2)),
    ]
    for t in (np.float32, np.float16, np.int32, np.int64, np.uint8)
] + [
    Case("defaults", "ReverseSequence-1", [arange(2, 3), np.array([2, 3], np.int32)], shapes=[1]),
    Case("float-lengths", "ReverseSequence-1", [arange(2, 3), np.array([2, 3], np.float32)], shapes=[1]),
    Case("zero", "ReverseSequence-1", [arange(2, 3), i64(0, 3)], shapes=[1]),
]  # fmt: skip


def test_a_length_seen_by_the_run_only():
    with pytest.raises(Refused) as caught:
        operation("ReverseSequence-1").run(arange(2, 3), i64(4, 1))
    assert caught.value.label == "C4"


@pytest.mark.parametrize("length", [np.nan, np.inf, 1.5])
def test_a_length_that_is_no_number(length: float) -> None:
    with pytest.raises(Refused, match=f"entry {length}") as caught:
        operation("ReverseSequence-1").run(arange(2, 3), np.array([1, length], np.float32))
    assert caught.value.label == "C4"
