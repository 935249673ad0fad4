"""Convolutions whose data and filters are integers, with what follows them up to the next levels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from irrun.base.memory import lasting, lasting_zeros
from irrun.fast.activations import numbered
from irrun.fast.convolution.window_tiles import lies_in_band
from irrun.fast.convolution.windows import geometry_of
from irrun.fast.integers.block import Row
from irrun.fast.integers.changes import convolve_bytes_changed
from irrun.fast.integers.dots import BYTES, DOT
from irrun.fast.integers.levels import Grid, padded
from irrun.fast.integers.quads import by_quads, in_quads
from irrun.fast.integers.windows import (
    MIN_PIECE_WINDOWS,
    convolve_bytes,
    convolve_bytes_depthwise,
    pad_words,
    widen_bytes,
)
from irrun.fast.machine.calls import in_calls
from irrun.fast.panels import WIDTH
from irrun.fast.precision.tiles import TILE, TILES
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Call, Calls, Change, Kernel, Packing

__all__ = ["UNLIMITED", "After", "IntegerFilters", "convolution", "joins_taps", "padding", "widening", "widens"]

UNLIMITED: Final = (-math.inf, math.inf)
_FASTER: Final = 4
"""How many times as fast a product of bytes is as one of f32, by which work is measured."""
_MAX_JOINED_BYTES: Final = 8
"""The most bytes of a pixel for which the taps of a row are joined: a tap alone would be too short a loop."""
_MIN_PIECE_BYTES: Final = 1 << 13
"""The fewest bytes that a thread widens at a time."""
_MAX_PRODUCTS: Final = 1 << 16
"""The most products of a sum: 255 * 128 times as many are within i32."""


@dataclass(frozen=True, eq=False)
class IntegerFilters:
    """Filters (groups, out, in, rows, columns) as i8, and the f64 [groups * out] by which they are multiplied."""

    codes: np.ndarray
    scales: np.ndarray

    @property
    def is_depthwise(self) -> bool:
        return self.codes.shape[0] > 1 and self.codes.shape[1] == self.codes.shape[2] == 1

    @property
    def fits(self) -> bool:
        """Whether there is a kernel: the channels of a group begin at a multiple of four bytes."""
        groups, _, ins, high, broad = self.codes.shape
        return ins * high * broad <= _MAX_PRODUCTS and (groups == 1 or self.is_depthwise or ins % BYTES == 0)


@dataclass(frozen=True, eq=False)
class After:
    """What follows a convolution: ``grid(clamp(first(clamp(sum + bias)) + residual))``.

    With an activation, it is ``grid(change(clamp(sum + bias)) * factors)``. ``bias`` and ``factors`` are f64
    [channels]. A grid that is None leaves numbers as they are, and there may be no residual.
    """

    bias: np.ndarray
    first_limits: tuple[float, float] = UNLIMITED
    first: Grid | None = None
    residual: Grid | None = None
    limits: tuple[float, float] = UNLIMITED
    grid: Grid | None = None
    change: Change | None = None
    factors: Any = 1.0

    def numbers(self, unit: np.ndarray) -> np.ndarray:
        """Return the numbers of ``integer_block`` as f64 [rows of ``Row``, channels], but ``START``.

        ``unit`` f64 [channels] is what a sum of 1 stands for.
        """
        made = np.zeros((len(Row), unit.size))
        scale, shift, top = _onto(self.grid if self.change is None else None)
        made[Row.LOW], made[Row.HIGH] = _within(self.limits, scale, shift, top)
        if self.residual is not None:
            made[Row.OTHER] = self.residual.step * scale
            shift = shift - self.residual.zero * made[Row.OTHER]
        if self.first is not None:
            made[Row.OWN] = self.first.step * scale
            made[Row.ADDEND] = shift - self.first.zero * made[Row.OWN]
            scale, shift, top = _onto(self.first)
            made[Row.OWN_LOW], made[Row.OWN_HIGH] = _within(self.first_limits, scale, shift, top)
        made[Row.FACTOR], made[Row.BIAS] = unit * scale, self.bias * scale + shift
        return made


def _onto(grid: Grid | None) -> tuple[Any, Any, float]:
    """Return the factor and the addend that lead to a grid, and its highest level."""
    return (1.0, 0.0, math.inf) if grid is None else (grid.scale, grid.shift, grid.top)


def _within(limits: tuple[float, float], scale: Any, shift: Any, top: float) -> tuple[Any, Any]:
    """Return the least and the greatest of the numbers that are rounded to levels."""
    least = -math.inf if top == math.inf else 0.0
    low, high = (np.clip(limit * scale + shift, least, top) for limit in limits)
    return low, high


def convolution(filters: IntegerFilters, axes: tuple[Axis, ...], batch: int, grid: Grid, after: After) -> Kernel:
    """Return the kernel of a convolution of levels u8 [batch, rows, columns, padded channels].

    It gives levels, too, or f32 [batch, rows, columns, channels] if no grid follows. ``grid`` is that of the data; if
    ``joins_taps``, these are a result of ``padding``, and if ``widens``, of ``widening``. The input after data and
    filters, if a residual is added, are levels of the shape of the output.
    """
    assert DOT is not None
    groups, outs, ins, *kernel = filters.codes.shape
    channels, size = groups * outs, padded(groups * ins)
    shape = batch, axes[0].out, axes[1].out, channels if after.grid is None else padded(channels)
    dtype = np.float32 if after.grid is None else np.uint8
    sums = filters.codes.sum((2, 3, 4), dtype=np.int64).ravel()
    numbers = after.numbers(grid.step * filters.scales).astype(np.float32)
    numbers[Row.START].view(np.int32)[:] = sums * ((0 if filters.is_depthwise else DOT.offset) - grid.zero)
    rows = _in_panels(numbers.reshape(len(Row), 1 if filters.is_depthwise else groups, -1))
    rows = lasting(by_quads(rows, channels) if filters.is_depthwise and DOT.quads else rows)
    word, number = (DOT.products, np.int16) if widens(filters) else (BYTES, np.int8)
    nothing = np.zeros(size, f"u{number().itemsize}")
    nothing[: groups * ins] = grid.zero
    codes = filters.codes
    windows = math.prod(shape[:3])
    flops = 2 * codes.size * windows
    if joins_taps(filters, axes):
        wide = np.zeros((1, outs, kernel[0], kernel[1], size), np.int8)
        wide[..., :ins] = codes.transpose(0, 1, 3, 4, 2)
        codes = wide.reshape(1, outs, kernel[0], 1, -1).transpose(0, 1, 4, 2, 3)
        axes = replace(axes[0], begin=0, end=0), replace(axes[1], begin=0, end=0, kernel=1)
    depthwise, geometry = filters.is_depthwise, geometry_of(axes[0], axes[1])
    in_band = _in_band(filters, axes)
    panels = _by_channel(codes) if depthwise else _by_group(codes.astype(number), word, in_band)
    rounds, adds = after.first is not None, after.residual is not None
    more = (channels,) if depthwise else (groups, outs, -(-codes.shape[2] // word))
    function = convolve_bytes_depthwise if depthwise else convolve_bytes
    changed: tuple[Any, ...] = ()
    if (own := numbered(after.change)) is not None and after.grid is not None:
        function, place = convolve_bytes_changed, (after.grid.scale * after.factors, after.grid.shift)
        onto = np.array([np.broadcast_to(numbers, channels) for numbers in place], np.float32)
        changed = *own, _in_panels(onto.reshape(2, groups, -1)), np.float32(after.grid.top)

    def calls(
            data: np.ndarray, _: None, residual: np.ndarray | None = None, *, out: np.ndarray, spare: np.ndarray
    ) -> Calls:  # fmt: skip
        other = data if residual is None else residual
        target = out.reshape(shape)
        if changed:
            given = (data, nothing.view(np.uint8), panels, rows, target, geometry, *more, *changed)
        else:
            given = (data, nothing.view(np.uint8), panels, rows, other, target, geometry, *more, rounds, adds)
        each = 1 if panels.nbytes > data.nbytes else 2  # each part reads all filters
        return [Call(function, given, windows, TILE if TILES else MIN_PIECE_WINDOWS, each)]

    name, packing = "integers, depthwise" if depthwise else "integers", Packing((1,), panels.nbytes + rows.nbytes)
    return in_calls(name, calls, shape, dtype, flops // _FASTER, flops=flops, packing=packing)


def joins_taps(filters: IntegerFilters, axes: tuple[Axis, ...]) -> bool:
    """Return whether the taps of a row are multiplied at once: they follow each other in memory if pads are there.

    Tiles find them so without a copy of all data.
    """
    groups, _, ins, *kernel = filters.codes.shape
    is_small = groups == 1 and padded(ins) <= _MAX_JOINED_BYTES
    return is_small and kernel[1] > 1 and axes[1].dilation == 1 and not TILES


def _in_band(filters: IntegerFilters, axes: tuple[Axis, ...]) -> bool:
    """Return whether rows of pixels are copied for tiles."""
    return TILES and lies_in_band(geometry_of(axes[0], axes[1]), filters.codes.shape[0])


def padding(filters: IntegerFilters, axes: tuple[Axis, ...], batch: int, grid: Grid) -> tuple[Kernel, tuple[int, ...]]:
    """Return the kernel that copies levels with their pads, which ``convolution`` reads, and the shape of the copy."""
    size = padded(filters.codes.shape[2])
    (rows, line), words = axes, size // BYTES
    nothing = np.zeros(size, np.uint8)
    nothing[: filters.codes.shape[2]] = grid.zero
    high, broad = (axis.begin + axis.size + axis.end for axis in axes)
    shape = batch, high, broad, size

    def calls(data: np.ndarray, *, out: np.ndarray, spare: np.ndarray) -> Calls:
        given = (array.view(np.uint32).reshape(batch, -1, n * words) for array, n in ((data, line.size), (out, broad)))
        return [Call(pad_words, (*given, nothing.view(np.uint32), rows.begin, line.begin), batch * high)]

    return in_calls("with pads", calls, shape, np.uint8, math.prod(shape)), shape


def widens(filters: IntegerFilters) -> bool:
    """Return whether ``convolution`` reads levels that ``widening`` has widened."""
    return DOT is not None and DOT.wide is not None and not filters.is_depthwise


def widening(shape: tuple[int, ...]) -> tuple[Kernel, tuple[int, ...]]:
    """Return the kernel that copies levels u8 of a shape as i16, two bytes each, and the shape of the copy."""
    size = math.prod(shape)

    def calls(data: np.ndarray, *, out: np.ndarray, spare: np.ndarray) -> Calls:
        return [Call(widen_bytes, (data.reshape(-1), out.view(np.uint16).reshape(-1)), size, _MIN_PIECE_BYTES)]

    wide = (*shape[:-1], 2 * shape[-1])
    return in_calls("to i16", calls, wide, np.uint8, size), wide


def _by_group(codes: np.ndarray, word: int, in_band: bool) -> np.ndarray:
    """Return filters as panels i8 [groups * panels of each, taps * depth, 4 * WIDTH]: see ``convolve_bytes``.

    So many numbers are a word of four bytes. For tiles, rows of zeros follow, for each row of taps if ``in_band``.
    """
    groups, outs, ins, high, broad = codes.shape
    each, depth, taps = -(-outs // WIDTH), -(-ins // word), high * broad
    whole = np.zeros((groups, each * WIDTH, taps, depth * word), codes.dtype)
    whole[:, :outs, :, :ins] = codes.reshape(groups, outs, ins, taps).swapaxes(2, 3)
    parts, size = (high, broad * depth) if in_band else (1, taps * depth)
    rows = -(-size // TILE) * TILE if TILES else size
    panels = lasting_zeros((groups, each, parts, rows, WIDTH, word), codes.dtype)
    panels[:, :, :, :size] = whole.reshape(groups, each, WIDTH, parts, size, word).transpose(0, 1, 3, 4, 2, 5)
    return panels.view(np.int8).reshape(groups * each, parts * rows, WIDTH * BYTES)


def _by_channel(codes: np.ndarray) -> np.ndarray:
    """Return filters of single channels as panels i16: see ``convolve_bytes_depthwise``."""
    assert DOT is not None
    if DOT.quads:
        return in_quads(codes.reshape(len(codes), -1))
    return _in_panels(codes.reshape(1, len(codes), -1).transpose(2, 0, 1).astype(np.int16))


def _in_panels(numbers: np.ndarray) -> np.ndarray:
    """Return numbers [rows, groups, channels] as [groups * panels, rows, WIDTH]. What is added is 0."""
    rows, groups, channels = numbers.shape
    each = -(-channels // WIDTH)
    panels = np.zeros((groups, rows, each * WIDTH), numbers.dtype)
    panels[..., :channels] = numbers.swapaxes(0, 1)
    cut = panels.reshape(groups, rows, each, WIDTH).swapaxes(1, 2)
    return np.ascontiguousarray(cut).reshape(groups * each, rows, WIDTH)
