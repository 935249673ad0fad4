"""GRU and LSTM with constant weights and the usual activations: all steps of a sequence in compiled loops.

The weights stay packed, in f16 where they are numbers of f16, and in the second-level cache between the steps. In bf16,
products read weights, elements and hidden states that are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final, Protocol

import numpy as np

from irrun.base.deadline import in_time
from irrun.base.thresholds import least
from irrun.fast.copying import copying
from irrun.fast.functions import contracted, sigmoid, tanh
from irrun.fast.machine.late import array_at
from irrun.fast.machine.memory import address_of, halves_at, words_at
from irrun.fast.machine.processor import compiled
from irrun.fast.machine.sharing import side_by_side
from irrun.fast.panels import AS_THEY_ARE, multiply_panels
from irrun.fast.precision.bf16 import round_rows
from irrun.fast.precision.tiles import PAIRS, TILE, TILES, begin_tiles, end_tiles, holds_pairs, multiply_rows
from irrun.fast.product import packed_matrix
from irrun.kernels import recurrence as by_numpy
from irrun.opdef import Call, Calls, Epilogue, Joins, Kernel, Operands, Request

__all__ = ["PackedCell", "gru", "gru_linear", "lstm", "offer"]

_ELEMENTS_PER_CALL: Final = 256
"""Elements of a sequence that are computed between two looks at the clock."""


_MAX_ELEMENTS: Final = 1 << 12
"""The most elements of a sequence whose calls a step does in turn, without a look at the clock."""
_ALIGNED: Final = 16
"""Numbers of f32 in a line of the cache."""
_MIN_WEIGHTS_ELEMENTS: Final = 1 << 12
"""The least elements of recurrence weights for which a compiled kernel is worth its call."""


class _Kind(Protocol):
    @property
    def pack(self) -> by_numpy.Pack: ...

    @property
    def states(self) -> int: ...


class _Recurrent(Protocol):
    type: str

    @property
    def formula(self) -> _Kind: ...

    @property
    def weights(self) -> tuple[int, ...]: ...

    def prepared(self, request: Request, pack: by_numpy.Pack, /) -> Kernel | None: ...


def offer(op: _Recurrent, request: Request) -> Kernel | None:
    """Return the kernel of a GRU or LSTM, a cell or a sequence, with large constant weights of f32; None for others."""
    packs: dict[by_numpy.Pack, Callable[..., PackedCell]] = {
        by_numpy.gru: gru,
        by_numpy.gru_linear: gru_linear,
        by_numpy.lstm: lstm,
    }
    pack = packs.get(op.formula.pack)
    known = request.inputs[op.weights[1]]
    r = None if known is None else known.exact
    if pack is None or r is None or r.dtype != np.float32 or math.prod(r.shape[-2:]) < least(_MIN_WEIGHTS_ELEMENTS):
        return None
    cells: list[PackedCell] = []

    def packed(w: np.ndarray, r: np.ndarray, b: np.ndarray) -> PackedCell:
        cells.append(pack(w, r, b, precision=request.precision))
        return cells[-1]

    kernel = op.prepared(request, packed)
    return None if kernel is None else _in_calls(op, request, kernel, cells)


def _in_calls(op: _Recurrent, request: Request, kernel: Kernel, cells: Sequence[PackedCell]) -> Kernel:
    """Return a kernel with the calls of a sequence whose elements are all computed, if nobody reads the last states."""
    x, state = request.first(2)
    shape, states = None if x is None else x.shape.static, op.formula.states
    is_whole = op.type.endswith("Sequence") and kernel.packing.inputs and request.outputs == 1
    if not is_whole or shape is None or state is None or shape[1] > _MAX_ELEMENTS or shape[0] > 1 < len(cells):
        return kernel
    backwards = [getattr(op, "direction", "") == "reverse", True]
    batch, time, _ = shape
    numbers = [batch * (time * cell.w.columns + states * cell.recurrent[0].depth) for cell in cells]
    offsets = [0, *accumulate(-(-count // _ALIGNED) * _ALIGNED for count in numbers)]

    def calls(x: np.ndarray, *others: np.ndarray | None, out: np.ndarray, spare: np.ndarray) -> Calls:
        memory, given = spare.view(np.float32), [state for state in others[:states] if state is not None]
        return [
            side_by_side(
                [
                    cell.calls(x, [one[:, way] for one in given], out[:, way], memory[offsets[way] :], backwards[way])
                    for way, cell in enumerate(cells)
                ]
            )
        ]

    flops = batch * time * sum(cell.work for cell in cells)
    return replace(kernel, flops=flops, joins=Joins(calls=calls, spare_bytes=4 * offsets[-1]))


class PackedCell:
    """The prepared weights of one direction, as ``irrun.kernels.recurrence.Packed``.

    ``steps(x, states, y, backwards, rounds, rest, *panels, first, last)`` computes the elements from ``first`` to
    ``last`` of ``y`` [batch, time, hidden] from the projected elements ``x`` [batch, time, gates]. It changes the
    ``states`` [number of states, batch, hidden] in place, and ``rounds`` the hidden ones to bf16 before each element.
    ``rest`` are the biases that belong to no gate, and ``panels`` those of the recurrence weights.
    """

    def __init__(
        self, w: np.ndarray, recurrent: Sequence[np.ndarray], b: np.ndarray, steps: Callable[..., None],
        precision: Operands,
    ) -> None:  # fmt: skip
        self.gates, self.rest, self.steps = Epilogue(np.ascontiguousarray(b[: len(w)])), b[len(w) :].copy(), steps
        self.w = packed_matrix(w.T, False, precision)
        self.recurrent = [packed_matrix(part.T, False, precision) for part in recurrent]
        self.rounds = precision == "bf16"
        self.nbytes = self.w.nbytes + sum(part.nbytes for part in self.recurrent)
        self.work = 2 * sum(part.depth * part.columns for part in (self.w, *self.recurrent))

    def run(
        self, x: np.ndarray, states: tuple[np.ndarray, ...], y: np.ndarray, *, backwards: bool = False
    ) -> tuple[np.ndarray, ...]:
        """Run the layer over ``x`` [batch, time, input], and return the last states.

        The hidden states fill ``y`` [batch, time, hidden]. With ``backwards``, the last element comes first.
        """
        batch, time, size = x.shape
        projected = np.empty((batch, time, self.w.columns), np.float32)
        rows = projected.reshape(batch * time, self.w.columns)
        self.w.multiply(np.ascontiguousarray(x).reshape(batch * time, size), rows, epilogue=self.gates)
        held: np.ndarray = np.empty((len(states), *states[0].shape), np.float32)
        for n, state in enumerate(states):
            held[n] = state
        hidden = y if y.flags.c_contiguous else np.empty(y.shape, np.float32)
        panels = [part.panels for part in self.recurrent]
        for first in in_time(range(0, time, _ELEMENTS_PER_CALL)):
            last = min(first + _ELEMENTS_PER_CALL, time)
            self.steps(projected, held, hidden, backwards, self.rounds, self.rest, *panels, first, last)
        if hidden is not y:
            y[...] = hidden
        return tuple(held)

    def calls(
        self, x: np.ndarray, states: Sequence[np.ndarray], y: np.ndarray, spare: np.ndarray, backwards: bool
    ) -> Calls:
        """Return the calls that fill ``y``, which is contiguous: see ``run``. ``spare`` is memory of f32."""
        (batch, time, size), count, hidden = x.shape, self.w.columns, y.shape[-1]
        rows, rest = spare[: batch * time * count].reshape(-1, count), spare[batch * time * count :]
        held = rest[: len(states) * batch * hidden].reshape(len(states), batch, hidden)
        panels = [part.panels for part in self.recurrent]
        more = rows.reshape(batch, time, count), held, y, backwards, self.rounds, self.rest, *panels
        return [
            self.w.call(x.reshape(-1, size), rows, self.gates, None),
            *(copying(state, kept) for state, kept in zip(states, held)),
            Call(self.steps, more, time),
        ]


def lstm(w: np.ndarray, r: np.ndarray, b: np.ndarray, precision: Operands = "f32") -> PackedCell:
    """Prepare an LSTM as ``irrun.kernels.recurrence.lstm`` does, for operands of a precision."""
    return PackedCell(w, [r], b, _lstm, precision)


def gru(w: np.ndarray, r: np.ndarray, b: np.ndarray, precision: Operands = "f32") -> PackedCell:
    """Prepare a GRU as ``irrun.kernels.recurrence.gru`` does, for operands of a precision."""
    of_gates = 2 * r.shape[1]
    return PackedCell(w, [r[:of_gates], r[of_gates:]], b, _gru, precision)


def gru_linear(w: np.ndarray, r: np.ndarray, b: np.ndarray, precision: Operands = "f32") -> PackedCell:
    """Prepare a GRU with ``linear_before_reset`` as ``irrun.kernels.recurrence.gru_linear`` does."""
    return PackedCell(w, [r], b, _gru_linear, precision)


@contracted
def _memory(batch: int, n: int, count: int, panels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return memory for so many rows of ``n`` numbers in bf16, and of ``count`` sums: see ``_multiply``."""
    if TILES and holds_pairs(panels):
        rows, columns = batch if batch < TILE else -(-batch // TILE) * TILE, -(-count // TILE) * TILE
        return np.zeros((rows, panels.shape[1]), np.float32), np.empty((rows, columns), np.float32)
    return np.empty((batch, (n + 1) // 2), np.float32), np.empty((batch, count), np.float32)


@contracted
def _multiply(states: np.ndarray, pairs: np.ndarray, panels: np.ndarray, sums: np.ndarray, rounds: bool) -> None:
    """Fill ``sums`` with the product of the ``states`` and panels.

    If ``rounds``, the states are rounded to bf16 first, and ``pairs`` becomes what the product reads.
    """
    batch, n = states.shape
    if not rounds:
        multiply_panels(states, panels, sums, 0, AS_THEY_ARE)
        return
    apart = pairs.shape[1]
    round_rows(address_of(states), n, address_of(pairs), apart, n, 0, batch)
    for i in range(batch):
        halves = array_at(halves_at(address_of(pairs) + 4 * i * apart), n)
        bits = array_at(words_at(address_of(states) + 4 * i * n), n)
        for j in range(n):
            bits[j] = np.uint32(halves[j]) << np.uint32(16)
    if TILES and holds_pairs(panels):
        # one row, too: tiles read the panels from the second-level cache in two thirds of the time
        multiply_rows(
            PAIRS, address_of(pairs), 4 * apart, 1, 0, address_of(panels), panels.strides[0], apart, address_of(sums),
            sums.strides[0], batch, sums.shape[1],
        )  # fmt: skip
    else:
        multiply_panels(pairs, panels, sums, 0, AS_THEY_ARE)


@contracted
def _activate(row: np.ndarray, x: np.ndarray, sigmoids: int) -> None:
    """Add ``x`` to a row of gates, and apply the sigmoid to so many of them and tanh to the others."""
    for j in range(row.size):
        row[j] += x[j]
    others = row[sigmoids:]
    for j in range(sigmoids):
        row[j] = sigmoid(row[j])
    for j in range(others.size):
        others[j] = tanh(others[j])


@compiled
def _lstm(
    x: np.ndarray, states: np.ndarray, y: np.ndarray, backwards: bool, rounds: bool, rest: np.ndarray,
    panels: np.ndarray, first: int, last: int,
) -> None:  # fmt: skip
    batch, time, count = x.shape
    n = count // 4
    pairs, gates = _memory(batch, n, count, panels)
    hidden, cells = states[0], states[1]
    begin_tiles(max(1, min(batch, TILE)))
    for step in range(first, last):
        at = time - 1 - step if backwards else step
        _multiply(hidden, pairs, panels, gates, rounds)
        for i in range(batch):
            row, cell, after = gates[i, :count], cells[i], hidden[i]
            forget, new, candidate, output = row[:n], row[n : 2 * n], row[2 * n : 3 * n], row[3 * n :]
            _activate(row[: 3 * n], x[i, at, : 3 * n], 2 * n)
            _activate(output, x[i, at, 3 * n :], n)
            for j in range(n):
                cell[j] = forget[j] * cell[j] + new[j] * candidate[j]
            for j in range(n):
                after[j] = tanh(cell[j]) * output[j]
            y[i, at] = after
    end_tiles()


@compiled
def _gru(
    x: np.ndarray, states: np.ndarray, y: np.ndarray, backwards: bool, rounds: bool, rest: np.ndarray,
    of_gates: np.ndarray, of_hidden: np.ndarray, first: int, last: int,
) -> None:  # fmt: skip
    batch, time, count = x.shape
    n = count // 3
    pairs, gates = _memory(batch, n, 2 * n, of_gates)
    more, news = _memory(batch, n, n, of_hidden)
    kept, hidden = np.empty((batch, n), np.float32), states[0]
    begin_tiles(max(1, min(batch, TILE)))
    for step in range(first, last):
        at = time - 1 - step if backwards else step
        _multiply(hidden, pairs, of_gates, gates, rounds)
        for i in range(batch):
            _activate(gates[i, : 2 * n], x[i, at, : 2 * n], 2 * n)
            reset, part, before = gates[i, n:], kept[i], hidden[i]
            for j in range(n):
                part[j] = reset[j] * before[j]
        _multiply(kept, more, of_hidden, news, rounds)
        for i in range(batch):
            _activate(news[i, :n], x[i, at, 2 * n :], 0)
            _mix(hidden[i], news[i], gates[i, :n])
            y[i, at] = hidden[i]
    end_tiles()


@compiled
def _gru_linear(
    x: np.ndarray, states: np.ndarray, y: np.ndarray, backwards: bool, rounds: bool, rest: np.ndarray,
    panels: np.ndarray, first: int, last: int,
) -> None:  # fmt: skip
    batch, time, count = x.shape
    n = count // 3
    pairs, gates = _memory(batch, n, count, panels)
    hidden = states[0]
    begin_tiles(max(1, min(batch, TILE)))
    for step in range(first, last):
        at = time - 1 - step if backwards else step
        _multiply(hidden, pairs, panels, gates, rounds)
        for i in range(batch):
            _activate(gates[i, : 2 * n], x[i, at, : 2 * n], 2 * n)
            reset, new = gates[i, n : 2 * n], gates[i, 2 * n : count]
            for j in range(n):
                new[j] = reset[j] * (new[j] + rest[j])
            _activate(new, x[i, at, 2 * n :], 0)
            _mix(hidden[i], new, gates[i, :n])
            y[i, at] = hidden[i]
    end_tiles()


@contracted
def _mix(hidden: np.ndarray, new: np.ndarray, update: np.ndarray) -> None:
    """Move the hidden state towards the new one, the less the larger the update gate is."""
    for j in range(hidden.size):
        hidden[j] = new[j] + update[j] * (hidden[j] - new[j])
