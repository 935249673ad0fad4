"""Elu-1."""

import math

import ml_dtypes
import numpy as np

from kit import *

_X = [-3.0, -1.0, -1e-5, 0.0, 0.5, 2.0]
_EXPECTED = [1.5 * math.expm1(x) if x < 0 else x for x in _X]

VALUES = [
    *[Values(f"{np.dtype(t).name}", "Elu-1", [np.array(_X, t)], _EXPECTED, {"alpha": 1.5}, rtol=rtol)
      for t, rtol in ((np.float64, 1e-15), (np.float32, 2e-7), (np.float16, 1e-2), (ml_dtypes.bfloat16, 1e-2))],
    Values("alpha-0-is-relu", "Elu-1", [f32([-2, 3])], [0, 3], {"alpha": 0}),
    Values("special", "Elu-1", [f32([np.inf, -np.inf, 1000])], [np.inf, -2, 1000], {"alpha": 2}),
    Values("nan", "Elu-1", [f32([np.nan, 3])], [np.nan, 3], {"alpha": 2}),
    *[Values(f"alpha-{alpha}", "Elu-1", [f32([-2, 0.5, 3])], [of_minus_2, 0.5, 3], {"alpha": alpha})
      for alpha, of_minus_2 in (("nan", np.nan), ("inf", -np.inf), (2e38, 2e38 * math.expm1(-2)))],
    Values("scalar", "Elu-1", [f32(2)], f32(2), {"alpha": 1}),
]  # fmt: skip

SHAPES = [
    Shapes("partial", "Elu-1", ["f32[2,?,1..8]"], "f32[2,?,1..8]", {"alpha": 1}),
    Shapes("unknown-rank", "Elu-1", ["f16[...]"], "f16[...]", {"alpha": 1}),
]

REFUSALS = [
    Refusal("c1-alpha", "Elu-1", ["f32[2]"], {"alpha": -0.5}),
    *[Refusal(f"ir301-{type}", "Elu-1", [f"{type}[2]"], {"alpha": 1}) for type in ("i32", "boolean", "string")],
]

CASES = [
    *[Case(f"{np.dtype(t).name}-{alpha}", "Elu-1", [random(2, 3, dtype=t)], {"alpha": alpha})
      for t in (np.float32, np.float16) for alpha in (0.0, 1.0, 2.5)],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "Elu-1", [random(*s)], {"alpha": 0.5})
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
    Case("special", "Elu-1", [f32([np.nan, np.inf, -np.inf])], {"alpha": 2.0}),
]  # fmt: skip
