"""SearchSorted-15."""

import ml_dtypes
import numpy as np

from kit import *

RIGHT = {"right_mode": True}
_ROWS, _WANTED = [[1, 3, 5, 7, 9], [2, 4, 4, 8, 10]], [[3, 6, 9], [4, 4, 0]]
_LEFT, _AFTER = [[1, 3, 4], [1, 1, 0]], [[2, 3, 5], [3, 3, 0]]

VALUES = [
    *[Values(f"{np.dtype(t).name}-{mode}", "SearchSorted-15", [np.array(_ROWS, t), np.array(_WANTED, t)], expected, mode)
      for t in (*NUMERIC, np.float64, ml_dtypes.bfloat16) for mode, expected in (({}, _LEFT), (RIGHT, _AFTER))],
    Values("one-row-for-all", "SearchSorted-15", [f32([1, 3, 5]), f32([[3, 6], [0, 4]])], [[1, 3], [0, 2]]),
    Values("spec-name", "SearchSorted-15", [f32([1, 3, 5]), f32([3])], [2], {"right": "True"}),
    Values("i32", "SearchSorted-15", [f32([1, 3, 5]), f32([3])], np.array([1], np.int32), {"output_type": "i32"}),
    Values("scalar", "SearchSorted-15", [f32([1, 3, 5]), f32(4)], np.array(2)),
    Values("empty-row", "SearchSorted-15", [np.empty(0, np.float32), f32([4])], [0]),
    Values("empty-rows", "SearchSorted-15", [np.empty((2, 0), np.float32), f32([[4], [5]])], [[0], [0]]),
    Values("no-values", "SearchSorted-15", [f32([[1, 2]]), np.empty((1, 0), np.float32)], np.empty((1, 0))),
    Values("i64-exact", "SearchSorted-15", [np.array([[2**53, 2**53 + 1]]), np.array([[2**53 + 1]])], [[1]]),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "SearchSorted-15", ["f32[7,256,200,200]", "f32[7,256,200,10]"], "i64[7,256,200,10]", RIGHT),
    Shapes("1d", "SearchSorted-15", ["f32[7]", "f32[?,2..5]"], "i64[?,2..5]"),
    Shapes("rows-tell", "SearchSorted-15", ["f32[7,?,5]", "f32[?,3,?]"], "i64[7,3,?]"),
    Shapes("rows-tell-rank", "SearchSorted-15", ["f32[7,2,5]", "f32[...]"], "i64[7,2,?]"),
    Shapes("unknown-rank", "SearchSorted-15", ["f32[...]", "f32[2,?]"], "i32[2,?]", {"output_type": "i32"}),
]

REFUSALS = [
    Refusal("c1-scalar", "SearchSorted-15", ["f32[]", "f32[2]"]),
    Refusal("c2-rank", "SearchSorted-15", ["f32[1,3]", "f32[5]"]),
    Refusal("c2-scalar-values", "SearchSorted-15", ["f32[1,3]", "f32[]"]),
    Refusal("c2-dims", "SearchSorted-15", ["f32[1,3]", "f32[3,3]"]),
    Refusal("c3-u8", "SearchSorted-15", ["f32[3]", "f32[3]"], {"output_type": "u8"}),
    Refusal("ir301-booleans", "SearchSorted-15", ["boolean[3]", "boolean[3]"]),
    Refusal("ir302-types", "SearchSorted-15", ["f32[3]", "f16[3]"]),
]

CASES = [
    *[Case(f"{np.dtype(t).name}-{right}", "SearchSorted-15", [np.array(_ROWS, t), np.array(_WANTED, t)], {"right_mode": right})
      for t in NUMERIC for right in (True, False)],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "SearchSorted-15", [f32([-1, 0, 1]), random(*s)], {"right_mode": True})
      for s in ((), (4,), (0, 2), (2, 1, 3))],
    *[Case(f"rows-{s}-{n}", "SearchSorted-15", [np.sort(random(*s, n)), random(*s, 4, seed=1)], {"right_mode": right})
      for s in ((2,), (2, 1), (1, 2, 3)) for n in (1, 2, 7, 8) for right in (True, False)],
]  # fmt: skip
