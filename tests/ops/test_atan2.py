"""Atan2-17, which the OpenVINO at hand does not have yet."""

import ml_dtypes
import numpy as np

from broadcasting import NUMPY, PDPD, pdpd, rule_refusals, rule_shapes
from kit import *

PI = np.pi


def f(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


_NUMPY = [(a, b, random(*a), random(*b, seed=1)) for a, b, _ in NUMPY]
_PDPD = [(a, b, axis, random(*a), random(*b, seed=1), aligned) for a, b, axis, aligned in PDPD]

VALUES = [
    Values("quadrants", "Atan2-17", [f(1, 1, -1, -1), f(1, -1, 1, -1)], f(PI / 4, 3 * PI / 4, -PI / 4, -3 * PI / 4)),
    Values("axes", "Atan2-17", [f(0, 1, 0, -1), f(1, 0, -1, 0)], f(0, PI / 2, PI, -PI / 2)),
    Values("zeros", "Atan2-17", [f(0.0, -0.0, 0.0, -0.0), f(0.0, 0.0, -0.0, -0.0)], f(0, 0, PI, -PI)),
    Values("infinities", "Atan2-17", [f(np.inf, -np.inf, 1, np.nan), f(np.inf, -np.inf, -np.inf, 1)], f(PI / 4, -3 * PI / 4, PI, np.nan)),
    Values("f64", "Atan2-17", [[1.0], [2.0]], [0.4636476090008061], rtol=1e-15),
    Values("f16", "Atan2-17", [f(1).astype(np.float16), f(1).astype(np.float16)], f(PI / 4).astype(np.float16)),
    Values("bf16", "Atan2-17", [f(1).astype(ml_dtypes.bfloat16), f(1).astype(ml_dtypes.bfloat16)], f(PI / 4).astype(ml_dtypes.bfloat16)),
    Values("no-elements", "Atan2-17", [np.zeros((2, 0)), np.zeros(1)], np.zeros((2, 0))),
    *(Values(f"rules-numpy-{a}-{b}", "Atan2-17", [y, x], np.arctan2(y, x)) for a, b, y, x in _NUMPY),
    *(Values(f"rules-pdpd-{a}-{b}-{axis}", "Atan2-17", [y, x], np.arctan2(y, x.reshape(aligned)), pdpd(axis)) for a, b, axis, y, x, aligned in _PDPD),
]  # fmt: skip

REFUSALS = [
    *rule_refusals("Atan2-17", "f32"),
    Refusal("ir301-integers", "Atan2-17", ["i32[2]", "i32[2]"]),
    Refusal("ir302-types", "Atan2-17", ["f32[2]", "f16[2]"]),
]

SHAPES = rule_shapes("Atan2-17", "f32")
