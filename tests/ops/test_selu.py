"""Selu-1."""

import math

import ml_dtypes
import numpy as np

from kit import *

ALPHA, LAMBDA = 1.67326324, 1.05070098
_X = [-3.0, -1.0, 0.0, 0.5, 2.0]
_EXPECTED = [LAMBDA * (ALPHA * math.expm1(x) if x < 0 else x) for x in _X]


def _constants(dtype: type, *shape: int) -> list[np.ndarray]:
    return [np.full(shape, n).astype(dtype) for n in (ALPHA, LAMBDA)]


VALUES = [
    *[Values(f"{np.dtype(t).name}", "Selu-1", [np.array(_X, t), *_constants(t, 1)], _EXPECTED, rtol=rtol)
      for t, rtol in ((np.float64, 1e-15), (np.float32, 3e-7), (np.float16, 2e-3), (ml_dtypes.bfloat16, 1e-2))],
    Values("special", "Selu-1", [f32([np.inf, -np.inf]), f32([2]), f32([3])], [np.inf, -6]),
    Values("nan", "Selu-1", [f32([np.nan, 9]), f32([2]), f32([3])], [np.nan, 27]),
    *[Values(f"{alpha}-{scale}", "Selu-1", [f32([-2, 0.5, 3]), f32([alpha]), f32([scale])],
             f32([scale * alpha * math.expm1(-2), 0.5 * scale, 3 * scale]))
      for alpha, scale in ((np.nan, 2), (np.inf, 2), (2e38, 1), (2, np.inf), (2, np.nan))],
    Values("scalars", "Selu-1", [f32(2), f32(2), f32(3)], f32(6)),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "Selu-1", ["f32[256,56]", "f32[1]", "f32[1]"], "f32[256,56]"),
    Shapes("partial", "Selu-1", ["f32[2,?]", "f32[?]", "f32[...]"], "f32[2,?]"),
    Shapes("unknown-rank", "Selu-1", ["f16[...]", "f16[]", "f16[1]"], "f16[...]"),
]

REFUSALS = [
    Refusal("c1-alpha", "Selu-1", ["f32[2]", "f32[2]", "f32[1]"]),
    Refusal("c1-lambda", "Selu-1", ["f32[2]", "f32[1]", "f32[0]"]),
    Refusal("ir301-integer", "Selu-1", ["i32[2]", "i32[1]", "i32[1]"]),
    Refusal("ir302-types", "Selu-1", ["f32[2]", "f16[1]", "f32[1]"]),
]

CASES = [
    *[Case(f"{np.dtype(t).name}", "Selu-1", [random(2, 3, dtype=t), *_constants(t, 1)], shapes=[1, 2])
      for t in (np.float32, np.float16)],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "Selu-1", [random(*s), *_constants(np.float32)], constants=[1, 2])
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
]  # fmt: skip
