"""RNN, GRU and LSTM with constant weights and the usual activations: few calls per step, all of them in place.

A sigmoid is computed as ``(1 + tanh(x / 2)) / 2``, so that one tanh serves all gates. The factors of 1/2 are folded
into the weights, and the hidden state of an LSTM stays doubled until the end. Powers of two cost no precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from irrun.base.deadline import in_time
from irrun.kernels.matmul import few_rows, matmul

States = tuple[np.ndarray, ...]


class PackedWeights(Protocol):
    """The prepared weights of one direction."""

    @property
    def nbytes(self) -> int:
        """The bytes of the weights."""
        ...

    @property
    def work(self) -> int:
        """The work for an element of a sequence that threads may share (see ``threads.WORTH``)."""
        ...

    def run(self, x: np.ndarray, states: States, y: np.ndarray, *, backwards: bool = False) -> States:
        """Run the layer over ``x`` [batch, time, input], and return the last states.

        The hidden states fill ``y`` [batch, time, hidden]. With ``backwards``, the last element comes first.
        """
        ...


Pack = Callable[[np.ndarray, np.ndarray, np.ndarray], PackedWeights]
"""Prepares the weights W [gates * hidden, input], R [gates * hidden, hidden] and B of one direction."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The prepared weights of one direction: ``w`` and ``b`` project elements to gates, ``steps`` does the rest.

    ``steps(x, states, y)`` takes projected elements ``x`` [time, batch, gates], fills ``y`` [time, batch, hidden] with
    the hidden states in the order of time, and returns the last states.
    """

    w: np.ndarray
    b: np.ndarray
    steps: Callable[[np.ndarray, States, np.ndarray], States]
    nbytes: int
    """The bytes of the weights."""
    work: int = field(default=0, init=False)
    """The work for an element that threads may share (see ``threads.WORTH``): none, because the steps are short calls
    of numpy, between which threads would wait for each other."""

    def run(self, x: np.ndarray, states: States, y: np.ndarray, *, backwards: bool = False) -> States:
        """Run the layer over ``x`` [batch, time, input], and return the last states.

        The hidden states fill ``y`` [batch, time, hidden]. With ``backwards``, the last element comes first.
        """
        projected = matmul(x, self.w)
        projected += self.b
        projected, y = projected.swapaxes(0, 1), y.swapaxes(0, 1)
        return self.steps(projected[::-1], states, y[::-1]) if backwards else self.steps(projected, states, y)


def lstm(w: np.ndarray, r: np.ndarray, b: np.ndarray) -> Packed:
    """Prepare an LSTM from ``w`` [4 * hidden, input], ``r`` [4 * hidden, hidden] and ``b`` [4 * hidden].

    The gates are in the order f, i, c, o.
    """
    n = r.shape[1]
    f, i, c, o = (slice(k * n, (k + 1) * n) for k in range(4))
    order = np.r_[i, f, o, c]  # one product multiplies i and f by c and the cell state
    half = np.repeat([0.5, 0.5, 0.5, 1.0], n).astype(w.dtype)
    recurrent = np.ascontiguousarray((r[order] * (half[:, None] / 2)).T)

    def steps(x: np.ndarray, states: States, y: np.ndarray) -> States:
        hidden, cell = states[0] * 2, states[1]
        gates = np.empty((len(hidden), 4 * n), hidden.dtype)
        room = np.empty((len(hidden), 5 * n), hidden.dtype)  # gates i, f, o and c, and the cell state
        products = np.empty((len(hidden), 2 * n), hidden.dtype)
        added, kept = products[:, :n], products[:, n:]
        of_gates, sigmoids, left, right = room[:, : 4 * n], room[:, : 3 * n], room[:, : 2 * n], room[:, 3 * n :]
        output, state = room[:, 2 * n : 3 * n], room[:, 4 * n :]
        state[...] = cell
        one, half = np.ones((), hidden.dtype), np.full((), 0.5, hidden.dtype)
        for projected, after in in_time(zip(x, y)):
            few_rows(hidden, recurrent, gates)
            np.add(gates, projected, gates)
            np.tanh(gates, of_gates)
            np.add(sigmoids, one, sigmoids)
            np.multiply(left, right, products)
            np.add(added, kept, state)
            np.multiply(state, half, state)
            np.tanh(state, added)
            np.multiply(output, added, after)
            hidden = after
        hidden = hidden / 2
        y *= half
        return hidden, state.copy()

    return Packed((w[order] * half[:, None]).T, b[order] * half, steps, w.nbytes + r.nbytes + b.nbytes)


def gru(w: np.ndarray, r: np.ndarray, b: np.ndarray) -> Packed:
    """Prepare a GRU from ``w`` [3 * hidden, input], ``r`` [3 * hidden, hidden] and ``b`` [3 * hidden].

    The gates are in the order update, reset, new.
    """
    n = r.shape[1]
    half = np.repeat([0.5, 0.5, 1.0], n).astype(w.dtype)
    # both halved: r of the gates for their sigmoids, r of the new state because ``reset`` is twice the reset gate
    of_gates, of_hidden = (np.ascontiguousarray(part.T) / 2 for part in (r[: 2 * n], r[2 * n :]))

    def steps(x: np.ndarray, states: States, y: np.ndarray) -> States:
        (hidden,) = states
        gates = np.empty((len(hidden), 2 * n), hidden.dtype)
        update, reset = gates[:, :n], gates[:, n:]
        new = np.empty((len(hidden), n), hidden.dtype)
        one, half = np.ones((), hidden.dtype), np.full((), 0.5, hidden.dtype)
        for projected, after in in_time(zip(x, y)):
            few_rows(hidden, of_gates, gates)
            np.add(gates, projected[:, : 2 * n], gates)
            np.tanh(gates, gates)
            np.add(gates, one, gates)
            np.multiply(reset, hidden, reset)
            few_rows(reset, of_hidden, new)
            np.add(new, projected[:, 2 * n :], new)
            _updated(new, update, half, hidden, after)
            hidden = after
        return (hidden.copy(),)

    return Packed((w * half[:, None]).T, b * half, steps, w.nbytes + r.nbytes + b.nbytes)


def gru_linear(w: np.ndarray, r: np.ndarray, b: np.ndarray) -> Packed:
    """Prepare a GRU with ``linear_before_reset``, as ``gru`` does. ``b`` is [4 * hidden].

    Its last part is the bias that is added before the reset gate is applied.
    """
    n = r.shape[1]
    half = np.repeat([0.5, 0.5, 1.0], n).astype(w.dtype)
    recurrent, last = np.ascontiguousarray(r.T) / 2, b[3 * n :] / 2  # halved, as in ``gru``

    def steps(x: np.ndarray, states: States, y: np.ndarray) -> States:
        (hidden,) = states
        gates = np.empty((len(hidden), 3 * n), hidden.dtype)
        sigmoids, update, reset, new = gates[:, : 2 * n], gates[:, :n], gates[:, n : 2 * n], gates[:, 2 * n :]
        one, half = np.ones((), hidden.dtype), np.full((), 0.5, hidden.dtype)
        for projected, after in in_time(zip(x, y)):
            few_rows(hidden, recurrent, gates)
            np.add(sigmoids, projected[:, : 2 * n], sigmoids)
            np.tanh(sigmoids, sigmoids)
            np.add(sigmoids, one, sigmoids)
            np.add(new, last, new)
            np.multiply(new, reset, new)
            np.add(new, projected[:, 2 * n :], new)
            _updated(new, update, half, hidden, after)
            hidden = after
        return (hidden.copy(),)

    return Packed((w * half[:, None]).T, b[: 3 * n] * half, steps, w.nbytes + r.nbytes + b.nbytes)


def _updated(new: np.ndarray, update: np.ndarray, half: np.ndarray, hidden: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out`` with ``tanh(new) + update / 2 * (hidden - tanh(new))``. Overwrites ``new`` and ``update``."""
    np.tanh(new, new)
    np.multiply(update, half, update)
    np.subtract(hidden, new, out)
    np.multiply(out, update, out)
    np.add(out, new, out)


def rnn(w: np.ndarray, r: np.ndarray, b: np.ndarray) -> Packed:
    """Prepare an RNN from ``w`` [hidden, input], ``r`` [hidden, hidden] and ``b`` [hidden]."""
    recurrent = np.ascontiguousarray(r.T)

    def steps(x: np.ndarray, states: States, y: np.ndarray) -> States:
        (hidden,) = states
        for projected, after in in_time(zip(x, y)):
            sums = few_rows(hidden, recurrent)
            np.add(sums, projected, sums)
            hidden = np.tanh(sums, after)
        return (hidden.copy(),)

    return Packed(np.ascontiguousarray(w.T), b, steps, w.nbytes + r.nbytes + b.nbytes)
