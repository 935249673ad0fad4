"""GRUSequence-5."""

from kit import *
from recurrent import cases_of, refusals_of, shapes_of, values_of

_OP = "GRUSequence-5"
_W, _R = f32([[[0], [0], [1]]]), f32([[[0], [0], [0]]])  # half of the new element and half of what was before

VALUES = [
    Values(
        "by-hand", _OP, [f32([[[2], [4], [8]]]), f32([[[8]]]), i64(3), _W, _R, f32([[0, 0, 0]])],
        (f32([[[[5], [4.5], [6.25]]]]), f32([[[6.25]]])), {"hidden_size": 1, "activations": "sigmoid,relu"},
    ),
    Values(
        "by-hand-reverse", _OP, [f32([[[2], [4], [8]]]), f32([[[8]]]), i64(3), _W, _R, f32([[0, 0, 0, 0]])],
        (f32([[[[4], [6], [8]]]]), f32([[[4]]])),
        {"hidden_size": 1, "activations": "sigmoid, relu", "direction": "reverse", "linear_before_reset": True},
    ),
    *values_of(_OP),
]  # fmt: skip

SHAPES = shapes_of(_OP)
REFUSALS = refusals_of(_OP)
CASES = cases_of(_OP)
