"""GRN-1."""

import ml_dtypes
import numpy as np

from kit import *

OP = "GRN-1"

_X = np.array([[3, 4, 0], [-6, 8, 0]], np.float32)

VALUES = [
    Values("rows", OP, [_X], [[0.6, 0.8, 0], [-0.6, 0.8, 0]], {"bias": 1e-12}),
    Values("bias", OP, [_X], _X / np.sqrt(np.array([[36], [111]], np.float32)), {"bias": 11}),
    Values("spatial", OP, [_X.reshape(1, 2, 3, 1)], (_X / np.sqrt(np.array([45, 80, 1], np.float32))).reshape(1, 2, 3, 1), {"bias": 1e-12}),
    Values("f16-beyond-its-squares", OP, [np.array([[300, 400]], np.float16)], np.array([[0.6, 0.8]], np.float16), {"bias": 1}),
    Values("bf16", OP, [np.array([[3, 4]], ml_dtypes.bfloat16)], np.array([[0.6, 0.8]], ml_dtypes.bfloat16), {"bias": 1e-12}),
]  # fmt: skip

SHAPES = [
    Shapes("spec", OP, ["f32[1,20,224,224]"], "f32[1,20,224,224]", {"bias": 1e-4}),
    Shapes("unknown-rank", OP, ["f16[...]"], "f16[...]", {"bias": 1e-4}),
    Shapes("unknown-dims", OP, ["f16[?,3]"], "f16[?,3]", {"bias": 1e-4}),
]

REFUSALS = [
    Refusal("c1-1d", OP, ["f32[3]"], {"bias": 1}),
    Refusal("c1-5d", OP, ["f32[1,2,3,4,5]"], {"bias": 1}),
    Refusal("c2-bias", OP, ["f32[1,2]"], {"bias": 0}),
    Refusal("ir301-integers", OP, ["i32[2,3]"], {"bias": 1}),
    Refusal("ir301-string", OP, ["string[2,3]"], {"bias": 1}),
]

CASES = [
    Case(f"{np.dtype(t).name}-{list(s)}-{bias}", OP, [random(*s, dtype=t)], {"bias": bias})
    for t in (np.float32, np.float16)
    for s in [(2, 3), (1, 3, 4), (0, 3), (2, 3, 4, 2)]
    for bias in (1e-6, 0.5)
]
