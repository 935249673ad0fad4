"""Convolutions with constant filters, channels last, in compiled form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from irrun.fast.convolution.copies import padding, rounding
from irrun.fast.convolution.kernel import After, Arrays, Method
from irrun.fast.convolution.stage import NOT_SPLIT, Stage
from irrun.fast.convolution.windows import call_of, convolution_of, geometry_of
from irrun.fast.convolution.winograd import Winograd, tile_of
from irrun.fast.machine.memory import data_address
from irrun.fast.machine.sharing import share_call
from irrun.fast.panels import WIDTH
from irrun.fast.precision.bf16 import rounded_panels, words
from irrun.fast.precision.depthwise import evens_first
from irrun.fast.precision.pairs import SPLIT
from irrun.fast.precision.tiles import TILE, TILES
from irrun.fast.product import PackedMatrix
from irrun.kernels.blocks import each_block, scratch
from irrun.kernels.cast import rounded_to_bf16
from irrun.kernels.convolution.planes import Filters
from irrun.kernels.convolution.transposed import phases
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.matmul import ConstantForm
from irrun.kernels.threads import threads
from irrun.opdef import Call, Calls, Index, Kernel, OnTileReady, Operands, ignore_tile

__all__ = ["PackedFilters", "convolution", "transposed"]

_MAX_WIDENED_BYTES: Final = 1 << 16
"""The most bytes of filters in f32 that are held so, whatever their type is: they stay in the cache. Others are widened
again for each block of windows."""
_MAX_JOINED_CHANNELS: Final = 8
"""The most input channels for which the taps of a row are joined: a tap alone would be too short a loop."""


def convolution(filters: Filters, axes: tuple[Axis, ...], batch: int, precision: Operands = "f32") -> Kernel:
    """Return the kernel of a convolution of f32 for data of a known geometry. The filters are f32, f16 or bf16.

    The filters are finite, or there are no pads. ``precision`` is that of data and filters.
    """
    tile = None if precision in ("bf16", "split") else tile_of(filters, axes, batch)
    if tile is not None:
        return Winograd(filters, axes, batch, tile).kernel()
    return _Direct(filters, axes, batch, precision).kernel()


class PackedFilters(ConstantForm):
    """Filters in panels: see ``irrun.fast.convolution.windows``. Large ones are held in f16 where that is exact.

    ``taps`` chooses some of their rows and columns, in reverse order: the first and the distance between two, of each.
    """

    def __init__(self, source: np.ndarray, *taps: tuple[int, int]) -> None:
        super().__init__(source)
        if taps:
            source = source[(..., *(slice(first, None, step) for first, step in taps))][..., ::-1, ::-1]
        self.panels = self.packed(source)

    def packed(self, source: np.ndarray) -> np.ndarray:
        """Return the panels of filters (groups, out, in, rows, columns)."""
        groups, outs, ins = source.shape[:3]
        if ins == outs == 1:
            return PackedMatrix(source.reshape(groups, -1).T).panels
        matrix = _side_by_side(source.transpose(0, 3, 4, 2, 1).reshape(groups, -1, outs))
        return PackedMatrix(matrix, widened=4 * matrix.size <= _MAX_WIDENED_BYTES).panels


class _RoundedFilters(PackedFilters):
    """Filters rounded to bf16, whose taps have an even number of input channels: see ``precision.bf16``.

    Those of single channels are f32: see ``precision.depthwise``.
    """

    def packed(self, source: np.ndarray) -> np.ndarray:
        groups, outs, ins, *kernel = source.shape
        if groups > 1 and ins == outs == 1:
            return evens_first(rounded_to_bf16(source).view(np.uint32).reshape(groups, -1))
        matrices = np.zeros((groups, *kernel, 2 * words(ins), outs), source.dtype)
        matrices[..., :ins, :] = source.transpose(0, 3, 4, 2, 1)
        return rounded_panels(_side_by_side(matrices.reshape(groups, -1, outs)))


class _SplitFilters(PackedFilters):
    """Filters of a picture as sums of two numbers of bf16, for data that is split, too: see ``multiply_split``.

    Beside the three numbers of each element of the data are the nearest number of the filter, twice, and its rest.
    """

    def packed(self, source: np.ndarray) -> np.ndarray:
        _, outs, ins, high, broad = source.shape
        rows = source[0].transpose(2, 3, 1, 0).reshape(high, broad * ins, outs).astype(np.float32)
        first = rounded_to_bf16(rows)
        if not np.isfinite(first).all():
            return NOT_SPLIT
        count = SPLIT * broad * ins
        whole = np.zeros((high, -(-count // (2 * TILE)) * 2 * TILE, outs), np.float32)
        for n, part in enumerate((first, first, rounded_to_bf16(rows - first))):
            whole[:, n:count:SPLIT] = part
        return rounded_panels(whole.reshape(-1, outs))


def _side_by_side(matrices: np.ndarray) -> np.ndarray:
    """Return the matrices [groups, rows, columns] as one, in which the columns of each begin with a panel."""
    groups, rows, columns = matrices.shape
    if groups == 1:
        return matrices[0]
    whole = np.zeros((rows, groups, -(-columns // WIDTH) * WIDTH), matrices.dtype)
    whole[..., :columns] = matrices.swapaxes(0, 1)
    return whole.reshape(rows, -1)


@dataclass(frozen=True, slots=True)
class _Phase:
    """The windows whose results are at one phase of the strides of a transposed convolution, or all windows."""

    filters: PackedFilters
    """The form of the filters that all kernels share, as long as one holds it."""
    stage: Stage
    """The convolution of these windows, without an epilogue."""
    geometry: np.ndarray

    def windows(self, index: Index) -> tuple[int, int]:
        """Return the first and the last of the windows at ``index`` (images, rows of windows)."""
        (images, rows), (high, broad) = index, (axis.out for axis in self.stage.axes)
        first = (images.start * high + min(rows.start, high)) * broad
        return first, ((images.stop - 1) * high + min(rows.stop, high)) * broad

    def in_call(self, seen: np.ndarray, arrays: Arrays, after: After) -> Call:
        """Return the call that fills all windows of ``arrays.out``, which see the data or its copy."""
        windows = len(seen) * math.prod(axis.out for axis in self.stage.axes)
        return call_of(*self.convolution(seen, arrays, after), windows)

    def convolution(self, seen: np.ndarray, arrays: Arrays, after: After) -> tuple[Any, tuple[Any, ...]]:
        """Return the function that fills some windows, and its arguments up to ``first``."""
        return convolution_of(self.following(after), self.geometry, seen, arrays.residual, arrays.out)

    def following(self, after: After) -> Stage:
        """Return the convolution with its epilogue."""
        return replace(self.stage, **after._asdict())


class _Direct(Method):
    """A convolution computed from the data as it is: as a matrix product, or channel by channel.

    The data is copied first if it is rounded to bf16, or if the taps of a row are joined and some see pads.
    """

    padded: tuple[Axis, ...] = ()
    """The windows along rows and columns of the data, if its copy has pads."""
    split: np.ndarray = NOT_SPLIT
    """The panels of ``_SplitFilters``, if any."""

    def __init__(self, filters: Filters, axes: tuple[Axis, ...], batch: int, precision: Operands) -> None:
        super().__init__(filters, axes, batch)
        self.set_precision(filters, precision)
        packed, depth, (rows, line) = self.form.of(filters.source), self.depth, axes
        # the taps of a row are one after the other in memory
        is_narrow = filters.groups == 1 and filters.ins <= _MAX_JOINED_CHANNELS and not self.rounded
        if is_narrow and line.kernel > 1 and line.dilation == 1:
            depth *= line.kernel
            if any(axis.begin or axis.reach > axis.size for axis in axes):
                self.padded = axes
                rows, line = (replace(axis, begin=0, end=0, size=axis.reach) for axis in axes)
            line = replace(line, kernel=1)
            if precision == "split" and TILES and rows.dilation == 1 and filters.outs <= WIDTH:
                self.split = _SplitFilters.of(filters.source).panels
                self.name += " in split numbers"
        self.step, self.phases = 1, [_Phase(packed, self.stage(packed, (rows, line), depth), geometry_of(rows, line))]
        self.packed = packed.panels.nbytes + self.split.nbytes
        self.set_copy(batch, rows.size, line.size)

    def stage(self, packed: PackedFilters, axes: tuple[Axis, ...], depth: int) -> Stage:
        """Return the convolution of some windows. Each sees ``depth`` elements of a group at a tap."""
        own = self.groups, depth, self.pixel, self.shape[3]
        more = self.rounded, self.sections
        return Stage(axes, packed.panels, *own, *After.of(None), *more, padded=self.padded, split=self.split)

    def set_precision(self, filters: Filters, precision: Operands) -> None:
        """Set what depends on the precision of data and filters."""
        alone, rounds = filters.groups > 1 and filters.ins == filters.outs == 1, precision == "bf16"
        self.groups, self.sections = filters.groups, 1 if alone else filters.groups
        """The groups of channels that are rounded apart from each other."""
        each = filters.groups * filters.ins // self.sections
        self.rounded, self.pixel = each if rounds else 0, self.sections * (words(each) if rounds else each)
        self.form = _RoundedFilters if rounds else PackedFilters
        self.depth = 0 if alone else words(filters.ins) if rounds else filters.ins
        self.name = ("compiled depthwise" if alone else "compiled") + (" in bf16" if rounds else "")

    def set_copy(self, *pixels: int) -> None:
        """Set the shape of the copy of the data, which has so many images, rows and columns, and its bytes."""
        self.copy_shape = *pixels, self.pixel
        self.spare_bytes = 4 * math.prod(self.copy_shape) if self.rounded or self.padded else 0

    def before(self, data: Sequence[np.ndarray], spare: np.ndarray) -> tuple[Calls, np.ndarray]:
        """Return the calls that copy the data to ``spare``, and what the windows see: the copy, or the data."""
        if not self.spare_bytes:
            return [], data[0]
        calls, target = list[Call](), data_address(spare)
        if not self.rounded:
            calls.append(padding(data_address(data[0]), target, self.padded, len(data[0]), self.pixel))
        elif self.parts == 1:
            calls.append(rounding(data_address(data[0]), target, data[0].size // self.rounded, self.rounded))
        else:
            pixels = math.prod(self.copy_shape[:3])
            for part in data:
                calls.append(rounding(data_address(part), target, pixels, part.shape[-1], self.pixel))
                target += 2 * part.shape[-1]
        return calls, spare.view(np.float32).reshape(self.copy_shape)

    def in_parts(self, sizes: Sequence[int]) -> Kernel | None:
        """Each part is rounded to its place in the copy. Only the last may have an odd number of channels."""
        if not self.rounded or self.sections > 1 or any(size % 2 for size in sizes[:-1]):
            return None
        parted = copy(self)
        parted.parts = len(sizes)
        parted.phases = [replace(phase, stage=replace(phase.stage, parts=tuple(sizes))) for phase in self.phases]
        return parted.kernel()

    def calls(self, arrays: Arrays, after: After, spare: np.ndarray) -> Calls:
        calls, seen = self.before(arrays.data, spare)
        return [*calls, *(phase.in_call(seen, arrays, after) for phase in self.phases)]

    def stages(self, after: After) -> tuple[Stage, ...]:
        first, *others = (phase.following(after) for phase in self.phases)
        return (replace(first, others=tuple(others)),)

    def fill(self, arrays: Arrays, after: After, on_tile_ready: OnTileReady) -> None:
        (batch, high, broad, channels), step = arrays.out.shape, self.step
        calls, seen = self.before(arrays.data, scratch(0, np.dtype(np.uint8), self.spare_bytes))
        for call in calls:
            share_call(call, seen.size)

        if on_tile_ready is ignore_tile:
            for phase in self.phases:
                share_call(phase.in_call(seen, arrays, after), self.flops // len(self.phases))
            return
        convolutions = [phase.convolution(seen, arrays, after) for phase in self.phases]

        def part(index: Index) -> None:
            for phase, (function, arguments) in zip(self.phases, convolutions):
                function(*arguments, *phase.windows(index))
            images, rows = index
            lines = slice(rows.start * step, min(rows.stop * step, high))
            on_tile_ready((images, lines, slice(0, broad), slice(0, channels)))

        count, pixel = -(-high // step), channels * arrays.out.itemsize
        least = max(_MIN_PART_WINDOWS, min(_ENOUGH_PART_WINDOWS, batch * count * broad // threads()))
        each_block(part, (batch, count), step * broad * pixel, self.limit, work=self.flops, least=least * pixel)


_MIN_PART_WINDOWS: Final = 16
"""The fewest windows of a part of the work, of which there may be one for each thread."""
_ENOUGH_PART_WINDOWS: Final = 64
"""The fewest windows of a part if there are more: each part reads all filters again."""


class _Transposed(_Direct):
    """A transposed convolution, as a convolution for each phase of the strides."""

    def __init__(self, filters: Filters, axes: tuple[Axis, ...], batch: int, precision: Operands) -> None:
        Method.__init__(self, filters, axes, batch)
        self.set_precision(filters, precision)
        self.shape = batch, axes[0].size, axes[1].size, filters.groups * filters.outs
        self.flops = 2 * filters.size * math.prod((batch, *(axis.out for axis in axes)))
        self.step = axes[0].stride
        steps = axes[0].stride, axes[1].stride
        self.phases: list[_Phase] = []
        for phase in phases(axes):
            (rows, line), (top, left) = phase.axes, phase.firsts
            packed = self.form.of(filters.source, *zip((tap.start for tap in phase.taps), steps))
            own = replace(
                self.stage(packed, (rows, line), self.depth), image=self.shape[1:3], steps=steps, firsts=(top, left)
            )
            self.phases.append(_Phase(packed, own, geometry_of(rows, line, own.steps, own.firsts)))
        self.packed = sum(phase.filters.panels.nbytes for phase in self.phases)
        self.set_copy(batch, axes[0].out, axes[1].out)


def transposed(filters: Filters, axes: tuple[Axis, ...], batch: int, precision: Operands) -> Kernel:
    """Return the kernel of a transposed convolution of f32 whose phases are the whole output.

    ``axes`` are those of the convolution that leads from the output back to the data. ``precision`` is that of data and
    filters.
    """
    return _Transposed(filters, axes, batch, precision).kernel()
