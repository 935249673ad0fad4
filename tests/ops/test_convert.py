"""Convert-1: every pair of element types."""

import math

import ml_dtypes
import numpy as np

from irrun.kernels.cast import cast
from irrun.types import ELEMENT_TYPES, NF4, ElementType
from kit import *

U64 = np.uint64
NAN, INF = math.nan, math.inf


def _convert(id: str, to: str, inputs: np.ndarray, expected: object, dtype: object = None) -> Values:
    wanted = ELEMENT_TYPES[to].dtype if dtype is None else dtype
    return Values(id, "Convert-1", [inputs], np.array(expected).astype(wanted), {"destination_type": to}, rtol=0)  # type: ignore[arg-type]


VALUES = [
    _convert("spec-f32-to-i32", "i32", f32([3.141592]), [3]),
    _convert("spec-negative-to-unsigned", "u32", np.array([-1], np.int32), [2**32 - 1]),
    # float to integer: toward zero; what does not fit wraps by way of i32, or the lowest i32 stands for it
    _convert("f32-to-i8", "i8", f32([-1.5, -0.5, 2.7, 127.9, 128, 256, -129, 3e9, INF, NAN]), [-1, 0, 2, 127, -128, 0, 127, 0, 0, 0]),
    _convert("f32-to-u8", "u8", f32([-1.5, 255.9, 300, NAN, -INF]), [255, 255, 44, 0, 0]),
    _convert("f32-to-i32", "i32", f32([-2.9, 2.9, 3e9, -3e9, INF, NAN]), [-2, 2, *[-(2**31)] * 4]),
    _convert("f64-to-i32", "i32", np.array([2**31 - 0.5, -(2**31) - 0.5, 2.0**31]), [2**31 - 1, -(2**31), -(2**31)]),
    _convert("f32-to-u32", "u32", f32([3e9, -1, 2.0**32, NAN]), [3_000_000_000, 2**32 - 1, 0, 0]),
    _convert("f64-to-i64", "i64", np.array([2.0**53 + 2, -2.9, 2.0**63, NAN, -INF]), [2**53 + 2, -2, *[-(2**63)] * 3]),
    _convert("f64-to-u64", "u64", np.array([2.0**63, 2.0**64 - 2048, 7.9]), np.array([2**63, 2**64 - 2048, 7], U64)),
    _convert("f32-to-u64", "u64", f32([0.9, 1, 125, 127, 1000.5, 2**40, 2**62]), np.array([0, 1, 125, 127, 1000, 2**40, 2**62], U64)),
    _convert("f64-to-u64-negative", "u64", np.array([-1.0, -2.5]), np.array([2**64 - 1, 2**64 - 2], U64)),
    _convert("f16-to-i16", "i16", np.array([-65504, 40000, 1.9], np.float16), [32, -25536, 1]),
    _convert("bf16-to-i64", "i64", np.array([3.75, -300], ml_dtypes.bfloat16), [3, -300]),
    # integer to integer: the low bits
    _convert("i64-to-i8", "i8", np.array([-129, 128, 255, 2**62 + 1], np.int64), [127, -128, -1, 1]),
    _convert("i64-to-u64", "u64", np.array([-1], np.int64), np.array([2**64 - 1], U64)),
    _convert("u64-to-i64", "i64", np.array([2**64 - 1], U64), [-1]),
    _convert("i32-to-i64", "i64", np.array([-(2**31)], np.int32), [-(2**31)]),
    *[
        _convert(f"i64-to-{to}", to, np.array([-9, -1, 0, 1, 5, 8, 15, 16, 63, 300], np.int64), expected)
        for to, expected in (
            ("u1", [1, 1, 0, 1, 1, 0, 1, 0, 1, 0]),
            ("u2", [3, 3, 0, 1, 1, 0, 3, 0, 3, 0]),
            ("u3", [7, 7, 0, 1, 5, 0, 7, 0, 7, 4]),
            ("u4", [7, 15, 0, 1, 5, 8, 15, 0, 15, 12]),
            ("u6", [55, 63, 0, 1, 5, 8, 15, 16, 63, 44]),
            ("i4", [7, -1, 0, 1, 5, -8, -1, 0, -1, -4]),
        )
    ],
    *[
        _convert(f"f32-to-{to}", to, f32([-3.7, -0.9, 0.9, 1.6, 5.9, 17, NAN]), expected)
        for to, expected in (
            ("u1", [1, 0, 0, 1, 1, 1, 0]),
            ("u2", [1, 0, 0, 1, 1, 1, 0]),
            ("u3", [5, 0, 0, 1, 5, 1, 0]),
            ("u4", [13, 0, 0, 1, 5, 1, 0]),
            ("u6", [61, 0, 0, 1, 5, 17, 0]),
            ("i4", [-3, 0, 0, 1, 5, 1, 0]),
        )
    ],
    # what all roundings give, and the unsigned number that is congruent to a negative integer
    *[
        _convert(f"f32-to-{to}-near", to, f32(numbers), np.array(numbers).astype(np.int64))
        for to, numbers in (
            ("u1", [0.25, 1]),
            ("u2", [0.25, 3.25]),
            *((to, [0.25, 5.25, 7]) for to in ("u3", "u4", "u6", "u8", "u16", "u32", "u64")),
            *((to, [-8, -3.25, 0.25, 7]) for to in ("i4", "i8", "i16", "i32", "i64")),
        )
    ],
    *[
        _convert(f"i64-to-{to}-congruent", to, np.array([-300, -9, -1, 1]), np.array([-300, -9, -1, 1]) % (1 << bits))
        for to, bits in (("u1", 1), ("u2", 2), ("u3", 3), ("u4", 4), ("u6", 6), ("u8", 8), ("u16", 16), ("u32", 32))
    ],
    _convert("i64-to-i8-ends", "i8", np.array([-128, 127]), [-128, 127]),
    _convert("f32-to-f16-near", "f16", f32([1 + 2**-11, 1 + 3 * 2**-11, 65504, 1e-8, NAN, -INF]), [1, 1 + 2**-9, 65504, 0, NAN, -INF]),
    _convert("f32-to-bf16-near", "bf16", f32([1 + 2**-8, 1 + 3 * 2**-8, 0.1, NAN, INF]), [1, 1 + 2**-6, 0.10009765625, NAN, INF]),
    _convert("0-and-1-to-boolean", "boolean", f32([0, -0.0, 1]), [False, False, True]),
    # boolean
    _convert("f32-to-boolean", "boolean", f32([0, -0.0, 0.4, -2, INF, NAN, 1e-40]), [False, False, True, True, True, True, True]),
    _convert("i64-to-boolean", "boolean", np.array([0, 1, -1, 2**32], np.int64), [False, True, True, True]),
    _convert("i4-to-boolean", "boolean", np.array([0, -8], ml_dtypes.int4), [False, True]),
    _convert("f8e8m0-to-boolean", "boolean", np.array([1, 0.5], ml_dtypes.float8_e8m0fnu), [True, True]),
    *[_convert(f"boolean-to-{to}", to, np.array([True, False]), [1, 0]) for to in ("f32", "f16", "bf16", "i8", "u1", "i4", "u64")],
    # float to float: to the nearest, halves to even
    _convert("f32-to-f16", "f16", f32([1 + 2**-11, 1 + 3 * 2**-11, 65519, 65520, 1e-8, NAN, -INF]), [1, 1 + 2**-9, 65504, INF, 0, NAN, -INF]),
    _convert("f64-to-f16-once", "f16", np.array([1 + 2**-11 + 2**-40]), [1 + 2**-10]),
    _convert("f32-to-bf16", "bf16", f32([1 + 2**-8, 1 + 3 * 2**-8, 0.1, 3.4e38, NAN]), [1, 1 + 2**-6, 0.10009765625, INF, NAN]),
    _convert("f32-to-f8e4m3", "f8e4m3", f32([0.3, 17, 464, 465, 1e9, INF, -INF, NAN, 1e-9]), [0.3125, 16, 448, NAN, NAN, NAN, NAN, NAN, 0]),
    _convert("f32-to-f8e5m2", "f8e5m2", f32([0.3, 7.5, 57344, 1e9, -INF, NAN]), [0.3125, 8, 57344, INF, -INF, NAN]),
    _convert("f32-to-f4e2m1", "f4e2m1", f32([-0.2, 0.25, 0.3, 0.75, 2.5, 3.5, 5, 7, INF, -INF, NAN]), [0, 0, 0.5, 1, 2, 4, 4, 6, 6, -6, 6]),
    _convert("f32-to-f8e8m0", "f8e8m0", f32([0.75, 1.5, 3, 6, 0.3, 5e-39, 0, -3, INF, NAN]), 2.0 ** np.array([-1, 1, 1, 3, -2, -127, -127, -127, 127, NAN])),
    _convert("f32-to-nf4", "nf4", f32([-3, -0.6, 0, 0.01, 0.5, 0.502, 9, INF, NAN]), NF4[[0, 2, 7, 7, 12, 13, 15, 15, 0]]),
    _convert("i64-to-nf4", "nf4", np.array([-5, 0, 1], np.int64), [-1, 0, 1]),
    _convert("i32-to-f16", "f16", np.array([65504, 65536, -70000, 2049], np.int32), [65504, INF, -INF, 2048]),
    _convert("i32-to-f32", "f32", np.array([2**24 + 1, 2**24 + 3], np.int32), [2**24, 2**24 + 4]),
    _convert("i32-to-f8e4m3", "f8e4m3", np.array([300, -129, 5], np.int32), [288, -128, 5]),
    _convert("u64-to-f32", "f32", np.array([2**64 - 1], U64), [2.0**64]),
    _convert("f8e4m3-to-f32", "f32", np.array([0.3125, NAN], ml_dtypes.float8_e4m3fn), [0.3125, NAN]),
    _convert("i4-to-f32", "f32", np.array([-8, 7], ml_dtypes.int4), [-8, 7]),
    _convert("i4-to-u8", "u8", np.array([-8, 7], ml_dtypes.int4), [248, 7]),
    _convert("scalar", "i32", f32(2.5), 2),
    _convert("empty", "f16", np.empty((0, 3), np.int64), np.empty((0, 3))),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "Convert-1", ["i32[256,56]"], "f32[256,56]", {"destination_type": "f32"}),
    Shapes("partial", "Convert-1", ["i32[2,?,1..8]"], "boolean[2,?,1..8]", {"destination_type": "boolean"}),
    Shapes("unknown-rank", "Convert-1", ["u1[...]"], "nf4[...]", {"destination_type": "nf4"}),
    Shapes("carries", "Convert-1", ["i64{1,?,3..5}"], "i32{1,?,3..5}", {"destination_type": "i32"}),
    Shapes("carries-what-fits", "Convert-1", ["i64{1,?,3..5}"], "i8{1,?,3..5}", {"destination_type": "i8"}),
    Shapes("carries-boolean", "Convert-1", ["i64{0,?,3..5}"], "boolean{0,..1,1}", {"destination_type": "boolean"}),
    Shapes("unknown-as-floats", "Convert-1", ["i64{1,?}"], "f32[2]", {"destination_type": "f32"}),
    Shapes("exact-from-floats", "Convert-1", ["f32{1,7}"], "i64{1,7}", {"destination_type": "i64"}),
]

REFUSALS = [
    Refusal("c1-to-string", "Convert-1", ["f32[2]"], {"destination_type": "string"}),
    Refusal("ir301-from-string", "Convert-1", ["string[2]"], {"destination_type": "f32"}),
]

_FLOATS = f32([-3.7, -1.5, -0.5, 0, 0.04, 0.3, 0.5, 0.8, 1.25, 1.75, 2.5, 6, 7.5, 17, 63, 255.5, 300])
_INTEGERS = np.array([-129, -9, -1, 0, 1, 3, 7, 8, 15, 16, 63, 128, 255, 256, 300, 70000, 2**31 - 1], np.int64)

CASES = [
    *[
        Case(f"f32-to-{to}", "Convert-1", [_FLOATS], {"destination_type": to}, how=how)
        for to, how in (
            *((name, "cpu") for name in ["boolean", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f64", "f8e4m3", "f8e5m2", "f8e8m0"]),
            # OpenVINO: the CPU plugin writes past the end of packed tensors
            *((name, "core") for name in ("u1", "u2", "u3", "u4", "u6", "i4", "f4e2m1")),
        )
    ],
    *[
        Case(f"i64-to-{to}", "Convert-1", [_INTEGERS], {"destination_type": to}, how=how)
        for to, how in (
            *((name, "cpu") for name in ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "f32", "f16", "f64", "f8e4m3", "f8e5m2"]),
            *((name, "core") for name in ("boolean", "u1", "u2", "u3", "u4", "u6", "i4", "u64")),
        )
    ],
    *[
        # OpenVINO: the CPU plugin saturates from f64, and makes no booleans of f8
        Case(f"{np.dtype(source).name}-to-{to}", "Convert-1", [random(2, 3, dtype=source)], {"destination_type": to}, how="core")
        for source in ("bool", "uint8", "int8", "float16", "float64", "uint32", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
        for to in ("boolean", "f32", "i32", "u8", "f16")
    ],
    # OpenVINO: from integers bf16 is cut, not rounded
    Case("i64-to-bf16", "Convert-1", [np.array([70000], np.int64)], {"destination_type": "bf16"}, expected=np.array([70144], ml_dtypes.bfloat16)),
    # OpenVINO: the CPU plugin makes false of NaN
    Case("nan-to-boolean", "Convert-1", [f32([NAN, 0])], {"destination_type": "boolean"}, how="core"),
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "Convert-1", [arange(*s)], {"destination_type": "i32"})
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
]  # fmt: skip


def test_every_pair() -> None:
    """Numbers that each type holds survive the way from any to any other."""
    types = [t for t in ELEMENT_TYPES.values() if t.kind not in ("string", "dynamic")]
    for source in types:
        held = _held(source)
        for to in types:
            both = held[np.isin(held.astype(np.float64), _held(to).astype(np.float64))]
            found = cast(both, to)
            assert found.dtype == to.dtype, (source, to)
            np.testing.assert_array_equal(found.astype(np.float64), both.astype(np.float64), f"{source} to {to}")


def _held(element_type: ElementType) -> np.ndarray:
    """A few numbers that the type holds exactly."""
    small = [1.0] if element_type.name == "f8e8m0" else [0.0, 1.0]
    if element_type.bits > 2 and element_type.kind != "boolean" and element_type.name not in ("nf4", "f8e8m0"):
        small += [2.0, 3.0, 6.0]
    if element_type.kind in ("int", "float") and element_type.name != "f8e8m0":
        small += [-1.0]
    return np.array(small).astype(element_type.dtype)
