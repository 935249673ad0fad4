"""Bucketize-3."""

import ml_dtypes
import numpy as np

from kit import *

_X, _BOUNDS = np.array([[3, 50], [10, -1]]), np.array([0, 5, 10])
_RIGHT, _LEFT = [[1, 3], [2, 0]], [[1, 3], [3, 0]]

VALUES = [
    Values("spec", "Bucketize-3", [_X, _BOUNDS], _RIGHT),
    Values("left", "Bucketize-3", [_X, _BOUNDS], _LEFT, {"with_right_bound": False}),
    Values("i32", "Bucketize-3", [_X, _BOUNDS], np.array(_RIGHT, np.int32), {"output_type": "i32"}),
    *[Values(f"{a.__name__}-{b.__name__}", "Bucketize-3", [np.array([[3, 50], [10, -1]]).astype(a), _BOUNDS.astype(b)], _RIGHT)
      for a in (np.float32, np.int8, ml_dtypes.bfloat16) for b in (np.float64, np.int32, np.float16, np.uint8)],
    Values("no-boundaries", "Bucketize-3", [f32([1, 2]), np.empty(0, np.float32)], [0, 0]),
    Values("i64-exact", "Bucketize-3", [np.array([2**53, 2**53 + 1]), np.array([2**53])], [0, 1]),
    Values("infinite", "Bucketize-3", [f32([-np.inf, np.inf]), f32([0, 1])], [0, 2]),
    Values("scalar", "Bucketize-3", [f32(3), f32([1, 2])], np.array(2)),
    Values("empty", "Bucketize-3", [np.empty((0, 2), np.float32), f32([1])], np.empty((0, 2))),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "Bucketize-3", ["f32[49,11]", "f32[5]"], "i64[49,11]"),
    Shapes("partial", "Bucketize-3", ["f32[?,1..8]", "i64[?]"], "i32[?,1..8]", {"output_type": "i32"}),
    Shapes("unknown-rank", "Bucketize-3", ["f32[...]", "f32[...]"], "i64[...]"),
]

REFUSALS = [
    Refusal("c1-2d", "Bucketize-3", ["f32[2]", "f32[1,2]"]),
    Refusal("c2-u8", "Bucketize-3", ["f32[2]", "f32[2]"], {"output_type": "u8"}),
    Refusal("ir301-boolean", "Bucketize-3", ["boolean[2]", "f32[2]"]),
]

CASES = [
    *[Case(f"{np.dtype(t).name}-{right}", "Bucketize-3", [random(2, 3, dtype=t), np.array([-1, 0, 2], np.float32)], {"output_type": "i64", "with_right_bound": right})
      for t in NUMERIC for right in (True, False)],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "Bucketize-3", [random(*s), f32([-1, 0, 1])], {"output_type": "i32"}, shapes=[1])
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
]  # fmt: skip
