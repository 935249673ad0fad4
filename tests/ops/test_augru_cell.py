"""AUGRUCell. OpenVINO makes it, but does not read it from a file."""

from kit import *
from recurrent import refusals_of, shapes_of, values_of

_OP = "AUGRUCell-5"
_W, _R, _B = f32([[0], [0], [1]]), f32([[0], [0], [0]]), f32([0, 0, 0])

VALUES = [
    # z = 0.5 * (1 - a), and the new element counts 1 - z
    Values(
        "by-hand", _OP, [f32([[2], [2]]), f32([[8], [8]]), _W, _R, _B, f32([[0], [0.5]])], f32([[5], [3.5]]),
        {"hidden_size": 1, "activations": "sigmoid,relu"},
    ),
    *values_of(_OP),
]  # fmt: skip

SHAPES = shapes_of(_OP)
REFUSALS = refusals_of(_OP)
