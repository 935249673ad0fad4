"""Round-5."""

import ml_dtypes
import numpy as np

from kit import *

_X = [-4.5, -1.9, -1.5, 0.5, 0.9, 1.5, 2.3, 2.5]
_EVEN, _AWAY = [-4, -2, -2, 0, 1, 2, 2, 2], [-5, -2, -2, 1, 1, 2, 2, 3]
_MODES = ("half_to_even", "half_away_from_zero")

VALUES = [
    *[Values(f"spec-{mode}-{np.dtype(t).name}", "Round-5", [np.array(_X, t)], expected, {"mode": mode})
      for mode, expected in zip(_MODES, (_EVEN, _AWAY))
      for t in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)],
    Values("default-is-even", "Round-5", [f32([2.5])], [2]),
    Values("just-below-half", "Round-5", [f32([0.49999997, -0.49999997])], [0, 0], {"mode": "half_away_from_zero"}),
    Values("odd-and-large", "Round-5", [f32([8388609, -16777215])], [8388609, -16777215], {"mode": "half_away_from_zero"}),
    *[Values(f"special-{mode}", "Round-5", [f32([np.nan, np.inf, -np.inf])], [np.nan, np.inf, -np.inf], {"mode": mode})
      for mode in _MODES],
    *[Values(f"integers-{mode}", "Round-5", [np.array([2**53 + 1, -3])], np.array([2**53 + 1, -3]), {"mode": mode}, rtol=0)
      for mode in _MODES],
    Values("scalar", "Round-5", [f32(1.5)], f32(2), {"mode": "half_away_from_zero"}),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "Round-5", ["f32[256,56]"], "f32[256,56]"),
    Shapes("unknown-rank", "Round-5", ["f16[...]"], "f16[...]"),
]

REFUSALS = [Refusal(f"ir301-{type}", "Round-5", [f"{type}[2]"]) for type in ("boolean", "string")]

CASES = [
    *[Case(f"{np.dtype(t).name}-{mode}", "Round-5", [np.array(_X if np.dtype(t).kind == "f" else [0, 3, 7], t)], {"mode": mode})
      for t in NUMERIC for mode in _MODES],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}-{mode}", "Round-5", [random(*s)], {"mode": mode})
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2)) for mode in _MODES],
]  # fmt: skip
