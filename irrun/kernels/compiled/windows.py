"""Windows of channels-last data, a few hundred at a time: convolutions and poolings. See ``window_block``."""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.kernels.compiled.panels import WIDTH, address_of
from irrun.kernels.compiled.processor import ROWS, VECTOR, compiled
from irrun.kernels.compiled.window_block import AVERAGE, DENSE, DEPTHWISE, MAXIMUM, window_block
from irrun.kernels.convolution.windows import Axis

__all__ = ["average", "convolve", "convolve_depthwise", "geometry_of", "maximum"]

_HEIGHT: Final = 32 * ROWS
"""The most windows whose addresses are in the table at once."""
_TABLE: Final = 1 << 11
"""The most addresses in the table, so that it leaves most of the first-level cache to the data."""


def geometry_of(rows: Axis, line: Axis) -> np.ndarray:
    """Return kernel sizes, strides, dilations and pads at the beginning, of rows and of columns, as i64 [8]."""
    pairs = ((axis.kernel, axis.stride, axis.dilation, axis.begin) for axis in (rows, line))
    return np.array(list(zip(*pairs)), np.int64).ravel()


@compiled
def convolve(
    data: np.ndarray, panels: np.ndarray, bias: np.ndarray, residual: np.ndarray, out: np.ndarray,
    geometry: np.ndarray, groups: int, depth: int, adds: bool, limits: np.ndarray, first: int, last: int,
) -> None:  # fmt: skip
    """Fill the windows ``first`` to ``last`` of ``out``, counted over batch, rows and columns, with a convolution.

    ``data`` (batch, rows, columns, in) and ``out`` (batch, rows, columns, out) are f32 and contiguous. ``panels`` holds
    the filters of each group in panels, of which a row is a tap of an input channel. The window of a group sees
    ``depth`` elements at each tap. ``bias`` has an element for each output channel, or none at all. If ``adds``,
    ``residual``, which has the shape of ``out``, is added. ``limits`` are the least and the greatest result, or empty.
    """
    taps, outs, ins = geometry[0] * geometry[1], out.shape[3] // groups, data.shape[3] // groups
    each = -(-outs // WIDTH)  # panels of a group
    clamps = limits.size == 2
    low, high = (limits[0], limits[1]) if clamps else (np.float32(0), np.float32(0))
    zeros = np.zeros(data.shape[3] + depth, np.float32)
    rest = np.zeros(out.shape[3], np.float32)
    height = max(1, min(_HEIGHT, _TABLE // taps) // ROWS) * ROWS
    table = np.empty((height // ROWS, taps, ROWS), np.int64)
    targets = np.empty((height // ROWS, ROWS, 3), np.int64)
    for top in range(first, last, height):
        count = min(height, last - top)
        _find(data, geometry, out, top, count, address_of(zeros), table)
        _aim(out, residual, rest, rest, top, count, targets)
        for n in range(groups * each):
            group, panel = n // each, n % each
            columns = min(WIDTH, outs - panel * WIDTH)
            place = group * outs + panel * WIDTH
            b, shift = address_of(panels) + n * panels.strides[0], 4 * group * ins
            added = address_of(bias) + 4 * place if bias.size else 0
            vectors, tail = -(-columns // VECTOR), (columns - 1) % VECTOR + 1
            for block in range(-(-count // ROWS)):
                entries = address_of(table) + block * table.strides[0]
                rows = address_of(targets) + block * targets.strides[0]
                if vectors == 4:
                    window_block(
                        DENSE, 4, panels, entries, taps, depth, b, rows, shift, 4 * place, tail, added, adds, clamps,
                        low, high,
                    )  # fmt: skip
                elif vectors == 3:
                    window_block(
                        DENSE, 3, panels, entries, taps, depth, b, rows, shift, 4 * place, tail, added, adds, clamps,
                        low, high,
                    )  # fmt: skip
                elif vectors == 2:
                    window_block(
                        DENSE, 2, panels, entries, taps, depth, b, rows, shift, 4 * place, tail, added, adds, clamps,
                        low, high,
                    )  # fmt: skip
                else:
                    window_block(
                        DENSE, 1, panels, entries, taps, depth, b, rows, shift, 4 * place, tail, added, adds, clamps,
                        low, high,
                    )  # fmt: skip


@compiled
def convolve_depthwise(
    data: np.ndarray, panels: np.ndarray, bias: np.ndarray, residual: np.ndarray, out: np.ndarray,
    geometry: np.ndarray, adds: bool, limits: np.ndarray, first: int, last: int,
) -> None:  # fmt: skip
    """Fill windows of ``out`` as ``convolve`` does, with a filter of its own for each channel.

    A row of a panel is a tap.
    """
    clamps = limits.size == 2
    low, high = (limits[0], limits[1]) if clamps else (np.float32(0), np.float32(0))
    zeros = np.zeros(data.shape[3], np.float32)
    taps, rest = geometry[0] * geometry[1], np.zeros(data.shape[3], np.float32)
    height = max(1, min(_HEIGHT, _TABLE // taps) // ROWS) * ROWS
    table = np.empty((height // ROWS, taps, ROWS), np.int64)
    targets = np.empty((height // ROWS, ROWS, 3), np.int64)
    for top in range(first, last, height):
        count = min(height, last - top)
        _find(data, geometry, out, top, count, address_of(zeros), table)
        _aim(out, residual, rest, rest, top, count, targets)
        for block in range(-(-count // ROWS)):
            entries = address_of(table) + block * table.strides[0]
            rows = address_of(targets) + block * targets.strides[0]
            for panel in range(len(panels)):
                columns, column = min(WIDTH, out.shape[3] - panel * WIDTH), 4 * panel * WIDTH
                b = address_of(panels) + panel * panels.strides[0]
                added = address_of(bias) + column if bias.size else 0
                vectors, tail = -(-columns // VECTOR), (columns - 1) % VECTOR + 1
                if vectors == 4:
                    window_block(
                        DEPTHWISE, 4, panels, entries, taps, 1, b, rows, column, column, tail, added, adds, clamps,
                        low, high,
                    )  # fmt: skip
                elif vectors == 3:
                    window_block(
                        DEPTHWISE, 3, panels, entries, taps, 1, b, rows, column, column, tail, added, adds, clamps,
                        low, high,
                    )  # fmt: skip
                elif vectors == 2:
                    window_block(
                        DEPTHWISE, 2, panels, entries, taps, 1, b, rows, column, column, tail, added, adds, clamps,
                        low, high,
                    )  # fmt: skip
                else:
                    window_block(
                        DEPTHWISE, 1, panels, entries, taps, 1, b, rows, column, column, tail, added, adds, clamps,
                        low, high,
                    )  # fmt: skip


@compiled
def maximum(data: np.ndarray, out: np.ndarray, geometry: np.ndarray, first: int, last: int) -> None:
    """Fill the windows ``first`` to ``last`` of ``out`` with the largest element of each channel, or NaN if there is.

    The arrays are those of ``convolve``. Windows that see only pads give -Inf.
    """
    nothing = np.full(data.shape[3], -np.inf, np.float32)
    _pool(data, nothing, out, geometry, nothing, first, last, True)


@compiled
def average(
    data: np.ndarray, out: np.ndarray, geometry: np.ndarray, factors: np.ndarray, first: int, last: int
) -> None:
    """Fill the windows ``first`` to ``last`` of ``out`` with the sum of each channel times the window's factor.

    ``factors`` has one for each window of an image.
    """
    _pool(data, np.zeros(data.shape[3], np.float32), out, geometry, factors, first, last, False)


@compiled
def _pool(
    data: np.ndarray, nothing: np.ndarray, out: np.ndarray, geometry: np.ndarray, factors: np.ndarray,
    first: int, last: int, largest: bool,
) -> None:  # fmt: skip
    zero, rest = np.float32(0), np.empty(data.shape[3], np.float32)
    taps = geometry[0] * geometry[1]
    height = max(1, min(_HEIGHT, _TABLE // taps) // ROWS) * ROWS
    table = np.empty((height // ROWS, taps, ROWS), np.int64)
    targets = np.empty((height // ROWS, ROWS, 3), np.int64)
    for top in range(first, last, height):
        count = min(height, last - top)
        _find(data, geometry, out, top, count, address_of(nothing), table)
        _aim(out, out, rest, factors, top, count, targets)
        for block in range(-(-count // ROWS)):
            entries = address_of(table) + block * table.strides[0]
            rows = address_of(targets) + block * targets.strides[0]
            for c in range(0, out.shape[3], VECTOR):
                tail = min(VECTOR, out.shape[3] - c)
                if largest:
                    window_block(MAXIMUM, 1, data, entries, taps, 1, 0, rows, 4 * c, 4 * c, tail, 0, 0, 0, zero, zero)
                else:
                    window_block(AVERAGE, 1, data, entries, taps, 1, 0, rows, 4 * c, 4 * c, tail, 0, 0, 0, zero, zero)


@compiled
def _find(
    data: np.ndarray, geometry: np.ndarray, out: np.ndarray, first: int, count: int, nothing: int, table: np.ndarray
) -> None:
    """Fill ``table`` [blocks, taps, ROWS] with the addresses that the windows from ``first`` on see through each tap.

    Pads are at the address ``nothing``, and so is everything that the last block has too many windows for.
    """
    _, high, broad, channels = data.shape
    down, across, step_y, step_x = geometry[0], geometry[1], geometry[2], geometry[3]
    near_y, near_x, pad_y, pad_x = geometry[4], geometry[5], geometry[6], geometry[7]
    pixel = 4 * channels
    image, place = divmod(first, out.shape[1] * out.shape[2])
    window_y, window_x = divmod(place, out.shape[2])
    for n in range(-(-count // ROWS) * ROWS):
        block, row = n // ROWS, n % ROWS
        if n >= count:
            for tap in range(down * across):
                table[block, tap, row] = nothing
            continue
        top, left = window_y * step_y - pad_y, window_x * step_x - pad_x
        begin = address_of(data) + ((image * high + top) * broad + left) * pixel
        inside_y = top >= 0 and top + (down - 1) * near_y < high
        tap = 0
        if inside_y and left >= 0 and left + (across - 1) * near_x < broad:
            for i in range(down):
                for j in range(across):
                    table[block, tap, row] = begin + (i * near_y * broad + j * near_x) * pixel
                    tap += 1
        else:
            for i in range(down):
                for j in range(across):
                    y, x = top + i * near_y, left + j * near_x
                    seen = 0 <= y < high and 0 <= x < broad
                    table[block, tap, row] = begin + (i * near_y * broad + j * near_x) * pixel if seen else nothing
                    tap += 1
        window_x += 1
        if window_x == out.shape[2]:
            window_x, window_y = 0, window_y + 1
            if window_y == out.shape[1]:
                window_y, image = 0, image + 1


@compiled
def _aim(
    out: np.ndarray, residual: np.ndarray, rest: np.ndarray, factors: np.ndarray, first: int, count: int,
    targets: np.ndarray,
) -> None:  # fmt: skip
    """Fill ``targets`` [blocks, ROWS, 3] with the addresses of results, residuals and factors of some windows.

    What the last block has too many windows for is read from ``rest`` and written to it.
    """
    size, windows = 4 * out.shape[3], out.shape[1] * out.shape[2]
    for n in range(-(-count // ROWS) * ROWS):
        block, row, window = n // ROWS, n % ROWS, first + n
        known = n < count
        targets[block, row, 0] = address_of(out) + window * size if known else address_of(rest)
        targets[block, row, 1] = address_of(residual) + window * size if known else address_of(rest)
        targets[block, row, 2] = address_of(factors) + 4 * (window % windows) if known else address_of(factors)
