"""ReduceSum-1, ReduceMean-1, ReduceMax-1, ReduceMin-1, ReduceProd-1, ReduceL1-4, ReduceL2-4, ReduceLogicalAnd-1
and ReduceLogicalOr-1.
"""

import ml_dtypes
import numpy as np

from kit import *

_NUMERIC_OPS = ["ReduceSum-1", "ReduceMean-1", "ReduceMax-1", "ReduceMin-1", "ReduceProd-1", "ReduceL1-4", "ReduceL2-4"]
_LOGICAL_OPS = ["ReduceLogicalAnd-1", "ReduceLogicalOr-1"]
_OPS = _NUMERIC_OPS + _LOGICAL_OPS
_DATA = [[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]]
_NAN, _INF = np.nan, np.inf


VALUES = [
    Values("sum", "ReduceSum-1", [f32(_DATA), i64(1)], f32([2, 7])),
    Values("sum-keep-dims", "ReduceSum-1", [f32(_DATA), i64(0)], f32([[-3, 3, 9]]), {"keep_dims": True}),
    Values("sum-all", "ReduceSum-1", [f32(_DATA), i64(0, 1)], f32(9)),
    Values("sum-scalar-axis", "ReduceSum-1", [f32(_DATA), np.array(-1)], f32([2, 7])),
    Values("mean", "ReduceMean-1", [f32(_DATA), i64(-2)], f32([-1.5, 1.5, 4.5])),
    Values("max", "ReduceMax-1", [f32(_DATA), i64(1)], f32([3, 6])),
    Values("min", "ReduceMin-1", [f32(_DATA), i64(1)], f32([-2, -4])),
    Values("prod", "ReduceProd-1", [f32(_DATA), i64(1)], f32([-6, -120])),
    Values("l1", "ReduceL1-4", [f32(_DATA), i64(1)], f32([6, 15])),
    Values("l2", "ReduceL2-4", [f32([[3, -4], [0, 2]]), i64(1)], f32([5, 2])),
    Values("and", "ReduceLogicalAnd-1", [[[True, False], [True, True]], i64(1)], [False, True]),
    Values("or", "ReduceLogicalOr-1", [[[True, False], [False, False]], i64(1)], [True, False]),
    # integers are exact and wrap in their own type
    Values("sum-u8-wraps", "ReduceSum-1", [np.array([200, 100, 4], np.uint8), i64(0)], np.uint8(48)),
    Values("sum-i64", "ReduceSum-1", [i64(2**62, 2**61 + 1, 1), i64(0)], np.int64(2**62 + 2**61 + 2)),
    Values("prod-i64", "ReduceProd-1", [i64(2**31, 2**31, 1), i64(0)], np.int64(2**62)),
    Values("prod-i64-wraps", "ReduceProd-1", [i64(2**31, 2**31, 2), i64(0)], np.int64(-(2**63))),
    Values("max-i64", "ReduceMax-1", [i64(2**62 + 1, 2**62), i64(0)], np.int64(2**62 + 1)),
    Values("l1-u64", "ReduceL1-4", [np.array([2**63, 1], np.uint64), i64(0)], np.uint64(2**63 + 1)),
    Values("mean-i32", "ReduceMean-1", [np.array([[-7, 3], [7, -3]], np.int32), i64(1)], np.array([-2, 2], np.int32)),
    Values("l2-i32", "ReduceL2-4", [np.array([[-3, 4], [0, 7]], np.int32), i64(1)], np.array([5, 7], np.int32)),
    Values("mean-truncates", "ReduceMean-1", [np.array([[-7, 2], [7, -2]], np.int32), i64(1)], np.array([-2, 2], np.int32)),
    *[Values(f"mean-64-bits-{i}", "ReduceMean-1", [np.array(numbers, dtype), i64(0)], np.array(exact, dtype), rtol=0)
      for i, (numbers, dtype, exact) in enumerate([
          ([2**63 - 1] * 2, np.int64, 2**63 - 1), ([-(2**63)] * 3, np.int64, -(2**63)), ([2**64 - 1] * 2, np.uint64, 2**64 - 1),
          ([2**63 - 1, -(2**63)], np.int64, 0), ([-(2**62), -1], np.int64, -(2**61)), ([2**63, 1], np.uint64, 2**62),
      ])],
    Values("mean-u8-is-exact", "ReduceMean-1", [np.array([200, 100, 4], np.uint8), i64(0)], np.uint8(101)),
    Values("l2-truncates", "ReduceL2-4", [np.array([1, 2], np.int32), i64(0)], np.int32(2)),
    Values("sum-i4", "ReduceSum-1", [np.array([7, -2, -6], ml_dtypes.int4), i64(0)], np.array(-1, ml_dtypes.int4)),
    # the small floats round once
    Values("sum-f16", "ReduceSum-1", [np.array([2048, 1, 1], np.float16), i64(0)], np.float16(2050)),
    Values("mean-f16", "ReduceMean-1", [np.array([60000, 60000], np.float16), i64(0)], np.float16(60000)),
    Values("l2-f16", "ReduceL2-4", [np.array([300, 400], np.float16), i64(0)], np.float16(500)),
    Values("sum-bf16", "ReduceSum-1", [np.array([256, 1, 1], ml_dtypes.bfloat16), i64(0)], np.array(258, ml_dtypes.bfloat16)),
    Values("max-f8", "ReduceMax-1", [np.array([1, 3], ml_dtypes.float8_e4m3fn), i64(0)], np.array(3, ml_dtypes.float8_e4m3fn)),
    Values("sum-f64", "ReduceSum-1", [np.array([1.0, 2**-40]), i64(0)], np.float64(1 + 2**-40), rtol=0),
    # NaN and Inf as in numpy
    *(Values(f"nan-{o}", o, [f32([1, _NAN, 3]), i64(0)], f32(_NAN)) for o in _NUMERIC_OPS),
    Values("max-inf", "ReduceMax-1", [f32([-_INF, -_INF]), i64(0)], f32(-_INF)),
    Values("min-inf", "ReduceMin-1", [f32([_INF, _INF]), i64(0)], f32(_INF)),
    # OpenVINO: without axes, ReduceL1 and ReduceL2 take magnitudes in the core kernel; the specification says identity
    *(Values(f"no-axes-{o}", o, [f32(_DATA), i64()], f32(_DATA)) for o in _NUMERIC_OPS),
    *(Values(f"no-axes-{o}", o, [[True, False], i64()], [True, False]) for o in _LOGICAL_OPS),
    Values("no-axes-scalar", "ReduceL1-4", [f32(-3), i64()], f32(-3)),
    # no elements
    *(Values(f"empty-{o}", o, [np.zeros((2, 0), np.float32), i64(1)], f32([n, n]))
      for o, n in zip(_NUMERIC_OPS, [0, 0, -_INF, _INF, 1, 0, 0])),
    *(Values(f"empty-i32-{o}", o, [np.zeros((2, 0), np.int32), i64(1)], np.array([n, n], np.int32))
      for o, n in zip(_NUMERIC_OPS, [0, 0, -(2**31), 2**31 - 1, 1, 0, 0])),
    Values("empty-and", "ReduceLogicalAnd-1", [np.zeros((1, 0), bool), i64(1)], [True]),
    Values("empty-or", "ReduceLogicalOr-1", [np.zeros((1, 0), bool), i64(1)], [False]),
]  # fmt: skip

SHAPES = [
    Shapes("spec-keep-dims", "ReduceMean-1", ["f32[6,12,10,24]", "i64{2,3}"], "f32[6,12,1,1]", {"keep_dims": True}),
    Shapes("spec-2-axes", "ReduceMean-1", ["f32[6,12,10,24]", "i64{2,3}"], "f32[6,12]"),
    Shapes("spec-1-axis", "ReduceMax-1", ["f32[6,12,10,24]", "i64{1}"], "f32[6,10,24]"),
    Shapes("spec-negative", "ReduceLogicalAnd-1", ["boolean[6,12,10,24]", "i64{-2}"], "boolean[6,12,24]"),
    Shapes("dims-kept", "ReduceSum-1", ["f32[?,2..5,3]", "i64{2}"], "f32[?,2..5]"),
    Shapes("unknown-axis", "ReduceSum-1", ["f32[2,5,3]", "i64[1]"], "f32[2..5,3..5]"),
    Shapes("unknown-scalar-axis", "ReduceSum-1", ["f32[2,5,3]", "i64[]"], "f32[2..5,3..5]"),
    Shapes("unknown-axis-kept", "ReduceSum-1", ["f32[2,5,?]", "i64[1]"], "f32[1..2,1..5,?]", {"keep_dims": True}),
    Shapes("all-axes", "ReduceSum-1", ["f32[2,?]", "i64[2]"], "f32[]"),
    Shapes("all-axes-kept", "ReduceSum-1", ["f32[2,?]", "i64[2]"], "f32[1,1]", {"keep_dims": True}),
    Shapes("number-of-axes-unknown", "ReduceSum-1", ["f32[2,5]", "i64[?]"], "f32[...]"),
    Shapes("number-of-axes-unknown-kept", "ReduceSum-1", ["f32[2,5]", "i64[?]"], "f32[1..2,1..5]", {"keep_dims": True}),
    Shapes("no-axes", "ReduceSum-1", ["f32[2,?]", "i64{}"], "f32[2,?]"),
    Shapes("unknown-rank", "ReduceSum-1", ["f32[...]", "i64{1}"], "f32[...]"),
    Shapes("unknown-axes-rank", "ReduceSum-1", ["f32[2,3]", "i64[...]"], "f32[...]"),
    Shapes("scalar", "ReduceL1-4", ["f32[]", "i64{0}"], "f32[]"),
    Shapes("prod-carries", "ReduceProd-1", ["i64{2,1..4,3}", "i64{0}"], "i64[]{6..24}"),
    Shapes("prod-carries-unknown", "ReduceProd-1", ["i64{2,?,3}", "i64{0}"], "i64[]{?}"),
    Shapes("sum-carries", "ReduceSum-1", ["i64{2,1..4,3}", "i64{0}"], "i64{6..9}", {"keep_dims": True}),
    Shapes("max-is-exact", "ReduceMax-1", ["i64{2,7,3}", "i64{0}"], "i64[]{7}"),
]

REFUSALS = [
    row
    for o in _OPS
    for data in ["boolean" if o in _LOGICAL_OPS else "f32"]
    for row in (
        Refusal(f"c1-{o}", o, [f"{data}[2,3]", "i64[1,1]"]),
        Refusal(f"c2-{o}", o, [f"{data}[2,3]", "i64{2}"]),
        Refusal(f"c2-negative-{o}", o, [f"{data}[2,3]", "i32{-3}"]),
        Refusal(f"c3-{o}", o, [f"{data}[2,3]", "i64{0,-2}"]),
        Refusal(f"c3-too-many-{o}", o, [f"{data}[2,3]", "i64[3]"]),
        Refusal(f"ir301-{o}", o, ["f32[2,3]" if data == "boolean" else "boolean[2,3]", "i64{1}"]),
        Refusal(f"ir301-axes-{o}", o, [f"{data}[2,3]", "f32[1]"]),
    )
]

_REDUCED = [
    ((3,), (0,)), ((2, 3), (0,)), ((2, 3), (-1,)), ((2, 3, 4), (0, 2)), ((2, 3, 4), (1,)), ((2, 3, 4, 5), (2, 3)),
    ((2, 3, 4, 5), (0, 1, 2, 3)), ((2, 1, 3, 2, 2), (-1, 1, 0)), ((0, 3), (1,)), ((3, 0), (1,)), ((2, 0, 3), (0,)),
]  # fmt: skip


def _small(o, data):
    """The CPU plugin saturates where products of integers leave the type."""
    return data % 2 if o in ("ReduceProd-1", "ReduceL2-4") and data.dtype.kind in "iu" else data


def _identity(o, shape, axes, keep):
    reduce = np.max if o == "ReduceMax-1" else np.min
    return reduce(np.zeros(shape, np.float32), axes, keepdims=keep, initial=-_INF if o == "ReduceMax-1" else _INF)


CASES = [
    Case(
        f"{o}-{np.dtype(t).name}-{list(shape)}-{list(axes)}-{keep}",
        o,
        [_small(o, random(*shape, dtype=t)), i64(*axes)],
        {"keep_dims": keep},
        shapes=[1],
        # OpenVINO: the CPU plugin gives the least or largest finite number for no elements
        expected=_identity(o, shape, axes, keep) if o in ("ReduceMax-1", "ReduceMin-1") and shape == (3, 0) else None,
    )
    for o in _NUMERIC_OPS
    for number, (shape, axes) in enumerate(_REDUCED)
    for t in (NUMERIC if number in (3, 4) else NUMERIC[:1])
    for keep in ([False, True] if t is np.float32 else [number == 3])
] + [
    Case(f"{o}-{list(shape)}-{list(axes)}-{keep}", o, [random(*shape, dtype=bool), i64(*axes)], {"keep_dims": keep}, shapes=[1])
    for o in _LOGICAL_OPS for shape, axes in _REDUCED for keep in (False, True)
] + [
    Case(f"{o}-scalar", o, [f32(-3), i64(0)], {"keep_dims": False}, shapes=[1]) for o in _NUMERIC_OPS
] + [
    Case("i8-axis", "ReduceSum-1", [random(2, 3), np.array(1, np.int8)], {"keep_dims": False}, shapes=[1]),
    Case("default", "ReduceSum-1", [random(2, 3), i64(1)], shapes=[1]),
]  # fmt: skip
