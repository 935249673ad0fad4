"""Reverse-1."""

import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

INDEX, MASK = {"mode": "index"}, {"mode": "mask"}


def mask(*axes: int) -> np.ndarray:
    return np.array(axes, np.bool_)


VALUES = [
    Values("index", "Reverse-1", [[[1, 2], [3, 4]], i64(1)], [[2, 1], [4, 3]], INDEX),
    Values("negative", "Reverse-1", [[[1, 2], [3, 4]], i64(-2)], [[3, 4], [1, 2]], INDEX),
    Values("both", "Reverse-1", [[[1, 2], [3, 4]], i64(1, 0)], [[4, 3], [2, 1]], INDEX),
    Values("none", "Reverse-1", [[[1, 2], [3, 4]], i64()], [[1, 2], [3, 4]], INDEX),
    Values("twice", "Reverse-1", [[[1, 2], [3, 4]], i64(0, -2)], [[3, 4], [1, 2]], INDEX),
    Values("mask", "Reverse-1", [[[1, 2], [3, 4]], mask(0, 1)], [[2, 1], [4, 3]], MASK),
    Values("mask-none", "Reverse-1", [[[1, 2], [3, 4]], mask(0, 0)], [[1, 2], [3, 4]], MASK),
    Values("scalar", "Reverse-1", [7, mask()], 7, MASK),
    Values("scalar-string", "Reverse-1", [np.array("ab", object), i64()], np.array("ab", object), INDEX),
]

SHAPES = [
    Shapes("spec", "Reverse-1", ["f32[3,10,100,200]", "i64{2}"], "f32[3,10,100,200]", INDEX),
    Shapes("dims", "Reverse-1", ["f32[?,2..3]", "i64[?]"], "f32[?,2..3]", INDEX),
    Shapes("unknown-rank", "Reverse-1", ["f32[...]", "boolean[2]"], "f32[...]", MASK),
    Shapes("carries-contents", "Reverse-1", ["i64{?,3}", "i64{0}"], "i64{3,?}", INDEX),
]

REFUSALS = [
    Refusal("c1-scalar", "Reverse-1", ["f32[3]", "i64[]{0}"], INDEX),
    Refusal("c1-mask-of-integers", "Reverse-1", ["f32[3]", "i64{0}"], MASK),
    Refusal("c1-index-of-booleans", "Reverse-1", ["f32[3]", "boolean[1]"], INDEX),
    Refusal("c2-outside", "Reverse-1", ["f32[2,3]", "i64{0,2}"], INDEX),
    Refusal("c3-too-short", "Reverse-1", ["f32[2,3]", "boolean[1]"], MASK),
    Refusal("c4-too-long", "Reverse-1", ["f32[2,3]", "i64{0,1,0}"], INDEX),
    Refusal("ir301-float-axis", "Reverse-1", ["f32[2,3]", "f32[1]"], INDEX),
]

CASES = [
    Case(f"{np.dtype(t).name}-{list(shape)}-{axes}", "Reverse-1", [random(*shape, dtype=t), i64(*axes)], INDEX, shapes=[1])
    for shape, axes in [((3,), (0,)), ((0, 2), (0,)), ((2, 3), (-1, 0)), ((2, 1, 3, 2), (3, 1)), ((1, 2, 3, 1, 2), (4, 1, 2))]
    for t in (*NUMERIC, np.bool_)
] + [
    Case(f"mask-{list(shape)}-{axes}", "Reverse-1", [arange(*shape), mask(*axes)], MASK, shapes=[1])
    for shape, axes in [((3,), (1,)), ((2, 3), (0, 1)), ((2, 3), (0, 0)), ((1, 2, 3, 1, 2), (1, 0, 1, 0, 1))]
]  # fmt: skip


def test_an_axis_seen_by_the_run_only():
    with pytest.raises(Refused) as caught:
        operation("Reverse-1", INDEX).run(arange(2, 3), i64(2))
    assert caught.value.label == "C2"
