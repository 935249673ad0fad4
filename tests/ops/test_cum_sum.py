"""CumSum-3."""

import ml_dtypes
import numpy as np

from kit import *

_AXIS = np.array(0)
_SPEC = [
    ({"exclusive": False, "reverse": False}, [1, 3, 6, 10, 15]),
    ({"exclusive": True, "reverse": False}, [0, 1, 3, 6, 10]),
    ({"exclusive": False, "reverse": True}, [15, 14, 12, 9, 5]),
    ({"exclusive": True, "reverse": True}, [14, 12, 9, 5, 0]),
]
_X = [[1, 2, 3], [4, 5, 6]]

VALUES = [
    *[Values(f"spec-{i}", "CumSum-3", [f32([1, 2, 3, 4, 5]), _AXIS], expected, modes) for i, (modes, expected) in enumerate(_SPEC, 1)],
    Values("default-axis", "CumSum-3", [f32(_X)], [[1, 2, 3], [5, 7, 9]]),
    Values("last-axis", "CumSum-3", [f32(_X), np.array(-1)], [[1, 3, 6], [4, 9, 15]]),
    Values("axis-1d", "CumSum-3", [f32(_X), i64(1)], [[1, 3, 6], [4, 9, 15]]),
    Values("i8-wraps", "CumSum-3", [np.array([100, 100, 100], np.int8)], np.array([100, -56, 44], np.int8)),
    Values("i8", "CumSum-3", [np.array([100, -100, 27], np.int8)], np.array([100, 0, 27], np.int8)),
    Values("i4-wraps", "CumSum-3", [np.array([5, 5, 5], ml_dtypes.int4)], np.array([5, -6, -1], ml_dtypes.int4)),
    Values("i64-exact", "CumSum-3", [np.array([2**53, 1])], np.array([2**53, 2**53 + 1]), rtol=0),
    Values("f16-rounds-once", "CumSum-3", [np.array([2048, 1, 1], np.float16)], np.array([2048, 2048, 2050], np.float16)),
    Values("bf16", "CumSum-3", [np.array([256, 1, 1], ml_dtypes.bfloat16)], [256, 256, 258]),
    Values("exclusive-inf", "CumSum-3", [f32([np.inf, 1])], [0, np.inf], {"exclusive": True}),
    Values("empty", "CumSum-3", [np.empty((0, 2), np.float32)], np.empty((0, 2)), {"exclusive": True}),
]  # fmt: skip

SHAPES = [
    Shapes("partial", "CumSum-3", ["f32[2,?,1..8]", "i64[]"], "f32[2,?,1..8]"),
    Shapes("unknown-rank", "CumSum-3", ["f32[...]", "i32[1]"], "f32[...]"),
    Shapes("no-axis", "CumSum-3", ["i32[2]"], "i32[2]"),
]

REFUSALS = [
    Refusal("c1-scalar", "CumSum-3", ["f32[]"]),
    Refusal("c2-two-axes", "CumSum-3", ["f32[2,3]", "i64{0,1}"]),
    Refusal("c3-beyond", "CumSum-3", ["f32[2,3]", "i64[]{2}"]),
    Refusal("c3-before", "CumSum-3", ["f32[2,3]", "i64[]{-3}"]),
    Refusal("ir301-boolean", "CumSum-3", ["boolean[2]"]),
    Refusal("ir301-axis", "CumSum-3", ["f32[2,3]", "u8[]{0}"]),
]

CASES = [
    *[Case(f"{np.dtype(t).name}-{i}", "CumSum-3", [arange(2, 3, dtype=t), np.array(1)], modes, shapes=[1])
      for t in NUMERIC for i, (modes, _) in enumerate(_SPEC, 1)],
    *[Case(f"rank-{len(s)}-axis-{axis}{'-empty' * (0 in s)}", "CumSum-3", [arange(*s), np.array(axis, np.int32)], {"exclusive": True}, constants=[1])
      for s in ((4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2)) for axis in {-len(s), -1, len(s) // 2}],
]  # fmt: skip
