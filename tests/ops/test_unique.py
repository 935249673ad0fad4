"""Unique-10."""

import ml_dtypes
import numpy as np

from kit import *

UNSORTED = {"sorted": False}
_X = [3, 1, 3, 2, 1]
_ROWS = [[3, 4], [1, 2], [3, 4], [1, 0]]

VALUES = [
    *[Values(f"sorted-{np.dtype(t).name}", "Unique-10", [np.array(_X).astype(t)], (np.array([1, 2, 3]).astype(t), [1, 3, 0], [2, 0, 2, 1, 0], [2, 1, 2]))
      for t in (*NUMERIC, np.float64, ml_dtypes.bfloat16, ml_dtypes.int4)],
    Values("unsorted", "Unique-10", [f32(_X)], ([3, 1, 2], [0, 1, 3], [0, 1, 0, 2, 1], [2, 2, 1]), UNSORTED),
    # OpenVINO's reference tests
    Values("reference-sorted", "Unique-10", [[1, 3, 5, 3, 2, 4, 2]], ([1, 2, 3, 4, 5], [0, 4, 1, 5, 2], [0, 2, 4, 2, 1, 3, 1], [1, 2, 2, 1, 1])),
    Values("reference-unsorted", "Unique-10", [[1, 3, 5, 3, 2, 4, 2]], ([1, 3, 5, 2, 4], [0, 1, 2, 4, 5], [0, 1, 2, 1, 3, 4, 3], [1, 2, 1, 2, 1]), UNSORTED),
    Values("reference-2d", "Unique-10", [[[3, 5, 3, 2, 4, 2], [1, 2, 3, 4, 5, 6]]], ([3, 5, 2, 4, 1, 6], [0, 1, 3, 4, 6, 11], [0, 1, 0, 2, 3, 2, 4, 2, 0, 3, 1, 5], [3, 2, 3, 2, 1, 1]), UNSORTED),
    Values("flattened", "Unique-10", [f32([[2, 1], [1, 2]])], ([1, 2], [1, 0], [1, 0, 0, 1], [2, 2])),
    Values("rows", "Unique-10", [f32(_ROWS), i64(0)], ([[1, 0], [1, 2], [3, 4]], [3, 1, 0], [2, 1, 2, 0], [1, 1, 2])),
    Values("rows-unsorted", "Unique-10", [f32(_ROWS), np.array(0)], ([[3, 4], [1, 2], [1, 0]], [0, 1, 3], [0, 1, 0, 2], [2, 1, 1]), UNSORTED),
    Values("columns", "Unique-10", [f32([[2, 1, 2], [5, 5, 5]]), np.array(-1)], ([[1, 2], [5, 5]], [1, 0], [1, 0, 1], [1, 2])),
    Values("nan-differs-from-itself", "Unique-10", [f32([np.nan, 1, np.nan])], ([1, np.nan, np.nan], [1, 0, 2], [1, 0, 2], [1, 1, 1])),
    Values("strings", "Unique-10", [np.array(["b", "a", "b"])], (np.array(["a", "b"]), [1, 0], [1, 0, 1], [1, 2])),
    Values("booleans", "Unique-10", [np.array([True, True])], ([True], [0], [0, 0], [2])),
    Values("types", "Unique-10", [f32([7])], ([7], np.array([0], np.int32), np.array([0], np.int32), np.array([1], np.int32)), {"index_element_type": "i32", "count_element_type": "i32"}),
    Values("scalar", "Unique-10", [f32(7)], ([7], [0], [0], [1])),
    Values("empty", "Unique-10", [np.empty((0, 3), np.float32)], (np.empty(0), np.empty(0), np.empty(0), np.empty(0))),
    Values("no-rows", "Unique-10", [np.empty((0, 3), np.float32), i64(0)], (np.empty((0, 3)), np.empty(0), np.empty(0), np.empty(0))),
    Values("empty-columns", "Unique-10", [np.empty((0, 3), np.float32), i64(1)], (np.empty((0, 1)), [0], [0, 0, 0], [3])),
]  # fmt: skip

SHAPES = [
    Shapes("flattened", "Unique-10", ["f32[3,3]"], ["f32[1..9]", "i64[1..9]", "i64[9]", "i64[1..9]"]),
    Shapes("spec-axis", "Unique-10", ["f32[3,3]", "i64{0}"], ["f32[1..3,3]", "i32[1..3]", "i32[3]", "i64[1..3]"], {"index_element_type": "i32"}),
    Shapes("one", "Unique-10", ["f32[]"], ["f32[1]", "i64[1]", "i64[1]", "i64[1]"]),
    Shapes("none", "Unique-10", ["f32[0,3]", "i64[]{0}"], ["f32[0,3]", "i64[0]", "i64[0]", "i64[0]"]),
    Shapes("interval", "Unique-10", ["f32[2..5,3]", "i64[]{-2}"], ["f32[1..5,3]", "i64[1..5]", "i64[2..5]", "i64[1..5]"]),
    Shapes("unknown-dim", "Unique-10", ["f32[?,3]", "i64[]{0}"], ["f32[?,3]", "i64[?]", "i64[?]", "i64[?]"]),
    Shapes("unknown-axis", "Unique-10", ["f32[2,3]", "i64[]"], ["f32[?,?]", "i64[?]", "i64[?]", "i64[?]"]),
    Shapes("unknown-rank", "Unique-10", ["f32[...]", "i64{0}"], ["f32[...]", "i64[?]", "i64[?]", "i64[?]"]),
    Shapes("unknown-rank-flattened", "Unique-10", ["f32[...]"], ["f32[?]", "i64[?]", "i64[?]", "i64[?]"]),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-two", "Unique-10", ["f32[2,3]", "i64{0,1}"]),
    Refusal("c1-2d", "Unique-10", ["f32[2,3]", "i64[1,1]"]),
    Refusal("c2-beyond", "Unique-10", ["f32[2,3]", "i64{2}"]),
    Refusal("c2-before", "Unique-10", ["f32[2,3]", "i64[]{-3}"]),
    Refusal("c3-index", "Unique-10", ["f32[2,3]"], {"index_element_type": "u8"}),
    Refusal("c3-count", "Unique-10", ["f32[2,3]"], {"count_element_type": "f32"}),
    Refusal("ir301-axis", "Unique-10", ["f32[2,3]", "u8{0}"]),
]

CASES = [
    *[Case(f"{np.dtype(t).name}-{in_order}", "Unique-10", [np.array(_X).astype(t)], {"sorted": in_order}) for t in NUMERIC for in_order in (True, False)],
    *[Case(f"rank-{len(s)}-{in_order}", "Unique-10", [random(*s, dtype=np.int32) % 3], {"sorted": in_order})
      for s in ((), (4,), (2, 3), (2, 1, 3), (2, 1, 3, 2)) for in_order in (True, False)],
    *[Case(f"rank-{len(s)}-axis-{axis}-{in_order}", "Unique-10", [random(*s, dtype=np.int32) % 2, np.array(axis)], {"sorted": in_order}, constants=[1])
      for s in ((4,), (6, 2), (2, 1, 3), (3, 1, 3, 2)) for axis in {-len(s), -1, len(s) // 2} for in_order in (True, False)],
    Case("i32", "Unique-10", [f32(_ROWS), np.array([0], np.int32)], {"index_element_type": "i32", "count_element_type": "i32"}, constants=[1]),
]  # fmt: skip
