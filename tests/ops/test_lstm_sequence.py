"""LSTMSequence-5."""

from kit import *
from recurrent import cases_of, refusals_of, shapes_of, values_of

_OP = "LSTMSequence-5"
# f = i = o = 1, so that the cell state is the sum of the elements
_W, _R, _B = f32([[[0], [0], [1], [0]]]), f32([[[0]] * 4]), f32([[1, 1, 0, 1]])
_SUM = {"hidden_size": 1, "activations": "relu,relu,relu"}

VALUES = [
    Values(
        "by-hand", _OP, [f32([[[1], [2], [4]]]), f32([[[0]]]), f32([[[10]]]), i64(3), _W, _R, _B],
        (f32([[[[11], [13], [17]]]]), f32([[[17]]]), f32([[[17]]])), _SUM,
    ),
    Values(
        "by-hand-reverse", _OP, [f32([[[1], [2], [4]]]), f32([[[0]]]), f32([[[10]]]), i64(2), _W, _R, _B],
        (f32([[[[13], [12], [0]]]]), f32([[[13]]]), f32([[[13]]])), _SUM | {"direction": "reverse"},
    ),
    *values_of(_OP),
]  # fmt: skip

SHAPES = shapes_of(_OP)
REFUSALS = refusals_of(_OP)
CASES = cases_of(_OP)
