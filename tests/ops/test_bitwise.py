"""BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitwiseLeftShift, BitwiseRightShift."""

from typing import Any

import ml_dtypes
import numpy as np

from broadcasting import PDPD, pdpd, rule_refusals, rule_shapes
from kit import *

LOGIC = {"BitwiseAnd-13": np.bitwise_and, "BitwiseOr-13": np.bitwise_or, "BitwiseXor-13": np.bitwise_xor}
SHIFTS = {"BitwiseLeftShift-15": np.left_shift, "BitwiseRightShift-15": np.right_shift}
BINARY = LOGIC | SHIFTS


def u8(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint8)


_A, _B = np.array([True, False, False]), np.array([True, True, False])
_I4 = np.array([7, -8, -1], ml_dtypes.int4)
_U2 = np.array([0, 1, 2, 3], ml_dtypes.uint2)

VALUES = [
    Values("spec-and-boolean", "BitwiseAnd-13", [_A, _B], [True, False, False]),
    Values("spec-and-u8", "BitwiseAnd-13", [u8(21, 120), u8(3, 37)], u8(1, 32)),
    Values("spec-or-boolean", "BitwiseOr-13", [_A, _B], [True, True, False]),
    Values("spec-or-u8", "BitwiseOr-13", [u8(21, 120), u8(3, 37)], u8(23, 125)),
    Values("spec-xor-boolean", "BitwiseXor-13", [_A, _B], [False, True, False]),
    Values("spec-xor-u8", "BitwiseXor-13", [u8(21, 120), u8(3, 37)], u8(22, 93)),
    Values("spec-not-boolean", "BitwiseNot-13", [_A], [False, True, True]),
    Values("spec-not-u8", "BitwiseNot-13", [u8(3, 125)], u8(252, 130)),
    Values("not-i64", "BitwiseNot-13", [i64(0, -1, 2**62)], i64(-1, 0, -(2**62) - 1)),
    *[
        Values(f"not-{t.__name__}", "BitwiseNot-13", [np.array([0, 3], t)], np.array([top, top - 3], t))
        for t, top in ((np.uint16, 2**16 - 1), (np.uint32, 2**32 - 1), (np.uint64, 2**64 - 1))
    ],
    Values("not-i4", "BitwiseNot-13", [_I4], [-8, 7, 0]),
    Values("not-u4", "BitwiseNot-13", [np.array([0, 5], ml_dtypes.uint4)], [15, 10]),
    Values("not-u2", "BitwiseNot-13", [_U2], [3, 2, 1, 0]),
    Values("and-u2", "BitwiseAnd-13", [_U2, _U2[1:2]], [0, 1, 0, 1]),
    Values("or-u2", "BitwiseOr-13", [_U2, _U2[1:2]], [1, 1, 3, 3]),
    Values("xor-u2", "BitwiseXor-13", [_U2, _U2[1:2]], [1, 0, 3, 2]),
    Values("left-shift-u2", "BitwiseLeftShift-15", [_U2, _U2[1:2]], [0, 2, 0, 2]),
    Values("right-shift-u2", "BitwiseRightShift-15", [_U2, _U2[1:2]], [0, 0, 1, 1]),
    Values("and-i4", "BitwiseAnd-13", [_I4, _I4[::-1]], [7, -8, 7]),
    Values("xor-i64", "BitwiseXor-13", [i64(1, -1), i64(2**40, 3)], i64(2**40 + 1, -4)),
    Values("left-shift", "BitwiseLeftShift-15", [u8(21, 120, 255), u8(3, 1, 7)], u8(168, 240, 128)),
    Values("left-shift-i8", "BitwiseLeftShift-15", [np.array([1, -1, 63], np.int8), np.array([3, 4, 1], np.int8)], [8, -16, 126]),
    Values("left-shift-i8-overflows", "BitwiseLeftShift-15", [np.array([64], np.int8), np.array([1], np.int8)], [-128]),
    Values("left-shift-everything", "BitwiseLeftShift-15", [u8(1), u8(8)], u8(0)),
    Values("left-shift-u4", "BitwiseLeftShift-15", [np.array([3, 9], ml_dtypes.uint4), np.array([1, 1], ml_dtypes.uint4)], [6, 2]),
    Values("right-shift", "BitwiseRightShift-15", [u8(21, 120, 255), u8(3, 1, 7)], u8(2, 60, 1)),
    Values("right-shift-sign", "BitwiseRightShift-15", [i64(-8, -1, 7), i64(1, 5, 1)], i64(-4, -1, 3)),
    *(
        Values(f"rules-pdpd-{op}-{a}-{b}-{axis}", op, [arange(*a, dtype=np.int32), arange(*b, dtype=np.int32)], kernel(arange(*a, dtype=np.int32), arange(*b, dtype=np.int32).reshape(aligned)), pdpd(axis))
        for op, kernel in BINARY.items() for a, b, axis, aligned in PDPD
    ),
]  # fmt: skip

SHAPES = [row for op in BINARY for row in rule_shapes(op, "i32")] + [
    Shapes("not", "BitwiseNot-13", ["u8[2,?]"], "u8[2,?]"),
    Shapes("not-unknown-rank", "BitwiseNot-13", ["boolean[...]"], "boolean[...]"),
    Shapes("exact", "BitwiseAnd-13", ["i64{6,5}", "i64{3}"], "i64{2,1}"),
]

REFUSALS = [row for op in BINARY for row in rule_refusals(op, "i32")] + [
    *(Refusal(f"ir301-float-{op}", op, ["f32[2]", "f32[2]"]) for op in BINARY),
    *(Refusal(f"ir301-boolean-{op}", op, ["boolean[2]", "boolean[2]"]) for op in SHIFTS),
    Refusal("ir301-float-not", "BitwiseNot-13", ["f32[2]"]),
    Refusal("ir302-types", "BitwiseOr-13", ["i32[2]", "i64[2]"]),
]

_SHAPES = [
    ((), ()), ((3,), (2, 3)), ((2, 0, 3), (3,)), ((2, 1, 5), (1, 4, 5)), ((3, 2, 1, 4), (5, 4)),
    ((2, 1, 2, 1, 3), (3, 1, 2, 1)),
]  # fmt: skip


def _case(op: str, dtype: type, a: tuple[int, ...], b: tuple[int, ...], attributes: dict[str, Any]) -> Case:
    x, y = random(*a, dtype=dtype), random(*b, dtype=dtype, seed=1)
    if op in SHIFTS:
        y = abs(y) % np.dtype(dtype).type(8)
    name = "-".join(map(str, [op, np.dtype(dtype).name, list(a), list(b), *attributes.values()]))
    return Case(name, op, [x, y], attributes)


# OpenVINO: the CPU plugin fails on pdpd broadcasting of these, which is left to VALUES
CASES = [
    *(
        _case(op, dtype, a, b, {})
        for op in BINARY
        for dtype in (np.int32, np.int64, np.uint8, np.int8, *([np.bool_] if op in LOGIC else []))
        for a, b in _SHAPES
    ),
    *(_case(op, np.int32, a, a, {"auto_broadcast": "none"}) for op in BINARY for a in [(), (2, 0), (2, 3, 1, 2)]),
    *(
        Case(f"not-{np.dtype(t).name}-{list(s)}", "BitwiseNot-13", [random(*s, dtype=t)])
        for t in (np.bool_, np.int32, np.int64, np.uint8)
        for s in [(), (3,), (2, 0), (2, 3, 4), (1, 2, 3, 1), (2, 1, 3, 1, 2)]
    ),
]
