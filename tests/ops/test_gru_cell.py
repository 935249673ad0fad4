"""GRUCell-3."""

from kit import *
from recurrent import cases_of, refusals_of, shapes_of, values_of

_OP = "GRUCell-3"
_PLAIN = {"hidden_size": 1, "activations": "relu,relu"}
_X, _H = f32([[1]]), f32([[10]])
_W, _R = f32([[0.25], [2], [3]]), f32([[0], [0], [1]])  # z = 0.25, r = 2

VALUES = [
    # h = 3 + 2 * 10
    Values("by-hand", _OP, [_X, _H, _W, _R, f32([0, 0, 0])], f32([[0.75 * 23 + 0.25 * 10]]), _PLAIN),
    Values("no-bias", _OP, [_X, _H, _W, _R], f32([[0.75 * 23 + 0.25 * 10]]), _PLAIN),
    # h = 3 + 2 * (10 + 5) + 100
    Values(
        "by-hand-linear-before-reset", _OP, [_X, _H, _W, _R, f32([0, 0, 100, 5])], f32([[0.75 * 133 + 0.25 * 10]]),
        _PLAIN | {"linear_before_reset": True},
    ),
    Values(
        "no-bias-linear-before-reset", _OP, [_X, _H, _W, _R], f32([[0.75 * 23 + 0.25 * 10]]),
        _PLAIN | {"linear_before_reset": True},
    ),
    *values_of(_OP),
]  # fmt: skip

SHAPES = shapes_of(_OP)
REFUSALS = refusals_of(_OP)
CASES = cases_of(_OP)
