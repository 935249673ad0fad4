"""Windows in the tiles of AMX: what they see is copied side by side, so that a row of a tile is a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irrun.fast.convolution.table_block import copy_windows
from irrun.fast.functions import contracted
from irrun.fast.machine.late import array_at
from irrun.fast.machine.memory import address_of, longs_at
from irrun.fast.machine.processor import ROWS
from irrun.fast.panels import WIDTH
from irrun.fast.precision.pairs import GROUP, SPLIT, split_row
from irrun.fast.precision.tiles import (
    PAIRS,
    TILE,
    begin_tiles,
    copy_words,
    end_tiles,
    multiply_rows,
    rows_at_once,
)  # fmt: skip

__all__ = [
    "in_band", "lies_in_band", "multiply_band", "multiply_split", "multiply_windows_in_tiles", "windows_in_band",
]  # fmt: skip

_SHALLOW_WORDS: Final = 4 * TILE
"""The most words of windows whose sums are then more than what is multiplied."""
_MAX_SHALLOW_WINDOWS: Final = 4 * TILE
"""The most of these windows at once: their sums with a panel stay in the first-level cache."""
_MAX_BAND_BYTES: Final = 3 << 18
"""Bytes of a band, which stay in the second-level cache with the sums of its windows."""
_MAX_BAND_WINDOWS: Final = 50 * TILE
"""The most windows of a band. Each band reads all filters, and copies what the next one sees, too."""


@contracted
def _side_by_side(table: np.ndarray, top: int, count: int, size: int, end: int) -> tuple[int, int]:
    """Return how many of the windows from ``top`` on have their only tap at the same distance: whole tiles of them.

    Return also this distance in bytes. Tiles read ``size`` bytes of each window, all of them before the address
    ``end``.
    """
    entries = array_at(longs_at(address_of(table)), table.size)
    begin, next, even = entries[top], entries[top + 1], 2
    while even < count and entries[top + even] - begin == even * (next - begin):
        even += 1
    even = even // TILE * TILE
    while even and begin + (even - 1) * (next - begin) + size > end:
        even -= TILE
    return even, next - begin


@contracted
def multiply_windows_in_tiles(
    kind: int, finish: Callable[..., None], data: np.ndarray, panels: np.ndarray, table: np.ndarray,
    targets: np.ndarray, count: int, depth: int, outs: int, shift: int, more: Any,
) -> None:  # fmt: skip
    """Multiply the first ``count`` windows of ``data`` by panels that have ``outs`` columns.

    ``kind`` is that of ``multiply_rows``. ``table`` has the addresses at which windows have ``depth`` words for each
    tap, to which ``shift`` is added. A panel has rows for all of these words, and then rows of zeros for whole tiles.
    Windows of a single tap are read where they are, if they are evenly spaced. Others are copied side by side.

    ``finish(panel, columns, sums, targets, count, more)`` makes results of the sums of so many windows with the first
    columns of a panel. It takes the addresses of the sums [count, WIDTH], and of i64 [count, 3].
    """
    taps, words, size = table.shape[1], panels.shape[1], panels.strides[0]
    most, end = rows_at_once(count, words), address_of(data) + data.nbytes
    most = min(most, _MAX_SHALLOW_WINDOWS) if words <= _SHALLOW_WORDS else most
    # the addresses of memory are found where it is used: numba releases memory after the last use
    memory, totals = np.zeros(most * words, np.uint32), np.empty(most * WIDTH, np.uint32)
    begin_tiles(TILE)
    for top in range(0, count, most):
        tall, even, apart = min(most, count - top), 0, 0
        first, held, c = table[top // ROWS, 0, top % ROWS] + shift, address_of(memory), address_of(totals)
        is_read = depth == words or kind != PAIRS  # what follows the words of a window may be NaN
        if is_read and taps == 1 and tall > TILE and address_of(data) <= first < end:
            even, apart = _side_by_side(table, top, tall, shift + 4 * words, end)
        copied = held + 4 * even * words
        copy_windows(address_of(table), table.strides[0], top + even, top + tall, taps, depth, shift, copied, words)
        for panel in range(len(panels)):
            columns, b = min(WIDTH, outs - panel * WIDTH), address_of(panels) + panel * size
            multiply_rows(kind, first, apart, 1, 0, b, size, words, c, 4 * WIDTH, even, columns)
            multiply_rows(
                kind, held + 4 * even * words, 4 * words, 1, 0, b, size, words, c + 4 * even * WIDTH,
                4 * WIDTH, tall - even, columns,
            )  # fmt: skip
            finish(panel, columns, c, address_of(targets) + 24 * top, tall, more)
    end_tiles()


def lies_in_band(geometry: np.ndarray, groups: int) -> bool:
    """Return whether windows of several taps are found in a band: see ``multiply_band``. A row of taps has no gaps.

    Rows of windows with strides do not fill tiles together: each must fill most of its tiles.
    """
    tiles, steps = -(-geometry[9] // TILE), geometry[2] * geometry[3]
    fills = steps == 1 or 2 * tiles * TILE <= 3 * geometry[9]
    return groups == 1 and geometry[5] == 1 and geometry[0] * geometry[1] > 1 and fills


in_band: Final = contracted(lies_in_band)


@contracted
def _line(geometry: np.ndarray) -> int:
    """Return the pixels of a row of a band."""
    return (geometry[9] - 1) * geometry[3] + geometry[1]


@contracted
def windows_in_band(geometry: np.ndarray, pixel: int) -> int:
    """Return how many windows of an image are in a band at once, whole rows of them. A pixel takes so many bytes."""
    line, more, steps = _line(geometry), (geometry[0] - 1) * geometry[4], geometry[2] * geometry[3]
    held = (_MAX_BAND_BYTES // (line * pixel) - more) // geometry[2]
    rows = min(_MAX_BAND_WINDOWS // (line if steps == 1 else geometry[9]), held, geometry[8])
    return max(rows, 1) * geometry[9]


@contracted
def _fill_band(
    data: np.ndarray, nothing: int, geometry: np.ndarray, image: int, top: int, depth: int, band: int, rows: int
) -> None:
    """Copy so many rows of pixels, from the row ``top`` on, to the address ``band`` of words [rows, pixels, depth].

    Pads are copies of the pixel at the address ``nothing``.
    """
    high, broad, line = data.shape[1], data.shape[2], _line(geometry)
    for row in range(rows):
        y, target = top + row, band + 4 * row * line * depth
        is_pad = y < 0 or y >= high
        left = line if is_pad else min(geometry[7], line)
        end = line if is_pad else min(left + broad, line)
        for x in range(line - end + left):
            copy_words(nothing, target + 4 * depth * (x if x < left else x - left + end), depth)
        if end > left:
            source = address_of(data) + (image * high + y) * broad * depth * 4
            copy_words(source, target + 4 * left * depth, (end - left) * depth)


@contracted
def multiply_band(
    kind: int, finish: Callable[..., None], data: np.ndarray, nothing: np.ndarray, panels: np.ndarray,
    geometry: np.ndarray, targets: np.ndarray, first: int, count: int, depth: int, outs: int, more: Any,
) -> None:  # fmt: skip
    """Multiply ``count`` windows of an image from ``first`` on by panels, as ``multiply_windows_in_tiles`` does.

    Their pixels, of ``depth`` words, are copied with pads, as rows of equal length. What a window sees of a row is then
    as far from what the window before it sees as pixels are, or strides. Without strides, a row of windows is followed
    by some that count for nothing. A pad is the pixel ``nothing``. A panel has whole tiles for each row of taps, filled
    with rows of zeros.
    """
    down, step_y, step_x, near = geometry[0], geometry[2], geometry[3], geometry[4]
    wide, line, pixel, words = geometry[9], _line(geometry), 4 * depth, -(-geometry[1] * depth // TILE) * TILE
    image, place = divmod(first, geometry[8] * wide)
    (top, begin), bottom = divmod(place, wide), (place + count - 1) // wide
    rows = (bottom - top) * step_y + (down - 1) * near + 1
    spare = 1 + (TILE * step_x + words // depth + 1) // line  # tiles see what follows the last window
    memory = np.empty((rows + spare) * line * depth, np.uint32)
    _fill_band(data, address_of(nothing), geometry, image, top * step_y - geometry[6], depth, address_of(memory), rows)
    together = step_y * step_x == 1
    seen = (bottom - top) * line + (place + count - 1) % wide + 1 - begin if together else wide
    totals = np.empty(-(-seen // TILE) * TILE * WIDTH, np.uint32)
    size, apart, far = panels.strides[0], step_x * pixel, line * pixel
    begin_tiles(TILE)
    for panel in range(len(panels)):
        columns, window = min(WIDTH, outs - panel * WIDTH), 0
        b, start, sums = address_of(panels) + panel * size, address_of(memory) + begin * apart, address_of(totals)
        if together:
            multiply_rows(kind, start, apart, down, near * far, b, size, words, sums, 4 * WIDTH, seen, columns)
        while window < count:
            y, x = divmod(begin + window, wide)
            some, place = min(wide - x, count - window), sums
            if together:
                place += 4 * (y * line + x - begin) * WIDTH
            else:
                a = start + y * step_y * far + (x - begin) * apart
                multiply_rows(kind, a, apart, down, near * far, b, size, words, sums, 4 * WIDTH, some, columns)
            finish(panel, columns, place, address_of(targets) + 24 * window, some, more)
            window += some
    end_tiles()


@contracted
def multiply_split(
    finish: Callable[..., None], data: np.ndarray, panels: np.ndarray, geometry: np.ndarray, targets: np.ndarray,
    first: int, count: int, depth: int, outs: int, more: Any,
) -> bool:  # fmt: skip
    """Multiply ``count`` windows of an image of f32 from ``first`` on by a panel: see ``multiply_windows_in_tiles``.

    The taps of a row are joined: ``depth`` numbers, without pads. Numbers of the data and of the filters are sums of
    two of bf16. Of their four products, the smallest is left out. If some data is infinite or NaN, nothing is computed,
    and the result is False: tiles multiply what is behind a row of taps, too, by 0.
    """
    down, step_y, step_x, wide = geometry[0], geometry[2], geometry[3], geometry[9]
    image, place = divmod(first, geometry[8] * wide)
    (top, begin), bottom = divmod(place, wide), (place + count - 1) // wide
    rows, numbers = (bottom - top) * step_y + down, data.shape[2] * data.shape[3]
    words, apart = -(-SPLIT * depth // (2 * TILE)) * TILE, 2 * SPLIT * step_x * data.shape[3]
    line = -(-numbers // GROUP) * GROUP * 2 * SPLIT
    spare = TILE * apart + 4 * words  # tiles see what follows the last window
    # the addresses of memory are found where it is used: numba releases memory after the last use
    memory, sums = np.zeros((rows * line + spare) // 4, np.uint32), np.empty(-(-wide // TILE) * TILE * WIDTH, np.uint32)
    source, is_finite = address_of(data) + 4 * (image * data.shape[1] + top * step_y) * numbers, True
    for row in range(rows):
        is_finite &= split_row(source + 4 * row * numbers, address_of(memory) + row * line, numbers)
    if not is_finite:
        return False
    window = 0
    begin_tiles(TILE)
    while window < count:
        y, x = divmod(begin + window, wide)
        some, a, c = min(wide - x, count - window), address_of(memory) + y * step_y * line + x * apart, address_of(sums)
        multiply_rows(PAIRS, a, apart, down, line, address_of(panels), 0, words, c, 4 * WIDTH, some, outs)
        finish(0, outs, c, address_of(targets) + 24 * window, some, more)
        window += some
    end_tiles()
    return True
