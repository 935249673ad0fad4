"""Recurrent layers in bf16 round elements, hidden states and weights before products, on every processor."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

from bf16 import in_bf16
from irrun import build as b
from irrun import compile
from irrun.growing.layouts import in_layout

T = TypeVar("T")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(request.node.originalname.encode()))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


class Layer:
    """A layer with weights for each direction, and what it computes in f64 with rounded operands."""

    def __init__(self, rng: np.random.Generator, kind: str, size: int, hidden: int, *, ways: int = 1, linear: bool):
        self.kind, self.linear, self.hidden = kind, linear, hidden
        gates = GATES[kind]

        def normal(*shape: int) -> np.ndarray:
            return rng.standard_normal(shape, np.float32) / 2

        self.w, self.r = normal(ways, gates * hidden, size), normal(ways, gates * hidden, hidden) / 2
        self.b = normal(ways, (gates + linear) * hidden)
        self.flips = 0

    def rounded(self, state: np.ndarray) -> np.ndarray:
        """Round a state, and count the numbers near the middle between two of bf16, which f32 may round to either."""
        by = 2**-19 * np.abs(state) + 2e-7
        low, high = (in_bf16((state + by * sign).astype(np.float32)) for sign in (-1, 1))
        self.flips += int((low != high).sum())
        return in_bf16(state.astype(np.float32))

    def run(self, x: np.ndarray, states: list[np.ndarray], way: int, *, backwards: bool) -> list[np.ndarray]:
        """Return the hidden states [batch, time, hidden] and the last states, for ``x`` [batch, time, size]."""
        w, r, bias = in_bf16(self.w[way]), in_bf16(self.r[way]), self.b[way].astype(np.float64)
        h, *cell = (state.astype(np.float64) for state in states)
        n, x, y = self.hidden, in_bf16(x), np.zeros((*x.shape[:2], self.hidden))
        for t in range(x.shape[1])[:: -1 if backwards else 1]:
            h = self.rounded(h)
            a, c = x[:, t] @ w.T, h @ r.T
            if self.kind == "LSTM":
                f, i, g, o = np.split(a + c + bias, 4, 1)
                cell = [sigmoid(f) * cell[0] + sigmoid(i) * np.tanh(g)]
                h = sigmoid(o) * np.tanh(cell[0])
            elif self.kind == "RNN":
                h = np.tanh(a + c + bias)
            else:
                update, reset = np.split(sigmoid((a + c + bias[: 3 * n])[:, : 2 * n]), 2, 1)
                plain = self.rounded(reset * h) @ r[2 * n :].T if not self.linear else None
                inner = reset * (c[:, 2 * n :] + bias[3 * n :]) if plain is None else plain
                h = (1 - update) * np.tanh(a[:, 2 * n :] + inner + bias[2 * n : 3 * n]) + update * h
            y[:, t] = h
        return [y, h, *cell]


def without_flips(layer: Layer, draw: Callable[[], T]) -> T:
    """Draw until no state of a layer lies near the middle between two numbers."""
    for _ in range(400):
        layer.flips, drawn = 0, draw()
        if not layer.flips:
            return drawn
    raise AssertionError("each draw has such a state")


KINDS = [("LSTM", False), ("GRU", False), ("GRU", True), ("RNN", False)]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("batch", "steps", "size", "hidden"),
    [(1, 5, 7, 16), (2, 3, 33, 17), (2, 1, 4, 65), (2, 1, 1, 1), (4, 2, 8, 3), (0, 2, 3, 4), (20, 2, 5, 9)],
)
@pytest.mark.parametrize(("kind", "linear"), KINDS)
def test_sequences(
    rng: np.random.Generator, way: str, kind: str, linear: bool, batch: int, steps: int, size: int, hidden: int,
    direction: str,
) -> None:  # fmt: skip
    ways, count = 2 if direction == "bidirectional" else 1, 2 if kind == "LSTM" else 1
    layer, backwards = Layer(rng, kind, size, hidden, ways=ways, linear=linear), [direction == "reverse", True]

    def drawn() -> tuple[np.ndarray, list[np.ndarray], list[list[np.ndarray]]]:
        x = rng.standard_normal((batch, steps, size), np.float32)
        states = [rng.standard_normal((batch, ways, hidden), np.float32) for _ in range(count)]
        return x, states, [layer.run(x, [s[:, n] for s in states], n, backwards=backwards[n]) for n in range(ways)]

    x, states, each = without_flips(layer, drawn)
    feeds = [x, *states]
    some = [b.parameter(list(feed.shape), "f32", name=name) for feed, name in zip(feeds, "xhc")]
    options: dict[str, Any] = {"linear_before_reset": True} if linear else {}
    node = getattr(b, f"{kind}Sequence")(
        *some, np.full(batch, steps, np.int32), layer.w, layer.r, layer.b, hidden_size=hidden, direction=direction,
        **options,
    )  # fmt: skip
    model = compile(b.model([node[n] for n in range(1 + count)]), exact=way == "exact", precision="bf16")
    dice = random.Random(0)
    for _ in range(6):
        results = model([in_layout(feed, dice)[1] for feed in feeds])
        for number, parts in enumerate(zip(*each, strict=True)):
            np.testing.assert_allclose(results[number], np.stack(parts, 1), atol=4e-6)


@pytest.mark.parametrize(("kind", "linear"), KINDS)
def test_cells(rng: np.random.Generator, way: str, kind: str, linear: bool) -> None:
    layer = Layer(rng, kind, 9, 21, linear=linear)
    x = rng.standard_normal((3, 9), np.float32)
    states = [rng.standard_normal((3, 21), np.float32) for _ in range(1 + (kind == "LSTM"))]
    _, *wanted = layer.run(x[:, None], states, 0, backwards=False)
    assert not layer.flips
    feeds = [x, *states]
    some = [b.parameter(list(feed.shape), "f32", name=name) for feed, name in zip(feeds, "xhc")]
    options: dict[str, Any] = {"linear_before_reset": True} if linear else {}
    node = getattr(b, f"{kind}Cell")(*some, layer.w[0], layer.r[0], layer.b[0], hidden_size=21, **options)
    model = compile(b.model([node[n] for n in range(len(states))]), exact=way == "exact", precision="bf16")
    for result, state in zip(model(feeds).values(), wanted, strict=True):
        np.testing.assert_allclose(result, state, atol=4e-6)


def test_sequences_that_end_early(rng: np.random.Generator, way: str) -> None:
    layer, lengths = Layer(rng, "LSTM", 5, 12, linear=False), np.array([4, 2], np.int32)

    def drawn() -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
        x, h, c = feeds = [rng.standard_normal(shape, np.float32) for shape in [(2, 4, 5), (2, 1, 12), (2, 1, 12)]]
        parts = [(x[n : n + 1, :end], [h[n], c[n]]) for n, end in enumerate(lengths)]
        return feeds, [layer.run(*part, 0, backwards=False) for part in parts]

    feeds, ends = without_flips(layer, drawn)
    some = [b.parameter(list(feed.shape), "f32", name=name) for feed, name in zip(feeds, "xhc")]
    node = b.LSTMSequence(*some, lengths, layer.w, layer.r, layer.b, hidden_size=12, direction="forward")
    model = compile(b.model(node[0]), exact=way == "exact", precision="bf16")
    result = model(feeds)[0]
    for n, (end, (y, *_)) in enumerate(zip(lengths, ends)):
        np.testing.assert_allclose(result[n, 0, :end], y[0], atol=4e-6)
        assert not result[n, 0, end:].any()


def test_other_activations_and_weights_that_are_no_constants_stay_in_f32(rng: np.random.Generator, way: str) -> None:
    x, h, w, r, bias = (rng.standard_normal(shape, np.float32) for shape in [(2, 5), (2, 8), (8, 5), (8, 8), 8])
    names = [b.parameter(list(feed.shape), "f32", name=name) for feed, name in zip((x, h, r), "xhr")]
    clipped = b.RNNCell(*names[:2], w, r, bias, hidden_size=8, activations="relu")
    varying = b.RNNCell(*names[:2], w, names[2], bias, hidden_size=8)
    model = compile(b.model([clipped, varying]), exact=way == "exact", precision="bf16")
    sums = x.astype(np.float64) @ w.T + h.astype(np.float64) @ r.T + bias
    results = model([x, h, r])
    np.testing.assert_allclose(results[0], np.maximum(sums, 0), atol=1e-5)
    np.testing.assert_allclose(results[1], np.tanh(sums), atol=1e-5)
