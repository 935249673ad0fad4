"""IsInf-10."""

import itertools

import ml_dtypes
import numpy as np

from kit import *

_X = [np.nan, np.inf, -np.inf, 0, -7]

VALUES = [
    *[Values(f"{np.dtype(t).name}", "IsInf-10", [np.array(_X, t)], [False, True, True, False, False])
      for t in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2)],
    *[Values(f"negative-{negative}-positive-{positive}", "IsInf-10", [np.array(_X)], [False, positive, negative, False, False],
             {"detect_negative": negative, "detect_positive": positive})
      for negative, positive in itertools.product((False, True), repeat=2)],
    Values("scalar", "IsInf-10", [f32(np.inf)], True),
    Values("empty", "IsInf-10", [np.empty((0, 2), np.float32)], np.empty((0, 2), bool)),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "IsInf-10", ["f32[256,128]"], "boolean[256,128]"),
    Shapes("partial", "IsInf-10", ["f16[2,?,1..8]"], "boolean[2,?,1..8]"),
    Shapes("unknown-rank", "IsInf-10", ["f32[...]"], "boolean[...]"),
]

REFUSALS = [Refusal("ir301-integer", "IsInf-10", ["i32[2]"])]

CASES = [
    *[Case(f"{np.dtype(t).name}-negative-{negative}-positive-{positive}", "IsInf-10", [np.array(_X, t)],
           {"detect_negative": negative, "detect_positive": positive})
      for t in (np.float32, np.float16) for negative, positive in itertools.product((False, True), repeat=2)],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "IsInf-10", [random(*s)])
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
]  # fmt: skip
