"""Convolutions with constant filters, channels last, in compiled form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from irrun.fast.convolution.bands import Stage, chained
from irrun.fast.convolution.window_block import ADDED, ADDED_ROUNDED, in_pairs
from irrun.fast.convolution.windows import convolution_of, geometry_of
from irrun.fast.convolution.winograd import TransformedFilters, convolve_3x3
from irrun.fast.machine.memory import data_address
from irrun.fast.machine.processor import ROWS, VECTOR
from irrun.fast.machine.sharing import share
from irrun.fast.panels import WIDTH
from irrun.fast.precision.bf16 import round_rows, rounded_panels, words
from irrun.fast.product import PackedMatrix
from irrun.kernels.blocks import changing, each_block, scratch
from irrun.kernels.cast import rounded_to_bf16
from irrun.kernels.convolution.channels_last import with_pads
from irrun.kernels.convolution.planes import Filters, limit_of
from irrun.kernels.convolution.planes import convolve as defined
from irrun.kernels.convolution.transposed import phases
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.convolution.winograd import is_plain_3x3
from irrun.kernels.matmul import ConstantForm
from irrun.kernels.threads import shared, threads
from irrun.opdef import Epilogue, Index, Joins, Kernel, OnTileReady, Operands, Packing, ignore_tile

__all__ = ["PackedFilters", "convolution", "transposed"]

_MAX_JOINED_CHANNELS: Final = 8
"""The most input channels for which the taps of a row are joined: a tap alone would be too short a loop."""
_MIN_WINOGRAD_CHANNELS: Final = 16
"""The fewest channels for Winograd's method: with fewer, its transforms take longer than what they save."""
_SMALL_FILTERS_ELEMENTS: Final = 1 << 18
"""The most elements of transformed filters that do not matter: 1 MiB."""
_LARGE_FILTERS_ELEMENTS: Final = 1 << 22
"""The least elements of large transformed filters: 16 MiB."""
_MIN_SAVED_PER_ELEMENT: Final = 32
"""The least multiplications that each element of transformed filters must save, unless they are small."""
_MIN_SAVED_PER_LARGE_ELEMENT: Final = 128
"""The same for large ones. With 32 above 16 MiB, a U-Net takes 20 MB more and is 1 % faster; with 32 for 16 MiB too,
it takes 14 MB more."""
_NO_NUMBERS: Final = np.empty(0, np.float32)
_NO_CHANNELS: Final = np.empty((0, 0, 0, 0), np.float32)


def convolution(filters: Filters, axes: tuple[Axis, ...], batch: int, precision: Operands = "f32") -> Kernel:
    """Return the kernel of a convolution of f32 for data of a known geometry. The filters are f32, f16 or bf16.

    The filters are finite, or there are no pads. ``precision`` is that of data and filters.
    """
    tile = None if precision == "bf16" else _tile(filters, axes, batch)
    if tile is not None:
        return _Winograd(filters, axes, batch, tile).kernel()
    return _Direct(filters, axes, batch, precision).kernel()


def _tile(filters: Filters, axes: tuple[Axis, ...], batch: int) -> int | None:
    """Return the size of the tiles for Winograd's method, or None if another method is better.

    Transformed filters take much memory: 4 times that of the filters for tiles of 4, 1.8 times for tiles of 2. They
    must save enough multiplications.
    """
    plain = filters.groups == 1 and is_plain_3x3(filters, axes) and filters.is_finite
    if (
        not plain
        or min(filters.ins, filters.outs) < _MIN_WINOGRAD_CHANNELS
        or filters.ins % VECTOR
        or filters.outs % VECTOR
    ):
        return None
    # for each pair of channels: multiplications, and elements of transformed filters, without tiles and with them
    windows = {tile: batch * math.prod(-(-axis.out // tile) for axis in axes) for tile in (1, 2, 4)}
    work = {None: 9 * windows[1], 2: 16 * windows[2], 4: 36 * windows[4]}
    held = {None: 0, 2: 16, 4: 36}
    best: int | None = None
    for tile in (2, 4):
        saved, more = work[best] - work[tile], held[tile] - held[best]
        pairs = filters.ins * filters.outs
        worth = _MIN_SAVED_PER_ELEMENT if held[tile] * pairs < _LARGE_FILTERS_ELEMENTS else _MIN_SAVED_PER_LARGE_ELEMENT
        if saved > 0 and (more * pairs <= _SMALL_FILTERS_ELEMENTS or saved >= worth * more):
            best = tile
    return best


class PackedFilters(ConstantForm):
    """Filters in panels: see ``irrun.fast.convolution.windows``. They are held in f16 where that is exact.

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
        matrices = source.transpose(0, 3, 4, 2, 1).reshape(groups, -1, outs)
        return PackedMatrix(_side_by_side(matrices)).panels


class _RoundedFilters(PackedFilters):
    """Filters rounded to bf16, whose taps have an even number of input channels: see ``precision.bf16``.

    Those of single channels have an even number of taps.
    """

    def packed(self, source: np.ndarray) -> np.ndarray:
        groups, outs, ins, *kernel = source.shape
        if groups > 1 and ins == outs == 1:
            bits = rounded_to_bf16(source).view(np.uint32) >> np.uint32(16)
            return in_pairs(bits.astype(np.uint16).reshape(groups, -1))
        matrices = np.zeros((groups, *kernel, 2 * words(ins), outs), source.dtype)
        matrices[..., :ins, :] = source.transpose(0, 3, 4, 2, 1)
        return rounded_panels(_side_by_side(matrices.reshape(groups, -1, outs)))


def _side_by_side(matrices: np.ndarray) -> np.ndarray:
    """Return the matrices [groups, rows, columns] as one, in which the columns of each begin with a panel."""
    groups, rows, columns = matrices.shape
    if groups == 1:
        return matrices[0]
    whole = np.zeros((rows, groups, -(-columns // WIDTH) * WIDTH), matrices.dtype)
    whole[..., :columns] = matrices.swapaxes(0, 1)
    return whole.reshape(rows, -1)


class _After(NamedTuple):
    """What a kernel computes of its results: ``clamp(result + bias + residual)``."""

    bias: np.ndarray
    """A number for each channel, or none at all."""
    limits: np.ndarray
    """The least and the greatest result, or none at all."""
    adds: int
    """How the residual is added: see ``window_block``."""

    @staticmethod
    def of(epilogue: Epilogue | None) -> _After:
        """Return what an epilogue says."""
        epilogue = Epilogue() if epilogue is None else epilogue
        bias = _NO_NUMBERS if epilogue.bias is None else epilogue.bias
        limits = _NO_NUMBERS if epilogue.limits is None else np.array(epilogue.limits, np.float32)
        return _After(bias, limits, (ADDED_ROUNDED if epilogue.rounds else ADDED) if epilogue.residual else 0)


class _Method:
    """A convolution of data of a known geometry."""

    name: str
    packed: int
    """The bytes of the filters, as the method holds them."""
    parts: int = 1
    """How many inputs hold the data, each of them some of its channels."""

    def __init__(self, filters: Filters, axes: tuple[Axis, ...], batch: int) -> None:
        self.axes, self.shape = axes, (batch, axes[0].out, axes[1].out, filters.groups * filters.outs)
        self.flops = 2 * filters.size * math.prod(self.shape[:3])
        self.limit = limit_of(filters.source)

    def fill(
        self, data: Sequence[np.ndarray], out: np.ndarray, residual: np.ndarray | None, after: _After,
        on_tile_ready: OnTileReady,
    ) -> None:  # fmt: skip
        """Fill ``out`` with the convolution and what comes ``after`` it. All arrays are contiguous.

        Tiles of ``out`` are reported to ``on_tile_ready``.
        """
        raise NotImplementedError

    def kernel(self, epilogue: Epilogue | None = None) -> Kernel:
        """Return the kernel, which also computes ``epilogue``."""
        after = _After.of(epilogue)
        change = None if epilogue is None else epilogue.change

        def call(
            *arrays: np.ndarray, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
        ) -> np.ndarray:  # fmt: skip
            whole = np.empty(self.shape, np.float32) if out is None else out
            data = [np.ascontiguousarray(array) for array in arrays[: self.parts]]
            more = np.ascontiguousarray(arrays[self.parts + 1]) if after.adds else None
            if not whole.size:
                return whole
            # without Python between them, threads compute the convolution, and then what follows
            apart = on_tile_ready is ignore_tile and shared(self.flops, natively=True)
            report = on_tile_ready if apart else changing(change, whole, on_tile_ready)
            self.fill(data, whole, more, after, report)
            if apart and change is not None:
                change(whole)
            return whole

        return Kernel(
            call,
            f"{self.name}, channels last",
            out="tiles",
            flops=self.flops,
            packing=Packing((self.parts,), self.packed),
            joins=Joins(
                with_epilogue=self.kernel if epilogue is None else None,
                chain=chained,
                in_parts=self.in_parts,
                stages=() if change is not None else self.stages(after),
            ),
        )

    def stages(self, after: _After) -> tuple[Stage, ...]:
        """Return the convolution as a stage of a chain of convolutions, if it can be one."""
        return ()

    def in_parts(self, sizes: Sequence[int]) -> Kernel | None:
        """Return the kernel for data in two parts, which have so many channels, or None: see ``Joins.in_parts``."""
        return None


@dataclass(frozen=True, slots=True)
class _Phase:
    """The windows whose results are at one phase of the strides of a transposed convolution, or all windows."""

    filters: PackedFilters
    depth: int
    """The elements that a window of a group sees at each tap; 0 if each channel has a filter of its own."""
    geometry: np.ndarray
    windows: tuple[int, int]
    """The number of windows along rows and columns."""

    def fill(
        self, groups: int, data: np.ndarray, out: np.ndarray, residual: np.ndarray | None, after: _After,
        index: Index,
    ) -> None:  # fmt: skip
        """Fill the windows at ``index`` (images, rows of windows). For the other arguments, see ``_Method.fill``."""
        (images, rows), (high, broad) = index, self.windows
        first = (images.start * high + min(rows.start, high)) * broad
        last = ((images.stop - 1) * high + min(rows.stop, high)) * broad
        function, arguments = self._call(groups, data, out, residual, after)
        function(*arguments, first, last)

    def fill_all(
        self, work: int, groups: int, data: np.ndarray, out: np.ndarray, residual: np.ndarray | None, after: _After,
    ) -> None:  # fmt: skip
        """Fill all windows, which takes so much ``work``. For the other arguments, see ``_Method.fill``."""
        function, arguments = self._call(groups, data, out, residual, after)
        share(function, len(data) * math.prod(self.windows), work, *arguments, unit=ROWS)

    def _call(
        self, groups: int, data: np.ndarray, out: np.ndarray, residual: np.ndarray | None, after: _After,
    ) -> Any:  # fmt: skip
        bias, limits, adds = after
        return convolution_of(
            data, self.filters.panels, bias, residual, out, self.geometry, groups, self.depth, limits, adds
        )


class _Direct(_Method):
    """A convolution computed from the data as it is: as a matrix product, or channel by channel."""

    def __init__(self, filters: Filters, axes: tuple[Axis, ...], batch: int, precision: Operands) -> None:
        super().__init__(filters, axes, batch)
        self.rounds(filters, precision)
        packed, depth, (rows, line) = self.form.of(filters.source), self.depth, axes
        # the taps of a row are one after the other in memory
        is_narrow = filters.groups == 1 and filters.ins <= _MAX_JOINED_CHANNELS and not self.rounded
        self.joins = is_narrow and line.kernel > 1 and line.dilation == 1
        if self.joins:
            depth *= line.kernel
            rows, line = (replace(axis, begin=0, end=0, size=axis.reach) for axis in axes)
            line = replace(line, kernel=1)
        self.groups, self.step, self.seen = filters.groups, 1, (rows, line)
        self.phases = [_Phase(packed, depth, geometry_of(rows, line), (rows.out, line.out))]
        self.packed = packed.panels.nbytes

    def rounds(self, filters: Filters, precision: Operands) -> None:
        """Set what depends on the precision of data and filters."""
        alone, rounds = filters.groups > 1 and filters.ins == filters.outs == 1, precision == "bf16"
        self.sections = 1 if alone else filters.groups
        """The groups of channels that are rounded apart from each other."""
        self.rounded = filters.groups * filters.ins // self.sections if rounds else 0
        self.form = _RoundedFilters if rounds else PackedFilters
        self.depth = 0 if alone else words(filters.ins) if rounds else filters.ins
        self.name = ("compiled depthwise" if alone else "compiled") + (" in bf16" if rounds else "")

    def stages(self, after: _After) -> tuple[Stage, ...]:
        (phase,), padded = self.phases, self.axes if self.joins else ()
        panels, channels = phase.filters.panels, self.shape[3]
        return (Stage(self.seen, panels, self.groups, phase.depth, channels, *after, self.rounded, padded),)

    def fill(
        self, data: Sequence[np.ndarray], out: np.ndarray, residual: np.ndarray | None, after: _After,
        on_tile_ready: OnTileReady,
    ) -> None:  # fmt: skip
        (batch, high, broad, channels), step, (seen,) = out.shape, self.step, data
        seen = with_pads(seen, *self.axes) if self.joins else seen
        seen = _in_bf16(seen, self.sections, self.rounded) if self.rounded else seen

        def part(index: Index) -> None:
            for phase in self.phases:
                phase.fill(self.groups, seen, out, residual, after, index)
            images, rows = index
            lines = slice(rows.start * step, min(rows.stop * step, high))
            on_tile_ready((images, lines, slice(0, broad), slice(0, channels)))

        if on_tile_ready is ignore_tile:
            for phase in self.phases:
                work = self.flops // len(self.phases)
                phase.fill_all(work, self.groups, seen, out, residual, after)
            return
        count = -(-high // step)
        size = step * broad * channels * out.itemsize
        least = max(_MIN_PART_WINDOWS, min(_ENOUGH_PART_WINDOWS, batch * count * broad // threads()))
        each_block(part, (batch, count), size, self.limit, work=self.flops, least=least * channels * out.itemsize)


def _in_bf16(data: np.ndarray, groups: int, ins: int) -> np.ndarray:
    """Return channels-last data with ``groups`` times ``ins`` channels rounded to bf16: see ``precision.bf16``."""
    seen = np.ascontiguousarray(data)
    rounded = scratch(0, data.dtype, *seen.shape[:3], groups * words(ins))
    count = seen.size // ins
    share(round_rows, count, seen.size, data_address(seen), ins, data_address(rounded), ins)
    return rounded


_MIN_PART_WINDOWS: Final = 16
"""The fewest windows of a part of the work, of which there may be one for each thread."""
_ENOUGH_PART_WINDOWS: Final = 64
"""The fewest windows of a part if there are more: each part reads all filters again."""


class _Transposed(_Direct):
    """A transposed convolution, as a convolution for each phase of the strides."""

    def __init__(self, filters: Filters, axes: tuple[Axis, ...], batch: int, precision: Operands) -> None:
        _Method.__init__(self, filters, axes, batch)
        self.rounds(filters, precision)
        self.shape = batch, axes[0].size, axes[1].size, filters.groups * filters.outs
        self.flops = 2 * filters.size * math.prod((batch, *(axis.out for axis in axes)))
        self.joins, self.groups, self.step = False, filters.groups, axes[0].stride
        steps = axes[0].stride, axes[1].stride
        self.phases: list[_Phase] = []
        for phase in phases(axes):
            (rows, line), (top, left) = phase.axes, phase.firsts
            packed = self.form.of(filters.source, *zip((tap.start for tap in phase.taps), steps))
            geometry = geometry_of(rows, line, steps, (top, left))
            self.phases.append(_Phase(packed, self.depth, geometry, (rows.out, line.out)))
        self.packed = sum(phase.filters.panels.nbytes for phase in self.phases)

    def stages(self, after: _After) -> tuple[Stage, ...]:
        return ()


def transposed(filters: Filters, axes: tuple[Axis, ...], batch: int, precision: Operands) -> Kernel:
    """Return the kernel of a transposed convolution of f32 whose phases are the whole output.

    ``axes`` are those of the convolution that leads from the output back to the data. ``precision`` is that of data and
    filters.
    """
    return _Transposed(filters, axes, batch, precision).kernel()


class _Winograd(_Method):
    """A convolution with 3×3 kernels by Winograd's method."""

    def __init__(self, filters: Filters, axes: tuple[Axis, ...], batch: int, tile: int) -> None:
        super().__init__(filters, axes, batch)
        self.name = f"compiled Winograd F({tile}×{tile}, 3×3)"
        self.filters, self.tile = TransformedFilters.of(filters.source, tile), tile
        self.packed = self.filters.panels.nbytes
        self.limit = limit_of(self.filters.panels)

    def in_parts(self, sizes: Sequence[int]) -> Kernel | None:
        if len(sizes) != 2 or any(size % VECTOR for size in sizes):
            return None
        parted = copy(self)
        parted.parts = 2
        return parted.kernel()

    def fill(
        self, data: Sequence[np.ndarray], out: np.ndarray, residual: np.ndarray | None, after: _After,
        on_tile_ready: OnTileReady,
    ) -> None:  # fmt: skip
        (batch, high, broad, channels), tile, (rows, line) = out.shape, self.tile, self.axes
        bias, limits, _ = after
        more, strips = out if residual is None else residual, -(-high // tile)
        first, beside = (*data, _NO_CHANNELS)[:2]
        arguments = (
            first, beside, self.filters.panels, tile, bias, more, out, rows.begin, line.begin, residual is not None,
            limits,
        )  # fmt: skip

        def check(finite: bool, index: Index) -> None:
            if not finite:  # an infinity or NaN has spread over its whole tile
                self._by_definition(data, out, None if residual is None else residual[index], after, index)

        def part(index: Index) -> None:
            images, cut = index
            lines = slice(cut.start * tile, min(cut.stop * tile, high))
            for image in range(images.start, images.stop):
                finite = convolve_3x3(*arguments, image * strips + cut.start, image * strips + cut.stop)
                check(finite, (slice(image, image + 1), lines))
            on_tile_ready((images, lines, slice(0, broad), slice(0, channels)))

        if on_tile_ready is ignore_tile:
            finite = share(convolve_3x3, batch * strips, self.flops, *arguments)
            check(bool(finite), (slice(0, batch), slice(0, high)))
            return
        size = tile * broad * channels * out.itemsize
        each_block(part, (batch, strips), size, self.limit, work=self.flops, least=size)

    def _by_definition(
        self, data: Sequence[np.ndarray], out: np.ndarray, residual: np.ndarray | None, after: _After,
        index: Index,
    ) -> None:  # fmt: skip
        """Fill a part of ``out`` as ``fill`` does, with the defining kernel. ``residual`` is that of the part."""
        bias, limits, _ = after
        first, elements = self.axes[0].part(index[1])
        seen = np.moveaxis(np.concatenate([part[index[0], elements] for part in data], -1), -1, 1)
        result = np.moveaxis(defined(seen, self.filters.filters(), (first, self.axes[1])), 1, -1)
        if bias.size:
            result = result + bias
        if residual is not None:
            result = result + residual
        out[index] = np.clip(result, *limits) if limits.size else result
