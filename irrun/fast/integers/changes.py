"""Convolutions of bytes whose results an activation changes before they become levels.

The results of a panel are f32 in the cache. There, each row of them is changed, and then encoded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.fast.activations import activate
from irrun.fast.convolution.window_block import DENSE
from irrun.fast.convolution.windows import each_table
from irrun.fast.functions import Number, contracted
from irrun.fast.integers.block import integer_block
from irrun.fast.integers.encode_block import encode_row
from irrun.fast.integers.levels import level
from irrun.fast.machine.late import array_at
from irrun.fast.machine.memory import address_of, bytes_at, row_at
from irrun.fast.machine.processor import ROWS, VECTOR, compiled
from irrun.fast.panels import WIDTH, in_vectors

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
    each_table(_convolve_table, data, nothing, out, data, geometry, first, last, more)


@contracted
def _convolve_table(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, more: Any
) -> None:
    """Convolve the windows of a table."""
    panels, numbers, groups, outs, depth, which, beta, grids, highest = more
    taps, each = table.shape[1], len(panels) // groups
    blocks = -(-count // ROWS)
    results, places = np.empty((blocks * ROWS, WIDTH), np.float32), np.empty((blocks * ROWS, 3), np.int64)
    for n in range(blocks * ROWS):
        places[n, 0] = address_of(results) + 4 * WIDTH * n
        places[n, 1] = places[n, 2] = places[n, 0]
    for panel in range(len(panels)):
        group, part = divmod(panel, each)
        columns, column = min(WIDTH, outs - part * WIDTH), group * outs + part * WIDTH
        b, own = address_of(panels) + panel * panels.strides[0], address_of(numbers) + panel * numbers.strides[0]
        (vectors, tail), shift = in_vectors(columns), 4 * depth * group
        for block in range(blocks):
            entries = address_of(table) + block * table.strides[0]
            rows = address_of(places) + block * ROWS * places.strides[0]
            integer_block(DENSE, vectors, results, entries, taps, depth, b, rows, shift, 0, tail, own, False, False)
        scale, whole = address_of(grids) + panel * grids.strides[0], columns // VECTOR * VECTOR
        for n in range(blocks * ROWS):
            target, nowhere = targets[n // ROWS, n % ROWS, 0], targets[n // ROWS, n % ROWS, 2]
            if target != nowhere:
                activate(which, beta, places[n, 0], columns)
                encode_row(places[n, 0], target + column, whole, scale, scale + 4 * WIDTH, highest)
                row, levels = row_at(places[n, 0], columns), array_at(bytes_at(target + column), columns)
                for c in range(whole, columns):
                    levels[c] = level(row[c], grids[panel, 0, c], grids[panel, 1, c], highest)
