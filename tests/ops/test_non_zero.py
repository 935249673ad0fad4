"""NonZero-3."""

import ml_dtypes
import numpy as np

from kit import *

I32 = {"output_type": "i32"}

VALUES = [
    *[Values(f"spec-{np.dtype(t).name}", "NonZero-3", [np.array([[1, 0], [1, 1]], t)], [[0, 1, 1], [0, 0, 1]])
      for t in (*NUMERIC, np.bool_, ml_dtypes.bfloat16, ml_dtypes.int4)],
    Values("i32", "NonZero-3", [f32([0, 2])], np.array([[1]], np.int32), I32),
    Values("nan-and-minus-0", "NonZero-3", [f32([np.nan, -0.0, 1e-40])], [[0, 2]]),
    Values("none", "NonZero-3", [np.zeros((2, 3), np.int32)], np.empty((2, 0))),
    Values("empty", "NonZero-3", [np.empty((0, 3), np.int32)], np.empty((2, 0))),
    Values("scalar", "NonZero-3", [f32(3)], np.empty((0, 1))),
    Values("scalar-0", "NonZero-3", [f32(0)], np.empty((0, 0))),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "NonZero-3", ["f32[3,10,100,200]"], "i64[4,..600000]"),
    Shapes("partial", "NonZero-3", ["f32[?,2]"], "i32[2,?]", I32),
    Shapes("interval", "NonZero-3", ["boolean[..5,2]"], "i64[2,..10]"),
    Shapes("scalar", "NonZero-3", ["f32[]"], "i64[0,..1]"),
    Shapes("unknown-rank", "NonZero-3", ["f32[...]"], "i64[?,?]"),
    Shapes("contents", "NonZero-3", ["i64{0,5,7}"], "i64[1,2]{1,2}"),
]

REFUSALS = [
    Refusal("c1-u8", "NonZero-3", ["f32[2]"], {"output_type": "u8"}),
    Refusal("ir301-string", "NonZero-3", ["string[2]"]),
]

CASES = [
    *[Case(f"{np.dtype(t).name}-{to}", "NonZero-3", [np.array([[1, 0, 2], [0, 0, 3]], t)], {"output_type": to})
      for t in (*NUMERIC, np.bool_) for to in ("i32", "i64")],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "NonZero-3", [random(*s, dtype=np.bool_)], {"output_type": "i64"})
      for s in ((4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
    # OpenVINO: gives [1,1] for a scalar that is not 0, as if it had an axis
    Case("scalar", "NonZero-3", [f32(3)], {"output_type": "i64"}, expected=np.empty((0, 1), np.int64)),
]  # fmt: skip
