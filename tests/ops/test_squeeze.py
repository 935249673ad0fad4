"""Squeeze-1 and Squeeze-15."""

from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from kit import *
from oracle import Oracle

VERSIONS = ("Squeeze-1", "Squeeze-15")
SKIP = {"allow_axis_skip": True}

VALUES = [
    Values("spec-1", "Squeeze-1", [[[[[1, 2]]], [[[3, 4]]], [[[5, 6]]]], i64(1, 2)], [[1, 2], [3, 4], [5, 6]]),
    Values("spec-2", "Squeeze-1", [[7], i64(0)], 7),
    Values("negative", "Squeeze-15", [[[[1], [2]]], i64(-1)], [[1, 2]]),
    Values("scalar-axis", "Squeeze-15", [[[[1], [2]]], np.array(0, np.int64)], [[1], [2]]),
    Values("no-axes", "Squeeze-1", [[[[1], [2]]]], [1, 2]),
    Values("empty-axes", "Squeeze-1", [[[[1], [2]]], i64()], [1, 2]),
    Values("twice", "Squeeze-15", [[[[1], [2]]], i64(0, -3, 0)], [[1], [2]]),
    Values("skips", "Squeeze-15", [[[[1], [2]]], i64(0, 1)], [[1], [2]], SKIP),
    Values("scalar", "Squeeze-1", [7, i64(0)], 7),
]

SHAPES = [
    Shapes(f"{version}-{id}", version, inputs, expected)
    for version in VERSIONS
    for id, inputs, expected in [
        ("spec-1", ["f32[1,3,1,2]", "i64{0,2}"], "f32[3,2]"),
        ("spec-2", ["f32[1]", "i64{0}"], "f32[]"),
        ("ignores-other-dims", ["f32[1,3,1]", "i64{0,1}"], "f32[3,1]"),
        ("takes-unknown-for-1", ["f32[?,?,3]", "i64{0}"], "f32[?,3]"),
        ("interval-without-1", ["f32[2..8,1]", "i64{0,1}"], "f32[2..8]"),
        ("all-known", ["f32[1,3,2..8]"], "f32[3,2..8]"),
        ("all-unknown", ["f32[1,3,?]"], "f32[...]"),
        ("empty-axes-unknown", ["f32[1,3,?]", "i64[0]{}"], "f32[...]"),
        ("unknown-axes", ["f32[1,3]", "i64[1]"], "f32[...]"),
        ("unknown-axes-nothing-to-drop", ["f32[2,3]", "i64[?]"], "f32[2,3]"),
        ("unknown-rank", ["f32[...]", "i64{0}"], "f32[...]"),
        ("carries-contents", ["i64[1]{?}", "i64{0}"], "i64[]{?}"),
        ("carries-contents-all", ["i64[1,2]{?,3}"], "i64{?,3}"),
    ]
] + [
    Shapes("skip-known", "Squeeze-15", ["f32[1,3,?]", "i64{0,1}"], "f32[3,?]", SKIP),
    Shapes("skip-unknown", "Squeeze-15", ["f32[1,?]", "i64{0,1}"], "f32[...]", SKIP),
]

REFUSALS = [
    Refusal(f"{id}-{version}", version, inputs)
    for version in VERSIONS
    for id, inputs in [
        ("c1-2d", ["f32[1,3]", "i64[1,1]"]),
        ("c2-outside", ["f32[1,3]", "i64{2}"]),
        ("c2-negative", ["f32[1,3]", "i64{0,-3}"]),
        ("c2-scalar", ["f32[]", "i64{1}"]),
        ("ir301-float-axes", ["f32[1,3]", "f32[1]"]),
    ]
]

CASES = [
    Case(f"{version}-{np.dtype(t).name}-{list(shape)}-{axes}", version, [random(*shape, dtype=t), i64(*axes)], shapes=[1])
    for shape, axes in [
        ((1,), (0,)), ((1, 0), (0,)), ((1, 3), (-2,)), ((1, 3, 1, 2), (0, 2)), ((2, 1, 3, 1, 1), (1, -1, 3)), ((1, 1, 1), ()),
    ]
    for version, t in [*(("Squeeze-1", t) for t in (*NUMERIC, np.bool_)), ("Squeeze-15", np.float32)]
] + [
    case
    for version in VERSIONS
    for case in (
        Case(f"{version}-no-axes", version, [arange(1, 3, 1)]),
        Case(f"{version}-scalar-axis", version, [arange(1, 3, 1), np.array(-1, np.int32)], shapes=[1]),
        Case(f"{version}-scalar", version, [np.array(3, np.float32), i64(0)], constants=[1]),
    )
] + [
    # OpenVINO: the CPU plugin refuses the unknown rank that follows
    Case("skip", "Squeeze-15", [arange(1, 3, 1), i64(0, 1)], SKIP, shapes=[1], how="core"),
]  # fmt: skip


@pytest.mark.parametrize("opset", ["opset1", "opset15"])
def test_other_dims_are_ignored(opset: str, ov: Any, oracle: Oracle):
    data = ov.opset1.parameter([1, 3, 1], ov.Type.f32)
    node = getattr(ov, opset).squeeze(data, ov.opset1.constant(i64(0, 1)))
    same_as_openvino(oracle, ov.Model([node], [data], "squeeze"), [arange(1, 3, 1)])


@pytest.mark.parametrize("shape", ["...", "?,?,?,?", "1,?,?,3"])
@pytest.mark.parametrize("following", ["SoftMax", "ReduceSum", "ReLU", "Concat", "Unsqueeze"])
def test_plans_do_not_assume_that_squeeze_removes_an_open_dim(shape: str, following: str) -> None:
    """A check assumes that the dim is 1. A kernel that was prepared for this rank would fail, or use another axis."""
    x = b.parameter(shape, "f32", name="x")
    squeezed = b.Squeeze(x, [1], opset=1)
    node, expected = {
        "SoftMax": (b.SoftMax(squeezed, opset=8, axis=-1), lambda a: np.exp(a) / np.exp(a).sum(-1, keepdims=True)),
        "ReduceSum": (b.ReduceSum(squeezed, [-1], keep_dims=False), lambda a: a.sum(-1)),
        "ReLU": (b.ReLU(squeezed), lambda a: a),
        "Concat": (b.Concat(squeezed, squeezed, axis=-1), lambda a: np.concatenate([a, a], -1)),
        "Unsqueeze": (b.Unsqueeze(squeezed, [-1]), lambda a: a[..., None]),
    }[following]
    run = irrun.compile(b.model([node]), exact=False)
    for size in (2, 6, 2, 6, 1, 2):  # dims that come again get plans of their own
        data = np.linspace(0, 1, 6 * size, dtype=np.float32).reshape(1, size, 2, 3)
        left = data if size > 1 else data[:, 0]
        np.testing.assert_allclose(run([data]).arrays[0], expected(left), rtol=1e-6)
