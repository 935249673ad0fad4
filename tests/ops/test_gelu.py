"""Gelu-2 and Gelu-7."""

import math

import ml_dtypes
import numpy as np

from kit import *

_X = [-3.0, -1.0, 0.0, 0.5, 2.0]
_ERF = [0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in _X]
_TANH = [0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) for x in _X]
_MODES = (("Gelu-2", {}, _ERF), ("Gelu-7", {}, _ERF), ("Gelu-7", {"approximation_mode": "tanh"}, _TANH))

VALUES = [
    *[Values(f"{op}-{np.dtype(t).name}-{mode.get('approximation_mode', '')}", op, [np.array(_X, t)], expected, mode, rtol=rtol)
      for op, mode, expected in _MODES
      for t, rtol in ((np.float64, 1e-13), (np.float32, 2e-5), (np.float16, 1e-3), (ml_dtypes.bfloat16, 1e-2))],
    *[Values(f"{id}-{mode}", "Gelu-7", [f32(x)], expected, {"approximation_mode": mode})
      for mode in ("erf", "TANH")
      for id, x, expected in (("special", [np.inf, 1e30, -1e30], [np.inf, 1e30, 0]), ("nan", [np.nan, 9], [np.nan, 9]))],
    Values("scalar", "Gelu-2", [f32(0)], f32(0)),
]  # fmt: skip

SHAPES = [
    Shapes("spec-tanh", "Gelu-7", ["f32[1,128]"], "f32[1,128]", {"approximation_mode": "tanh"}),
    Shapes("spec-erf", "Gelu-7", ["f32[3,7,9]"], "f32[3,7,9]", {"approximation_mode": "erf"}),
    Shapes("unknown-rank", "Gelu-2", ["f16[...]"], "f16[...]"),
]

REFUSALS = [
    Refusal("ir301-integer-7", "Gelu-7", ["i32[2]"]),
    Refusal("ir301-integer-2", "Gelu-2", ["i32[2]"]),
]

CASES = [
    *[Case(f"{op}-{np.dtype(t).name}-{mode}", op, [random(2, 3, dtype=t)], {"approximation_mode": mode} if mode else {})
      for op, mode in (("Gelu-2", ""), ("Gelu-7", "ERF"), ("Gelu-7", "TANH")) for t in (np.float32, np.float16)],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "Gelu-7", [random(*s)], {"approximation_mode": "TANH"})
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
]  # fmt: skip
