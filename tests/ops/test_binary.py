"""Add, Subtract, Multiply, Divide, Mod, FloorMod, Power, Maximum, Minimum, SquaredDifference."""

from typing import Any

import ml_dtypes
import numpy as np

from broadcasting import NUMPY, PDPD, pdpd, rule_refusals, rule_shapes
from kit import *

OPS = ("Add", "Subtract", "Multiply", "Divide", "Mod", "FloorMod", "Power", "Maximum", "Minimum", "SquaredDifference")

I32, I64, U8, F16 = np.int32, np.int64, np.uint8, np.float16
INF, NAN = np.inf, np.nan


def f(*numbers: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(numbers, dtype)


def i(*numbers: int, dtype: Any = np.int64) -> np.ndarray:
    return np.array(numbers, dtype)


_SIGNS = (i(-7, 7, -7, 7, 6), i(2, 2, -2, -2, -3))
_MOST = np.iinfo(np.int64).max

VALUES = [
    Values(f"rules-numpy-{a}-{b}", "Add-1", [arange(*a), arange(*b)], np.add(arange(*a), arange(*b)))
    for a, b, _ in NUMPY
] + [
    Values(f"rules-pdpd-{a}-{b}-{axis}", "Add-1", [arange(*a), arange(*b)], arange(*a) + arange(*b).reshape(aligned), pdpd(axis))
    for a, b, axis, aligned in PDPD
] + [
    Values("pdpd-beyond-trailing-1", "Add-1", [arange(2, 3), arange(3, 1)], arange(2, 3) + arange(3), pdpd(1)),
    Values("pdpd-not-commuted", "Subtract-1", [arange(2, 3), f(1, 2)], [[-1, 0, 1], [1, 2, 3]], pdpd(0)),
    Values("explicit-is-none", "Add-1", [f(1, 2), f(3, 4)], f(4, 6), {"auto_broadcast": "explicit"}),
    Values("add-wraps", "Add-1", [i(_MOST, -1), i(1, -1)], i(-_MOST - 1, -2)),
    Values("add-u8-wraps", "Add-1", [i(200, 1, dtype=U8), i(100, 1, dtype=U8)], i(44, 2, dtype=U8)),
    Values("add-i4", "Add-1", [i(7, -8, dtype=ml_dtypes.int4), i(1, 1, dtype=ml_dtypes.int4)], [-8, -7]),
    Values("add-beyond-2**53", "Add-1", [i(2**53), i(1)], i(2**53 + 1)),
    Values("add-bf16", "Add-1", [f(1, 256, dtype=ml_dtypes.bfloat16), f(2, 1, dtype=ml_dtypes.bfloat16)], [3, 256]),
    Values("add-f8", "Add-1", [f(1.5, dtype=ml_dtypes.float8_e4m3fn), f(2, dtype=ml_dtypes.float8_e4m3fn)], [3.5]),
    Values("subtract-u8-wraps", "Subtract-1", [i(1, dtype=U8), i(2, dtype=U8)], i(255, dtype=U8)),
    Values("multiply-wraps", "Multiply-1", [i(2**62, 3), i(2, -3)], i(-(2**63), -9)),
    # divide
    Values("divide-float", "Divide-1", [f(18, -1), f(8, 4)], f(2.25, -0.25)),
    Values("divide-float-by-0", "Divide-1", [f(1, -1, 0), f(0, 0, 0)], f(INF, -INF, NAN)),
    Values("divide-few-bits", "Divide-1", [f(3, -6, 1, 0.5, 4), f(2, 4, 0.5, -1, 4)], f(1.5, -1.5, 2, -0.5, 1)),
    Values("mod-few-bits", "Mod-1", [f(3, -3, 1.5, -1.5, 4), f(2, 2, -1, 1, 4)], f(1, -1, 0.5, -0.5, 0)),
    Values("floor-mod-few-bits", "FloorMod-1", [f(3, -3, 1.5, -1.5, 4), f(2, 2, -1, 1, 4)], f(1, 1, -0.5, 0.5, 0)),
    Values("power-few-bits", "Power-1", [f(2, -2, 0.5, 4, -1), f(2, 1, 1, 0.5, 3)], f(4, -2, 0.5, 2, -1)),
    Values("divide-f16-zero", "Divide-1", [f(1, dtype=F16), f(3, dtype=F16)], f(1 / 3, dtype=F16)),
    Values("divide-floors", "Divide-1", _SIGNS, i(-4, 3, 3, -4, -2)),
    Values("divide-floors-true", "Divide-1", _SIGNS, i(-4, 3, 3, -4, -2), {"m_pythondiv": True}),
    Values("divide-truncates", "Divide-1", _SIGNS, i(-3, 3, 3, -3, -2), {"m_pythondiv": False}),
    Values("divide-without-rest", "Divide-1", [i(-6, 6, 2**53 + 2), i(2, -3, 1)], i(-3, -2, 2**53 + 2), {"m_pythondiv": False}),
    Values("divide-exact", "Divide-1", [i(2**62 + 1), i(1)], i(2**62 + 1)),
    Values("divide-exact-truncates", "Divide-1", [i(-(2**62) - 1), i(2)], i(-(2**61)), {"m_pythondiv": False}),
    Values("divide-big-i32", "Divide-1", [i(0x40000140, 0x40000001, 8, 16, dtype=I32), i(2, 5, 4, 8, dtype=I32)], i(536871072, 214748365, 2, 2, dtype=I32)),
    Values("divide-integer-by-0", "Divide-1", [i(5, -5, 0), i(0, 0, 0)], i(0, 0, 0)),
    Values("divide-truncated-by-0", "Divide-1", [i(5, -5, 0), i(0, 0, 0)], i(0, 0, 0), {"m_pythondiv": False}),
    # OpenVINO: refuses the quotient that i64 cannot hold
    Values("divide-least-by--1", "Divide-1", [i(-(2**63)), i(-1)], i(-(2**63))),
    Values("divide-u64", "Divide-1", [i(2**64 - 1, dtype=np.uint64), i(2, dtype=np.uint64)], i(2**63 - 1, dtype=np.uint64)),
    Values("divide-i4", "Divide-1", [i(-7, 7, dtype=ml_dtypes.int4), i(2, 2, dtype=ml_dtypes.int4)], [-4, 3]),
    Values("divide-i4-truncates", "Divide-1", [i(-7, 7, dtype=ml_dtypes.int4), i(2, 2, dtype=ml_dtypes.int4)], [-3, 3], {"m_pythondiv": False}),
    # mod
    Values("mod-sign-of-dividend", "Mod-1", _SIGNS, i(-1, 1, -1, 1, 0)),
    Values("mod-float", "Mod-1", [f(-7.5, 7.5), f(2, -2)], f(-1.5, 1.5)),
    Values("mod-float-infinite", "Mod-1", [f(5), f(INF)], f(5)),
    Values("mod-float-by-0", "Mod-1", [f(1), f(0)], f(NAN)),
    Values("mod-by-0", "Mod-1", [i(5, -5), i(0, 0)], i(0, 0)),
    Values("mod-least-by--1", "Mod-1", [i(-(2**63)), i(-1)], i(0)),
    Values("mod-u4", "Mod-1", [i(13, dtype=ml_dtypes.uint4), i(5, dtype=ml_dtypes.uint4)], [3]),
    Values("floor-mod-sign-of-divisor", "FloorMod-1", _SIGNS, i(1, 1, -1, -1, 0)),
    Values("floor-mod-float", "FloorMod-1", [f(-7.5, 7.5), f(2, -2)], f(0.5, -0.5)),
    Values("floor-mod-float-by-0", "FloorMod-1", [f(1), f(0)], f(NAN)),
    Values("floor-mod-by-0", "FloorMod-1", [i(5, -5), i(0, 0)], i(0, 0)),
    # power
    Values("power-float", "Power-1", [f(4, -2, 0, INF, 0.5), f(-0.5, -3, 2, -1, INF)], f(0.5, -0.125, 0, 0, 0)),
    Values("power-without-value", "Power-1", [f(-2, 0, 0, INF), f(0.5, 0, -1, 0)], f(NAN, 1, INF, 1)),
    Values("power-exact", "Power-1", [i(3, -3, 10), i(39, 3, 18)], i(3**39, -27, 10**18)),
    Values("power-wraps", "Power-1", [i(3, 2, dtype=U8), i(6, 8, dtype=U8)], i(729 - 512, 0, dtype=U8)),
    Values("power-negative-exponent", "Power-1", [i(1, -1, -1, 5), i(-3, -3, -2, 2)], i(1, -1, 1, 25)),
    Values("power-fraction", "Power-1", [i(2, -2), i(-1, -1)], i(0, 0)),
    Values("power-i4", "Power-1", [i(2, -1, dtype=ml_dtypes.int4), i(2, -1, dtype=ml_dtypes.int4)], [4, -1]),
    Values("power-f16", "Power-1", [f(2, 300, dtype=F16), f(0.5, 2, dtype=F16)], f(2**0.5, INF, dtype=F16), rtol=1e-3),
    # maximum, minimum, squared difference
    Values("maximum-nan", "Maximum-1", [f(1, NAN), f(NAN, 1)], f(NAN, NAN)),
    Values("minimum-nan", "Minimum-1", [f(1, NAN), f(NAN, 1)], f(NAN, NAN)),
    Values("maximum-float", "Maximum-1", [f(2, -INF, INF), f(3, 0, 0)], f(3, 0, INF)),
    Values("minimum-float", "Minimum-1", [f(2, -INF, INF), f(3, 0, 0)], f(2, -INF, 0)),
    Values("maximum-exact", "Maximum-1", [i(2**53), i(2**53 + 1)], i(2**53 + 1)),
    Values("maximum-i4", "Maximum-1", [i(-7, 3, dtype=ml_dtypes.int4), i(2, 2, dtype=ml_dtypes.int4)], [2, 3]),
    Values("maximum-bf16", "Maximum-1", [f(1, 2, dtype=ml_dtypes.bfloat16), f(2, 1, dtype=ml_dtypes.bfloat16)], [2, 2]),
    Values("squared-difference-u8", "SquaredDifference-1", [i(3, 18, dtype=U8), i(1, 3, dtype=U8)], i(4, 225, dtype=U8)),
    Values("squared-difference-u8-below-0", "SquaredDifference-1", [i(1, dtype=U8), i(3, dtype=U8)], i(4, dtype=U8)),
    # rounded once: not before the square
    Values("squared-difference-f16", "SquaredDifference-1", [f(0.1, dtype=F16), f(7, dtype=F16)], f(47.60975, dtype=F16), rtol=0),
]  # fmt: skip

SHAPES = [row for op in OPS for row in rule_shapes(f"{op}-1", "f32")] + [
    Shapes("carries-add", "Add-1", ["i64{1,?,3}", "i64[]{2}"], "i64{3,2..,5}"),
    Shapes("carries-subtract", "Subtract-1", ["i64{8..9}", "i64{3}"], "i64{5..6}"),
    Shapes("carries-multiply", "Multiply-1", ["i64{1..4,?}", "i64{3,1}"], "i64{3..12,?}"),
    Shapes("carries-divide", "Divide-1", ["i64{4..9}", "i64{2}"], "i64{2..4}"),
    Shapes("carries-divide-truncating", "Divide-1", ["i64{4..9}", "i64{2}"], "i64{2..4}", {"m_pythondiv": False}),
    Shapes("carries-mod", "Mod-1", ["i64{?,7}", "i64{2,4}"], "i64{..1,3}"),
    Shapes("carries-floor-mod", "FloorMod-1", ["i64{?,-7}", "i64{2,4}"], "i64{..1,1}"),
    Shapes("carries-maximum", "Maximum-1", ["i64{?,7}", "i64{2,4}"], "i64{2..,7}"),
    Shapes("carries-minimum", "Minimum-1", ["i64{?,7}", "i64{2,4}"], "i64{..2,4}"),
    Shapes("carries-scalars", "Add-1", ["i64[]{?}", "i64[]{2}"], "i64[]{2..}"),
    Shapes("carries-pdpd", "Add-1", ["i64[2,1]{1,?}", "i64{10,20}"], "i64[2,1]{11,20..}", pdpd(0)),
    Shapes("exact-power", "Power-1", ["i64{2,3}", "i64{3}"], "i64{8,27}"),
]

REFUSALS = [row for op in OPS for row in rule_refusals(f"{op}-1", "f32")] + [
    Refusal("ir301-boolean", "Add-1", ["boolean[2]", "boolean[2]"]),
    Refusal("ir301-weights", "Add-1", ["u3[2]", "u3[2]"]),
    Refusal("ir301-string", "Maximum-1", ["string[2]", "string[2]"]),
    Refusal("ir302-types", "Multiply-1", ["f32[2]", "f16[2]"]),
    Refusal("ir205-arity", "Divide-1", ["f32[2]"]),
]

# ranks 0 to 5, dims of size 0
_SHAPES = [
    ((), ()), ((), (2, 3)), ((3,), (2, 3)), ((2, 1), (3,)), ((0,), (1,)), ((2, 0, 3), (3,)), ((2, 1, 5), (1, 4, 5)),
    ((3, 2, 1, 4), (5, 4)), ((2, 1, 2, 1, 3), (3, 1, 2, 1)), ((2, 1, 2, 2, 3), (2, 1, 2, 2, 3)),
]  # fmt: skip


def _operands(op: str, a: tuple[int, ...], b: tuple[int, ...], dtype: type) -> list[np.ndarray]:
    """Numbers whose result the type holds: the CPU plugin saturates where it does not."""
    x, y = random(*a, dtype=dtype), random(*b, dtype=dtype, seed=1)
    if op == "Power":
        return [abs(x), abs(y) % np.dtype(dtype).type(3)]
    if dtype is U8 and op == "SquaredDifference":
        return [x % U8(6) + U8(9), y % U8(9)]
    if dtype is U8:
        return [x + U8(9), np.maximum(y, U8(1))]
    return [x, np.where(y == 0, np.dtype(dtype).type(3), y)]


def _case(op: str, dtype: type, a: tuple[int, ...], b: tuple[int, ...], attributes: dict, aligned: Any = None) -> Case:
    x, y = _operands(op, a, b, dtype)
    how, expected = "cpu", None
    right = y.reshape(aligned or y.shape)
    if op == "Mod" and aligned:
        expected = np.fmod(x, right)  # OpenVINO: has no such kernel
    elif op == "SquaredDifference" and (dtype is U8 or aligned):
        expected = (x - right) ** 2  # OpenVINO: has no such kernel; the CPU plugin gives 0 for 3 and 1 in u8
    elif aligned:
        how = "core"  # OpenVINO: the CPU plugin has no pdpd broadcasting of its own
    elif op == "Divide" and dtype in (I32, I64) and attributes.get("m_pythondiv", True) and x.size and y.size:
        how = "core"  # OpenVINO: the CPU plugin truncates integers, whatever m_pythondiv says; the core dies of no elements
    name = "-".join(map(str, [op, np.dtype(dtype).name, list(a), list(b), *attributes.values()]))
    return Case(name, f"{op}-1", [x, y], attributes, how=how, expected=expected)


CASES = (
    [_case(op, dtype, a, b, {}) for op in OPS for dtype in NUMERIC for a, b in _SHAPES]
    + [
        _case(op, dtype, a, b, pdpd(axis), aligned)
        for op in OPS
        for dtype, (a, b, axis, aligned) in zip((np.float32, F16, I32, I64) * 2, PDPD)
    ]
    + [_case(op, np.float32, a, a, {"auto_broadcast": "none"}) for op in OPS for a in [(), (2, 0), (2, 3, 1, 2)]]
    + [_case("Divide", dtype, (2, 3), (3,), {"m_pythondiv": False}) for dtype in NUMERIC]
)
