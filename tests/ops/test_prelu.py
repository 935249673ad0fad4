"""PReLU-1."""

import ml_dtypes
import numpy as np

from kit import *

_X = -np.ones((2, 3, 3), np.float32)
_SLOPE = arange(3, start=1)

VALUES = [
    Values("one-slope", "PReLU-1", [np.array([-2, -0.0, 3], np.float32), np.array([0.5], np.float32)], [-1, 0, 3]),
    Values("slope-per-channel", "PReLU-1", [_X, _SLOPE], np.broadcast_to([[-1], [-2], [-3]], (2, 3, 3))),
    Values("channel-wins-over-numpy", "PReLU-1", [_X[0], _SLOPE], np.broadcast_to([-1, -2, -3], (3, 3))),
    Values("numpy-of-last-dim", "PReLU-1", [_X[:, :2], _SLOPE], np.broadcast_to([-1, -2, -3], (2, 2, 3))),
    Values("1d-data", "PReLU-1", [_X[0, 0], _SLOPE], [-1, -2, -3]),
    Values("slope-with-leading-1s", "PReLU-1", [_X[0], _SLOPE.reshape(1, 1, 3, 1)], np.broadcast_to([[-1], [-2], [-3]], (3, 3))),
    Values("scalars", "PReLU-1", [np.float32(-2), np.float32(3)], -6),
    Values("nan-inf", "PReLU-1", [np.array([np.nan, -np.inf, np.inf], np.float32), np.array([0], np.float32)], [np.nan, np.nan, np.inf]),
    Values("infinite", "PReLU-1", [np.array([-np.inf, np.inf], np.float32), np.array([2], np.float32)], [-np.inf, np.inf]),
    Values("bf16", "PReLU-1", [np.array([-2, 2], ml_dtypes.bfloat16), np.array([0.5], ml_dtypes.bfloat16)], [-1, 2]),
    Values("f16", "PReLU-1", [np.array([-2, 2], np.float16), np.array([0.5], np.float16)], [-1, 2]),
]  # fmt: skip

SHAPES = [
    Shapes("spec-1d", "PReLU-1", ["f32[128]", "f32[1]"], "f32[128]"),
    Shapes("spec-2d", "PReLU-1", ["f32[20,128]", "f32[128]"], "f32[20,128]"),
    Shapes("spec-4d", "PReLU-1", ["f32[1,20,128,128]", "f32[20]"], "f32[1,20,128,128]"),
    Shapes("slope-of-full-rank", "PReLU-1", ["f32[1,20,8,8]", "f32[20,1,1]"], "f32[1,20,8,8]"),
    Shapes("unknown-channels", "PReLU-1", ["f32[?,?,8]", "f32[20]"], "f32[?,?,8]"),
    Shapes("unknown-slope", "PReLU-1", ["f32[2,3]", "f32[...]"], "f32[2,3]"),
    Shapes("unknown-data", "PReLU-1", ["f32[...]", "f32[3]"], "f32[...]"),
    Shapes("unknown-slope-dim", "PReLU-1", ["f32[2,3]", "f32[?]"], "f32[2,3]"),
    Shapes("interval", "PReLU-1", ["f32[2,1..8,5]", "f32[3]"], "f32[2,1..8,5]"),
    Shapes("scalar-data", "PReLU-1", ["f32[]", "f32[1]"], "f32[]"),
]

REFUSALS = [
    Refusal("c1-neither-channel-nor-last", "PReLU-1", ["f32[2,3,4]", "f32[5]"]),
    Refusal("c1-first-dim", "PReLU-1", ["f32[2,3]", "f32[2]"]),
    Refusal("c1-interval", "PReLU-1", ["f32[2,4..8,5]", "f32[3]"]),
    Refusal("c1-data-would-grow", "PReLU-1", ["f32[2,1,4]", "f32[3,1]"]),
    Refusal("c1-rank-would-grow", "PReLU-1", ["f32[3,4]", "f32[2,3,4]"]),
    Refusal("c1-inner-dim", "PReLU-1", ["f32[2,3,4]", "f32[1,3]"]),
    *(Refusal(f"ir301-{type}", "PReLU-1", [f"{type}[2]", f"{type}[1]"]) for type in ("i32", "boolean", "string")),
    Refusal("ir302-types", "PReLU-1", ["f32[2]", "f16[1]"]),
    Refusal("ir205-arity", "PReLU-1", ["f32[2]"]),
]

_SHAPES = [
    ((), ()), ((), (1,)), ((3,), (1,)), ((3,), (3,)), ((2, 3), ()), ((2, 3), (3,)), ((3, 3), (3,)), ((0, 3), (3,)),
    ((2, 3, 4), (3,)), ((2, 3, 4), (4,)), ((2, 4, 4), (4,)), ((2, 3, 4), (3, 1)), ((2, 3, 4), (1, 1, 3, 4)),
    ((2, 3, 0, 4), (3,)), ((1, 2, 3, 4), (2, 1, 1)), ((1, 2, 3, 2, 2), (2,)), ((1, 2, 3, 2, 2), (1, 2, 3, 2, 2)),
]  # fmt: skip

CASES = [
    Case(f"{np.dtype(t).name}-{list(data)}-{list(slope)}", "PRelu-1", [random(*data, dtype=t), random(*slope, dtype=t, seed=1)])
    for t in (np.float32, np.float16) for data, slope in _SHAPES
] + [
    Case(f"constant-{list(data)}-{list(slope)}", "PRelu-1", [random(*data), random(*slope, seed=1)], constants=[1])
    for data, slope in _SHAPES
]  # fmt: skip
