"""Convolutions of bytes, channels last, with filters of i8 in panels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irrun.fast.convolution.window_block import DENSE, DEPTHWISE
from irrun.fast.convolution.window_tiles import in_band, multiply_band, multiply_windows_in_tiles
from irrun.fast.convolution.windows import each_band, each_table
from irrun.fast.functions import contracted
from irrun.fast.integers.block import TWICE, integer_block
from irrun.fast.integers.dots import DOT
from irrun.fast.integers.quads import quad_block
from irrun.fast.integers.summed_block import summed_block
from irrun.fast.machine.memory import address_of
from irrun.fast.machine.processor import ROWS, VECTORS, compiled
from irrun.fast.panels import WIDTH, in_vectors
from irrun.fast.precision.tiles import LEAST_ROWS, TILES, UNSIGNED

__all__ = ["MIN_PIECE_WINDOWS", "convolve_bytes", "convolve_bytes_depthwise", "each_way", "pad_words", "widen_bytes"]

MIN_PIECE_WINDOWS: Final = 4 * ROWS
"""The fewest windows that a thread computes at a time: it reads all filters for them."""

_IN_QUADS: Final = DOT is not None and DOT.quads


@compiled
def convolve_bytes(
    data: np.ndarray,
    nothing: np.ndarray,
    panels: np.ndarray,
    numbers: np.ndarray,
    residual: np.ndarray,
    out: np.ndarray,
    geometry: np.ndarray,
    groups: int,
    outs: int,
    depth: int,
    rounds: bool,
    adds: bool,
    first: int,
    last: int,
) -> None:
    """Fill the windows ``first`` to ``last`` in ``out``, counted over batch, rows and columns, with a convolution.

    ``data`` and ``residual`` (batch, rows, columns, channels) are u8, ``out`` is u8 or f32. All are contiguous. If
    ``Dot.wide``, two bytes of ``data`` are an i16. ``nothing`` u8 [channels] is what a pad holds. ``geometry`` is that
    of ``geometry_of``. ``panels`` i8 [groups * panels of each, taps * depth, 4 * WIDTH] and ``numbers`` f32 [the same,
    rows of ``Row``, WIDTH] are those of ``integer_block``. For tiles, rows of zeros follow in each panel; if
    ``in_band``, they follow each row of taps. A group has ``outs`` channels of the output, and a window sees
    ``4 * depth`` bytes of it.
    """
    more = (panels, numbers, groups, outs, depth, rounds, adds)
    seen = data, nothing, out, residual, geometry
    each_way(_convolve_band, _convolve_in_tiles, _convolve_table, groups, seen, first, last, more)


_Fill = Callable[..., None]


@contracted
def each_way(
    in_bands: _Fill, in_tiles: _Fill, in_tables: _Fill, groups: int, seen: Any, first: int, last: int, more: Any
) -> None:
    """Call one of the functions for some of the windows at a time: see ``each_band`` and ``each_table``.

    ``seen`` are the arrays that these take.
    """
    data, nothing, out, residual, geometry = seen
    if TILES and in_band(geometry, groups):
        each_band(in_bands, data, nothing, out, residual, geometry, first, last, more)
    elif TILES and last - first >= LEAST_ROWS:
        each_table(in_tiles, data, nothing, out, residual, geometry, first, last, more)
    else:
        each_table(in_tables, data, nothing, out, residual, geometry, first, last, more)


@contracted
def _convolve_band(
    data: np.ndarray, nothing: np.ndarray, out: np.ndarray, geometry: np.ndarray, targets: np.ndarray, top: int,
    count: int, more: Any,
) -> None:  # fmt: skip
    """Convolve the windows of a band."""
    panels, numbers, _, outs, depth, rounds, adds = more
    then = out, 0, numbers, rounds, adds
    multiply_band(UNSIGNED, _finish, data, nothing, panels, geometry, targets, top, count, depth, outs, then)


@contracted
def _convolve_in_tiles(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, more: Any
) -> None:
    """Convolve the windows of a table in tiles."""
    panels, numbers, groups, outs, depth, rounds, adds = more
    each = len(panels) // groups
    for group in range(groups):
        begin, shift = group * each, 4 * depth * group
        own, then = panels[begin : begin + each], (out, outs * group, numbers[begin : begin + each], rounds, adds)
        multiply_windows_in_tiles(
            UNSIGNED, _finish, data, own, table, targets, count, depth, outs, shift, then
        )  # fmt: skip


@contracted
def _finish(panel: int, columns: int, sums: int, targets: int, count: int, more: Any) -> None:
    """Make results of sums in tiles: see ``multiply_windows_in_tiles``."""
    out, column, numbers, rounds, adds = more
    (vectors, tail), own = in_vectors(columns), address_of(numbers) + panel * numbers.strides[0]
    summed_block(vectors, out, sums, count, targets, column + panel * WIDTH, tail, own, rounds, adds)


@contracted
def _convolve_table(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, more: Any
) -> None:
    """Convolve the windows of a table."""
    panels, numbers, groups, outs, depth, rounds, adds = more
    taps, each, blocks = table.shape[1], len(panels) // groups, -(-count // ROWS)
    for panel in range(len(panels)):
        group, part = divmod(panel, each)
        columns, column = min(WIDTH, outs - part * WIDTH), group * outs + part * WIDTH
        b, own = address_of(panels) + panel * panels.strides[0], address_of(numbers) + panel * numbers.strides[0]
        (vectors, tail), shift = in_vectors(columns), 4 * depth * group
        block, next = 0, 0
        while block < blocks:
            entries = address_of(table) + block * table.strides[0]
            rows = address_of(targets) + block * targets.strides[0]
            next = block + (2 if 2 * vectors <= VECTORS and block + 1 < blocks else 1)
            most = vectors if next == block + 1 else TWICE + vectors
            integer_block(DENSE, most, out, entries, taps, depth, b, rows, shift, column, tail, own, rounds, adds)
            block = next


@compiled
def convolve_bytes_depthwise(
    data: np.ndarray,
    nothing: np.ndarray,
    panels: np.ndarray,
    numbers: np.ndarray,
    residual: np.ndarray,
    out: np.ndarray,
    geometry: np.ndarray,
    channels: int,
    rounds: bool,
    adds: bool,
    first: int,
    last: int,
) -> None:
    """Fill windows of ``out`` as ``convolve_bytes`` does, with a filter of its own for each channel.

    ``panels`` i16 [panels, taps, WIDTH] has a row for each tap, or it is that of ``in_quads``.
    """
    more = (panels, numbers, channels, rounds, adds)
    each_table(_convolve_channels, data, nothing, out, residual, geometry, first, last, more)


@contracted
def _convolve_channels(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, more: Any
) -> None:
    """Convolve the windows of a table, channel by channel."""
    panels, numbers, channels, rounds, adds = more
    taps = table.shape[1]
    for block in range(-(-count // ROWS)):
        entries = address_of(table) + block * table.strides[0]
        rows = address_of(targets) + block * targets.strides[0]
        for panel in range(len(panels)):
            column = panel * WIDTH
            columns = min(WIDTH, channels - column)
            b, own = address_of(panels) + panel * panels.strides[0], address_of(numbers) + panel * numbers.strides[0]
            vectors, tail = in_vectors(columns)
            if _IN_QUADS:
                quad_block(vectors, out, entries, taps, b, rows, column, tail, own, rounds, adds)
            else:
                integer_block(
                    DEPTHWISE, vectors, out, entries, taps, 1, b, rows, column, column, tail, own, rounds, adds
                )


@compiled
def pad_words(
    data: np.ndarray, out: np.ndarray, nothing: np.ndarray, top: int, left: int, first: int, last: int
) -> None:
    """Copy ``data`` u32 [images, rows, words] to ``out``, with pads, for the rows ``first`` to ``last`` of all images.

    The first row of data of an image is its row ``top``, and begins with the pixel ``left``. ``nothing`` u32 [words of
    a pixel] is what a pad holds.
    """
    pixel, high = len(nothing), out.shape[1]
    begin, end = left * pixel, left * pixel + data.shape[2]
    for n in range(first, last):
        image, row = divmod(n, high)
        is_pad = not 0 <= row - top < data.shape[1]
        for k in range(out.shape[2] if is_pad else begin):
            out[image, row, k] = nothing[k % pixel]
        if not is_pad:
            for k in range(data.shape[2]):
                out[image, row, begin + k] = data[image, row - top, k]
            for k in range(end, out.shape[2]):
                out[image, row, k] = nothing[k % pixel]


@compiled
def widen_bytes(data: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """Copy the numbers ``first`` to ``last`` of ``data`` u8 [numbers] to ``out`` u16 [numbers]."""
    source, target = data[first:last], out[first:last]
    for n in range(len(source)):
        target[n] = source[n]
