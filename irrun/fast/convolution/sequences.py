"""Convolutions and poolings one after the other in a single call, which threads share without Python between them.

Between two calls, Python computes on one thread, and the others wait for as long as a small convolution takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from irrun.fast.convolution.copies import padding, rounding
from irrun.fast.convolution.stage import Stage
from irrun.fast.convolution.window_block import ADDED_IN_BF16, ADDED_ROUNDED
from irrun.fast.convolution.windows import call_of, convolution_of, geometry_of
from irrun.fast.machine.calls import in_calls
from irrun.fast.machine.memory import data_address, lent
from irrun.fast.pooling import largest
from irrun.fast.precision.bf16 import words
from irrun.kernels.blocks import placed
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Call, Calls, Kernel, Packing

__all__ = ["Member", "sequence"]

_MAX_IMAGES_BYTES: Final = 1 << 23
"""Bytes of the largest value between the convolutions, for as many images as are computed together. It stays in the
third-level cache: MobileNetV2 takes 1.5 times as long for eight images together."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A convolution or pooling of a sequence, and what it reads.

    ``data``, one for each part, and ``residual`` are numbers: of a member of the sequence from 0 on, or of an input of
    the kernel, -1 for the first, -2 for the second. ``residual`` is None if nothing is added.
    """

    stage: Stage
    data: tuple[int, ...]
    residual: int | None
    planes: bool = False
    """Whether the data, an input of the kernel that is padded, has its channels first."""


_ROUNDS, _PADS, _PADS_PLANES, _CHANGES = range(4)
"""What a copy of the data of a member is: rounded to bf16, or with pads; the channels of the data are then the last or
the first axis. ``_CHANGES`` changes results in place."""


def sequence(members: Sequence[Member], batch: int, flops: int, inputs: int, filters: tuple[int, ...]) -> Kernel:
    """Return the kernel that computes the members in turn, and returns what the last one gives.

    Its first ``inputs`` inputs are data and residuals, channels last unless members say otherwise; ``filters`` are the
    positions of the filters.
    """
    stages = [member.stage for member in members]
    name = "compiled depthwise" if any(stage.groups > 1 for stage in stages) else "compiled"
    packed = sum(phase.panels.nbytes for stage in stages for phase in (stage, *stage.others))
    held, name = _Sequence(members, batch, inputs), f"{name} in sequence, channels last"
    return in_calls(
        name,
        held.calls,
        held.shape,
        np.float32,
        flops,
        flops=flops,
        packing=Packing(filters, packed),
        spare_bytes=4 * held.size,
    )


class _Sequence:
    """The parts of a sequence, and where the values between them are."""

    def __init__(self, members: Sequence[Member], batch: int, inputs: int) -> None:
        self.parts, sizes = _parts(members)
        stages = [part.stage for part in self.parts]
        image = max(4 * prod(stage.shape) for stage in stages)
        self.together = max(1, min(_MAX_IMAGES_BYTES // max(image, 1), batch))
        self.inputs = inputs
        self.shape = batch, *stages[-1].shape
        self.geometry = [part.geometry() for part in self.parts]
        self.offsets, self.size = _places(self.parts, [size * self.together for size in sizes])

    def calls(self, *arrays: np.ndarray, out: np.ndarray, spare: np.ndarray) -> Calls:
        """Return the calls that compute some images after the others: see ``Joins.calls``."""
        given = [np.ascontiguousarray(array) for array in arrays[: self.inputs]]
        calls: list[Call] = []
        for first in range(0, len(out), self.together):
            images = slice(first, first + self.together)
            some = [array[images] for array in given]
            places = [*(data_address(spare) + 4 * offset for offset in self.offsets), data_address(out[images])]
            places += map(data_address, reversed(some))  # so that the first is number -1
            for part, geometry in zip(self.parts, self.geometry):
                calls += part.calls(geometry, len(out[images]), places)
        return calls


class _Value(NamedTuple):
    """A value of the sequence in f32, or the words of it in bf16.

    Numbers from 0 on are places in memory between the members, and the last one is the result. Those below 0 are inputs
    of the kernel.
    """

    number: int
    apart: int
    """How many elements, or words, apart two pixels are. Parts of a Concat lie side by side in a pixel."""
    begin: int = 0
    """The word of a pixel with which the value begins."""

    def address(self, places: Sequence[int]) -> int:
        """Return where the value begins. ``places`` has the address of each number."""
        return places[self.number] + 4 * self.begin


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A member, a phase of it, or the copy of its data, with the values that it reads and writes."""

    stage: Stage
    data: _Value
    residual: _Value | None
    out: _Value | None
    """The result, or None if it is read only in bf16."""
    rounded: _Value | None
    """The result in bf16, or None."""
    form: int | None = None
    """None for the member itself. For a copy: ``_ROUNDS``, ``_PADS`` or ``_PADS_PLANES``. Else ``_CHANGES``."""

    def geometry(self) -> np.ndarray:
        """Return the geometry of its windows and results."""
        rows, line = self.stage.axes
        apart = 0 if self.rounded is None else 4 * self.rounded.apart
        return geometry_of(rows, line, self.stage.steps, self.stage.firsts, apart)

    def calls(self, geometry: np.ndarray, batch: int, places: Sequence[int]) -> Calls:
        """Return the calls that compute the part for so many images. ``places`` has the address of each number."""
        if self.form == _CHANGES:
            assert self.stage.change is not None
            rows, columns, channels = self.stage.shape
            return self.stage.change.calls(lent(self.data.address(places), (batch * rows, columns * channels)))
        return [self.call(geometry, batch, places)]

    def call(self, geometry: np.ndarray, batch: int, places: Sequence[int]) -> Call:
        """Return the call that computes a member or a copy for so many images."""
        stage, (rows, line), source = self.stage, self.stage.axes, self.data.address(places)
        if self.form is not None:
            assert self.out is not None
            target, pixels = self.out.address(places), batch * rows.size * line.size
            if self.form != _ROUNDS:
                return padding(source, target, stage.padded, batch, stage.pixel, self.form == _PADS_PLANES)
            if stage.parts:
                return rounding(source, target, pixels, self.data.apart, stage.pixel)
            return rounding(source, target, pixels * stage.sections, stage.rounded)
        keeps, shape = self.out is not None, (batch, *stage.shape)
        data, rounded = lent(source, (batch, rows.size, line.size, self.data.apart)), 0
        if self.rounded is not None:
            rounded = self.rounded.address(places)
        out = lent(rounded if self.out is None else self.out.address(places), shape)
        if stage.pools:
            return largest(geometry, data, out, keeps=keeps, rounded=rounded, in_bf16=stage.rounded > 0)
        residual = None
        if self.residual is not None:
            wide = 2 * self.residual.apart if stage.adds == ADDED_IN_BF16 else stage.channels
            residual = lent(self.residual.address(places), (*shape[:3], wide))
        convolution = convolution_of(stage, geometry, data, residual, out, keeps=keeps, rounded=rounded)
        return call_of(*convolution, batch * rows.out * line.out)


class _Reads:
    """What members read, in f32 or in bf16. What follows a member is known before the member."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self.adds = [self._added(member) for member in members]
        """How the residual of each member is added."""
        self.joined = {_copied(member): member for member in members if member.stage.parts}
        """The members whose data is in parts, one for each data."""
        self.times = Counter(number for member in self.joined.values() for number in member.data)
        self.readers: dict[int, list[int]] = {}
        for m, member in enumerate(members):
            for number in {*member.data, member.residual} - {None}:
                self.readers.setdefault(number, []).append(m)
        self.ways: dict[int, set[bool]] = {}
        """Whether the result of a member is read in bf16, for all that read it."""
        self.in_bf16: dict[int, bool] = {}
        """Whether a member reads a result in bf16."""
        for n in reversed(range(len(members))):
            self.ways[n] = {False} if n == len(members) - 1 else set(self._ways(n))
            self.in_bf16[n] = self._in_bf16(n)

    def among_parts(self, n: int) -> bool:
        """Return whether member ``n`` rounds its result to its place among the parts of some data.

        No convolution reads it there as data of its own.
        """
        others = [m for m in self.readers[n] if n in self.members[m].data and not self.members[m].stage.pools]
        is_whole = self.members[n].stage.channels % 2 == 0 and self._is_rounded(n)
        return self.times[n] == 1 and is_whole and not any(self.in_bf16[m] for m in others)

    def replaces(self, n: int) -> int | None:
        """Return the residual of member ``n`` if it is in bf16, and nothing else reads it afterwards.

        A result in its place is written to memory that has just been read.
        """
        residual = self.members[n].residual
        if residual is None or self.adds[n] != ADDED_IN_BF16 or residual in self.members[n].data:
            return None
        return residual if self.readers[residual][-1] == n else None

    def _is_rounded(self, number: int) -> bool:
        """Return whether a number is that of a member, which rounds its result where another one reads it in bf16."""
        return number >= 0 and self.members[number].stage.change is None

    def _added(self, member: Member) -> int:
        adds, residual = member.stage.adds, member.residual
        return ADDED_IN_BF16 if adds == ADDED_ROUNDED and residual is not None and self._is_rounded(residual) else adds

    def _in_bf16(self, n: int) -> bool:
        """A pooling reads bf16 if its own result is read in bf16 alone.

        Of rounded numbers, the largest is what the largest of all is rounded to.
        """
        (data, *_), stage = self.members[n].data, self.members[n].stage
        if stage.parts or not self._is_rounded(data):
            return False
        return self.ways[n] == {True} if stage.pools else stage.rounded > 0 and stage.rounded % 2 == 0

    def _ways(self, n: int) -> Iterator[bool]:
        for m in self.readers[n]:
            member = self.members[m]
            if member.residual == n:
                yield self.adds[m] == ADDED_IN_BF16
            if n in member.data:
                yield self.among_parts(n) if member.stage.parts else self.in_bf16[m]


def _copied(member: Member) -> tuple[tuple[int, ...], int, tuple[Axis, ...]]:
    """Return what the copy of the data of a member depends on."""
    return member.data, member.stage.sections, member.stage.padded


def _parts(members: Sequence[Member]) -> tuple[list[_Part], list[int]]:
    """Return the parts of a sequence, and the size of each value between them, in floats of an image.

    A member rounds its result where another one reads or adds it in bf16. What rounds inputs of the kernel, or pixels
    whose groups have an odd number of channels, is a part of its own, and so is what pads data.
    """
    reads, parts = _Reads(members), list[_Part]()
    sizes, plain, rounded = list[int](), dict[int, _Value](), dict[int, _Value]()
    copies: dict[tuple[Any, ...], _Value] = {}

    def held(size: int, apart: int) -> _Value:
        sizes.append(size)
        return _Value(len(sizes) - 1, apart)

    for key, member in reads.joined.items():
        stage = member.stage
        copies[key] = held(stage.axes[0].size * stage.axes[1].size * stage.pixel, stage.pixel)
        for number, value in zip(member.data, _side_by_side(copies[key], stage.parts)):
            if number >= 0 and reads.among_parts(number):
                rounded[number] = value
    done = set[tuple[Any, ...]]()
    for n, member in enumerate(members):
        stage, key, adds = member.stage, _copied(member), reads.adds[n]
        rows, columns, channels = stage.shape
        own = [
            plain.get(number, _Value(number, count))
            for number, count in zip(member.data, stage.parts or (stage.pixel,))
        ]
        data = own[0]
        if reads.in_bf16[n]:
            data, stage = rounded[member.data[0]], replace(stage, rounded=stage.rounded or channels)
        elif stage.rounded or stage.padded:
            if key not in copies:
                copies[key] = held(stage.axes[0].size * stage.axes[1].size * stage.pixel, stage.pixel)
            data = copies[key]
            form = _ROUNDS if stage.rounded else _PADS_PLANES if member.planes else _PADS
            targets = _side_by_side(data, stage.parts) if stage.parts else [data]
            for number, source, target in zip(member.data, own, targets):
                if key not in done and (number < 0 or rounded.get(number) != target):
                    parts.append(_Part(stage, source, None, target, None, form))
            done.add(key)
        if n not in rounded and True in reads.ways[n]:
            replaced, apart = reads.replaces(n), words(channels)
            place = None if replaced is None else rounded[replaced]
            if place is None or (place.apart, place.begin) != (apart, 0):
                place = held(rows * columns * apart, apart)
            rounded[n] = place
        if False in reads.ways[n]:
            plain[n] = held(rows * columns * channels, channels)
        results = rounded if adds == ADDED_IN_BF16 else plain
        residual = None if member.residual is None else results.get(member.residual, _Value(member.residual, channels))
        for phase in (stage, *stage.others):
            of = replace(phase, adds=adds, others=())
            parts.append(_Part(of, data, residual, plain.get(n), rounded.get(n)))
        if stage.change is not None:
            parts.append(_Part(stage, plain[n], None, plain[n], None, _CHANGES))
    return parts, sizes[:-1]


def _side_by_side(whole: _Value, channels: Sequence[int]) -> list[_Value]:
    """Return the values in bf16 that lie side by side in pixels of another one. All but the last are whole words."""
    return [_Value(whole.number, whole.apart, sum(channels[:n]) // 2) for n in range(len(channels))]


def _places(parts: Sequence[_Part], sizes: Sequence[int]) -> tuple[list[int], int]:
    """Return where each value between the parts begins in the memory that they share, and its size, in floats."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, part in enumerate(parts):
        for value in (part.data, part.residual, part.out, part.rounded):
            if value is not None:
                first.setdefault(value.number, number)
                last[value.number] = number
    order = sorted(range(len(sizes)), key=first.__getitem__)
    begins, size = placed([(sizes[value], first[value], last[value]) for value in order])
    return [begin for _, begin in sorted(zip(order, begins))], size
