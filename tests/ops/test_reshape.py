"""Reshape-1."""

from typing import Any

import numpy as np
import pytest

from irrun.inference.layer import infer
from irrun.opdef import Refused, Site, Value
from irrun.types import ELEMENT_TYPES, Dim, PartialShape
from kit import *
from oracle import Oracle

ZERO, PLAIN = {"special_zero": True}, {"special_zero": False}

VALUES = [
    Values("spec-1", "Reshape-1", [np.empty((2, 5, 5, 0)), i64(0, 4)], np.empty((0, 4)), PLAIN),
    Values("spec-4", "Reshape-1", [[[[1]], [[2]], [[3]]], i64(-1, 0)], [[1], [2], [3]], ZERO),
    Values("spec-5", "Reshape-1", [[[[1]], [[2]], [[3]]], i64(0, -1)], [[1], [2], [3]], ZERO),
    Values("plain", "Reshape-1", [[[1, 2], [3, 4]], i64(4)], [1, 2, 3, 4], PLAIN),
    Values("left", "Reshape-1", [[1, 2, 3, 4], i64(2, -1)], [[1, 2], [3, 4]], PLAIN),
    Values("scalar", "Reshape-1", [[[7]], i64()], 7, PLAIN),
    Values("of-scalar", "Reshape-1", [7, i64(1, -1)], [[7]], ZERO),
    Values("left-beside-copied-zero", "Reshape-1", [np.empty((0, 4)), i64(0, 2, -1)], np.empty((0, 2, 2)), ZERO),
    Values("left-of-nothing", "Reshape-1", [np.empty((0, 4)), i64(-1, 5)], np.empty((0, 5)), PLAIN),
]

SHAPES = [
    Shapes("spec-1", "Reshape-1", ["f32[2,5,5,0]", "i64{0,4}"], "f32[0,4]", PLAIN),
    Shapes("spec-2", "Reshape-1", ["f32[2,5,5,24]", "i64{0,-1,4}"], "f32[2,150,4]", ZERO),
    Shapes("spec-3", "Reshape-1", ["f32[2,2,3]", "i64{0,0,1,-1}"], "f32[2,2,1,3]", ZERO),
    Shapes("spec-4", "Reshape-1", ["f32[3,1,1]", "i64{-1,0}"], "f32[3,1]", ZERO),
    Shapes("spec-5", "Reshape-1", ["f32[3,1,1]", "i64{0,-1}"], "f32[3,1]", ZERO),
    Shapes("copied-cancels", "Reshape-1", ["f32[?,12,64]", "i64{0,-1}"], "f32[?,768]", ZERO),
    Shapes("left-is-the-unknown", "Reshape-1", ["f32[?,12,64]", "i64{-1,768}"], "f32[?,768]", ZERO),
    Shapes("left-of-interval", "Reshape-1", ["f32[2..3,12,64]", "i64{-1,32}"], "f32[48..72,32]", PLAIN),
    Shapes("left-of-two-unknown", "Reshape-1", ["f32[?,2..,8]", "i64{-1,4}"], "f32[?,4]", PLAIN),
    Shapes("left-beside-unknown", "Reshape-1", ["f32[4,6]", "i64{2..3,-1}"], "f32[2..3,8..12]", PLAIN),
    Shapes("unknown-entry-is-told", "Reshape-1", ["f32[4,6]", "i64{?,8}"], "f32[3,8]", PLAIN),
    Shapes("unknown-entry-is-bounded", "Reshape-1", ["f32[..4,6]", "i64{?,8}"], "f32[..3,8]", PLAIN),
    Shapes("unknown-entries", "Reshape-1", ["f32[4,6]", "i64{?,?,8}"], "f32[?,?,8]", PLAIN),
    Shapes("unknown-entry-beside-0", "Reshape-1", ["f32[0,6]", "i64{?,0}"], "f32[?,0]", PLAIN),
    Shapes("bounded-entry-may-be-0", "Reshape-1", ["f32[?,6]", "i64{..4,6}"], "f32[?,6]", ZERO),
    Shapes("any-entries", "Reshape-1", ["f32[4,6]", "i64[2]"], "f32[?,?]", ZERO),
    Shapes("any-entry", "Reshape-1", ["f32[4,6]", "i64[1]"], "f32[24]", ZERO),
    Shapes("any-entry-of-unknown", "Reshape-1", ["f32[4,?]", "i64[1]"], "f32[?]", ZERO),
    Shapes("any-count", "Reshape-1", ["f32[4,6]", "i64[?]"], "f32[...]", ZERO),
    Shapes("unknown-rank", "Reshape-1", ["f32[...]", "i64{0,-1,4}"], "f32[?,?,4]", ZERO),
    Shapes("unknown-rank-plain", "Reshape-1", ["f32[...]", "i64{0,2..3,4}"], "f32[0,2..3,4]", PLAIN),
    Shapes("left-of-zero", "Reshape-1", ["f32[0,4]", "i64{-1,5}"], "f32[0,5]", PLAIN),
    Shapes("to-scalar", "Reshape-1", ["f32[1,?]", "i64[0]{}"], "f32[]", PLAIN),
    # OpenVINO: infers 1 for a -1 beside a 0
    Shapes("left-beside-zero", "Reshape-1", ["f32[?,4]", "i64{0,-1}"], "f32[0,1]", PLAIN),
    Shapes("carries-contents", "Reshape-1", ["i64{?,3}", "i64{1,-1}"], "i64[1,2]{?,3}", PLAIN),
    Shapes("unknown-entry-of-contents", "Reshape-1", ["i64{?,3}", "i64{?,1}"], "i64[2,1]{unknown}", PLAIN),
    Shapes("string", "Reshape-1", ["string[4]", "i64{2,2}"], "string[2,2]", PLAIN),
]

REFUSALS = [
    Refusal("c1-scalar", "Reshape-1", ["f32[1]", "i64[]{1}"], ZERO),
    Refusal("c1-2d", "Reshape-1", ["f32[1]", "i64[1,1]"], ZERO),
    Refusal("c2-below", "Reshape-1", ["f32[6]", "i64{-2,-3}"], ZERO),
    Refusal("c2-two-left", "Reshape-1", ["f32[...]", "i64{-1,-1}"], ZERO),
    Refusal("c3-beyond", "Reshape-1", ["f32[2,3]", "i64{2,3,0}"], ZERO),
    Refusal("c4-more", "Reshape-1", ["f32[2,3]", "i64{2,4}"], PLAIN),
    Refusal("c4-copied", "Reshape-1", ["f32[2,3]", "i64{0,4}"], ZERO),
    Refusal("c4-nothing", "Reshape-1", ["f32[2,3]", "i64{0,4}"], PLAIN),
    Refusal("c4-left-beside-nothing", "Reshape-1", ["f32[2,3]", "i64{0,-1}"], PLAIN),
    Refusal("c4-indivisible", "Reshape-1", ["f32[2,3]", "i64{4,-1}"], ZERO),
    Refusal("c4-unknown-cancels", "Reshape-1", ["f32[?,3]", "i64{0,4}"], ZERO),
    Refusal("c4-interval", "Reshape-1", ["f32[2..4,3]", "i64{13}"], ZERO),
    Refusal("c4-unknown-entry", "Reshape-1", ["f32[2,3]", "i64{?,4}"], PLAIN),
    Refusal("ir301-float-shape", "Reshape-1", ["f32[2,3]", "f32[1]"], ZERO),
]

_RESHAPES = [
    ((), (), PLAIN), ((), (1, 1), PLAIN), ((6,), (2, 3), PLAIN), ((2, 3), (6,), ZERO), ((2, 3), (0, -1, 1), ZERO),
    ((2, 0), (0, 5), PLAIN), ((2, 0), (0, -1), ZERO), ((0, 4), (-1, 8), PLAIN),
    ((1, 2, 3, 4), (0, -1, 4), ZERO), ((1, 2, 3, 2, 2), (2, 2, -1), PLAIN), ((2, 3, 4), (3, 1, 2, 2, 2), PLAIN),
]  # fmt: skip

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(data)}-{list(shape)}-{attributes['special_zero']}",
        "Reshape-1",
        [random(*data, dtype=t), i64(*shape)],
        attributes,
        shapes=[1],
    )
    for data, shape, attributes in _RESHAPES for t in (*NUMERIC, np.bool_)
] + [
    Case("i32-shape", "Reshape-1", [arange(2, 3), np.array([3, -1], np.int32)], PLAIN, shapes=[1]),
    Case("u8-shape", "Reshape-1", [arange(2, 3), np.array([3, 0, 2], np.uint8)[::2].copy()], PLAIN, shapes=[1]),
]  # fmt: skip


def test_unknown_dims_keep_their_identity():
    batch, length = Dim.unknown("batch"), Dim.unknown("length")
    rows = [
        ([batch, 12, 64], [-1, 768], [batch, 768]),
        ([batch, length, 64], [0, 0, 8, -1], [batch, length, 8, 8]),
        ([batch, length, 64], [batch, length, 8, -1], [batch, length, 8, 8]),
        ([batch, length, 64], [batch, -1], [batch, length * 64]),
        ([batch, length, 64], [length, -1, 32], [length, batch * 2, 32]),
        ([batch * 6], [-1, 6], [batch * 6 // 6, 6]),
    ]
    for data, shape, expected in rows:
        inputs = [Value(ELEMENT_TYPES["f32"], PartialShape.of(data)), Value.of_dims(shape, ELEMENT_TYPES["i64"])]
        (found,) = infer(operation("Reshape-1", ZERO), Site(), inputs, {})
        want = PartialShape.of(expected)
        assert all(a.same(b) for a, b in zip(found.shape, want, strict=True)), f"{found.shape} {want}"


def test_left_beside_zero_is_1(ov: Any, oracle: Oracle):
    data = ov.opset1.parameter([0, 4], ov.Type.f32)
    node = ov.opset1.reshape(data, ov.opset1.constant(i64(0, -1)), special_zero=False)
    same_as_openvino(oracle, ov.Model([node], [data], "reshape"), [arange(0, 4)])


def test_a_shape_seen_by_the_run_only():
    with pytest.raises(Refused) as caught:
        operation("Reshape-1", PLAIN).run(arange(2, 3), i64(5))
    assert caught.value.label == "C4"
