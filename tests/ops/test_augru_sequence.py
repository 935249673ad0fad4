"""AUGRUSequence. OpenVINO makes it, but does not read it from a file."""

from kit import *
from recurrent import refusals_of, shapes_of, values_of

_OP = "AUGRUSequence-5"
_W, _R, _B = f32([[[0], [0], [100]]]), f32([[[0], [0], [0]]]), f32([[0, 0, 0]])

VALUES = [
    Values(
        "by-hand", _OP, [f32([[[2], [2]]]), f32([[[8]]]), i64(2), _W, _R, _B, f32([[[0], [0.5]]])],
        (f32([[[[4.5], [1.875]]]]), f32([[[1.875]]])), {"hidden_size": 1},
    ),
    *values_of(_OP),
]  # fmt: skip

SHAPES = shapes_of(_OP)
REFUSALS = refusals_of(_OP)
