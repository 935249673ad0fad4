"""Transpose-1."""

from itertools import permutations

import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

VALUES = [
    Values("matrix", "Transpose-1", [[[1, 2, 3], [4, 5, 6]], i64(1, 0)], [[1, 4], [2, 5], [3, 6]]),
    Values("empty-order", "Transpose-1", [[[[1, 2], [3, 4]]], i64()], [[[1], [3]], [[2], [4]]]),
    Values("three", "Transpose-1", [[[[1, 2], [3, 4]]], i64(2, 0, 1)], [[[1, 3]], [[2, 4]]]),
    Values("scalar", "Transpose-1", [7, i64()], 7),
    Values("no-elements", "Transpose-1", [np.empty((0, 2)), i64(1, 0)], np.empty((2, 0))),
    Values("narrow-order", "Transpose-1", [[[1, 2]], np.array([1, 0], np.uint8)], [[1], [2]]),
]

SHAPES = [
    Shapes("spec-1", "Transpose-1", ["f32[2,3,4]", "i64{2,0,1}"], "f32[4,2,3]"),
    Shapes("spec-2", "Transpose-1", ["f32[2,3,4]", "i64[0]{}"], "f32[4,3,2]"),
    Shapes("two-axes-as-they-are", "Transpose-1", ["f32[2,3]", "i64{0,1}"], "f32[2,3]"),
    Shapes("unknown-order-of-two", "Transpose-1", ["f32[2,3]", "i64[2]"], "f32[2..3,2..3]"),
    Shapes("dims", "Transpose-1", ["f32[?,3..5,4]", "i64{1,2,0}"], "f32[3..5,4,?]"),
    Shapes("unknown-order", "Transpose-1", ["f32[2,3,4]", "i64[3]"], "f32[2..4,2..4,2..4]"),
    Shapes("unknown-order-of-equal-dims", "Transpose-1", ["f32[4,4]", "i64[?]"], "f32[4,4]"),
    Shapes("unknown-rank", "Transpose-1", ["f32[...]", "i64{1,2,0}"], "f32[?,?,?]"),
    Shapes("unknown-rank-and-order", "Transpose-1", ["f32[...]", "i64[4]"], "f32[?,?,?,?]"),
    Shapes("unknown-rank-empty-order", "Transpose-1", ["f32[...]", "i64[0]{}"], "f32[...]"),
    Shapes("unknown-rank-and-length", "Transpose-1", ["f32[...]", "i64[?]"], "f32[...]"),
    Shapes("carries-contents", "Transpose-1", ["i64{?,3}", "i64{0}"], "i64{?,3}"),
]

REFUSALS = [
    Refusal("c1-scalar", "Transpose-1", ["f32[3]", "i64[]{0}"]),
    Refusal("c1-too-few", "Transpose-1", ["f32[2,3]", "i64{0}"]),
    Refusal("c1-too-many", "Transpose-1", ["f32[]", "i64[1]"]),
    Refusal("c2-twice", "Transpose-1", ["f32[2,3]", "i64{0,0}"]),
    Refusal("c2-negative", "Transpose-1", ["f32[2,3]", "i64{-1,0}"]),
    Refusal("c2-outside", "Transpose-1", ["f32[...]", "i64{1,2}"]),
    Refusal("ir301-float-order", "Transpose-1", ["f32[3]", "f32[1]"]),
]

CASES = [
    Case(f"{np.dtype(t).name}-{list(shape)}", "Transpose-1", [random(*shape, dtype=t), i64(*order)], shapes=[1])
    for shape, order in [
        ((3,), (0,)), ((2, 3), (1, 0)), ((2, 0), (1, 0)), ((1, 2, 3, 4), (0, 3, 1, 2)), ((1, 2, 3, 1, 2), (4, 3, 0, 1, 2)),
    ] for t in (*NUMERIC, np.bool_)
] + [
    Case(f"order-{list(order)}", "Transpose-1", [arange(2, 3, 4), i64(*order)], shapes=[1])
    for order in permutations(range(3))
] + [
    Case("scalar", "Transpose-1", [np.array(7, np.float32), i64()], constants=[1]),
    # OpenVINO: the CPU plugin crashes on an empty order
    Case("empty-order", "Transpose-1", [arange(2, 3, 4), i64()], shapes=[1], how="core"),
    Case("i32-order", "Transpose-1", [arange(2, 3), np.array([1, 0], np.int32)], shapes=[1]),
]  # fmt: skip


def test_an_order_seen_by_the_run_only():
    with pytest.raises(Refused) as caught:
        operation("Transpose-1").run(arange(2, 2), i64(1, 1))
    assert caught.value.label == "C2"
