"""LSTMCell-1 and LSTMCell-4."""

from kit import *
from recurrent import cases_of, inputs, refusals_of, shapes_of, values_of

_PLAIN = {"hidden_size": 1, "activations": "relu,relu,relu"}
# f = 2, i = 3, c = 5, o = 7
_BY_HAND = [f32([[1]]), f32([[0]]), f32([[10]]), f32([[2], [3], [5], [7]]), f32([[0]] * 4), f32([0, 0, 0, 0])]
_AFTER = (f32([[7 * 35]]), f32([[2 * 10 + 3 * 5]]))
_CELL = {"hidden_size": 4, "activations": ["sigmoid", "tanh", "tanh"]}
_PEEPHOLES = random(12, seed=9)

VALUES = [
    *[Values(f"by-hand-{op}", op, _BY_HAND, _AFTER, _PLAIN) for op in ("LSTMCell-4", "LSTMCell-1")],
    *[Values(f"no-bias-{op}", op, _BY_HAND[:-1], _AFTER, _PLAIN) for op in ("LSTMCell-4", "LSTMCell-1")],
    # not on the page, and ignored: the gates are f, i, c, o, and i is not 1 - f
    *[Values(f"weights-format-{order}", "LSTMCell-1", _BY_HAND, _AFTER, _PLAIN | {"weights_format": order}) for order in ("fico", "icof", "ifco", "ifoc", "iofc")],
    Values("input-forget", "LSTMCell-1", _BY_HAND, _AFTER, _PLAIN | {"input_forget": True}),
    # only the gates are clipped, not the cell state that h sees
    Values("clip", "LSTMCell-4", _BY_HAND, (f32([[4 * 32]]), f32([[2 * 10 + 3 * 4]])), _PLAIN | {"clip": 4}),
    *values_of("LSTMCell-4"),
]  # fmt: skip

REFUSALS = [
    *refusals_of("LSTMCell-4"),
    *refusals_of("LSTMCell-1"),
    Refusal("c2-peepholes", "LSTMCell-1", [f"f32[{d}]" for d in ("1,2", "1,1", "1,1", "4,2", "4,1", "4", "1,3")], {"hidden_size": 1}),
    Refusal("c3-peepholes", "LSTMCell-1", [f"f32[{d}]" for d in ("1,2", "1,1", "1,1", "4,2", "4,1", "4", "4")], {"hidden_size": 1}),
]  # fmt: skip

CASES = [
    *cases_of("LSTMCell-4"),
    *cases_of("LSTMCell-1"),
    # OpenVINO: its CPU plugin heeds none of these
    *[Case(f"weights-format-{n}", "LSTMCell-1", inputs("LSTMCell-1"), _CELL | {"weights_format": n}) for n in ("fico", "icof", "ifco", "ifoc", "iofc")],
    Case("input-forget", "LSTMCell-1", inputs("LSTMCell-1"), _CELL | {"input_forget": True}),
    Case("peepholes", "LSTMCell-1", [*inputs("LSTMCell-1"), _PEEPHOLES], _CELL, constants=[6]),
    Case("no-bias", "LSTMCell-1", inputs("LSTMCell-1")[:-1], _CELL),
]  # fmt: skip

SHAPES = shapes_of("LSTMCell-4") + shapes_of("LSTMCell-1")
