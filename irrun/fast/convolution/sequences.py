"""Convolutions one after the other in a single call, which threads share without Python between the convolutions.

Between two calls, Python computes on one thread, and the others wait for as long as a small convolution takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from irrun.fast.convolution.copies import padding, rounding, rounding_parts
from irrun.fast.convolution.stage import Stage
from irrun.fast.convolution.window_block import ADDED_IN_BF16, ADDED_ROUNDED
from irrun.fast.convolution.windows import call_of, convolution_of, geometry_of
from irrun.fast.machine.calls import in_calls
from irrun.fast.machine.memory import data_address, lent
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
    """A convolution of a sequence, and what it reads.

    ``data``, one for each part, and ``residual`` are numbers: of a member of the sequence from 0 on, or of an input of
    the kernel, -1 for the first, -2 for the second. ``residual`` is None if nothing is added.
    """

    stage: Stage
    data: tuple[int, ...]
    residual: int | None
    planes: bool = False
    """Whether the data, an input of the kernel that is padded, has its channels first."""


_ROUNDS, _PADS, _PADS_PLANES = range(3)
"""What a copy of the data of a member is: rounded to bf16, or with pads; the channels of the data are then the last or
the first axis."""


def sequence(members: Sequence[Member], batch: int, flops: int, inputs: int, filters: tuple[int, ...]) -> Kernel:
    """Return the kernel that computes the members in turn, and returns what the last one gives.

    Its first ``inputs`` inputs are data and residuals, channels last unless members say otherwise; ``filters`` are the
    positions of the filters.
    """
    stages = [member.stage for member in members]
    name = "compiled depthwise" if any(stage.groups > 1 for stage in stages) else "compiled"
    packing = Packing(filters, sum(stage.panels.nbytes for stage in stages))
    held, name = _Sequence(members, batch, inputs), f"{name} in sequence, channels last"
    return in_calls(
        name, held.calls, held.shape, np.float32, flops, flops=flops, packing=packing, spare_bytes=4 * held.size
    )


class _Sequence:
    """The parts of a sequence, and where the values between them are."""

    def __init__(self, members: Sequence[Member], batch: int, inputs: int) -> None:
        self.parts, sizes = _parts(members)
        stages = [part.stage for part in self.parts]
        image = max(stage.row * stage.axes[0].out for stage in stages)
        self.together = max(1, min(_MAX_IMAGES_BYTES // max(image, 1), batch))
        self.inputs = inputs
        self.shape = batch, stages[-1].axes[0].out, stages[-1].axes[1].out, stages[-1].channels
        self.geometry = [geometry_of(stage.axes[0], stage.axes[1]) for stage in stages]
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
                calls += _calls(part, geometry, len(out[images]), places)
        return calls


def _calls(part: _Part, geometry: np.ndarray, batch: int, places: Sequence[int]) -> Calls:
    """Return the calls that compute a part for so many images. ``places`` has the address of each value."""
    stage = part.stage
    (rows, line), source = stage.axes, places[part.data[0]]
    if part.form is not None:
        assert part.out is not None
        target, pixels = places[part.out], batch * rows.size * line.size
        if part.form != _ROUNDS:
            return [padding(source, target, stage.padded, batch, stage.pixel, part.form == _PADS_PLANES)]
        if stage.parts:
            return rounding_parts([places[n] for n in part.data], target, pixels, stage.parts, stage.pixel)
        return [rounding(source, target, pixels * stage.sections, stage.rounded)]
    keeps, rounded = part.out is not None, 0 if part.rounded is None else places[part.rounded]
    data, pixels = lent(source, (batch, rows.size, line.size, stage.pixel)), (batch, rows.out, line.out, stage.channels)
    out = lent(rounded if part.out is None else places[part.out], pixels)
    residual = None if part.residual is None else lent(places[part.residual], pixels)
    convolution = convolution_of(stage, geometry, data, residual, out, keeps=keeps, rounded=rounded)
    return [call_of(*convolution, batch * rows.out * line.out)]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A member, or the copy of its data, with the numbers of the values that it reads and writes.

    Values from 0 on are between the members, and the last one is the result. Those below 0 are inputs of the kernel.
    """

    stage: Stage
    data: tuple[int, ...]
    residual: int | None
    out: int | None
    """The result, or None if it is read only in bf16."""
    rounded: int | None
    """The result in bf16, or None."""
    form: int | None = None
    """None for the member itself. For a copy: ``_ROUNDS``, ``_PADS`` or ``_PADS_PLANES``."""


def _parts(members: Sequence[Member]) -> tuple[list[_Part], list[int]]:
    """Return the parts of a sequence, and the size of each value between them, in floats of an image.

    A member rounds its result where another one reads or adds it in bf16. What rounds inputs of the kernel, or pixels
    whose groups have an odd number of channels, is a part of its own, and so is what pads data.
    """
    within = [member.data[0] >= 0 and _reads_results(member.stage) for member in members]
    adds = [_adds(member) for member in members]
    kept = {len(members) - 1, *(member.residual for member, how in zip(members, adds) if how != ADDED_IN_BF16)}
    kept |= {data for member, rounds in zip(members, within) if not rounds for data in member.data}
    halved = {member.data[0] for member, rounds in zip(members, within) if rounds}
    halved |= {member.residual for member, how in zip(members, adds) if how == ADDED_IN_BF16}
    sizes: list[int] = []
    plain: dict[int, int] = {}
    rounded: dict[int, int] = {}
    apart: dict[tuple[tuple[int, ...], int, tuple[Axis, ...]], int] = {}
    parts: list[_Part] = []
    for n, (member, rounds) in enumerate(zip(members, within)):
        stage, data = member.stage, tuple(plain.get(number, number) for number in member.data)
        pixels = stage.axes[0].out * stage.axes[1].out
        if rounds:
            data = (rounded[member.data[0]],)
        elif stage.rounded or stage.padded:
            key = member.data, stage.sections, stage.padded
            if key not in apart:
                apart[key] = len(sizes)
                form = _ROUNDS if stage.rounded else _PADS_PLANES if member.planes else _PADS
                parts.append(_Part(stage, data, None, len(sizes), None, form))
                sizes.append(stage.axes[0].size * stage.axes[1].size * stage.pixel)
            data = (apart[key],)
        if n in halved:
            rounded[n] = len(sizes)
            sizes.append(pixels * words(stage.channels))
        if n in kept:
            plain[n] = len(sizes)
            sizes.append(pixels * stage.channels)
        held = rounded if adds[n] == ADDED_IN_BF16 else plain
        residual = None if member.residual is None else held.get(member.residual, member.residual)
        stage = replace(stage, adds=adds[n])
        parts.append(_Part(stage, data, residual, plain.get(n), rounded.get(n)))
    return parts, sizes[:-1]


def _reads_results(stage: Stage) -> bool:
    """Return whether a stage reads results of others as these round them."""
    return stage.rounded > 0 and stage.rounded % 2 == 0 and not stage.parts


def _adds(member: Member) -> int:
    """Return how the residual of a member is added. Members round what is added in bf16."""
    if member.residual is None:
        return 0
    return ADDED_IN_BF16 if member.stage.adds == ADDED_ROUNDED and member.residual >= 0 else member.stage.adds


def _places(parts: Sequence[_Part], sizes: Sequence[int]) -> tuple[list[int], int]:
    """Return where each value between the parts begins in the memory that they share, and its size, in floats."""
    first: dict[int | None, int] = {}
    last: dict[int | None, int] = {}
    for number, part in enumerate(parts):
        first |= dict.fromkeys((part.out, part.rounded), number)
        last |= dict.fromkeys((*part.data, part.residual, part.out, part.rounded), number)
    return placed([(size, first[value], last[value]) for value, size in enumerate(sizes)])
