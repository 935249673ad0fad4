"""Convolutions one after the other in a single call, which threads share without Python between the convolutions.

Between two calls, Python computes on one thread, and the others wait for as long as a small convolution takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.fast.convolution.bands import Stage
from irrun.fast.convolution.windows import convolve, convolve_depthwise, geometry_of
from irrun.fast.functions import contracted
from irrun.fast.machine.late import array_at
from irrun.fast.machine.memory import add_to, data_address, floats_at, halves_at, look_at, row_at, shorts_at, words_at
from irrun.fast.machine.processor import HALVES, ROWS, compiled
from irrun.fast.machine.sharing import YIELD, share, wait
from irrun.fast.precision.bf16 import round_rows
from irrun.kernels.blocks import scratch
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.threads import threads
from irrun.opdef import Kernel, Packing

__all__ = ["Member", "sequence"]

_MIN_PIECE_WINDOWS: Final = 4 * ROWS
"""The fewest windows of a piece: each piece reads all filters again."""
_PIECES_PER_THREAD: Final = 2
"""Pieces of a convolution for each thread. With more than one, a thread that is late takes fewer."""
_MAX_IMAGES_BYTES: Final = 1 << 23
"""Bytes of the largest value between the convolutions, for as many images as are computed together. It stays in the
third-level cache: MobileNetV2 takes 1.5 times as long for eight images together."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A convolution of a sequence, and what it reads.

    ``data`` and ``residual`` are numbers: of a member of the sequence from 0 on, or of an input of the kernel, -1 for
    the first, -2 for the second. ``residual`` is None if nothing is added.
    """

    stage: Stage
    data: int
    residual: int | None


(
    _DATA, _ROWS, _LINE, _CHANNELS, _PANELS, _COUNT, _TAPS, _WIDTH, _FORM, _BIAS, _RESIDUAL, _OUT, _HIGH, _BROAD,
    _OUTS, _GROUPS, _DEPTH, _PIECES_OF, _CLAMPS,
) = range(19)  # fmt: skip
"""The columns of the table of a sequence: addresses, sizes and numbers of each convolution."""
_FLOATS, _HALVES, _SHORTS, _PAIRS, _NONE = range(5)
"""The form of panels: f32, f16, bf16 or pairs of bf16. A member without panels rounds its data to bf16."""
_FORMS: Final = {"float32": _FLOATS, "uint16": _HALVES, "int16": _SHORTS, "uint32": _PAIRS, "bool": _NONE}
"""By the dtype of the panels."""


def sequence(members: Sequence[Member], batch: int, flops: int, inputs: int, filters: tuple[int, ...]) -> Kernel:
    """Return the kernel that computes the members in turn, and returns what the last one gives.

    Its first ``inputs`` inputs are data and residuals, channels last; ``filters`` are the positions of the filters.
    """
    stages = [member.stage for member in members]
    name = "compiled depthwise" if any(stage.groups > 1 for stage in stages) else "compiled"
    packing = Packing(filters, sum(stage.panels.nbytes for stage in stages))
    call = _Sequence(members, batch, flops, inputs).call
    return Kernel(call, f"{name} in sequence, channels last", out="whole", flops=flops, packing=packing)


class _Sequence:
    """The table of a sequence, and what it has the addresses of."""

    def __init__(self, members: Sequence[Member], batch: int, flops: int, inputs: int) -> None:
        members = _with_rounding(members)
        stages = [member.stage for member in members]
        image = max(stage.row * stage.axes[0].out for stage in stages)
        self.together = max(1, min(_MAX_IMAGES_BYTES // max(image, 1), batch))
        shapes = [(self.together, stage.axes[0].out, stage.axes[1].out, stage.channels) for stage in stages]
        self.members, self.flops, self.inputs, self.shape = members, flops, inputs, (batch, *shapes[-1][1:])
        self.table = np.array([_entry(stage, shape) for stage, shape in zip(stages, shapes)])
        self.geometry = np.array([geometry_of(stage.axes[0], stage.axes[1]) for stage in stages])
        self.limits = np.array([stage.limits if stage.limits.size else (0, 0) for stage in stages], np.float32)
        self.offsets, self.size = _places(members, shapes)

    def call(self, *arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        whole = np.empty(self.shape, np.float32) if out is None else out
        given = [np.ascontiguousarray(array) for array in arrays[: self.inputs]]
        for first in range(0, len(whole), self.together):
            images = slice(first, first + self.together)
            self._fill(whole[images], [array[images] for array in given])
        return whole

    def _fill(self, whole: np.ndarray, given: Sequence[np.ndarray]) -> None:
        """Compute some images."""
        between = data_address(scratch(0, whole.dtype, self.size))
        places = [*(between + 4 * offset for offset in self.offsets[:-1]), data_address(whole)]
        places += [data_address(array) for array in reversed(given)]  # so that the first is number -1
        table = self.table.copy()
        table[:, _OUT] = places[: len(self.members)]
        table[:, _DATA] = [places[member.data] for member in self.members]
        table[:, _RESIDUAL] = [0 if member.residual is None else places[member.residual] for member in self.members]
        taken = np.zeros((len(table), table[:, _PIECES_OF].max() + 1), np.int64)
        work = self.flops * len(whole) // self.shape[0]
        share(_run, threads(), work, table, self.geometry, self.limits, len(whole), taken, threads(), YIELD)


def _with_rounding(members: Sequence[Member]) -> list[Member]:
    """Return the members, with one that rounds data before the first of those that read the same data rounded."""
    made: list[Member] = []
    place: dict[int, int] = {}
    rounded: dict[tuple[int, int], int] = {}
    for number, member in enumerate(members):
        data, residual = (None if n is None else place.get(n, n) for n in (member.data, member.residual))
        assert data is not None
        stage = member.stage
        if stage.rounded:
            if (data, stage.groups) not in rounded:
                rounded[data, stage.groups] = len(made)
                made.append(Member(_rounding(stage), data, None))
            data = rounded[data, stage.groups]
        place[number] = len(made)
        made.append(Member(stage, data, residual))
    return made


def _rounding(stage: Stage) -> Stage:
    """Return the stage that rounds the data of another one. Its depth is the channels of a group."""
    rows, line = (Axis(axis.size, 1, 1, 1, 0, 0, axis.size) for axis in stage.axes)
    nothing = np.empty(0, np.float32)
    channels = stage.groups * stage.depth
    return Stage((rows, line), _NO_PANELS, stage.groups, stage.rounded, channels, nothing, nothing, False)


_NO_PANELS: Final = np.empty((0, 0, 0), np.bool_)


def _entry(stage: Stage, shape: tuple[int, ...]) -> list[int]:
    """Return the row of the table for a stage whose output has ``shape``. What a call has to fill in is 0."""
    rows, line = stage.axes
    batch, high, broad, outs = shape
    windows = batch * high * broad
    pieces = max(1, min(_PIECES_PER_THREAD * threads() if threads() > 1 else 1, windows // _MIN_PIECE_WINDOWS))
    panels, ins = stage.panels, stage.depth * stage.groups
    bias = data_address(stage.bias) if stage.bias.size else 0
    return [
        0, rows.size, line.size, ins, data_address(panels), *panels.shape, _FORMS[panels.dtype.name], bias, 0, 0,
        high, broad, outs, stage.groups, stage.depth, pieces, stage.limits.size == 2,
    ]  # fmt: skip


def _places(members: Sequence[Member], shapes: Sequence[tuple[int, ...]]) -> tuple[list[int], int]:
    """Return where the output of each member begins in the memory that all but the last share, and its size, in floats.

    A place is used again after its last reader.
    """
    last = {}
    for number, member in enumerate(members):
        last |= dict.fromkeys((member.data, member.residual), number)
    places: list[int] = []
    busy: list[tuple[int, int, int]] = []  # where, up to where, and the last reader
    for number, shape in enumerate(shapes):
        size, begin = -(-math.prod(shape) // 16) * 16, 0
        busy = sorted(entry for entry in busy if entry[2] >= number)
        for start, end, _ in busy:
            if begin + size <= start:
                break
            begin = max(begin, end)
        places.append(begin)
        busy.append((begin, begin + size, last.get(number, number)))
    ends = [begin + math.prod(shape) for begin, shape in zip(places[:-1], shapes)]
    return places, max(ends, default=0)


@contracted
def _image(address: int, batch: int, high: int, broad: int, channels: int) -> np.ndarray:
    return array_at(floats_at(address), (batch, high, broad, channels))


@compiled
def _run(
    table: np.ndarray, geometry: np.ndarray, limits: np.ndarray, batch: int, taken: np.ndarray, workers: int,
    yields: int, worker: int, end: int,
) -> None:  # fmt: skip
    """Compute pieces of each convolution in turn, those of this worker first, until all of it is done.

    ``taken`` has a number for each piece, 0 until a worker takes it, and then the number of pieces that are done.
    """
    for n in range(len(table)):
        entry = table[n]
        pieces = entry[_PIECES_OF]
        line = taken.ctypes.data + n * taken.strides[0]
        done = line + 8 * (taken.shape[1] - 1)
        windows = batch * entry[_HIGH] * entry[_BROAD]
        for k in range(pieces):
            piece = (pieces * worker // workers + k) % pieces
            if add_to(line + 8 * piece, 1) == 0:
                _piece(entry, geometry[n], limits[n], batch, windows * piece // pieces, windows * (piece + 1) // pieces)
                add_to(done, 1)
        turns = 0
        while look_at(done) < pieces:
            turns += 1
            wait(turns, yields)


@compiled
def _piece(entry: np.ndarray, geometry: np.ndarray, limits: np.ndarray, batch: int, first: int, last: int) -> None:
    """Compute the windows from ``first`` to ``last`` of one convolution."""
    if entry[_FORM] == _NONE:
        groups, count = entry[_GROUPS], entry[_DEPTH]
        round_rows(entry[_DATA], count, entry[_OUT], count, first * groups, last * groups)
        return
    data = _image(entry[_DATA], batch, entry[_ROWS], entry[_LINE], entry[_CHANNELS])
    out = _image(entry[_OUT], batch, entry[_HIGH], entry[_BROAD], entry[_OUTS])
    adds = entry[_RESIDUAL] != 0
    residual = _image(entry[_RESIDUAL] if adds else entry[_OUT], batch, entry[_HIGH], entry[_BROAD], entry[_OUTS])
    bias = row_at(entry[_BIAS], entry[_OUTS] if entry[_BIAS] else 0)
    low = row_at(limits.ctypes.data, 2 if entry[_CLAMPS] else 0)
    groups, depth, place = entry[_GROUPS], entry[_DEPTH], entry[_PANELS]
    shape = (entry[_COUNT], entry[_TAPS], entry[_WIDTH])
    if entry[_FORM] == _FLOATS:
        panels = array_at(floats_at(place), shape)
        _convolve(panels, data, bias, residual, out, geometry, groups, depth, adds, low, first, last)
    elif entry[_FORM] == _SHORTS:
        shorts = array_at(shorts_at(place), shape)
        _convolve(shorts, data, bias, residual, out, geometry, groups, depth, adds, low, first, last)
    elif entry[_FORM] == _PAIRS:
        pairs = array_at(words_at(place), shape)
        convolve(data, pairs, bias, residual, out, geometry, groups, depth, adds, low, first, last)
    elif HALVES:  # else there are none, and the processor has no instruction that the code for them needs
        halves = array_at(halves_at(place), shape)
        _convolve(halves, data, bias, residual, out, geometry, groups, depth, adds, low, first, last)


@contracted
def _convolve(
    panels: np.ndarray, data: np.ndarray, bias: np.ndarray, residual: np.ndarray, out: np.ndarray,
    geometry: np.ndarray, groups: int, depth: int, adds: bool, limits: np.ndarray, first: int, last: int,
) -> None:  # fmt: skip
    """Compute windows with panels of any form."""
    if depth == 1 and groups == data.shape[3] and groups == out.shape[3]:
        convolve_depthwise(data, panels, bias, residual, out, geometry, adds, limits, first, last)
    else:
        convolve(data, panels, bias, residual, out, geometry, groups, depth, adds, limits, first, last)
