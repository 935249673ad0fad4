"""Convolutions of bytes whose results an activation changes before they become levels.

The results of a panel are f32 in the cache. There, each row of them is changed, and then encoded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.fast.activations import activate
from irrun.fast.convolution.table_block import store_steps
from irrun.fast.convolution.window_block import DENSE
from irrun.fast.convolution.window_tiles import multiply_band, multiply_windows_in_tiles
from irrun.fast.functions import Number, contracted
from irrun.fast.integers.block import integer_block
from irrun.fast.integers.encode_block import encode_row
from irrun.fast.integers.levels import level
from irrun.fast.integers.summed_block import summed_block
from irrun.fast.integers.windows import each_way
from irrun.fast.machine.late import array_at
from irrun.fast.machine.memory import address_of, bytes_at, longs_at, row_at
from irrun.fast.machine.processor import ROWS, VECTOR, compiled
from irrun.fast.panels import WIDTH, in_vectors
from irrun.fast.precision.tiles import UNSIGNED

__all__ = ["convolve_bytes_changed"]


@compiled
def convolve_bytes_changed(
    data: np.ndarray, nothing: np.ndarray, panels: np.ndarray, numbers: np.ndarray, out: np.ndarray,
    geometry: np.ndarray, groups: int, outs: int, depth: int, which: int, beta: Number, grids: np.ndarray, top: Number,
    first: int, last: int,
) -> None:  # fmt: skip
    """Fill windows of ``out``, which are levels, as ``windows.convolve_bytes`` does, with an activation in between.

    ``which`` and ``beta`` are those of ``activate``. ``grids`` f32 [groups * panels of each, 2, WIDTH] holds the
    factors and addends that lead to levels, of which ``top`` is the highest.
    """
    more = (panels, numbers, groups, outs, depth, which, beta, grids, top)
    seen = data, nothing, out, data, geometry
    each_way(_convolve_band, _convolve_in_tiles, _convolve_table, groups, seen, first, last, more)


@contracted
def _convolve_band(
    data: np.ndarray, nothing: np.ndarray, out: np.ndarray, geometry: np.ndarray, targets: np.ndarray, top: int,
    count: int, more: Any,
) -> None:  # fmt: skip
    """Convolve the windows of a band."""
    panels, numbers, _, outs, depth, which, beta, grids, highest = more
    then = 0, numbers, which, beta, grids, highest
    multiply_band(UNSIGNED, _finish, data, nothing, panels, geometry, targets, top, count, depth, outs, then)


@contracted
def _convolve_in_tiles(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, more: Any
) -> None:
    """Convolve the windows of a table in tiles."""
    panels, numbers, groups, outs, depth, which, beta, grids, highest = more
    each = len(panels) // groups
    for group in range(groups):
        begin, end, shift = group * each, (group + 1) * each, 4 * depth * group
        then = outs * group, numbers[begin:end], which, beta, grids[begin:end], highest
        multiply_windows_in_tiles(
            UNSIGNED, _finish, data, panels[begin:end], table, targets, count, depth, outs, shift, then
        )


@contracted
def _finish(panel: int, columns: int, sums: int, targets: int, count: int, more: Any) -> None:
    """Make levels of sums in tiles: see ``multiply_windows_in_tiles``. Results are f32 where the sums have been."""
    column, numbers, which, beta, grids, highest = more
    places, size = np.empty((count, 3), np.int64), 4 * WIDTH
    store_steps(address_of(places), count, sums, sums, sums, size, size, size)
    (vectors, tail), own = in_vectors(columns), address_of(numbers) + panel * numbers.strides[0]
    summed_block(vectors, grids, sums, count, address_of(places), 0, tail, own, False, False)
    _encode(sums, targets, count, column + panel * WIDTH, columns, grids[panel], (which, beta, highest))


@contracted
def _encode(results: int, targets: int, count: int, column: int, columns: int, grid: np.ndarray, change: Any) -> None:
    """Change f32 [count, WIDTH] at an address, and store their levels behind so many channels of the targets."""
    which, beta, highest = change
    scale, whole = address_of(grid), columns // VECTOR * VECTOR
    into = array_at(longs_at(targets), 3 * count)
    for n in range(count):
        place, target = results + 4 * WIDTH * n, into[3 * n] + column
        activate(which, beta, place, columns)
        encode_row(place, target, whole, scale, scale + 4 * WIDTH, highest)
        row, levels = row_at(place, columns), array_at(bytes_at(target), columns)
        for c in range(whole, columns):
            levels[c] = level(row[c], grid[0, c], grid[1, c], highest)


@contracted
def _convolve_table(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, more: Any
) -> None:
    """Convolve the windows of a table."""
    panels, numbers, groups, outs, depth, which, beta, grids, highest = more
    taps, each = table.shape[1], len(panels) // groups
    blocks = -(-count // ROWS)
    results, places = np.empty((blocks * ROWS, WIDTH), np.float32), np.empty((blocks * ROWS, 3), np.int64)
    begin, size = address_of(results), 4 * WIDTH
    store_steps(address_of(places), blocks * ROWS, begin, begin, begin, size, size, size)
    for panel in range(len(panels)):
        group, part = divmod(panel, each)
        columns, column = min(WIDTH, outs - part * WIDTH), group * outs + part * WIDTH
        b, own = address_of(panels) + panel * panels.strides[0], address_of(numbers) + panel * numbers.strides[0]
        (vectors, tail), shift = in_vectors(columns), 4 * depth * group
        for block in range(blocks):
            entries = address_of(table) + block * table.strides[0]
            rows = address_of(places) + block * ROWS * places.strides[0]
            integer_block(DENSE, vectors, results, entries, taps, depth, b, rows, shift, 0, tail, own, False, False)
        _encode(begin, address_of(targets), count, column, columns, grids[panel], (which, beta, highest))
