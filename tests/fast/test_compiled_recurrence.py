"""Compiled LSTM and GRU against numpy in f64."""

from __future__ import annotations

import time

import numpy as np
import pytest

from irrun import fast
from irrun.base.deadline import OutOfTime, ends_at
from irrun.growing.layouts import LAYOUTS
from irrun.kernels import recurrence as by_numpy
from irrun.opdef import Request, Value
from kit import operation

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast import recurrence

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def expected(
    kind: str, x: np.ndarray, states: list[np.ndarray], w: np.ndarray, r: np.ndarray, b: np.ndarray, backwards: bool
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the hidden states [batch, time, hidden] and the last states, by the formulas of the specification."""
    x, w, r, b = (a.astype(np.float64) for a in (x, w, r, b))
    n, (h, *rest) = r.shape[1], [state.astype(np.float64) for state in states]
    y = np.zeros((*x.shape[:2], n))
    for t in range(x.shape[1])[:: -1 if backwards else 1]:
        a, c = x[:, t] @ w.T, h @ r.T
        if kind == "lstm":
            f, i, g, o = np.split(a + c + b, 4, 1)
            rest[0] = sigmoid(f) * rest[0] + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(rest[0])
        else:
            update, reset = np.split(sigmoid((a + c + b[: 3 * n])[:, : 2 * n]), 2, 1)
            inner = (reset * h) @ r[2 * n :].T if kind == "gru" else reset * (c[:, 2 * n :] + b[3 * n :])
            h = (1 - update) * np.tanh(a[:, 2 * n :] + inner + b[2 * n : 3 * n]) + update * h
        y[:, t] = h
    return y, [h, *rest]


KINDS = [("lstm", 4, 4, 2), ("gru", 3, 3, 1), ("gru_linear", 3, 4, 1)]
"""Function, gates, biases and states."""


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize(
    ("batch", "steps", "size", "hidden"),
    [(1, 9, 5, 16), (3, 4, 33, 70), (2, 1, 1, 1), (7, 2, 8, 3), (0, 3, 5, 4), (2, 0, 5, 4)],
)
@pytest.mark.parametrize(("kind", "gates", "biases", "count"), KINDS)
def test_layers(
    kind: str, gates: int, biases: int, count: int, batch: int, steps: int, size: int, hidden: int, halves: bool,
    backwards: bool,
) -> None:  # fmt: skip
    """Weights that f16 holds and others, one row and several, in an array whose directions lie between them."""
    w, r = normal(gates * hidden, size) / 2, normal(gates * hidden, hidden) / 4
    if halves:
        w, r = (a.astype(np.float16).astype(np.float32) for a in (w, r))
    b, x = normal(biases * hidden), normal(batch, steps, size)
    states = [normal(batch, hidden) for _ in range(count)]
    wanted, last = expected(kind, x, states, w, r, b, backwards)
    packed = getattr(recurrence, kind)(w, r, b)
    assert packed.recurrent[0].panels.dtype == (np.uint16 if halves else np.float32)
    y = np.full((batch, 2, steps, hidden), 9, np.float32)
    before = [state.copy() for state in states]
    got = packed.run(x, tuple(states), y[:, 1], backwards=backwards)
    np.testing.assert_allclose(y[:, 1], wanted, atol=2e-5)
    assert (y[:, 0] == 9).all()
    for a, c in zip(got, last, strict=True):
        np.testing.assert_allclose(a, c, atol=2e-5)
    np.testing.assert_array_equal(states, before)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("kind", "gates", "biases", "count"), KINDS)
def test_states_in_any_memory(kind: str, gates: int, biases: int, count: int, layout: str) -> None:
    batch, size, hidden = 4, 6, 20
    w, r, b = normal(gates * hidden, size), normal(gates * hidden, hidden) / 4, normal(biases * hidden)
    x, *states = (LAYOUTS[layout](normal(*shape)) for shape in [(batch, 3, size), *[(batch, hidden)] * count])
    wanted, last = expected(kind, x, states, w, r, b, backwards=False)
    y = np.empty((batch, 3, hidden), np.float32)
    got = getattr(recurrence, kind)(w, r, b).run(x, tuple(states), y)
    np.testing.assert_allclose(y, wanted, atol=2e-5)
    for a, c in zip(got, last, strict=True):
        np.testing.assert_allclose(a, c, atol=2e-5)


def test_more_steps_than_are_computed_at_once() -> None:
    hidden, steps = 8, recurrence._ELEMENTS_PER_CALL * 2 + 3
    w, r, b = normal(32, 2), normal(32, hidden) / 4, normal(32)
    x, states = normal(1, steps, 2), [normal(1, hidden), normal(1, hidden)]
    for backwards in (False, True):
        y = np.empty((1, steps, hidden), np.float32)
        wanted, last = expected("lstm", x, states, w, r, b, backwards)
        got = recurrence.lstm(w, r, b).run(x, tuple(states), y, backwards=backwards)
        np.testing.assert_allclose(y, wanted, atol=2e-5)
        np.testing.assert_allclose(got, last, atol=2e-5)


def test_large_gates() -> None:
    """Gates that saturate, and infinities: no overflow becomes NaN."""
    hidden = 4
    w, r, b = normal(16, 2) * 1e3, normal(16, hidden) * 1e3, np.zeros(16, np.float32)
    x, states = np.array([[[1, -1], [1e30, 1e30]]], np.float32), [normal(1, hidden), normal(1, hidden)]
    y = np.empty((1, 2, hidden), np.float32)
    recurrence.lstm(w, r, b).run(x, tuple(states), y)
    with np.errstate(over="ignore"):
        wanted, _ = expected("lstm", x, states, w, r, b, False)
    np.testing.assert_allclose(y, wanted, atol=1e-5)


def test_the_deadline_ends_a_layer() -> None:
    packed = recurrence.lstm(normal(16, 2), normal(16, 4), normal(16))
    with ends_at(time.monotonic() - 1), pytest.raises(OutOfTime):
        packed.run(normal(1, 3, 2), (normal(1, 4), normal(1, 4)), np.empty((1, 3, 4), np.float32))


def test_the_plan_chooses() -> None:
    """Compiled kernels for weights that are large enough, in f32; the weights count as they are held."""
    for hidden, dtype, name in ((32, np.float32, "compiled"), (4, np.float32, "numpy"), (32, np.float64, "numpy")):
        w, r, b = (
            np.asarray(normal(*shape), dtype) for shape in ((4 * hidden, 8), (4 * hidden, hidden), (4 * hidden,))
        )
        op = operation("LSTMCell-4", {"hidden_size": hidden})
        x, state = np.asarray(normal(2, 8), dtype), np.asarray(normal(2, hidden), dtype)
        inputs = (x, state, state, w, r, b)
        known = [Value(Value.of(a).type, Value.of(a).shape) for a in inputs[:3]] + [Value.of(a) for a in inputs[3:]]
        compiled = fast.kernel(op, Request(tuple(known)))
        assert (compiled is not None) == (name == "compiled")
        kernel = compiled or op.prepare(Request(tuple(known)))
        assert kernel is not None
        packed = (recurrence.lstm if compiled else by_numpy.lstm)(w, r, b)
        assert kernel.packing.bytes == packed.nbytes
        for got, wanted in zip(kernel.call(*inputs), op.run(*inputs), strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_sequences(direction: str) -> None:
    """All directions of a layer, and lengths that are only known in a run."""
    ways = 2 if direction == "bidirectional" else 1
    op = operation("GRUSequence-5", {"hidden_size": 40, "direction": direction, "linear_before_reset": "true"})
    x, state = normal(3, 6, 5), normal(3, ways, 40)
    weights = normal(ways, 120, 5) / 2, normal(ways, 120, 40) / 4, normal(ways, 160)
    known = [Value(Value.of(x).type, Value.of(x).shape), Value(Value.of(state).type, Value.of(state).shape)]
    for lengths in (np.full(3, 6), np.array([6, 2, 0])):
        kernel = fast.kernel(op, Request((*known, Value.of(lengths), *map(Value.of, weights))))
        assert kernel is not None
        inputs = (x, state, lengths, *weights)
        for got, wanted in zip(kernel.call(*inputs), op.run(*inputs), strict=True):
            np.testing.assert_allclose(got, wanted, atol=2e-5)
