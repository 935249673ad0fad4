"""Operands that are rounded to bf16, and products of such rows with a constant matrix.

Four bytes hold the bf16 of two neighbouring columns: a pair, whose products with the pairs of a constant matrix are
summed at once (see ``block.FORMS``). A row of ``n`` numbers takes ``words(n)`` times four bytes, and kernels of f32
read it as so many f32.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.fast.functions import Number
from irrun.fast.machine.late import array_at
from irrun.fast.machine.memory import address_of, halves_at, words_at
from irrun.fast.machine.processor import compiled
from irrun.fast.panels import (
    MAX_CACHED_ROWS,
    WIDTH,
    Then,
    area,
    from_place,
    multiply_panels,
    multiply_part,
    zero_panels,
)
from irrun.fast.precision.pairs import round_row
from irrun.fast.precision.tiles import (
    LEAST_ROWS,
    PAIRS,
    TILE,
    TILES,
    begin_tiles,
    copy_words,
    end_tiles,
    multiply_rows,
    rows_at_once,
    store_sums,
)  # fmt: skip
from irrun.kernels.cast import rounded_to_bf16

__all__ = ["multiply_pairs", "multiply_rounded", "round_rows", "rounded_panels", "words"]

_UNIT: Final = TILE if TILES else 1
"""The words of panels are a multiple of it."""


def words(count: int) -> int:
    """Return how many times four bytes a row of ``count`` rounded numbers takes."""
    return -(-count // 2)


def rounded_panels(matrix: np.ndarray) -> np.ndarray:
    """Return a constant matrix of f32, f16 or bf16, rounded to bf16, in panels of ``WIDTH`` columns.

    They are u32 [panels, words, WIDTH]: pairs of two rows each. Where there are tiles, zeros fill the last one.
    """
    rows, columns = matrix.shape
    panels = zero_panels(columns, -(-words(rows) // _UNIT) * _UNIT, np.uint32)
    shorts = panels.view(np.uint16).reshape(*panels.shape, 2)
    for number, panel in enumerate(shorts):
        part = rounded_to_bf16(matrix[:, number * WIDTH : (number + 1) * WIDTH]).view(np.uint32) >> np.uint32(16)
        for n in range(2):
            some = part[n::2]
            panel[: len(some), : some.shape[1], n] = some
    return panels


_FIRST_HALF: Final = np.uint32(0xFFFF)
"""The bits of the first number of a pair."""
_MAX_HELD_NUMBERS: Final = 1 << 11
"""The most numbers of short rows that are rounded before they are moved apart: they stay in the first-level cache."""


@compiled
def round_rows(source: int, apart: int, target: int, into: int, count: int, first: int, last: int) -> None:
    """Round the rows from ``first`` to ``last`` of ``count`` f32 each to bf16.

    ``source`` and ``target`` are addresses. The rows at ``source`` are ``apart`` numbers apart, those at ``target``
    ``into`` words of four bytes, ``words(count)`` or more.
    """
    held = (count + 1) // 2
    if apart != count or into != held or count > _MAX_HELD_NUMBERS:
        for n in range(first, last):
            round_row(source + 4 * n * apart, target + 4 * n * into, count)
            if count % 2:
                array_at(halves_at(target + 4 * n * into), count + 1)[count] = 0
    elif count % 2 == 0:
        round_row(source + 4 * first * count, target + 4 * first * held, (last - first) * count)
    else:
        height = _MAX_HELD_NUMBERS // count
        numbers = np.empty(height * count + 1, np.uint16)
        for top in range(first, last, height):
            rows, begin = min(height, last - top), address_of(numbers)
            round_row(source + 4 * top * count, begin, rows * count)
            for n in range(rows):
                row = array_at(words_at(begin + 2 * n * count), held)
                pairs = array_at(words_at(target + 4 * (top + n) * held), held)
                for k in range(held - 1):
                    pairs[k] = row[k]
                pairs[held - 1] = row[held - 1] & _FIRST_HALF


@compiled
def multiply_rounded(
    a: np.ndarray, panels: np.ndarray, out: np.ndarray, panel: int, by_rows: bool, bias: int, residual: int, apart: int,
    low: Number, high: Number, first: int, last: int,
) -> None:  # fmt: skip
    """Round ``a``, and fill a part of ``out``: see ``panels.multiply_part``."""
    begin, end, left, right = area(out, by_rows, first, last)
    then = bias, residual, apart, low, high
    if TILES and end - begin >= LEAST_ROWS:
        some, first = out[begin:end, left:right], panel + left // WIDTH
        _multiply_in_tiles(a[begin:end], True, panels, some, first, from_place(then, begin, left))
        return
    held = (a.shape[1] + 1) // 2
    rounded = np.empty((min(MAX_CACHED_ROWS, end - begin), held), np.float32)
    for top in range(begin, end, MAX_CACHED_ROWS):
        count = min(MAX_CACHED_ROWS, end - top)
        source = address_of(a) + top * a.strides[0]
        round_rows(source, a.strides[0] // 4, address_of(rounded), held, a.shape[1], 0, count)
        multiply_panels(
            rounded[:count], panels, out[top : top + count, left:right], panel + left // WIDTH,
            from_place(then, top, left),
        )  # fmt: skip


@compiled
def multiply_pairs(
    a: np.ndarray, panels: np.ndarray, out: np.ndarray, panel: int, by_rows: bool, bias: int, residual: int, apart: int,
    low: Number, high: Number, first: int, last: int,
) -> None:  # fmt: skip
    """Fill a part of ``out`` as ``multiply_rounded`` does, for ``a`` that is rounded."""
    if TILES and (last - first if by_rows else len(out)) >= LEAST_ROWS:
        begin, end, left, right = area(out, by_rows, first, last)
        some, then = out[begin:end, left:right], from_place((bias, residual, apart, low, high), begin, left)
        _multiply_in_tiles(a[begin:end], False, panels, some, panel + left // WIDTH, then)
    else:
        multiply_part(a, panels, out, panel, by_rows, bias, residual, apart, low, high, first, last)


@compiled
def _multiply_in_tiles(
    a: np.ndarray, rounds: bool, panels: np.ndarray, out: np.ndarray, first: int, then: Then
) -> None:
    """Fill ``out`` with the product of ``a``, which is rounded or is to be, with the panels from ``first`` on."""
    (count, columns), words = out.shape, panels.shape[1]
    most, step = rows_at_once(count, words), a.strides[0]
    rounded, sums = np.zeros((most, words), np.float32), np.empty((most, WIDTH), np.float32)
    ldc, size = out.strides[0], panels.strides[0]
    begin_tiles(min(count, TILE))
    for top in range(0, count, most):
        high, source = min(most, count - top), address_of(a) + top * step
        held, apart = address_of(rounded), 4 * words
        if rounds:
            for row in range(high):
                round_row(source + row * step, held + row * apart, a.shape[1])
        elif high == most and a.shape[1] == words:
            held, apart = source, step
        else:
            for row in range(high):
                copy_words(source + row * step, held + row * apart, a.shape[1])
        for column in range(0, columns, WIDTH):
            b, wide = address_of(panels) + (first + column // WIDTH) * size, min(WIDTH, columns - column)
            multiply_rows(PAIRS, held, apart, 1, 0, b, size, words, address_of(sums), 4 * WIDTH, high, wide)
            c, own = address_of(out) + top * ldc + 4 * column, from_place(then, top, column)
            store_sums(address_of(sums), high, wide, c, ldc // 4, own)
    end_tiles()
