"""SoftMax-1 and SoftMax-8."""

import math

import ml_dtypes
import numpy as np

from kit import *

_X = [[-1.0, 0.0, 2.0], [3.0, 3.0, 3.0]]
_ROWS = [[math.exp(x) / sum(map(math.exp, row)) for x in row] for row in _X]
_COLUMNS = np.array([[1 / (1 + math.exp(b - a)), 1 / (1 + math.exp(a - b))] for a, b in zip(*_X)]).T

VALUES = [
    *[Values(f"{op}-{np.dtype(t).name}", op, [np.array(_X, t)], _ROWS, rtol=rtol)
      for op in ("SoftMax-1", "SoftMax-8")
      for t, rtol in ((np.float64, 1e-15), (np.float32, 3e-7), (np.float16, 1e-3), (ml_dtypes.bfloat16, 1e-2))],
    *[Values(f"axis-{axis}", "SoftMax-8", [np.array(_X)], expected, {"axis": axis}, rtol=1e-14)
      for axis, expected in ((-1, _ROWS), (-2, _COLUMNS), (0, _COLUMNS))],
    Values("large", "SoftMax-8", [f32([[1000, 1000]])], [[0.5, 0.5]]),
    Values("masked", "SoftMax-8", [f32([[-np.inf, 5, 5]])], [[0, 0.5, 0.5]]),
    Values("nan", "SoftMax-8", [f32([[np.nan, 5]])], [[np.nan, np.nan]]),
    Values("scalar", "SoftMax-8", [f32(3)], f32(1), {"axis": 0}),
    Values("empty", "SoftMax-8", [np.empty((2, 0, 3), np.float32)], np.empty((2, 0, 3))),
    Values("integers", "SoftMax-8", [np.array([[0, 9]], np.int32)], np.array([[0, 1]], np.int32)),
]  # fmt: skip

SHAPES = [
    Shapes("partial", "SoftMax-8", ["f32[2,?,1..8]"], "f32[2,?,1..8]", {"axis": -1}),
    Shapes("unknown-rank", "SoftMax-1", ["f16[...]"], "f16[...]", {"axis": 5}),
]

REFUSALS = [
    Refusal("c1-beyond-8", "SoftMax-8", ["f32[2,3]"], {"axis": 2}),
    Refusal("c1-before-8", "SoftMax-8", ["f32[2,3]"], {"axis": -3}),
    Refusal("c1-default-8", "SoftMax-8", ["f32[2]"]),
    Refusal("c1-beyond-1", "SoftMax-1", ["f32[2,3]"], {"axis": 2}),
    Refusal("c1-negative-1", "SoftMax-1", ["f32[2,3]"], {"axis": -1}),
    Refusal("ir301-string", "SoftMax-8", ["string[2,3]"]),
]

CASES = [
    *[Case(f"{np.dtype(t).name}", "Softmax-8", [random(2, 3, dtype=t)], {"axis": 1}) for t in NUMERIC[:2]],
    *[Case(f"rank-{len(s)}-axis-{axis}{'-empty' * (0 in s)}", "Softmax-8", [random(*s)], {"axis": axis})
      for s in ((4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2)) for axis in {-len(s), -1, 0, len(s) // 2}],
    *[Case(f"opset1-axis-{axis}", "Softmax-1", [random(2, 3, 4)], {"axis": axis}) for axis in range(3)],
]  # fmt: skip
