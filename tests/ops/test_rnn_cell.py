"""RNNCell-1."""

from kit import *
from recurrent import cases_of, refusals_of, shapes_of, values_of

_OP = "RNNCell-1"
_PLAIN = {"hidden_size": 1, "activations": "relu"}

VALUES = [
    # 2 * 3 + 10 * 0.5 + 1
    Values("by-hand", _OP, [f32([[3]]), f32([[0.5]]), f32([[2]]), f32([[10]]), f32([1])], f32([[12]]), _PLAIN),
    Values(
        "clip", _OP, [f32([[3]]), f32([[0.5]]), f32([[2]]), f32([[10]]), f32([0])], f32([[4]]), _PLAIN | {"clip": 4}
    ),
    *values_of(_OP),
]

SHAPES = shapes_of(_OP)
REFUSALS = [
    *refusals_of(_OP),
    Refusal("ir205-no-bias", _OP, ["f32[2,3]", "f32[2,4]", "f32[4,3]", "f32[4,4]"], {"hidden_size": 4}),
]
CASES = cases_of(_OP)
