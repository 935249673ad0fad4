"""Windows of channels-last data, a few hundred at a time: convolutions and poolings. See ``window_block``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irrun.fast.convolution.stage import Stage
from irrun.fast.convolution.table_block import BEGIN, LEFT, TOP, find_taps, store_row, store_steps
from irrun.fast.convolution.window_block import ADDED_IN_BF16, DENSE, DEPTHWISE, SUMMED, window_block
from irrun.fast.convolution.window_tiles import (
    in_band,
    multiply_band,
    multiply_split,
    multiply_windows_in_tiles,
    windows_in_band,
)
from irrun.fast.functions import Number, contracted
from irrun.fast.machine.late import array_at
from irrun.fast.machine.memory import address_of, longs_at
from irrun.fast.machine.processor import ROWS, compiled
from irrun.fast.panels import WIDTH, in_vectors
from irrun.fast.precision.tiles import LEAST_ROWS, PAIRS, TILE, TILES, holds_pairs
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.threads import threads
from irrun.opdef import Call

__all__ = [
    "call_of",
    "convolution_of",
    "convolve_columns",
    "each_band",
    "each_of",
    "each_table",
    "geometry_of",
    "limits_of",
    "multiply_windows",
]

_MAX_TABLE_WINDOWS: Final = (144 if TILES else 36) * ROWS
"""The most windows whose addresses are in the table at once. Each table reads all filters. A picture of 14 x 14 has 196
windows, and one of 28 x 28 four times as many. Tiles multiply them so fast that to begin a table takes as long."""
_MAX_TABLE_ADDRESSES: Final = 1 << 11
"""The most addresses in the table, so that it leaves most of the first-level cache to the data."""
_OUTSIDE: Final = -(1 << 62)
"""A row far above all data."""


def geometry_of(
    rows: Axis, line: Axis, steps: tuple[int, int] = (1, 1), firsts: tuple[int, int] = (0, 0), apart: int = 0
) -> np.ndarray:
    """Return the geometry of windows as i64 [15]: pairs for rows and columns, and a number.

    The pairs are kernel sizes, strides, dilations, pads at the beginning and numbers of windows; then, how far the
    results of neighbouring windows are apart in the output, and the place of the first result. The number is how many
    bytes apart the pixels of rounded results are.
    """
    pairs = ((axis.kernel, axis.stride, axis.dilation, axis.begin, axis.out) for axis in (rows, line))
    return np.array([*(number for pair in (*zip(*pairs), steps, firsts) for number in pair), apart], np.int64)


def convolution_of(
    stage: Stage, geometry: np.ndarray, data: np.ndarray, residual: np.ndarray | None, out: np.ndarray, *,
    keeps: bool = True, rounded: int = 0,
) -> tuple[Callable[..., None], tuple[Any, ...]]:  # fmt: skip
    """Return ``convolve``, or ``convolve_depthwise`` if ``stage.depth`` is 0, and its arguments up to ``first``.

    ``data`` is what the windows of the stage see. ``geometry`` is that of ``geometry_of``.
    """
    arrays = data, stage.panels, stage.bias, out if residual is None else residual, out, geometry
    if not stage.depth:
        return convolve_depthwise, (*arrays, stage.adds, stage.limits, keeps, rounded)
    return convolve, (*arrays, stage.split, stage.groups, stage.depth, stage.adds, stage.limits, keeps, rounded, 0)


def call_of(function: Callable[..., None], arguments: tuple[Any, ...], windows: int) -> Call:
    """Return the call of ``convolve`` or ``convolve_depthwise`` for so many windows, with arguments up to ``first``.

    A part of a dense convolution is some of the windows, which see all panels, or some of the panels, which see all
    windows: where the panels are larger than the data, and the threads get as many of them.
    """
    if function is convolve_depthwise:
        return Call(function, arguments, windows, ROWS)
    data, panels, groups = arguments[0], arguments[1], arguments[7]
    even = len(panels) % threads() == 0 or len(panels) >= 4 * threads()
    if groups == 1 and panels.nbytes > data.nbytes and threads() > 1 and even:
        return Call(convolve_columns, arguments, len(panels))
    return Call(convolve, arguments, windows, ROWS, each_of(windows, _MAX_TABLE_WINDOWS))


def each_of(count: int, most: int) -> int:
    """Return the parts of a call for each thread, of ``count`` rows. All filters are read once for ``most`` rows."""
    return 2 if count >= 2 * most * threads() else 1


@compiled
def convolve(
    data: np.ndarray, panels: np.ndarray, bias: np.ndarray, residual: np.ndarray, out: np.ndarray,
    geometry: np.ndarray, split: np.ndarray, groups: int, depth: int, adds: int, limits: np.ndarray, keeps: bool,
    rounded: int, column: int, first: int, last: int,
) -> None:  # fmt: skip
    """Fill the windows ``first`` to ``last`` in ``out``, counted over batch, rows and columns, with a convolution.

    ``data`` (batch, rows, columns, in) and ``out`` (batch, rows, columns, out) are f32 and contiguous. ``geometry`` is
    that of ``geometry_of``. ``panels`` holds the filters of each group in panels, of which a row is a tap of an input
    channel. The window of a group sees ``depth`` elements at each tap. ``bias`` has an element for each output channel,
    or none at all. ``residual``, which has the shape of ``out`` or of one pixel, is added as ``adds`` says: see
    ``window_block``.
    ``limits`` are the least and the greatest result, or empty. If ``column`` is not 0, there is one group, of which
    the panels begin there: only their columns are filled.

    ``rounded`` is the address of the results rounded to bf16, two bytes each, or 0; ``geometry`` says how far their
    pixels are apart. Unless ``keeps``, these are the only ones, and of ``out`` only the shape matters.

    ``split`` holds the filters for data that is split, or nothing: see ``multiply_split``.
    """
    in_bf16, nothing = (rounded, adds == ADDED_IN_BF16), np.zeros(data.shape[3] + depth, np.float32)
    is_band = in_band(geometry, groups) and geometry[1] * depth % TILE == 0
    if TILES and holds_pairs(panels) and is_band and last - first >= LEAST_ROWS:
        more = panels, bias, depth, adds, limits, keeps, rounded, column
        each_band(_convolve_band, data, nothing, out, residual, geometry, first, last, more, in_bf16)
        return
    if TILES and split.size:
        more = panels, bias, depth, adds, limits, keeps, rounded, column, residual, in_bf16, split
        each_band(_convolve_split, data, nothing, out, residual, geometry, first, last, more, in_bf16)
        return
    more = panels, bias, groups, depth, adds, limits, keeps, rounded, column
    each_table(_convolve_table, data, nothing, out, residual, geometry, first, last, more, in_bf16)


@compiled
def convolve_columns(
    data: np.ndarray, panels: np.ndarray, bias: np.ndarray, residual: np.ndarray, out: np.ndarray,
    geometry: np.ndarray, split: np.ndarray, groups: int, depth: int, adds: int, limits: np.ndarray, keeps: bool,
    rounded: int, column: int, first: int, last: int,
) -> None:  # fmt: skip
    """Fill the columns of the panels ``first`` to ``last`` in all windows as ``convolve`` does. There is one group."""
    count, begin = len(out) * geometry[8] * geometry[9], column + first * WIDTH
    some = panels[first:last]
    convolve(
        data, some, bias, residual, out, geometry, split, groups, depth, adds, limits, keeps, rounded, begin, 0, count
    )


@contracted
def _convolve_band(
    data: np.ndarray, nothing: np.ndarray, out: np.ndarray, geometry: np.ndarray, targets: np.ndarray, top: int,
    count: int, more: Any,
) -> None:  # fmt: skip
    """Convolve the windows of a band."""
    panels, bias, depth, adds, limits, keeps, rounded, column = more
    added, outs = address_of(bias) + 4 * column if bias.size else 0, out.shape[3] - column
    then = panels, 4 * column, added, adds, limits_of(limits), keeps, rounded != 0
    multiply_band(PAIRS, _finish, data, nothing, panels, geometry, targets, top, count, depth, outs, then)


@contracted
def _convolve_split(
    data: np.ndarray, nothing: np.ndarray, out: np.ndarray, geometry: np.ndarray, targets: np.ndarray, top: int,
    count: int, more: Any,
) -> None:  # fmt: skip
    """Convolve the windows of a band of data that is split, or as it is if some of it is infinite or NaN."""
    panels, bias, depth, adds, limits, keeps, rounded, column, residual, in_bf16, split = more
    added, outs = address_of(bias) + 4 * column if bias.size else 0, out.shape[3] - column
    then = split, 4 * column, added, adds, limits_of(limits), keeps, rounded != 0
    if not multiply_split(_finish, data, split, geometry, targets, top, count, depth, outs, then):
        others = panels, bias, 1, depth, adds, limits, keeps, rounded, column
        each_table(_convolve_table, data, nothing, out, residual, geometry, top, top + count, others, in_bf16)


@contracted
def _finish(panel: int, columns: int, sums: int, targets: int, count: int, more: Any) -> None:
    """Make results of sums in tiles: see ``multiply_windows_in_tiles``."""
    (panels, column, bias, adds, (clamps, low, high), keeps, rounds), begin = more, 4 * panel * WIDTH
    (vectors, tail), added = in_vectors(columns), bias + begin if bias else 0
    window_block(
        SUMMED, vectors, count, panels, sums, 1, 1, 0, targets, 0, column + begin, tail, added, adds, clamps, low, high,
        keeps, rounds, 0, 0,
    )  # fmt: skip


@contracted
def _convolve_table(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, more: Any
) -> None:
    """Convolve the windows of a table."""
    panels, bias, groups, depth, adds, limits, keeps, rounded, column = more
    outs, ins, each = out.shape[3] // groups, data.shape[3] // groups, len(panels) // groups
    for group in range(groups):
        begin = 4 * (group * outs + column)
        own, added = panels[group * each : (group + 1) * each], address_of(bias) + begin if bias.size else 0
        wide, shift, rounds = outs - column, 4 * group * ins, rounded != 0
        if TILES and count >= LEAST_ROWS and holds_pairs(panels):
            then = panels, begin, added, adds, limits_of(limits), keeps, rounds
            multiply_windows_in_tiles(PAIRS, _finish, data, own, table, targets, count, depth, wide, shift, then)
        else:
            of = own, table, targets, count, depth, wide, shift, begin, added, adds, limits, keeps, rounds
            multiply_windows(*of)


@compiled
def multiply_windows(
    panels: np.ndarray, table: np.ndarray, targets: np.ndarray, count: int, depth: int, outs: int, shift: int,
    column: int, bias: int, adds: int, limits: np.ndarray, keeps: bool, rounds: bool,
) -> None:  # fmt: skip
    """Multiply the first ``count`` windows by panels that have ``outs`` columns.

    See ``window_block`` for the other arguments. ``limits`` are the least and the greatest result, or empty.
    """
    taps, blocks, (clamps, low, high) = table.shape[1], -(-count // ROWS), limits_of(limits)
    # each block has the processor fetch a part of the next panel
    size, row = panels.strides[0], panels.strides[1]
    pace = -(-row // blocks)
    for panel in range(len(panels)):
        columns = min(WIDTH, outs - panel * WIDTH)
        b, place = address_of(panels) + panel * size, column + 4 * panel * WIDTH
        added = bias + 4 * panel * WIDTH if bias else 0
        vectors, tail = in_vectors(columns)
        for block in range(blocks):
            entries = address_of(table) + block * table.strides[0]
            rows = address_of(targets) + block * targets.strides[0]
            window_block(
                DENSE, vectors, min(ROWS, count - block * ROWS), panels, entries, taps, depth, b, rows, shift, place,
                tail, added, adds, clamps, low, high, keeps, rounds, b + size + block * pace * (size // row), pace,
            )  # fmt: skip


@compiled
def convolve_depthwise(
    data: np.ndarray, panels: np.ndarray, bias: np.ndarray, residual: np.ndarray, out: np.ndarray,
    geometry: np.ndarray, adds: int, limits: np.ndarray, keeps: bool, rounded: int, first: int, last: int,
) -> None:  # fmt: skip
    """Fill windows of ``out`` as ``convolve`` does, with a filter of its own for each channel.

    A row of a panel is a tap. If panels are u32 (see ``depthwise.evens_first``), ``data`` is rounded to bf16.
    """
    nothing, more = np.zeros(data.shape[3], np.float32), (panels, bias, adds, limits, keeps, rounded)
    in_bf16 = (rounded, adds == ADDED_IN_BF16)
    each_table(_convolve_channels, data, nothing, out, residual, geometry, first, last, more, in_bf16)


@contracted
def _convolve_channels(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, more: Any
) -> None:
    """Convolve the windows of a table, channel by channel."""
    panels, bias, adds, limits, keeps, rounded = more
    taps, (clamps, low, high) = table.shape[1], limits_of(limits)
    for block in range(-(-count // ROWS)):
        entries = address_of(table) + block * table.strides[0]
        rows = address_of(targets) + block * targets.strides[0]
        for panel in range(len(panels)):
            columns, column = min(WIDTH, out.shape[3] - panel * WIDTH), 4 * panel * WIDTH
            shift = column if data.shape[3] == out.shape[3] else column >> 1
            b = address_of(panels) + panel * panels.strides[0]
            added = address_of(bias) + column if bias.size else 0
            vectors, tail = in_vectors(columns)
            window_block(
                DEPTHWISE, vectors, ROWS, panels, entries, taps, 1, b, rows, shift, column, tail, added, adds, clamps,
                low, high, keeps, rounded != 0, 0, 0,
            )  # fmt: skip


@contracted
def limits_of(limits: np.ndarray) -> tuple[bool, Number, Number]:
    """Return whether there are limits, the least and the greatest result, and these."""
    if limits.size == 2:
        return True, limits[0], limits[1]
    return False, np.float32(0), np.float32(0)


@contracted
def each_table(
    compute: Callable[..., None], data: np.ndarray, nothing: np.ndarray, out: np.ndarray, residual: np.ndarray,
    geometry: np.ndarray, first: int, last: int, more: Any, in_bf16: tuple[int, bool] = (0, False),
) -> None:  # fmt: skip
    """Make a table for some of the windows ``first`` to ``last`` at a time, and call ``compute`` with it.

    ``compute(data, out, table, targets, top, count, more)`` fills ``count`` windows from ``top`` on. The tables are of
    nearly the same size. Pads are read from ``nothing``. See ``_aim`` for ``in_bf16``.
    """
    taps, rest = geometry[0] * geometry[1], np.zeros(out.shape[3], np.float32)
    most = max(1, min(_MAX_TABLE_WINDOWS, _MAX_TABLE_ADDRESSES // taps) // ROWS)
    blocks = max(1, -(-(last - first) // ROWS))  # a thread may have no windows
    height = -(-blocks // -(-blocks // most)) * ROWS
    table = np.empty((height // ROWS, taps, ROWS), np.int64)
    targets = np.empty((height // ROWS, ROWS, 3), np.int64)
    for top in range(first, last, height):
        count = min(height, last - top)
        _find(data, geometry, top, count, address_of(nothing), table)
        _aim(out, residual, geometry, rest, top, count, targets, in_bf16)
        compute(data, out, table, targets, top, count, more)


@contracted
def each_band(
    compute: Callable[..., None], data: np.ndarray, nothing: np.ndarray, out: np.ndarray, residual: np.ndarray,
    geometry: np.ndarray, first: int, last: int, more: Any, in_bf16: tuple[int, bool] = (0, False),
) -> None:  # fmt: skip
    """Call ``compute`` for some rows of the windows ``first`` to ``last`` of an image at a time: see ``multiply_band``.

    ``compute(data, nothing, out, geometry, targets, top, count, more)`` fills ``count`` windows from ``top`` on.
    """
    image, most = geometry[8] * geometry[9], windows_in_band(geometry, data.itemsize * data.shape[3])
    rest = np.zeros(out.shape[3], np.float32)
    targets, top = np.empty((-(-most // ROWS), ROWS, 3), np.int64), first
    while top < last:
        count = min(most, last - top, image - top % image)
        _aim(out, residual, geometry, rest, top, count, targets, in_bf16)
        compute(data, nothing, out, geometry, targets, top, count, more)
        top += count


@contracted
def _window(image: int, y: int, x: int, high: int, line: int) -> tuple[int, int, int]:
    """Return the image, the row and the column of a window. ``x`` may be behind the last of ``line`` columns."""
    if x < line:
        return image, y, x
    return (image, y + 1, 0) if y + 1 < high else (image + 1, 0, 0)


@compiled
def _find(data: np.ndarray, geometry: np.ndarray, first: int, count: int, nothing: int, table: np.ndarray) -> None:
    """Fill ``table`` [blocks, taps, ROWS] with the addresses that the windows from ``first`` on see through each tap.

    Pads are at the address ``nothing``, and so is everything that the last block has too many windows for.
    """
    _, high, broad, channels = data.shape
    down, across, step_y, step_x = geometry[0], geometry[1], geometry[2], geometry[3]
    near_y, near_x, pad_y, pad_x = geometry[4], geometry[5], geometry[6], geometry[7]
    pixel = data.itemsize * channels
    high_windows, line_windows = geometry[8], geometry[9]
    if down * across == step_y * step_x == 1 and high_windows == high and line_windows == broad:  # a pixel for each
        begin, entries = address_of(data) + first * pixel, array_at(longs_at(address_of(table)), table.size)
        for window in range(count):
            entries[window] = begin + window * pixel
        for window in range(count, -(-count // ROWS) * ROWS):
            entries[window] = nothing
        return
    image, place = divmod(first, high_windows * line_windows)
    window_y, window_x = divmod(place, line_windows)
    places = np.empty((3, ROWS), np.int64)
    for block in range(-(-count // ROWS)):
        within = 0
        if window_x + ROWS <= line_windows and (block + 1) * ROWS <= count:  # all in a row
            top, left = window_y * step_y - pad_y, window_x * step_x - pad_x
            begin = address_of(data) + ((image * high + top) * broad + left) * pixel
            for row, start, by in ((TOP, top, 0), (LEFT, left, step_x), (BEGIN, begin, step_x * pixel)):
                store_row(address_of(places) + 8 * ROWS * row, start, by)
            low, right = top + (down - 1) * near_y, left + (ROWS - 1) * step_x + (across - 1) * near_x
            within = int(top >= 0 and left >= 0 and low < high and right < broad)
            image, window_y, window_x = _window(image, window_y, window_x + ROWS, high_windows, line_windows)
        else:
            for row in range(ROWS):
                top, left = window_y * step_y - pad_y, window_x * step_x - pad_x
                places[TOP, row] = top if block * ROWS + row < count else _OUTSIDE
                places[LEFT, row] = left
                places[BEGIN, row] = address_of(data) + ((image * high + top) * broad + left) * pixel
                image, window_y, window_x = _window(image, window_y, window_x + 1, high_windows, line_windows)
        entries = address_of(table) + block * table.strides[0]
        find_taps(
            address_of(places), entries, down, across, near_y, near_x, near_y * broad * pixel, near_x * pixel, high,
            broad, nothing, within,
        )  # fmt: skip


@compiled
def _aim(
    out: np.ndarray, residual: np.ndarray, geometry: np.ndarray, rest: np.ndarray, first: int, count: int,
    targets: np.ndarray, in_bf16: tuple[int, bool],
) -> None:  # fmt: skip
    """Fill ``targets`` [blocks, ROWS, 3] with the addresses of results and residuals of the windows from ``first`` on.

    What the last block has too many windows for is read from ``rest`` and written to it. ``in_bf16`` is the address of
    the results in bf16, which the third number is then, or 0, and whether residuals are in bf16.
    """
    rounded, halved = in_bf16
    pixel, nothing = out.itemsize * out.shape[3], address_of(rest)
    is_row = len(residual) * residual.shape[1] * residual.shape[2] == 1
    half, other = geometry[14], 0 if is_row else residual.itemsize * residual.shape[3] >> int(halved)
    into, more, third = address_of(out), address_of(residual), rounded if rounded else nothing
    step_y, step_x, first_y, first_x = geometry[10], geometry[11], geometry[12], geometry[13]
    if step_y == step_x == 1 and geometry[8] == out.shape[1] and geometry[9] == out.shape[2]:  # one after the other
        begins = into + first * pixel, more + first * other, third + first * half
        store_steps(address_of(targets), count, *begins, pixel, other, half)
    else:
        entries = array_at(longs_at(address_of(targets)), targets.size)
        image, place = divmod(first, geometry[8] * geometry[9])
        y, x = divmod(place, geometry[9])
        for window in range(count):
            place = (image * out.shape[1] + y * step_y + first_y) * out.shape[2] + x * step_x + first_x
            entries[3 * window], entries[3 * window + 1] = into + pixel * place, more + other * place
            entries[3 * window + 2] = third + half * place
            image, y, x = _window(image, y, x + 1, geometry[8], geometry[9])
    left = -(-count // ROWS) * ROWS - count
    store_steps(address_of(targets) + 24 * count, left, nothing, nothing, nothing, 0, 0, 0)
