"""Inverse-14."""

import ml_dtypes
import numpy as np

from kit import *

NAN = np.nan
EYE = np.eye(3, dtype=np.float32)
ADJOINT, PLAIN = {"adjoint": True}, {"adjoint": False}

VALUES = [
    Values("matrix", "Inverse-14", [[[0.5, 2], [4.0, 0]]], [[0, 0.25], [0.5, -0.0625]]),
    # OpenVINO: transposes the inverse, where the specification multiplies it with the determinant
    Values("adjoint", "Inverse-14", [[[0.5, 2], [4.0, 0]]], [[0, 0.5], [0.25, -0.0625]], ADJOINT),
    Values("batch", "Inverse-14", [[[[2.0]], [[4.0]]]], [[[0.5]], [[0.25]]]),
    Values(
        "one-singular",
        "Inverse-14",
        [[[[2.0, 0], [0, 2]], [[1, 1], [1, 1]]]],
        [[[0.5, 0], [0, 0.5]], [[NAN, NAN], [NAN, NAN]]],
    ),
    Values("no-matrices", "Inverse-14", [np.empty((0, 2, 2))], np.empty((0, 2, 2))),
    Values("no-elements", "Inverse-14", [np.empty((2, 0, 0))], np.empty((2, 0, 0))),
    Values("bf16", "Inverse-14", [np.array([[3]], ml_dtypes.bfloat16)], np.array([[1 / 3]], ml_dtypes.bfloat16)),
]

SHAPES = [
    Shapes("spec-1", "Inverse-14", ["f32[3,3]"], "f32[3,3]"),
    Shapes("spec-2", "Inverse-14", ["f32[2,4,4]"], "f32[2,4,4]", ADJOINT),
    Shapes("spec-3", "Inverse-14", ["f32[5,4,3,2,2]"], "f32[5,4,3,2,2]"),
    Shapes("square", "Inverse-14", ["f32[?,?,4]"], "f32[?,4,4]"),
    Shapes("unknown-rank", "Inverse-14", ["f16[...]"], "f16[...]"),
]

REFUSALS = [
    Refusal("c1-rank", "Inverse-14", ["f32[3]"]),
    Refusal("c2-oblong", "Inverse-14", ["f32[2,3]"]),
    Refusal("ir301-integers", "Inverse-14", ["i32[2,2]"]),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{attributes['adjoint']}",
        "Inverse-14",
        [(random(*shape) + 5 * np.eye(shape[-1])).astype(t)],
        attributes,
    )
    for shape in [(1, 1), (3, 3), (2, 4, 4), (0, 2, 2), (2, 1, 3, 2, 2)]
    for t in (np.float32, np.float16, np.float64)
    for attributes in (ADJOINT, PLAIN)
] + [Case("pivoting", "Inverse-14", [EYE[[1, 2, 0]] * np.float32(2)], PLAIN)]
