"""Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual."""

from typing import Any

import ml_dtypes
import numpy as np

from broadcasting import NUMPY, PDPD, pdpd, rule_refusals, rule_shapes
from kit import *

OPS = {
    "Equal": np.equal, "NotEqual": np.not_equal, "Less": np.less,
    "LessEqual": np.less_equal, "Greater": np.greater, "GreaterEqual": np.greater_equal,
}  # fmt: skip

_F8 = ml_dtypes.float8_e5m2

VALUES = [
    Values(f"rules-numpy-{a}-{b}", "Less-1", [arange(*a), arange(*b)], arange(*a) < arange(*b)) for a, b, _ in NUMPY
] + [
    Values(f"rules-pdpd-{a}-{b}-{axis}", "Less-1", [arange(*a), arange(*b)], arange(*a) < arange(*b).reshape(aligned), pdpd(axis))
    for a, b, axis, aligned in PDPD
] + [
    Values(f"{op}-{kind}", f"{op}-1", [a, b], expected)
    for kind, a, b, table in [
        ("order", i64(1, 2, 3), i64(2, 2, 2), {"Equal": "010", "NotEqual": "101", "Less": "100", "LessEqual": "110", "Greater": "001", "GreaterEqual": "011"}),
        ("nan", np.array([np.nan], np.float32), np.array([np.nan], np.float32), {"Equal": "0", "NotEqual": "1", "Less": "0", "LessEqual": "0", "Greater": "0", "GreaterEqual": "0"}),
        ("infinite", np.array([np.inf, -np.inf], np.float32), np.array([np.inf, np.inf], np.float32), {"Equal": "10", "NotEqual": "01", "Less": "01", "LessEqual": "11", "Greater": "00", "GreaterEqual": "10"}),
        ("beyond-2**53", i64(2**53), i64(2**53 + 1), {"Equal": "0", "NotEqual": "1", "Less": "1", "LessEqual": "1", "Greater": "0", "GreaterEqual": "0"}),
        ("boolean", np.array([False, True]), np.array([True, True]), {"Equal": "01", "NotEqual": "10", "Less": "10", "LessEqual": "11", "Greater": "00", "GreaterEqual": "01"}),
        ("string", np.array(["a", "bc"]), np.array(["b", "bc"]), {"Equal": "01", "NotEqual": "10", "Less": "10", "LessEqual": "11", "Greater": "00", "GreaterEqual": "01"}),
        ("f8", np.array([1, 2], _F8), np.array([2, 2], _F8), {"Equal": "01", "NotEqual": "10", "Less": "10", "LessEqual": "11", "Greater": "00", "GreaterEqual": "01"}),
        ("u4", np.array([15, 2], ml_dtypes.uint4), np.array([2, 2], ml_dtypes.uint4), {"Equal": "01", "NotEqual": "10", "Less": "00", "LessEqual": "01", "Greater": "10", "GreaterEqual": "11"}),
    ]
    for op in OPS
    for expected in [np.array([c == "1" for c in table[op]])]
]  # fmt: skip

# what is known of two contents decides as far as it can
SHAPES = [row for op in OPS for row in rule_shapes(f"{op}-1", "i32", "boolean")] + [
    Shapes("carries-equal", "Equal-1", ["i64{?,3,1..4,2..8}", "i64{-1,3,5,3}"], "boolean{0,1,0,..1}"),
    Shapes("carries-not-equal", "NotEqual-1", ["i64{?,3,1..4,2..8}", "i64{-1,3,5,3}"], "boolean{1,0,1,..1}"),
    Shapes("carries-less", "Less-1", ["i64{?,1..4,1..4,2..8}", "i64{0,5,1,3}"], "boolean{0,1,0,..1}"),
    Shapes("carries-less-equal", "LessEqual-1", ["i64{?,1..4,5..6,2..8}", "i64{-1,4,4,3}"], "boolean{0,1,0,..1}"),
    Shapes("carries-greater", "Greater-1", ["i64{?,1..4,5..6,2..8}", "i64{-1,4,4,3}"], "boolean{1,0,1,..1}"),
    Shapes("carries-greater-equal", "GreaterEqual-1", ["i64{?,1..4,1..4,2..8}", "i64{0,5,1,3}"], "boolean{1,0,1,..1}"),
    Shapes("exact", "Equal-1", ["i64{2,3}", "i64{2}"], "boolean{1,0}"),
]

REFUSALS = [row for op in OPS for row in rule_refusals(f"{op}-1", "f32")] + [
    Refusal("ir302-types", "Equal-1", ["f32[2]", "i32[2]"]),
    Refusal("ir205-arity", "Less-1", ["f32[2]"]),
]

_SHAPES = [
    ((), ()), ((3,), (2, 3)), ((2, 0, 3), (3,)), ((2, 1, 5), (1, 4, 5)), ((3, 2, 1, 4), (5, 4)),
    ((2, 1, 2, 1, 3), (3, 1, 2, 1)),
]  # fmt: skip


def _operands(a: tuple[int, ...], b: tuple[int, ...], dtype: type) -> list[np.ndarray]:
    """Few distinct numbers, so that some are equal."""
    pair = random(*a, dtype=dtype), random(*b, dtype=dtype, seed=1)
    return [x if dtype is np.bool_ else np.trunc(x / 2).astype(dtype) for x in pair]


def _case(
    op: str, dtype: type, a: tuple[int, ...], b: tuple[int, ...], attributes: dict[str, Any], aligned: Any = None
) -> Case:
    x, y = _operands(a, b, dtype)
    name = "-".join(map(str, [op, np.dtype(dtype).name, list(a), list(b), *attributes.values()]))
    # OpenVINO: the CPU plugin has no pdpd broadcasting of its own; the core swaps the inputs of Greater and
    # GreaterEqual, and so broadcasts the wrong one
    expected = OPS[op](x, y.reshape(aligned)) if aligned and op in ("Greater", "GreaterEqual") else None
    return Case(name, f"{op}-1", [x, y], attributes, how="core" if aligned else "cpu", expected=expected)


CASES = [
    *(_case(op, dtype, a, b, {}) for op in OPS for dtype in (*NUMERIC, np.bool_) for a, b in _SHAPES),
    *(
        _case(op, dtype, a, b, pdpd(axis), aligned)
        for op in OPS
        for dtype, (a, b, axis, aligned) in zip((np.float32, np.int32, np.int64, np.bool_) * 2, PDPD)
    ),
    *(_case(op, np.float32, a, a, {"auto_broadcast": "none"}) for op in OPS for a in [(), (2, 0), (2, 3, 1, 2)]),
]
