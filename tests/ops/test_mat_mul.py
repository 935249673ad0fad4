"""MatMul-1."""

import ml_dtypes
import numpy as np
import pytest

from irrun.kernels.matmul import matmul
from kit import *

BF16 = ml_dtypes.bfloat16
BIG = 2**53 + 1  # odd: no float64 holds it

VALUES = [
    Values("matrix", "MatMul-1", [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [[19, 22], [43, 50]]),
    Values("dot", "MatMul-1", [[1, 2, 3], [4, 5, 6]], 32),
    Values("dot-ignores-transposes", "MatMul-1", [[1, 2, 3], [4, 5, 6]], 32, {"transpose_a": True, "transpose_b": True}),
    Values("vector-matrix", "MatMul-1", [[1, 2], [[1, 2, 3], [4, 5, 6]]], [9, 12, 15]),
    Values("vector-transposed-matrix", "MatMul-1", [[1, 2], [[1, 4], [2, 5], [3, 6]]], [9, 12, 15], {"transpose_b": True}),
    Values("matrix-vector", "MatMul-1", [[[1, 2, 3], [4, 5, 6]], [1, 0, 2]], [7, 16]),
    Values("batch", "MatMul-1", [[[[1]], [[2]]], [[[3, 4]]]], [[[3, 4]], [[6, 8]]]),
    Values("i64-beyond-2**53", "MatMul-1", [[[BIG, 1]], [[1], [1]]], [[BIG + 1]]),
    Values("i64-sum-beyond-2**53", "MatMul-1", [[[2**30, 1]], [[2**30], [1]]], [[2**60 + 1]]),
    Values("i64-wraps", "MatMul-1", [[[2**62]], [[4]]], [[0]]),
    Values("i32-wraps", "MatMul-1", [np.array([[2**30, 1]], np.int32), np.array([[4], [1]], np.int32)], np.array([[1]], np.int32)),
    Values("u64", "MatMul-1", [np.array([[2**63]], np.uint64), np.array([[1]], np.uint64)], np.array([[2**63]], np.uint64)),
    # OpenVINO: saturates u8 and i8
    Values("u8-wraps", "MatMul-1", [np.array([[100, 100]], np.uint8), np.array([[2], [2]], np.uint8)], np.array([[144]], np.uint8)),
    Values("i4-wraps", "MatMul-1", [np.array([[3, 3]], ml_dtypes.int4), np.array([[2], [1]], ml_dtypes.int4)], np.array([[-7]], ml_dtypes.int4)),
    # 2048 + 1 is not an f16, 2048 + 2 is: only one rounding, after the sum
    Values("f16-rounds-once", "MatMul-1", [np.array([[2048, 1, 1]], np.float16), np.ones((3, 1), np.float16)], np.array([[2050]], np.float16)),
    Values("bf16-rounds-once", "MatMul-1", [np.array([[256, 1, 1]], BF16), np.ones((3, 1), BF16)], np.array([[258]], BF16)),
    Values("f16-overflows", "MatMul-1", [np.array([[60000, 60000]], np.float16), np.ones((2, 1), np.float16)], np.array([[np.inf]], np.float16)),
    Values("f32-nan", "MatMul-1", [np.array([[np.nan, 1], [1, 2]], np.float32), np.ones((2, 1), np.float32)], np.array([[np.nan], [3]], np.float32)),
    Values("no-columns", "MatMul-1", [np.ones((2, 0), np.float32), np.ones((0, 3), np.float32)], np.zeros((2, 3), np.float32)),
    Values("no-rows", "MatMul-1", [np.ones((4, 0, 2), np.int64), np.ones((2, 3), np.int64)], np.zeros((4, 0, 3), np.int64)),
]  # fmt: skip

SHAPES = [
    Shapes("spec-vector-matrix", "MatMul-1", ["f32[1024]", "f32[1024,1000]"], "f32[1000]"),
    Shapes("spec-matrix-vector", "MatMul-1", ["f32[1000,1024]", "f32[1024]"], "f32[1000]"),
    Shapes("spec-batch-1", "MatMul-1", ["f32[1,1024]", "f32[1024,1000]"], "f32[1,1000]"),
    Shapes("spec-embedded-transposition", "MatMul-1", ["f32[1024]", "f32[1000,1024]"], "f32[1000]", {"transpose_b": True}),
    Shapes("spec-broadcast", "MatMul-1", ["f32[5,10,1024]", "f32[1024,1000]"], "f32[5,10,1000]"),
    Shapes("dot", "MatMul-1", ["f32[7]", "f32[7]"], "f32[]"),
    Shapes("transpose-a", "MatMul-1", ["f32[2,3,4]", "f32[3,5]"], "f32[2,4,5]", {"transpose_a": True}),
    Shapes("batch-of-both", "MatMul-1", ["f32[2,1,3,4]", "f32[5,4,6]"], "f32[2,5,3,6]"),
    Shapes("dynamic", "MatMul-1", ["f32[?,?,768]", "f32[768,3072]"], "f32[?,?,3072]"),
    Shapes("interval-batch", "MatMul-1", ["f32[1..8,3,4]", "f32[8,?,6]"], "f32[8,3,6]"),
    Shapes("unknown-rank", "MatMul-1", ["f32[...]", "f32[768,3072]"], "f32[...]"),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-scalar-a", "MatMul-1", ["f32[]", "f32[3]"]),
    Refusal("c1-scalar-b", "MatMul-1", ["f32[...]", "f32[]"]),
    Refusal("c2-inner", "MatMul-1", ["f32[2,3]", "f32[4,5]"]),
    Refusal("c2-transposed", "MatMul-1", ["f32[2,3]", "f32[3,5]"], {"transpose_b": True}),
    Refusal("c2-one-is-not-broadcast", "MatMul-1", ["f32[2,1]", "f32[4,5]"]),
    Refusal("c3-batch", "MatMul-1", ["f32[2,3,4]", "f32[3,4,5]"]),
    Refusal("ir301-boolean", "MatMul-1", ["boolean[2,3]", "boolean[3,2]"]),
    Refusal("ir302-types", "MatMul-1", ["f32[2,3]", "f16[3,2]"]),
]

_PAIRS = [
    ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((3,), (2, 3, 4)), ((2, 5, 3), (3,)),
    ((2, 5, 3), (3, 4)), ((5, 3), (2, 3, 4)), ((2, 1, 5, 3), (4, 3, 2)), ((2, 2, 2, 5, 3), (2, 1, 3, 2)),
    ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0, 2, 3), (3, 2)),
]  # fmt: skip


def _turned(shape: tuple[int, ...], turn: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if turn and len(shape) > 1 else shape


def _how(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    # OpenVINO: the CPU plugin does not compile most products of no elements
    return "core" if 0 in a + b else "cpu"


CASES = [
    Case(
        f"{np.dtype(t).name}-{a}-{b}", "MatMul-1", [random(*a, dtype=t), random(*b, dtype=t, seed=1)], {}, how=_how(a, b)
    )
    for a, b in _PAIRS for t in NUMERIC
    # OpenVINO: saturates u8
    if t != np.uint8
] + [
    Case(
        f"transposed-{ta:d}{tb:d}-{a}-{b}",
        "MatMul-1",
        [random(*_turned(a, ta)), random(*_turned(b, tb), seed=1)],
        {"transpose_a": ta, "transpose_b": tb},
        how=_how(a, b),
    )
    for a, b in _PAIRS for ta in (False, True) for tb in (False, True) if ta or tb
] + [
    Case("u8", "MatMul-1", [arange(2, 3, dtype=np.uint8), arange(3, 2, dtype=np.uint8)], {}),
    Case("f64", "MatMul-1", [random(3, 4, dtype=np.float64), random(4, 3, dtype=np.float64)], {}),
    # OpenVINO: the CPU plugin computes i64 in f32 and gives 2147483520
    Case("i64-beyond-f32", "MatMul-1", [np.array([[2**31 - 1, 1]]), np.array([[3], [2]])], {}, how="core"),
    Case("weights", "MatMul-1", [random(2, 7, 8), random(5, 8)], {"transpose_b": True}, constants=[1]),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int32, np.int64])
def test_views(dtype):
    """Inputs of any strides give what contiguous ones do."""
    whole, b = random(6, 6, 8, dtype=dtype), random(6, 8, dtype=dtype, seed=1).T
    for a in (whole[:, ::2], whole[::-1], whole.swapaxes(0, 1), np.broadcast_to(whole[:1], whole.shape)):
        straight = matmul(np.ascontiguousarray(a), np.ascontiguousarray(b))
        np.testing.assert_allclose(matmul(a, b), straight, rtol=1e-5)
        np.testing.assert_allclose(matmul(np.ascontiguousarray(a[0]), b), straight[0], rtol=1e-5)
