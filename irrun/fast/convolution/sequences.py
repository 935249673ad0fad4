"""Convolutions one after the other in a single call, which threads share without Python between the convolutions.

Between two calls, Python computes on one thread, and the others wait for as long as a small convolution takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.fast.convolution.bands import Stage
from irrun.fast.convolution.window_block import ADDED_IN_BF16, ADDED_ROUNDED
from irrun.fast.convolution.windows import convolve, convolve_depthwise, geometry_of
from irrun.fast.functions import contracted
from irrun.fast.machine.late import array_at
from irrun.fast.machine.memory import add_to, data_address, floats_at, halves_at, look_at, row_at, shorts_at, words_at
from irrun.fast.machine.processor import HALVES, ROWS, compiled
from irrun.fast.machine.sharing import YIELD, share, wait
from irrun.fast.panels import WIDTH
from irrun.fast.precision.bf16 import round_rows, words
from irrun.kernels.blocks import placed, scratch
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
    planes: bool = False
    """Whether the data, an input of the kernel that is padded, has its channels first."""


(
    _DATA, _ROWS, _LINE, _CHANNELS, _PANELS, _COUNT, _TAPS, _WIDTH, _FORM, _BIAS, _RESIDUAL, _OUT, _HIGH, _BROAD,
    _OUTS, _GROUPS, _DEPTH, _PIECES_OF, _BY_PANELS, _CLAMPS, _ADDS, _ROUNDED,
) = range(22)  # fmt: skip
"""The columns of the table of a sequence: addresses, sizes and numbers of each convolution."""
_VALUES: Final = [_DATA, _RESIDUAL, _OUT, _ROUNDED]
"""The columns that a call fills in."""
_FLOATS, _HALVES, _SHORTS, _PAIRS, _ROUNDS, _PADS, _PADS_PLANES = range(7)
"""The form of panels: f32, f16, bf16 or pairs of bf16. A part without panels rounds its data to bf16, or it copies the
data with pads; its channels are then the last or the first axis."""
_FORMS: Final = {"float32": _FLOATS, "uint16": _HALVES, "int16": _SHORTS, "uint32": _PAIRS}
"""By the dtype of the panels."""
_NO_PANELS: Final = np.empty((0, 0, 0), np.float32)


def sequence(members: Sequence[Member], batch: int, flops: int, inputs: int, filters: tuple[int, ...]) -> Kernel:
    """Return the kernel that computes the members in turn, and returns what the last one gives.

    Its first ``inputs`` inputs are data and residuals, channels last unless members say otherwise; ``filters`` are the
    positions of the filters.
    """
    stages = [member.stage for member in members]
    name = "compiled depthwise" if any(stage.groups > 1 for stage in stages) else "compiled"
    packing = Packing(filters, sum(stage.panels.nbytes for stage in stages))
    call = _Sequence(members, batch, flops, inputs).call
    return Kernel(call, f"{name} in sequence, channels last", out="whole", flops=flops, packing=packing)


class _Sequence:
    """The table of a sequence, and what it has the addresses of."""

    def __init__(self, members: Sequence[Member], batch: int, flops: int, inputs: int) -> None:
        self.parts, sizes = _parts(members)
        stages = [part.stage for part in self.parts]
        image = max(stage.row * stage.axes[0].out for stage in stages)
        self.together = max(1, min(_MAX_IMAGES_BYTES // max(image, 1), batch))
        self.flops, self.inputs = flops, inputs
        self.shape = batch, stages[-1].axes[0].out, stages[-1].axes[1].out, stages[-1].channels
        self.table = np.array([_entry(part, self.together) for part in self.parts])
        self.geometry = np.array([geometry_of(stage.axes[0], stage.axes[1]) for stage in stages])
        self.limits = np.array([stage.limits if stage.limits.size else (0, 0) for stage in stages], np.float32)
        self.offsets, self.size = _places(self.parts, [size * self.together for size in sizes])
        values = [(part.data, part.residual, part.out, part.rounded) for part in self.parts]
        nothing = len(self.offsets) + 1  # the number of the address 0
        self.numbers = np.array([[nothing if value is None else value for value in some] for some in values])

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
        places = [*(between + 4 * offset for offset in self.offsets), data_address(whole), 0]
        places += [data_address(array) for array in reversed(given)]  # so that the first is number -1
        table = self.table.copy()
        table[:, _VALUES] = np.array(places)[self.numbers]
        taken = np.zeros((len(table), table[:, _PIECES_OF].max() + 1), np.int64)
        work = self.flops * len(whole) // self.shape[0]
        share(_run, threads(), work, table, self.geometry, self.limits, len(whole), taken, threads(), YIELD)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A member, or what rounds or pads its data, with the numbers of the values that it reads and writes.

    Values from 0 on are between the members, and the last one is the result. Those below 0 are inputs of the kernel.
    """

    stage: Stage
    data: int
    residual: int | None
    adds: int
    """How the residual is added: see ``window_block``."""
    out: int | None
    """The result, or None if it is read only in bf16."""
    rounded: int | None
    """The result in bf16, or None."""
    form: int | None = None
    """What a part without panels does: ``_ROUNDS``, ``_PADS`` or ``_PADS_PLANES``."""


def _parts(members: Sequence[Member]) -> tuple[list[_Part], list[int]]:
    """Return the parts of a sequence, and the size of each value between them, in floats of an image.

    A member rounds its result where another one reads or adds it in bf16. What rounds inputs of the kernel, or pixels
    whose groups have an odd number of channels, is a part of its own, and so is what pads data.
    """
    within = [member.data >= 0 and _reads_results(member.stage) for member in members]
    adds = [_adds(member) for member in members]
    kept = {len(members) - 1, *(member.residual for member, how in zip(members, adds) if how != ADDED_IN_BF16)}
    kept |= {member.data for member, rounds in zip(members, within) if not rounds}
    halved = {member.data for member, rounds in zip(members, within) if rounds}
    halved |= {member.residual for member, how in zip(members, adds) if how == ADDED_IN_BF16}
    sizes: list[int] = []
    plain: dict[int, int] = {}
    rounded: dict[int, int] = {}
    apart: dict[tuple[int, int, tuple[Axis, ...]], int] = {}
    parts: list[_Part] = []
    for n, (member, rounds) in enumerate(zip(members, within)):
        stage, data = member.stage, plain.get(member.data, member.data)
        pixels = stage.axes[0].out * stage.axes[1].out
        if rounds:
            data = rounded[member.data]
        elif stage.rounded or stage.padded:
            key = member.data, stage.parts, stage.padded
            if key not in apart:
                apart[key] = len(sizes)
                form = _ROUNDS if stage.rounded else _PADS_PLANES if member.planes else _PADS
                parts.append(_Part(_before(stage), data, None, 0, len(sizes), None, form))
                sizes.append(stage.axes[0].size * stage.axes[1].size * stage.pixel)
            data = apart[key]
        if n in halved:
            rounded[n] = len(sizes)
            sizes.append(pixels * words(stage.channels))
        if n in kept:
            plain[n] = len(sizes)
            sizes.append(pixels * stage.channels)
        held = rounded if adds[n] == ADDED_IN_BF16 else plain
        residual = None if member.residual is None else held.get(member.residual, member.residual)
        parts.append(_Part(stage, data, residual, adds[n], plain.get(n), rounded.get(n)))
    return parts, sizes[:-1]


def _reads_results(stage: Stage) -> bool:
    """Return whether a stage reads results of others as these round them."""
    return stage.rounded > 0 and stage.rounded % 2 == 0


def _adds(member: Member) -> int:
    """Return how the residual of a member is added. Members round what is added in bf16."""
    if member.residual is None:
        return 0
    return ADDED_IN_BF16 if member.stage.adds == ADDED_ROUNDED and member.residual >= 0 else member.stage.adds


def _before(stage: Stage) -> Stage:
    """Return the stage that rounds or pads the data of another one. Its depth is the channels of a group."""
    rows, line = (
        Axis(axis.size, 1, 1, 1, axis.begin if stage.padded else 0, 0, seen.size)
        for axis, seen in zip(stage.padded or stage.axes, stage.axes)
    )
    nothing, depth = np.empty(0, np.float32), stage.rounded or stage.pixel
    return Stage((rows, line), _NO_PANELS, stage.parts, depth, stage.pixel, nothing, nothing, 0)


def _entry(part: _Part, batch: int) -> list[int]:
    """Return the row of the table for a part that computes ``batch`` images. What a call has to fill in is 0."""
    stage = part.stage
    (rows, line), panels = stage.axes, stage.panels
    windows = batch * rows.out * line.out
    pieces = _PIECES_PER_THREAD * threads() if threads() > 1 else 1
    # a thread reads either a part of the windows and all filters, or the other way round
    seen = batch * rows.size * line.size * 4 * stage.pixel
    by_panels = stage.groups == 1 and stage.depth > 0 and panels.nbytes > seen and 1 < pieces <= len(panels)
    pieces = pieces if by_panels else max(1, min(pieces, windows // _MIN_PIECE_WINDOWS))
    bias = data_address(stage.bias) if stage.bias.size else 0
    form = _FORMS[panels.dtype.name] if part.form is None else part.form
    return [
        0, rows.size, line.size, stage.pixel, data_address(panels), *panels.shape, form, bias, 0,
        0, rows.out, line.out, stage.channels, stage.groups, stage.depth, pieces, by_panels,
        stage.limits.size == 2, part.adds, 0,
    ]  # fmt: skip


def _places(parts: Sequence[_Part], sizes: Sequence[int]) -> tuple[list[int], int]:
    """Return where each value between the parts begins in the memory that they share, and its size, in floats."""
    first: dict[int | None, int] = {}
    last: dict[int | None, int] = {}
    for number, part in enumerate(parts):
        first |= dict.fromkeys((part.out, part.rounded), number)
        last |= dict.fromkeys((part.data, part.residual, part.out, part.rounded), number)
    return placed([(size, first[value], last[value]) for value, size in enumerate(sizes)])


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
        unit = 1 if entry[_BY_PANELS] else ROWS
        windows = entry[_COUNT] if entry[_BY_PANELS] else batch * entry[_HIGH] * entry[_BROAD]
        units = (windows + unit - 1) // unit
        for k in range(pieces):
            piece = (pieces * worker // workers + k) % pieces
            if add_to(line + 8 * piece, 1) == 0:
                first, last = units * piece // pieces * unit, min(units * (piece + 1) // pieces * unit, windows)
                _piece(entry, geometry[n], limits[n], batch, first, last)
                add_to(done, 1)
        turns = 0
        while look_at(done) < pieces:
            turns += 1
            wait(turns, yields)


@compiled
def _piece(entry: np.ndarray, geometry: np.ndarray, limits: np.ndarray, batch: int, first: int, last: int) -> None:
    """Compute the windows, or the panels, from ``first`` to ``last`` of one convolution."""
    if entry[_FORM] == _ROUNDS:
        groups, count = entry[_GROUPS], entry[_DEPTH]
        round_rows(entry[_DATA], count, entry[_OUT], count, first * groups, last * groups)
        return
    if entry[_FORM] == _PADS or entry[_FORM] == _PADS_PLANES:
        _pad(entry, geometry, first, last)
        return
    keeps, rounded = entry[_OUT] != 0, entry[_ROUNDED]
    data = _image(entry[_DATA], batch, entry[_ROWS], entry[_LINE], entry[_CHANNELS])
    out = _image(entry[_OUT] if keeps else rounded, batch, entry[_HIGH], entry[_BROAD], entry[_OUTS])
    residual = _image(entry[_RESIDUAL], batch, entry[_HIGH], entry[_BROAD], entry[_OUTS])
    bias = row_at(entry[_BIAS], entry[_OUTS] if entry[_BIAS] else 0)
    low = row_at(limits.ctypes.data, 2 if entry[_CLAMPS] else 0)
    groups, depth, place, begin = entry[_GROUPS], entry[_DEPTH], entry[_PANELS], 0
    shape = (entry[_COUNT], entry[_TAPS], entry[_WIDTH])
    if entry[_BY_PANELS]:
        begin, shape = first, (last - first, entry[_TAPS], entry[_WIDTH])
        first, last = 0, batch * entry[_HIGH] * entry[_BROAD]
    skipped = begin * entry[_TAPS] * entry[_WIDTH]
    after = (entry[_ADDS], low, keeps, rounded)
    if entry[_FORM] == _FLOATS:
        panels = array_at(floats_at(place + 4 * skipped), shape)
        _convolve(panels, data, bias, residual, out, geometry, groups, depth, after, begin, first, last)
    elif entry[_FORM] == _SHORTS:
        shorts = array_at(shorts_at(place + 2 * skipped), shape)
        _convolve(shorts, data, bias, residual, out, geometry, groups, depth, after, begin, first, last)
    elif entry[_FORM] == _PAIRS:
        pairs = array_at(words_at(place + 4 * skipped), shape)
        _convolve(pairs, data, bias, residual, out, geometry, groups, depth, after, begin, first, last)
    elif HALVES:  # else there are none, and the processor has no instruction that the code for them needs
        halves = array_at(halves_at(place + 2 * skipped), shape)
        _convolve(halves, data, bias, residual, out, geometry, groups, depth, after, begin, first, last)


@contracted
def _pad(entry: np.ndarray, geometry: np.ndarray, first: int, last: int) -> None:
    """Fill the pixels from ``first`` to ``last`` of padded images with data, or with zeros."""
    count, high, broad, top, left = entry[_DEPTH], entry[_HIGH], entry[_BROAD], geometry[6], geometry[7]
    size, position = entry[_ROWS] * entry[_LINE], first
    while position < last:
        line, begin = divmod(position, broad)
        image, y = divmod(line, high)
        end = min(broad, begin + last - position)
        from_x, to_x = end, end
        if 0 <= y - top < entry[_ROWS]:
            from_x = min(max(begin, left), end)
            to_x = max(min(end, left + entry[_LINE]), from_x)
        pixels = array_at(floats_at(entry[_OUT] + 4 * count * line * broad), count * broad)
        pixels[count * begin : count * from_x] = 0
        pixels[count * to_x : count * end] = 0
        inner, seen = pixels[count * from_x : count * to_x], (y - top) * entry[_LINE] + from_x - left
        if entry[_FORM] == _PADS:
            inner[:] = array_at(floats_at(entry[_DATA] + 4 * count * (image * size + seen)), inner.size)
        else:
            _interleave(entry[_DATA] + 4 * (image * count * size + seen), size, inner, count)
        position += end - begin


@contracted
def _interleave(source: int, apart: int, target: np.ndarray, count: int) -> None:
    """Fill ``target`` f32 [pixels * count] with pixels. At ``source``, the channels are ``apart`` numbers apart."""
    pixels = target.size // count
    if count == 3:
        one, two = array_at(floats_at(source), pixels), array_at(floats_at(source + 4 * apart), pixels)
        three = array_at(floats_at(source + 8 * apart), pixels)
        for n in range(pixels):
            target[3 * n], target[3 * n + 1], target[3 * n + 2] = one[n], two[n], three[n]
        return
    for k in range(count):
        plane = array_at(floats_at(source + 4 * k * apart), pixels)
        for n in range(pixels):
            target[n * count + k] = plane[n]


_After = tuple[int, np.ndarray, bool, int]
"""The arguments of ``convolve`` from ``adds`` to ``rounded``."""


@contracted
def _convolve(
    panels: np.ndarray, data: np.ndarray, bias: np.ndarray, residual: np.ndarray, out: np.ndarray,
    geometry: np.ndarray, groups: int, depth: int, after: _After, begin: int, first: int, last: int,
) -> None:  # fmt: skip
    """Compute windows with panels of any form, of which the first has the number ``begin``. See ``convolve``."""
    if depth == 0:
        convolve_depthwise(data, panels, bias, residual, out, geometry, *after, first, last)
    else:
        convolve(data, panels, bias, residual, out, geometry, groups, depth, *after, begin * WIDTH, first, last)
