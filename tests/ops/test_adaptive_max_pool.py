"""AdaptiveMaxPool-8."""

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Value
from irrun.ops.adaptive_max_pool import AdaptiveMaxPool
from kit import *

_INF = float("inf")
_I32 = {"index_element_type": "i32"}

VALUES = [
    Values("overlapping", "AdaptiveMaxPool-8", [[[[5.0, 2, 3, 4, 1]]], i64(3)], ([[[5, 4, 4]]], [[[0, 3, 3]]])),
    Values("more-windows-than-elements", "AdaptiveMaxPool-8", [[[[3.0, 2, 1]]], i64(5)], ([[[3, 3, 2, 2, 1]]], [[[0, 0, 1, 1, 2]]])),
    Values("2d", "AdaptiveMaxPool-8", [[[[[1.0, 2, 3], [6, 5, 4]]]], i64(1, 2)], ([[[[6, 5]]]], np.array([[[[3, 4]]]], np.int32)), _I32),
    Values("places-within-a-channel", "AdaptiveMaxPool-8", [[[[1.0, 2], [4, 3]], [[5, 6], [8, 7]]], i64(1)], ([[[2], [4]], [[6], [8]]], [[[1], [0]], [[1], [0]]])),
    Values("ties", "AdaptiveMaxPool-8", [[[[[1.0, 2], [2, 2]]]], i64(1, 1)], ([[[[2]]]], [[[[1]]]])),
    Values("nan", "AdaptiveMaxPool-8", [[[[1, 1, np.nan, 2, 2, -_INF]]], i64(3)], ([[[1, np.nan, 2]]], [[[0, 2, 4]]])),
    Values("minus-infinity", "AdaptiveMaxPool-8", [[[[1, -_INF, -_INF]]], i64(3)], ([[[1, -_INF, -_INF]]], [[[0, 1, 2]]])),
    Values("bf16", "AdaptiveMaxPool-8", [np.array([[[1, 3, 2]]], ml_dtypes.bfloat16), i64(1)], (np.array([[[3]]], ml_dtypes.bfloat16), [[[1]]])),
    Values("no-windows", "AdaptiveMaxPool-8", [np.ones((1, 2, 3, 4)), i64(0, 2)], (np.ones((1, 2, 0, 2)), np.ones((1, 2, 0, 2), int))),
    Values("no-batch", "AdaptiveMaxPool-8", [np.ones((0, 2, 3)), i64(2)], (np.ones((0, 2, 2)), np.ones((0, 2, 2), int))),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "AdaptiveMaxPool-8", ["f32[1,3,32,32]", "i64{16,16}"], ["f32[1,3,16,16]", "i64[1,3,16,16]"]),
    Shapes("dynamic", "AdaptiveMaxPool-8", ["f32[?,?,?]", "i32{7}"], ["f32[?,?,7]", "i32[?,?,7]"], _I32),
    Shapes("unknown-shape", "AdaptiveMaxPool-8", ["f32[1,3,9,9]", "i64[?]"], ["f32[1,3,?,?]", "i64[1,3,?,?]"]),
    Shapes("unknown-rank", "AdaptiveMaxPool-8", ["f32[...]", "i64{7,8}"], ["f32[?,?,7,8]", "i64[?,?,7,8]"]),
]

REFUSALS = [
    Refusal("c1-rank-2", "AdaptiveMaxPool-8", ["f32[1,3]", "i64{}"]),
    Refusal("c2-entries", "AdaptiveMaxPool-8", ["f32[1,3,4]", "i64{1,1}"]),
    Refusal("c2-negative", "AdaptiveMaxPool-8", ["f32[1,3,4]", "i64{-1}"]),
    Refusal("c3-nothing", "AdaptiveMaxPool-8", ["f32[1,3,0]", "i64{1}"]),
    Refusal("c4-index-type", "AdaptiveMaxPool-8", ["f32[1,3,4]", "i64{1}"], {"index_element_type": "u32"}),
    Refusal("ir301-float-shape", "AdaptiveMaxPool-8", ["f32[1,3,4]", "f32[1]"]),
    Refusal("ir301-integers", "AdaptiveMaxPool-8", ["i64[1,3,4]", "i64{1}"]),
]

_MODELS = [
    ((2, 3, 7), (3,)),
    ((1, 2, 3), (5,)),
    ((2, 3, 7, 8), (2, 3)),
    ((1, 3, 6, 5), (1, 1)),
    ((1, 3, 6, 5), (6, 7)),
    ((2, 1, 4, 5, 6), (3, 2, 4)),
]

# OpenVINO: the CPU plugin does not compile i64 places
CASES = [
    Case(f"{shape}-{wanted}", "AdaptiveMaxPool-8", [random(*shape), i64(*wanted)], _I32, shapes=[1])
    for shape, wanted in _MODELS
] + [
    Case(np.dtype(t).name, "AdaptiveMaxPool-8", [random(1, 2, 7, dtype=t), i64(3)], _I32, shapes=[1])
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
    op, x = operation("AdaptiveMaxPool-8"), random(*data, dtype=dtype)
    assert isinstance(op, AdaptiveMaxPool)
    x.flat[7::911] = np.nan
    inputs = Value.of(x).reshaped(data), Value.of(i64(*sizes))
    kernel, (expected, _) = kernel_of(op, *inputs), op.run(x, i64(*sizes))
    np.testing.assert_array_equal(filled(kernel, expected.shape, dtype, x, i64(*sizes)), expected)
    for got, both in zip(kernel_of(op, *inputs, outputs=2).call(x, i64(*sizes)), op.run(x, i64(*sizes))):
        np.testing.assert_array_equal(got, both)


def test_prepared_types():
    op, x = operation("AdaptiveMaxPool-8"), random(1, 2, 5, 6, dtype=np.float16)
    assert isinstance(op, AdaptiveMaxPool)
    got = kernel_of(op, Value.of(x), Value.of(i64(2, 3))).call(x, i64(2, 3))
    np.testing.assert_array_equal(got, op.run(x, i64(2, 3))[0])
    assert got.dtype == np.float16
