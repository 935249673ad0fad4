"""LogSoftmax-5."""

import math

import ml_dtypes
import numpy as np

from kit import *

_X = [[-1.0, 0.0, 2.0], [3.0, 3.0, 3.0]]
_ROWS = [[x - math.log(sum(map(math.exp, row))) for x in row] for row in _X]

VALUES = [
    *[Values(f"{np.dtype(t).name}", "LogSoftmax-5", [np.array(_X, t)], _ROWS, rtol=rtol)
      for t, rtol in ((np.float64, 1e-14), (np.float32, 1e-6), (np.float16, 1e-3), (ml_dtypes.bfloat16, 1e-2))],
    Values("negative-axis", "LogSoftmax-5", [np.array(_X)], _ROWS, {"axis": -1}),
    Values("large", "LogSoftmax-5", [f32([[1000, 0]])], [[0, -1000]]),
    Values("masked", "LogSoftmax-5", [f32([[-np.inf, 5]])], [[-np.inf, 0]]),
    Values("scalar", "LogSoftmax-5", [f32(3)], f32(0), {"axis": 0}),
    Values("empty", "LogSoftmax-5", [np.empty((2, 0, 3), np.float32)], np.empty((2, 0, 3))),
]  # fmt: skip

SHAPES = [
    Shapes("partial", "LogSoftmax-5", ["f32[2,?,1..8]"], "f32[2,?,1..8]", {"axis": -1}),
    Shapes("unknown-rank", "LogSoftmax-5", ["f16[...]"], "f16[...]", {"axis": 5}),
]

REFUSALS = [
    Refusal("c1-beyond", "LogSoftmax-5", ["f32[2,3]"], {"axis": 2}),
    Refusal("c1-before", "LogSoftmax-5", ["f32[2,3]"], {"axis": -3}),
    *[Refusal(f"ir301-{type}", "LogSoftmax-5", [f"{type}[2,3]"]) for type in ("i32", "boolean")],
]

CASES = [
    *[Case(f"{np.dtype(t).name}", "LogSoftmax-5", [random(2, 3, dtype=t)], {"axis": 1}) for t in (np.float32, np.float16)],
    *[Case(f"rank-{len(s)}-axis-{axis}{'-empty' * (0 in s)}", "LogSoftmax-5", [random(*s)], {"axis": axis})
      for s in ((4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2)) for axis in {-len(s), -1, 0, len(s) // 2}],
]  # fmt: skip
