"""HardSigmoid-1."""

import ml_dtypes
import numpy as np

from kit import *

_FLOATS = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)

VALUES = [
    *[Values(f"{np.dtype(t).name}", "HardSigmoid-1", [np.array([-4, -1, 0, 0.5, 3], t), t(0.5), t(0.75)], [0, 0.25, 0.75, 1, 1])
      for t in _FLOATS],
    Values("special", "HardSigmoid-1", [f32([np.inf, -np.inf]), f32(0.2), f32(0.5)], [1, 0]),
    Values("nan", "HardSigmoid-1", [f32([np.nan, 9]), f32(0.2), f32(0.5)], [np.nan, 1]),
    Values("scalar", "HardSigmoid-1", [f32(0), f32(1), f32(0.5)], f32(0.5)),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "HardSigmoid-1", ["f32[256,56]", "f32[]", "f32[]"], "f32[256,56]"),
    Shapes("unknown-rank", "HardSigmoid-1", ["f32[...]", "f32[...]", "f32[]"], "f32[...]"),
]

REFUSALS = [
    Refusal("c1-alpha", "HardSigmoid-1", ["f32[2]", "f32[1]", "f32[]"]),
    Refusal("c1-beta", "HardSigmoid-1", ["f32[2]", "f32[]", "f32[2,1]"]),
    Refusal("ir301-integer", "HardSigmoid-1", ["i32[2]", "i32[]", "i32[]"]),
    Refusal("ir302-types", "HardSigmoid-1", ["f32[2]", "f16[]", "f32[]"]),
]

CASES = [
    *[Case(f"{np.dtype(t).name}", "HardSigmoid-1", [random(2, 3, dtype=t), *np.array([0.2, 0.5], t)], shapes=[1, 2])
      for t in (np.float32, np.float16)],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "HardSigmoid-1", [random(*s), *f32([0.2, 0.5])], constants=[1, 2])
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
]  # fmt: skip
