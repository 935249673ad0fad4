"""GroupNormalization-12."""

from typing import Any

import ml_dtypes
import numpy as np

from kit import *

OP = "GroupNormalization-12"


def _groups(groups: int, epsilon: float = 1e-12) -> dict[str, Any]:
    return {"num_groups": groups, "epsilon": epsilon}


def f(*numbers: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(numbers, dtype)


_X = np.array([[[1], [3], [10], [20]]], np.float32)
_UNIT, _NONE = f(1, 1, 1, 1), f(0, 0, 0, 0)

VALUES = [
    Values("pairs", OP, [_X, _UNIT, _NONE], [[[-1], [1], [-1], [1]]], _groups(2)),
    Values("scale-bias", OP, [_X, f(1, 2, 3, 4), f(10, 20, 30, 40)], [[[9], [22], [27], [44]]], _groups(2)),
    Values("epsilon", OP, [_X, _UNIT, _NONE], np.array([[[-1 / 2], [1 / 2], [-5 / 28**0.5], [5 / 28**0.5]]]), _groups(2, 3)),
    Values("each-channel-alone", OP, [_X, _UNIT, f(1, 2, 3, 4)], [[[1], [2], [3], [4]]], _groups(4)),
    Values("2d", OP, [_X[..., 0], _UNIT, _NONE], [[-1, 1, -1, 1]], _groups(2)),
    Values("f16-beyond-its-squares", OP, [f(-600, 600, dtype=np.float16).reshape(1, 2), f(1, 1, dtype=np.float16), f(0, 0, dtype=np.float16)], np.array([[-1, 1]], np.float16), _groups(1)),
    Values("bf16", OP, [np.array([[1, 3]], ml_dtypes.bfloat16), np.array([1, 1], ml_dtypes.bfloat16), np.array([0, 1], ml_dtypes.bfloat16)], [[-1, 2]], _groups(1)),
    Values("no-batch", OP, [np.zeros((0, 4, 2), np.float32), _UNIT, _NONE], np.zeros((0, 4, 2)), _groups(2)),
    Values("no-pixels", OP, [np.zeros((2, 4, 0), np.float32), _UNIT, _NONE], np.zeros((2, 4, 0)), _groups(2)),
]  # fmt: skip

SHAPES = [
    Shapes("spec", OP, ["f32[3,12,100,100]", "f32[12]", "f32[12]"], "f32[3,12,100,100]", _groups(4)),
    Shapes("unknown-rank", OP, ["f32[...]", "f32[12]", "f32[?]"], "f32[...]", _groups(4)),
    Shapes("channels-told", OP, ["f32[?,?,5]", "f32[...]", "f32[12]"], "f32[?,12,5]", _groups(4)),
    Shapes("channels-interval", OP, ["f32[?,5..9,5]", "f32[?]", "f32[...]"], "f32[?,5..9,5]", _groups(4)),
]

REFUSALS = [
    Refusal("c1-rank", OP, ["f32[4]", "f32[4]", "f32[4]"], _groups(2)),
    Refusal("c2-scale", OP, ["f32[1,4]", "f32[3]", "f32[4]"], _groups(2)),
    Refusal("c2-bias", OP, ["f32[1,4]", "f32[4]", "f32[1]"], _groups(2)),
    Refusal("c2-each-other", OP, ["f32[...]", "f32[4]", "f32[2]"], _groups(2)),
    Refusal("c2-2d", OP, ["f32[1,4]", "f32[4,1]", "f32[4]"], _groups(2)),
    Refusal("c3-divide", OP, ["f32[1,4]", "f32[4]", "f32[4]"], _groups(3)),
    Refusal("c3-more-than-channels", OP, ["f32[1,..4]", "f32[?]", "f32[?]"], _groups(5)),
    Refusal("c3-none", OP, ["f32[1,4]", "f32[4]", "f32[4]"], _groups(0)),
    Refusal("c4-epsilon", OP, ["f32[1,4]", "f32[4]", "f32[4]"], _groups(2) | {"epsilon": 0}),
    Refusal("ir301-integers", OP, ["i32[1,4]", "i32[4]", "i32[4]"], _groups(2)),
    Refusal("ir301-boolean", OP, ["boolean[1,4]", "boolean[4]", "boolean[4]"], _groups(2)),
    Refusal("ir302-types", OP, ["f16[1,4]", "f32[4]", "f32[4]"], _groups(2)),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(s)}-{groups}-{epsilon}",
        OP,
        [random(*s, dtype=t), random(s[1], dtype=t, seed=1), random(s[1], dtype=t, seed=2)],
        _groups(groups, epsilon),
        shapes=[1, 2],
    )
    for t in (np.float32, np.float16)
    for s in [(2, 6), (2, 6, 3), (0, 6, 3), (2, 6, 0), (2, 6, 3, 2), (1, 6, 2, 3, 2)]
    for groups in (1, 2, 6)
    for epsilon in (1e-3, 0.5)
]
