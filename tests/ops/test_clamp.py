"""Clamp-1."""

import ml_dtypes
import numpy as np

from kit import *

INF = float("inf")

VALUES = [
    Values("floats", "Clamp-1", [f32([-2, 0.5, 9])], [-1, 0.5, 2], {"min": -1, "max": 2}),
    Values("integers-round-inwards", "Clamp-1", [np.array([-9, -1, 0, 3, 9], np.int32)], [-1, -1, 0, 2, 2], {"min": -1.5, "max": 2.5}),
    Values("nan", "Clamp-1", [f32([np.nan, 9])], [np.nan, 2], {"min": -1, "max": 2}),
    Values("infinite", "Clamp-1", [f32([INF, -INF])], [2, -1], {"min": -1, "max": 2}),
    Values("equal-bounds", "Clamp-1", [f32([-2, 5])], [1.5, 1.5], {"min": 1.5, "max": 1.5}),
    Values("beyond-u8", "Clamp-1", [np.array([0, 7, 255], np.uint8)], np.array([0, 7, 255], np.uint8), {"min": -5, "max": 1e30}),
    Values("beyond-i8", "Clamp-1", [np.array([-128, 7, 127], np.int8)], np.array([-128, 7, 127], np.int8), {"min": -1000, "max": 1000}),
    Values("infinite-integers", "Clamp-1", [np.array([-(2**63), 2**63 - 1], np.int64)], np.array([-(2**63), 2**63 - 1], np.int64), {"min": "-inf", "max": "inf"}),
    Values("far-above-u8", "Clamp-1", [np.array([0, 7], np.uint8)], np.array([255, 255], np.uint8), {"min": 300, "max": 400}),
    Values("far-below-u8", "Clamp-1", [np.array([0, 7], np.uint8)], np.array([0, 0], np.uint8), {"min": -400, "max": -300}),
    Values("i64-exact", "Clamp-1", [np.array([2**53 + 1, -5], np.int64)], np.array([2**53 + 1, 0], np.int64), {"min": 0, "max": 1e18}, rtol=0),
    Values("beyond-f16", "Clamp-1", [np.array([-60000, 60000, INF], np.float16)], np.array([-60000, 60000, INF], np.float16), {"min": -1e6, "max": 1e6}),
    Values("bf16", "Clamp-1", [np.array([-3, 1.5, 3], ml_dtypes.bfloat16)], [-2, 1.5, 2], {"min": -2, "max": 2}),
    Values("i4", "Clamp-1", [np.array([-8, 1, 7], ml_dtypes.int4)], np.array([-2, 1, 2]), {"min": -2.5, "max": 2.5}),
    Values("scalar", "Clamp-1", [np.float64(5)], 2.0, {"min": 0, "max": 2}),
    Values("empty", "Clamp-1", [np.empty((0, 2), np.int32)], np.empty((0, 2)), {"min": 0, "max": 2}),
]  # fmt: skip

SHAPES = [
    Shapes("partial", "Clamp-1", ["f32[2,?,1..8]"], "f32[2,?,1..8]", {"min": 0, "max": 1}),
    Shapes("unknown-rank", "Clamp-1", ["u8[...]"], "u8[...]", {"min": 0, "max": 1}),
    Shapes("carries", "Clamp-1", ["i64{-3,7,1..9,?}"], "i64{1,5,1..5,1..5}", {"min": 0.5, "max": 5.5}),
]

REFUSALS = [
    Refusal("c1-min-above-max", "Clamp-1", ["f32[2]"], {"min": 2, "max": 1}),
    Refusal("ir301-boolean", "Clamp-1", ["boolean[2]"], {"min": 0, "max": 1}),
]

CASES = [
    *[Case(f"{np.dtype(t).name}-{low}-{high}", "Clamp-1", [random(2, 3, dtype=t)], {"min": low, "max": high})
      for t in NUMERIC for low, high in ((-1.5, 2.5), (0.0, 6.0), (1.0, 1.0))],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "Clamp-1", [random(*s)], {"min": -0.5, "max": 0.5})
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
    # OpenVINO: the CPU plugin makes min of NaN
    Case("nan", "Clamp-1", [f32([np.nan, 9])], {"min": -1.0, "max": 2.0}, how="core"),
]  # fmt: skip
