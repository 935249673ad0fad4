"""Products of rows with a constant matrix of integer codes in the tiles of AMX, both rounded to bf16.

A part of a panel is unpacked to pairs of bf16 once for all rows that are held, and stays in the cache. The matrix stays
in codes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.fast.codes import PackedCodes, unpack_rows
from irrun.fast.functions import Number, contracted
from irrun.fast.machine.emitting import CACHE_LINE_BYTES
from irrun.fast.machine.memory import address_of
from irrun.fast.machine.processor import VECTOR, compiled
from irrun.fast.panels import WIDTH, Packed, Then, area, from_place
from irrun.fast.precision.pairs import interleave, round_codes, round_row
from irrun.fast.precision.tiles import (
    LINES,
    PAIRS,
    TILE,
    TILES,
    begin_tiles,
    end_tiles,
    multiply_tiles,
    rows_at_once,
    store_sums,
)  # fmt: skip
from irrun.opdef import Stored

__all__ = ["RoundedCodes"]

_MAX_UNPACKED_WORDS: Final = 8 * TILE
"""The most pairs of rows of a panel that are unpacked at once: 32 KiB, which stay in the first-level cache."""


@contracted
def _round_panel(
    panels: np.ndarray, zeros: np.ndarray, scales: np.ndarray, panel: int, begin: int, end: int, depth: int,
    pairs: np.ndarray, floats: np.ndarray,
) -> None:  # fmt: skip
    """Fill the first rows of ``pairs`` with the rows ``begin`` to ``end`` of a panel, and the others with zeros.

    ``begin`` is even. If a pair may belong to two groups, its rows are unpacked to ``floats`` first.
    """
    size, row, filled = depth // scales.shape[1], begin, (end - begin + 1) // 2
    while row < end and size % 2 == 0:
        group = row // size
        count = min((group + 1) * size, end) - row
        round_codes(
            panels, zeros, address_of(panels) + panel * panels.strides[0] + row * panels.strides[1],
            address_of(zeros) + panel * zeros.strides[0] + group * zeros.strides[1],
            address_of(scales) + panel * scales.strides[0] + group * scales.strides[1],
            address_of(pairs) + (row - begin) // 2 * pairs.strides[0], count,
        )  # fmt: skip
        row += count
    if size % 2:
        unpack_rows(panels, zeros, scales, panel, begin, end, depth, floats)
        for j in range(WIDTH):
            floats[end - begin, j] = 0
        for n in range(filled):
            source, target = address_of(floats) + 8 * n * WIDTH, address_of(pairs) + 4 * n * WIDTH
            for place in range(0, 4 * WIDTH, 4 * VECTOR):
                interleave(source + place, source + 4 * WIDTH + place, target + place)
    for n in range(filled, len(pairs)):
        for j in range(WIDTH):
            pairs[n, j] = 0


@contracted
def _multiply_in_tiles(
    a: np.ndarray, panels: np.ndarray, zeros: np.ndarray, scales: np.ndarray, out: np.ndarray, first: int, then: Then
) -> None:
    """Fill ``out`` with the product of ``a`` and the panels from ``first`` on."""
    (count, columns), depth = out.shape, a.shape[1]
    words = -(-depth // (2 * TILE)) * TILE
    most, some = rows_at_once(count, words), min(words, _MAX_UNPACKED_WORDS)
    rounded, sums = np.zeros((most, words), np.float32), np.empty((most, WIDTH), np.float32)
    pairs, floats = np.empty((some, WIDTH), np.uint32), np.empty((2 * some + 1, WIDTH), np.float32)
    step, apart = a.strides[0], 4 * words
    begin_tiles(TILE)
    for top in range(0, count, most):
        high, held, total = min(most, count - top), address_of(rounded), address_of(sums)
        for row in range(high):
            round_row(address_of(a) + (top + row) * step, held + row * apart, depth)
        for column in range(0, columns, WIDTH):
            panel, wide = first + column // WIDTH, min(WIDTH, columns - column)
            for begin in range(0, words, some):
                part = pairs[: min(some, words - begin)]
                end = min(2 * (begin + len(part)), depth)
                _round_panel(panels, zeros, scales, panel, 2 * begin, end, depth, part, floats)
                ahead = address_of(panels) + panel * panels.strides[0] + end * panels.strides[1]
                for row in range(0, high, TILE):
                    multiply_tiles(
                        PAIRS, begin > 0, held + row * apart + 4 * begin, apart, 1, 0, address_of(part), len(part),
                        total + 4 * row * WIDTH, 4 * WIDTH, wide, ahead,
                    )  # fmt: skip
                    ahead += CACHE_LINE_BYTES * LINES * len(part) // TILE
            c, own = address_of(out) + top * out.strides[0] + 4 * column, from_place(then, top, column)
            store_sums(address_of(sums), high, wide, c, out.strides[0] // 4, own)
    end_tiles()


@compiled
def _multiply_part(
    a: np.ndarray, panels: np.ndarray, zeros: np.ndarray, scales: np.ndarray, out: np.ndarray, panel: int,
    by_rows: bool, bias: int, residual: int, apart: int, low: Number, high: Number, first: int, last: int,
) -> None:  # fmt: skip
    """Fill a part of ``out``: see ``panels.multiply_part``."""
    begin, end, left, right = area(out, by_rows, first, last)
    some, then = out[begin:end, left:right], from_place((bias, residual, apart, low, high), begin, left)
    _multiply_in_tiles(a[begin:end], panels, zeros, scales, some, panel + left // WIDTH, then)


class RoundedCodes(Packed):
    """A matrix of codes, held as ``PackedCodes``, whose numbers and the rows that they multiply are rounded to bf16."""

    part = staticmethod(_multiply_part)

    def __init__(self, source: Stored, transposed: bool) -> None:
        super().__init__(source)
        self.plain = PackedCodes.of(source, transposed)
        self.depth, self.columns, self.panels = self.plain.depth, self.plain.columns, self.plain.panels
        self.name = f"{self.plain.name} in bf16"

    @staticmethod
    def holds(source: Stored, transposed: bool) -> bool:
        """Return whether the processor has tiles, and ``PackedCodes`` hold the matrix."""
        return TILES and PackedCodes.holds(source, transposed)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.plain.arrays
