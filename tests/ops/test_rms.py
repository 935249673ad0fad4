"""RMS, which OpenVINO makes within its plugins and does not read."""

from typing import Any

import ml_dtypes
import numpy as np

from kit import *

OP = "RMS-14"
EPS: dict[str, Any] = {"epsilon": 1e-6}


def f(*numbers: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(numbers, dtype)


_X = random(2, 3, 4)

VALUES = [
    Values("row", OP, [f(1, 7), f(1, 10)], f(0.2, 14), EPS),
    Values("epsilon", OP, [f(1, 7), f(1, 1)], f(1 / 6, 7 / 6), {"epsilon": 11}),
    Values("last-axis", OP, [_X, f(1, 2, 3, 4)], _X / np.sqrt((_X**2).mean(-1, keepdims=True) + 1e-6) * [1, 2, 3, 4], EPS),
    Values("no-gamma", OP, [f(1, 7)], f(0.2, 1.4), EPS | {"elementwise_affine": False}),
    Values("gamma-for-all", OP, [f(1, 7), f(10)], f(2, 14), EPS),
    Values("f16-beyond-its-squares", OP, [f(600, 600, dtype=np.float16), f(1, 1, dtype=np.float16)], f(1, 1, dtype=np.float16), EPS),
    Values("bf16", OP, [f(2, 2, dtype=ml_dtypes.bfloat16), f(1, 2, dtype=ml_dtypes.bfloat16)], f(1, 2, dtype=ml_dtypes.bfloat16), EPS),
    Values("output-type", OP, [f(1, 7), f(1, 10)], f(0.2, 14, dtype=np.float16), EPS | {"output_type": "f16"}, rtol=1e-3),
    Values("gamma-of-another-type", OP, [f(2, 2, dtype=np.float16), f(1, 3)], f(1, 3, dtype=np.float16), EPS),
    Values("no-elements", OP, [np.zeros((2, 0), np.float32)], np.zeros((2, 0)), EPS),
]  # fmt: skip

SHAPES = [
    Shapes("gamma", OP, ["f32[?,5,8]", "f32[8]"], "f32[?,5,8]", EPS),
    Shapes("gamma-of-full-rank", OP, ["f32[?,5,8]", "f32[1,1,8]"], "f32[?,5,8]", EPS),
    Shapes("unknown-rank", OP, ["f32[...]", "f32[8]"], "f32[...]", EPS),
    Shapes("output-type", OP, ["f32[2,8]", "f32[8]"], "f16[2,8]", EPS | {"output_type": "f16"}),
]

REFUSALS = [
    Refusal("c1-scalar", OP, ["f32[]"], EPS),
    Refusal("c2-dim", OP, ["f32[2,8]", "f32[7]"], EPS),
    Refusal("c2-rank", OP, ["f32[8]", "f32[1,8]"], EPS),
    Refusal("ir301-i32", OP, ["i32[8]", "i32[8]"], EPS),
]
