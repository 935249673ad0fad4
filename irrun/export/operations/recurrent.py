"""RNN, GRU and LSTM. ONNX orders gates and axes differently."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from irrun.export.call import Call
from irrun.export.operations.constants import mapped
from irrun.export.operations.movement import as_i64, parts
from irrun.export.registry import converts

__all__: list[str] = []

_GATES: Final = {"LSTM": (1, 3, 0, 2), "GRU": (0, 1, 2), "RNN": (0,)}
"""The places of ONNX's gates among those of the IR: input, output, forget and cell gate among f, i, c and o."""
_ACTIVATIONS: Final = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}


@converts("LSTMSequence", "GRUSequence", "RNNSequence", computes="f32")
def sequence(call: Call) -> list[str]:
    """LSTM, GRU or RNN. Batch and time change places."""
    kind = call.op.type.removesuffix("Sequence")
    states = 2 if kind == "LSTM" else 1
    x = call("Transpose", call.input(0), perm=[1, 0, 2])
    hidden = [call("Transpose", call.input(1 + n), perm=[1, 0, 2]) for n in range(states)]
    lengths = call.cast(as_i64(call, 1 + states), "i32")
    w, r, b = (call.input(n) for n in range(2 + states, 5 + states))
    directions = 2 if call.op.direction == "bidirectional" else 1
    y, *last = _layer(call, kind, [x, w, r, b, lengths, *hidden], directions)
    return [call("Transpose", y, perm=[2, 1, 0, 3]), *(call("Transpose", name, perm=[1, 0, 2]) for name in last)]


@converts("LSTMCell", "GRUCell", "RNNCell", computes="f32")
def cell(call: Call) -> list[str]:
    """LSTM, GRU or RNN of a sequence with one element."""
    kind = call.op.type.removesuffix("Cell")
    states = 2 if kind == "LSTM" else 1
    call.require(len(call.inputs) < 7 or not call.given(6), "ONNX's LSTM has other peepholes")
    call.require(getattr(call.op, "weights_format", "fico") == "fico", "the gates have an old order")
    call.require(not getattr(call.op, "input_forget", False), "input and forget gate are coupled")
    x = call("Unsqueeze", call.input(0), [0])
    hidden = [call("Unsqueeze", call.input(1 + n), [0]) for n in range(states)]
    position = 1 + states
    w, r = (_leading(call, position + n) for n in range(2))
    b = _leading(call, position + 2) if call.given(position + 2) else None
    _, *last = _layer(call, kind, [x, w, r, b, None, *hidden], 1)
    return [call("Squeeze", name, [0]) for name in last]


def _leading(call: Call, position: int) -> str:
    """Return weights with an axis of directions in front."""
    name, shape = call.input(position), call.value(position).shape.static
    known = mapped(call, name, (1, *shape), lambda array: array[None]) if shape is not None else None
    return known or call("Unsqueeze", name, [0])


def _layer(call: Call, kind: str, operands: list[str | None], directions: int) -> list[str]:
    """Return the outputs of the node of ONNX. Its operands are the data, W, R, B, lengths and states of the IR.

    W, R and B have an axis of directions in front.
    """
    x, w, r, b, lengths, *hidden = operands
    op, size = call.op, call.op.hidden_size
    names = [name.strip().lower() for name in op.activations.split(",")]
    attributes: dict[str, Any] = {
        "hidden_size": size,
        "direction": getattr(op, "direction", "forward"),
        "activations": [_ACTIVATIONS[name] for name in names] * directions,
        "clip": op.clip or None,
    }
    linear = getattr(op, "linear_before_reset", False)
    if kind == "GRU":
        attributes["linear_before_reset"] = int(linear)
    assert w is not None
    assert r is not None
    w, r = _ordered(call, w, kind), _ordered(call, r, kind)
    if b is not None:
        b = _biases(call, b, kind, linear, size, directions)
    if op.clip and kind == "LSTM":
        call.refuse("onnxruntime clips other values of an LSTM")
    return call.many(kind, x, w, r, b, lengths, *hidden, outputs=1 + len(hidden), **attributes)


def _ordered(call: Call, name: str, kind: str) -> str:
    """Return weights [directions, gates * size, …] in the order of ONNX's gates."""
    gates = _GATES[kind]
    if gates == tuple(range(len(gates))):
        return name
    constant = call.graph.shared.constants.get(name)

    def function(array: np.ndarray) -> np.ndarray:
        split = array.reshape(array.shape[0], len(gates), -1, *array.shape[2:])
        return split[:, list(gates)].reshape(array.shape)

    known = mapped(call, name, constant.shape, function) if constant is not None else None
    if known is not None:
        return known
    pieces = parts(call, name, len(gates), 1)
    return call("Concat", *(pieces[gate] for gate in gates), axis=1)


def _biases(call: Call, b: str, kind: str, linear: bool, size: int, directions: int) -> str:
    """Return the biases of inputs and states, which the IR adds up: those of states are 0, but for a linear GRU."""
    if linear and kind == "GRU":
        gates = parts(call, b, 4, 1)
        zeros = np.zeros((directions, 2 * size), call.type.dtype)
        return call("Concat", *gates[:3], zeros, gates[3], axis=1)
    zeros = np.zeros((directions, len(_GATES[kind]) * size), call.type.dtype)
    return call("Concat", _ordered(call, b, kind), zeros, axis=1)
