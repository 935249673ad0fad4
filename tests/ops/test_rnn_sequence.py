"""RNNSequence-5."""

import numpy as np

from kit import *
from recurrent import cases_of, refusals_of, shapes_of, values_of

_OP = "RNNSequence-5"
_SUM = {"hidden_size": 1, "activations": "relu"}  # with weights of 1: the sum of all elements so far
_ONE = f32([[[1]]])


def _summed(direction: str, lengths: list[int], y: list[list[int]], last: list[int]) -> Values:
    x = f32([[[1], [2], [4]]] * len(lengths))
    inputs = [x, np.full((len(lengths), 1, 1), 10, np.float32), i64(*lengths), _ONE, _ONE, f32([[0]])]
    expected = (f32(y).reshape(-1, 1, 3, 1), f32(last).reshape(-1, 1, 1))
    return Values(f"by-hand-{direction}-{lengths}", _OP, inputs, expected, _SUM | {"direction": direction})


VALUES = [
    _summed("forward", [3], [[11, 13, 17]], [17]),
    _summed("reverse", [3], [[17, 16, 14]], [17]),
    # OpenVINO: no elements leave zeros, not the initial state
    _summed("forward", [3, 2, 0], [[11, 13, 17], [11, 13, 0], [0, 0, 0]], [17, 13, 0]),
    _summed("reverse", [2, 1, 3], [[13, 12, 0], [11, 0, 0], [17, 16, 14]], [13, 11, 17]),
    # OpenVINO: the specification leaves lengths beyond the sequence undefined, and OpenVINO gives zeros or an error
    _summed("forward", [4], [[11, 13, 17]], [17]),
    *values_of(_OP),
]

SHAPES = shapes_of(_OP)
REFUSALS = refusals_of(_OP)
CASES = cases_of(_OP)
