"""AdaptiveAvgPool-8."""

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.opdef import Value
from kit import *

VALUES = [
    Values("overlapping", "AdaptiveAvgPool-8", [[[[1.0, 2, 3, 4, 5]]], i64(3)], [[[1.5, 3, 4.5]]]),
    Values("more-windows-than-elements", "AdaptiveAvgPool-8", [[[[1.0, 2, 3]]], i64(5)], [[[1, 1.5, 2, 2.5, 3]]]),
    Values("2d", "AdaptiveAvgPool-8", [arange(1, 2, 2, 3, start=1), i64(1, 2)], np.array([[[[3, 4]], [[9, 10]]]], np.float32)),
    Values("f16-rounds-once", "AdaptiveAvgPool-8", [np.array([[[2048, 1, 1, 2]]], np.float16), i64(1)], np.array([[[513]]], np.float16)),
    Values("bf16", "AdaptiveAvgPool-8", [np.array([[[256, 1, 3, 4]]], ml_dtypes.bfloat16), i64(1)], np.array([[[66]]], ml_dtypes.bfloat16)),
    Values("nan", "AdaptiveAvgPool-8", [[[[1.0, np.nan, 2, 4]]], i64(2)], [[[np.nan, 3]]]),
    Values("no-windows", "AdaptiveAvgPool-8", [np.ones((1, 2, 3, 4)), i64(0, 2)], np.ones((1, 2, 0, 2))),
    Values("no-batch", "AdaptiveAvgPool-8", [np.ones((0, 2, 3)), i64(2)], np.ones((0, 2, 2))),
    Values("nothing-of-nothing", "AdaptiveAvgPool-8", [np.ones((1, 2, 0)), i64(0)], np.ones((1, 2, 0))),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "AdaptiveAvgPool-8", ["f32[1,3,32,32]", "i64{16,16}"], "f32[1,3,16,16]"),
    Shapes("dynamic", "AdaptiveAvgPool-8", ["f32[?,?,?]", "i32{7}"], "f32[?,?,7]"),
    Shapes("partial-shape", "AdaptiveAvgPool-8", ["f32[1,3,9,9]", "i64{?,7}"], "f32[1,3,?,7]"),
    Shapes("unknown-shape", "AdaptiveAvgPool-8", ["f32[1,3,9,9]", "i64[?]"], "f32[1,3,?,?]"),
    Shapes("unknown-rank", "AdaptiveAvgPool-8", ["f32[...]", "i64{7,8}"], "f32[?,?,7,8]"),
    Shapes("unknown", "AdaptiveAvgPool-8", ["f32[...]", "i64[...]"], "f32[...]"),
]

REFUSALS = [
    Refusal("c1-rank-2", "AdaptiveAvgPool-8", ["f32[1,3]", "i64{}"]),
    Refusal("c1-rank-6", "AdaptiveAvgPool-8", ["f32[1,3,1,1,1,1]", "i64{1,1,1,1}"]),
    Refusal("c2-2d", "AdaptiveAvgPool-8", ["f32[1,3,4]", "i64[1,1]"]),
    Refusal("c2-entries", "AdaptiveAvgPool-8", ["f32[1,3,4]", "i64{1,1}"]),
    Refusal("c2-four-entries", "AdaptiveAvgPool-8", ["f32[...]", "i64{1,1,1,1}"]),
    Refusal("c2-negative", "AdaptiveAvgPool-8", ["f32[1,3,4]", "i64{-1}"]),
    Refusal("c3-nothing", "AdaptiveAvgPool-8", ["f32[1,3,0]", "i64{1}"]),
    Refusal("ir301-float-shape", "AdaptiveAvgPool-8", ["f32[1,3,4]", "f32[1]"]),
    Refusal("ir301-u8-shape", "AdaptiveAvgPool-8", ["f32[1,3,4]", "u8[1]"]),
    Refusal("ir301-integers", "AdaptiveAvgPool-8", ["i64[1,3,4]", "i64{1}"]),
]

_MODELS = [
    ((2, 3, 7), (3,)),
    ((1, 2, 3), (5,)),
    ((2, 3, 7, 8), (2, 3)),
    ((1, 3, 6, 5), (1, 1)),
    ((1, 3, 6, 5), (6, 7)),
    ((2, 1, 4, 5, 6), (3, 2, 4)),
]

CASES = [
    Case(f"{shape}-{wanted}", "AdaptiveAvgPool-8", [random(*shape), i64(*wanted)], shapes=[1])
    for shape, wanted in _MODELS
] + [
    Case(np.dtype(t).name, "AdaptiveAvgPool-8", [random(1, 2, 7, dtype=t), i64(3)], shapes=[1])
    for t in (np.float32, np.float16)
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("data", "sizes"),
    [
        ((2, 3, 9), (4,)),
        ((2, 60, 50, 47), (1, 1)),
        ((2, 3, 7, 8), (3, 10)),
        ((1, 2, 4, 5, 6), (2, 5, 4)),
        ((2, 3, 4, 5), (0, 2)),
    ],
)
def test_prepared(data, sizes, dtype):
    """The kernel by blocks does what ``run`` does."""
    op, x = operation("AdaptiveAvgPool-8"), random(*data, dtype=dtype)
    x.flat[7::911] = np.nan
    kernel, expected = kernel_of(op, Value.of(x).reshaped(data), Value.of(i64(*sizes))), op.run(x, i64(*sizes))
    np.testing.assert_allclose(filled(kernel, expected.shape, dtype, x, i64(*sizes)), expected, rtol=1e-5, atol=1e-6)


def test_prepared_types():
    op, x = operation("AdaptiveAvgPool-8"), random(1, 2, 5, 6, dtype=np.float16)
    got = kernel_of(op, Value.of(x), Value.of(i64(2, 3))).call(x, i64(2, 3))
    np.testing.assert_array_equal(got, op.run(x, i64(2, 3)))
    assert got.dtype == np.float16


@pytest.mark.parametrize("exact", [False, True])
def test_a_million_windows_of_three_elements(exact):
    """The few windows that differ are reduced once each, so that the timeout need not end the run."""
    model = b.model(b.AdaptiveAvgPool(b.parameter([1, 1, 2, 3], name="x"), i64(1, 1 << 20)))
    x = np.array([[[[1, 2, 4], [3, 4, 6]]]], np.float32)
    found = irrun.compile(model, exact=exact, timeout=2)(x).arrays[0].ravel()
    np.testing.assert_array_equal(np.unique(found), [2, 2.5, 3, 4, 5])
    places = np.arange(1 << 20)
    middle = (places * 3 // (1 << 20) == 1) & (-(-(places + 1) * 3 // (1 << 20)) == 2)
    np.testing.assert_array_equal(found[middle], 3)
