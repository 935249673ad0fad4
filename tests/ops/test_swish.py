"""Swish-4."""

import math

import ml_dtypes
import numpy as np

from kit import *

_X = [-3.0, -1.0, 0.0, 0.5, 2.0]


def _swish(beta: float) -> list[float]:
    return [x / (1 + math.exp(-beta * x)) for x in _X]


_PRECISIONS = ((np.float64, 1e-15), (np.float32, 3e-7), (np.float16, 1e-3), (ml_dtypes.bfloat16, 1e-2))

VALUES = [
    *[Values(f"{np.dtype(t).name}", "Swish-4", [np.array(_X, t)], _swish(1), rtol=rtol) for t, rtol in _PRECISIONS],
    *[Values(f"{np.dtype(t).name}-beta", "Swish-4", [np.array(_X, t), t(0.5)], _swish(0.5), rtol=rtol) for t, rtol in _PRECISIONS],
    Values("special", "Swish-4", [f32([np.inf, 1000, -1000])], [np.inf, 1000, 0]),
    Values("nan", "Swish-4", [f32([np.nan, 1000])], [np.nan, 1000]),
    Values("scalar", "Swish-4", [f32(0)], f32(0)),
]  # fmt: skip

SHAPES = [
    Shapes("spec-beta", "Swish-4", ["f32[256,56]", "f32[]"], "f32[256,56]"),
    Shapes("spec-no-beta", "Swish-4", ["f32[128]"], "f32[128]"),
    Shapes("unknown-rank", "Swish-4", ["f32[...]", "f32[...]"], "f32[...]"),
]

REFUSALS = [
    Refusal("c1-beta", "Swish-4", ["f32[2]", "f32[1]"]),
    Refusal("c2-beta", "Swish-4", ["f32[2]", "f32[]{-0.5}"]),
    Refusal("ir301-integer", "Swish-4", ["i32[2]"]),
    Refusal("ir302-types", "Swish-4", ["f32[2]", "f16[]"]),
]

CASES = [
    *[Case(f"{np.dtype(t).name}", "Swish-4", [random(2, 3, dtype=t)]) for t in (np.float32, np.float16)],
    *[Case(f"{np.dtype(t).name}-beta", "Swish-4", [random(2, 3, dtype=t), np.array(1.7, t)], constants=[1]) for t in (np.float32, np.float16)],
    # OpenVINO: the CPU plugin takes beta from a constant only
    Case("beta-parameter", "Swish-4", [random(2, 3), f32(1.7)], how="core"),
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "Swish-4", [random(*s), f32(0.5)], constants=[1])
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
]  # fmt: skip
