"""The table of unary operations, one row each here as well."""

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np

from irrun.kernels.erf import erf, erfinv
from kit import *

INF, NAN = math.inf, math.nan


def _sign(x: float) -> float:
    return (x > 0) - (x < 0)


def _softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def _hsigmoid(x: float) -> float:
    return min(max(x + 3, 0), 6) / 6


def _erfinv(x: float) -> float:
    """By bisection."""
    if x == 0:
        return 0
    low, high = -6.0, 6.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < x else (low, middle)
    return low


_ANY = [-4.5, -3, -2.5, -1, -0.25, 0, 1e-8, 0.5, 0.9999, 1, 1.0001, 2, 3.3, 7]
_UNIT = [-1, -0.75, -0.5, -1e-8, 0, 0.25, 0.875, 1]
_OPEN = [-0.96875, -0.5, -1e-8, 0, 0.25, 0.4999, 0.5, 0.9, 0.984375]
_POSITIVE = [0.0625, 0.125, 0.5, 1, 2, 3.5, 100]

# operation: the same in plain Python, where it is tried, and what it makes of NaN, Inf, -Inf and -0
TABLE: dict[str, tuple[Callable[[float], float], list[float], tuple[float, ...]]] = {
    "Abs-1": (abs, _ANY, (NAN, INF, INF, 0)),
    "Ceiling-1": (math.ceil, _ANY, (NAN, INF, -INF, -0.0)),
    "Floor-1": (math.floor, _ANY, (NAN, INF, -INF, -0.0)),
    "Negative-1": (lambda x: -x, _ANY, (NAN, -INF, INF, 0)),
    "Sign-1": (_sign, _ANY, (NAN, 1, -1, 0)),
    "Exp-1": (math.exp, _ANY, (NAN, INF, 0, 1)),
    "Log-1": (math.log, _POSITIVE, (NAN, INF, NAN, -INF)),
    "Sqrt-1": (math.sqrt, _POSITIVE, (NAN, INF, NAN, -0.0)),
    "Erf-1": (math.erf, _ANY, (NAN, 1, -1, -0.0)),
    "ErfInv-17": (_erfinv, _OPEN, (NAN, NAN, NAN, -0.0)),
    "Sin-1": (math.sin, _ANY, (NAN, NAN, NAN, -0.0)),
    "Cos-1": (math.cos, _ANY, (NAN, NAN, NAN, 1)),
    "Tan-1": (math.tan, _ANY, (NAN, NAN, NAN, -0.0)),
    "Asin-1": (math.asin, _UNIT, (NAN, NAN, NAN, -0.0)),
    "Acos-1": (math.acos, _UNIT, (NAN, NAN, NAN, math.pi / 2)),
    "Atan-1": (math.atan, _ANY, (NAN, math.pi / 2, -math.pi / 2, -0.0)),
    "Sinh-1": (math.sinh, _ANY, (NAN, INF, -INF, -0.0)),
    "Cosh-1": (math.cosh, _ANY, (NAN, INF, INF, 1)),
    "Tanh-1": (math.tanh, _ANY, (NAN, 1, -1, -0.0)),
    "Asinh-4": (math.asinh, _ANY, (NAN, INF, -INF, -0.0)),
    "Acosh-4": (math.acosh, [1, 1.5, 2, 3.5, 100], (NAN, INF, NAN, NAN)),
    "Atanh-4": (math.atanh, _OPEN, (NAN, NAN, NAN, -0.0)),
    "ReLU-1": (lambda x: max(x, 0), _ANY, (NAN, INF, 0, 0)),
    "Sigmoid-1": (lambda x: 1 / (1 + math.exp(-x)), _ANY, (NAN, 1, 0, 0.5)),
    "HSigmoid-5": (_hsigmoid, _ANY, (NAN, 1, 0, 0.5)),
    "HSwish-4": (lambda x: x * _hsigmoid(x), _ANY, (NAN, INF, NAN, -0.0)),
    "Mish-4": (lambda x: x * math.tanh(_softplus(x)), _ANY, (NAN, INF, NAN, -0.0)),
    "SoftPlus-4": (_softplus, _ANY, (NAN, INF, 0, math.log(2))),
    "SoftSign-9": (lambda x: x / (1 + abs(x)), _ANY, (NAN, NAN, NAN, -0.0)),
}
FLOATS_ONLY = {
    "ErfInv-17", "Exp-1", "HSigmoid-5", "HSwish-4", "IsFinite-10", "IsNaN-10", "Mish-4", "Sigmoid-1", "SoftPlus-4",
    "SoftSign-9",
}  # fmt: skip
TESTS = {"IsFinite-10": [False, False, False, True, True], "IsNaN-10": [True, False, False, False, False]}

_PRECISIONS = [(np.float64, 2e-15), (np.float32, 3e-7), (np.float16, 1e-3), (ml_dtypes.bfloat16, 8e-3)]


def _rounds(op: str, dtype: type, rtol: float) -> Values:
    function, samples, _ = TABLE[op]
    inputs = np.array(samples, dtype)
    return Values(f"{op}-{np.dtype(dtype).name}", op, [inputs], [function(float(x)) for x in inputs], rtol=rtol)


def _integers(op: str, dtype: type) -> Values:
    function, samples, _ = TABLE[op]
    inputs = sorted({int(x) for x in samples if dtype is np.int32 or x >= 0} - ({0} if samples is _POSITIVE else set()))
    expected = np.array([round(function(x)) for x in inputs])
    return Values(f"{op}-{np.dtype(dtype).name}", op, [np.array(inputs, dtype)], expected.astype(dtype))


def _has(op: str, dtype: type) -> bool:
    """Return whether an operation on integers has this type: Negative has no unsigned ones, Atanh has rows of its own."""
    return op != "Atanh-4" and not (op == "Negative-1" and np.dtype(dtype).kind == "u")


VALUES = [
    *[_rounds(op, dtype, rtol) for op in TABLE for dtype, rtol in _PRECISIONS],
    *[
        _integers(op, dtype)
        for op in TABLE
        if op not in FLOATS_ONLY
        for dtype in (np.int32, np.uint8)
        if _has(op, dtype)
    ],
    *[_integers(op, t) for op in ("Cos-1", "Tan-1") for t in (np.uint16, np.uint32, np.uint64)],
    *[
        Values(f"{op}-{name}-{dtype.__name__}", op, [np.array(x, dtype)], list(expected[part]))
        for op, (_, _, expected) in TABLE.items()
        for dtype in (np.float32, np.float64)
        # the pages of many say nothing of NaN
        for name, x, part in (("nan", [NAN], slice(1)), ("special", [INF, -INF, -0.0], slice(1, None)))
    ],
    *[
        Values(f"{op}-scalar", op, [np.float32(1)], np.float32(TABLE[op][0](1)))
        for op in TABLE
        if op not in ("Atanh-4", "ErfInv-17")
    ],
    *[Values(f"{op}-empty", op, [np.empty((0, 3), np.float16)], np.empty((0, 3))) for op in TABLE],
    *[
        Values(f"{op}-{np.dtype(dtype).name}", op, [np.array([NAN, INF, -INF, -0.0, 7], dtype)], expected)
        for op, expected in TESTS.items()
        for dtype in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2)
    ],
    Values("IsFinite-10-scalar", "IsFinite-10", [np.float32(1)], True),
    Values("ErfInv-17-ends", "ErfInv-17", [np.array([1, -1, 1.5, -2], np.float32)], [INF, -INF, NAN, NAN]),
    Values("ErfInv-17-last-f64", "ErfInv-17", [np.array([1 - 2**-53])], [5.863584748755168], rtol=1e-15),
    Values("ErfInv-17-tiny", "ErfInv-17", [np.array([1e-300])], [math.sqrt(math.pi) / 2 * 1e-300], rtol=1e-15),
    *[
        Values(f"Atanh-4-{np.dtype(t).name}", "Atanh-4", [np.array(x, t)], np.array(expected, t), rtol=0)
        for t, x, expected in (
            (np.int8, [-128, -1, 0, 1, 2], [-128, -128, 0, 127, 127]),
            (np.int64, [-2, 0, 1], [-(2**63), 0, 2**63 - 1]),
            (np.uint64, [0, 1, 7], [0, 2**64 - 1, 2**64 - 1]),
            (ml_dtypes.int4, [-1, 0, 1], [-8, 0, 7]),
            (ml_dtypes.uint4, [0, 1], [0, 15]),
        )
    ],
    Values("Atanh-4-ends", "Atanh-4", [np.array([1, -1, 2], np.float32)], [INF, -INF, NAN]),
    *[
        Values(f"{op}-exact-{np.dtype(t).name}", op, [np.array([x], t)], np.array([expected], t), rtol=0)
        for op, x, expected in (
            *((op, 0, 0) for op in ("Asin-1", "Asinh-4", "Atan-1", "Erf-1", "Sin-1", "Sinh-1")),
            *((op, 0, 1) for op in ("Cos-1", "Cosh-1")),
            *((op, 1, 0) for op in ("Acos-1", "Acosh-4", "Log-1")),
        )
        for t in (np.int32, np.uint8)
    ],
    Values("Exp-1-ends", "Exp-1", [np.array([1000, -1000], np.float32)], [INF, 0]),
    Values("Sigmoid-1-ends", "Sigmoid-1", [np.array([1000, -1000], np.float32)], [1, 0]),
    Values("Mish-4-ends", "Mish-4", [np.array([1000, -1000], np.float32)], [1000, 0]),
    Values("SoftPlus-4-ends", "SoftPlus-4", [np.array([1000, -1000], np.float32)], [1000, 0]),
    Values("Tanh-1-overflows-f8", "Tanh-1", [np.array([400, -0.5], ml_dtypes.float8_e4m3fn)], [1, -0.46875]),
    # beyond 2^53, and where C wraps
    Values("Abs-1-exact", "Abs-1", [np.array([-(2**53) - 1])], np.array([2**53 + 1]), rtol=0),
    Values("Negative-1-exact", "Negative-1", [np.array([2**53 + 1])], np.array([-(2**53) - 1]), rtol=0),
    *[
        Values(f"{op}-wraps", op, [np.array([-(2**63)])], np.array([-(2**63)]), rtol=0)
        for op in ("Abs-1", "Negative-1")
    ],
    Values("Tan-1-spec", "Tan-1", [np.array([-2, -1, 0, 1, 2], np.int32)], np.array([2, -2, 0, 2, -2], np.int32)),
    Values("Sqrt-1-spec", "Sqrt-1", [np.array([4, 7, 9, 10], np.int32)], np.array([2, 3, 3, 3], np.int32)),
    Values(
        "Floor-1-exact", "Floor-1", [np.array([2**53 + 1, -(2**63) + 1])], np.array([2**53 + 1, -(2**63) + 1]), rtol=0
    ),
    Values("ReLU-1-exact", "ReLU-1", [np.array([2**53 + 1, -(2**63)])], np.array([2**53 + 1, 0]), rtol=0),
    *[
        Values(f"{op}-narrow-{t.__name__}", op, [np.array(x, t)], np.array(expected, t))
        for op, t, x, expected in (
            ("Abs-1", ml_dtypes.int4, [-3, 5, -7], [3, 5, 7]),
            ("ReLU-1", ml_dtypes.int4, [-3, 5], [0, 5]),
            ("Sqrt-1", ml_dtypes.uint4, [9, 15, 2], [3, 4, 1]),
            ("Sign-1", ml_dtypes.uint2, [3, 0], [1, 0]),
            ("Negative-1", ml_dtypes.float4_e2m1fn, [1.5, -6], [-1.5, 6]),
        )
    ],
]

SHAPES = [
    *[Shapes(f"{op}-partial", op, ["f32[2,?,1..8]"], f"{'boolean' if op in TESTS else 'f32'}[2,?,1..8]") for op in (*TABLE, *TESTS)],
    *[Shapes(f"{op}-unknown-rank", op, ["f16[...]"], f"{'boolean' if op in TESTS else 'f16'}[...]") for op in (*TABLE, *TESTS)],
    Shapes("negative-carries", "Negative-1", ["i64{3,?}"], "i64{-3,..0}"),
    Shapes("abs-carries", "Abs-1", ["i64{-3,?}"], "i64{3,?}"),
    Shapes("relu-carries", "ReLU-1", ["i64{-3,?}"], "i64{0,?}"),
    Shapes("floor-carries", "Floor-1", ["i64{-3,?}"], "i64{-3,?}"),
    Shapes("exact-contents", "Sqrt-1", ["i64{9,16}"], "i64{3,4}"),
]  # fmt: skip

REFUSALS = [
    *[Refusal(f"ir301-{op}-boolean", op, ["boolean[2]"]) for op in (*TABLE, *TESTS)],
    *[Refusal(f"ir301-{op}-integer", op, ["i32[2]"]) for op in sorted(FLOATS_ONLY)],
    *[Refusal(f"ir301-Negative-1-{type}", "Negative-1", [f"{type}[2]"]) for type in ("u8", "u64", "u4")],
    Refusal("ir205-two-inputs", "Abs-1", ["f32[2]", "f32[2]"]),
]

_NAMES = {"ReLU-1": "Relu-1"}
_RANKS = [(), (3,), (0,), (2, 3), (2, 1, 3), (2, 0, 2, 1), (1, 2, 3, 1, 2)]
_DOMAINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Acosh-4": lambda x: abs(x) + 1,
    "Log-1": lambda x: abs(x) + 1,
    "Sqrt-1": abs,
    "Asin-1": lambda x: x / 4,
    "Acos-1": lambda x: x / 4,
    "Atanh-4": lambda x: x / 4,
    "ErfInv-17": lambda x: x / 4,
}


def _data(op: str, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    x = random(*shape, dtype=dtype)
    if np.dtype(dtype).kind != "f":  # small, so that Exp, and not negative, so that Cos fits u8
        x = x.astype(np.int64) % (2 if dtype is np.uint8 else 4)
    return np.asarray(_DOMAINS.get(op, lambda x: x)(x)).astype(dtype)


CASES = [
    *[
        Case(f"{op}-{np.dtype(t).name}", _NAMES.get(op, op), [_data(op, (2, 3), t)])
        for op in TABLE
        for t in NUMERIC
        if not (op in FLOATS_ONLY and np.dtype(t).kind != "f")
        and not (op == "Negative-1" and np.dtype(t).kind == "u")
    ],
    *[Case(f"{op}-rank-{len(shape)}{'-empty' * (0 in shape)}", op, [_data(op, shape, np.float32)]) for op in ("Exp-1", "Abs-1", "Mish-4", "IsNaN-10") for shape in _RANKS],
    *[Case(f"{op}-{np.dtype(t).name}", op, [np.array([NAN, INF, -INF, 1], t)]) for op in TESTS for t in (np.float32, np.float16)],
    *[
        Case(f"{op}-nan", _NAMES.get(op, op), [np.array([NAN, 1], np.float32)], how="core")
        for op in ("ReLU-1", "HSigmoid-5", "Exp-1")  # OpenVINO: 0, 0 and Inf from the CPU plugin
    ],
    Case("Exp-1-bf16", "Exp-1", [random(2, 3, dtype=ml_dtypes.bfloat16)]),
    Case("Asin-1-core-truncates", "Asin-1", [np.array([1, -1], np.int32)], how="core", expected=np.array([2, -2], np.int32)),
]  # fmt: skip


def test_erf_is_accurate() -> None:
    x = np.concatenate([np.linspace(-6.5, 6.5, 20_001), np.geomspace(1e-30, 1, 500)])
    exact = np.array([math.erf(n) for n in x])
    np.testing.assert_allclose(erf(x), exact, rtol=1e-15, atol=0)
    x = x.astype(np.float32)
    exact = np.array([math.erf(n) for n in x])
    assert np.max(np.abs(erf(x) - exact) / np.spacing(np.abs(exact).astype(np.float32))) < 3


def test_erfinv_is_accurate() -> None:
    y = np.linspace(-3, 3, 2_001)
    np.testing.assert_allclose(erfinv(np.array([math.erf(n) for n in y])), y, rtol=1e-11, atol=1e-16)
