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
from irrun.fast.panels import MAX_CACHED_ROWS, WIDTH, area, from_place, multiply_panels, zero_panels
from irrun.fast.precision.pairs import round_row
from irrun.kernels.cast import rounded_to_bf16

__all__ = ["multiply_rounded", "round_rows", "rounded_panels", "words"]


def words(count: int) -> int:
    """Return how many times four bytes a row of ``count`` rounded numbers takes."""
    return -(-count // 2)


def rounded_panels(matrix: np.ndarray) -> np.ndarray:
    """Return a constant matrix of f32, f16 or bf16, rounded to bf16, in panels of ``WIDTH`` columns.

    They are u32 [panels, words(rows), WIDTH]: pairs of two rows each.
    """
    rows, columns = matrix.shape
    panels = zero_panels(columns, words(rows), np.uint32)
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
def round_rows(source: int, apart: int, target: int, count: int, first: int, last: int) -> None:
    """Round the rows from ``first`` to ``last`` of ``count`` f32 each to bf16.

    ``source`` and ``target`` are addresses. The rows at ``source`` are ``apart`` numbers apart, those at ``target`` are
    ``words(count)`` of them and follow each other.
    """
    held = (count + 1) // 2
    if apart != count or count > _MAX_HELD_NUMBERS:
        for n in range(first, last):
            round_row(source + 4 * n * apart, target + 4 * n * held, count)
            if count % 2:
                array_at(halves_at(target + 4 * n * held), count + 1)[count] = 0
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
    rounded = np.empty((min(MAX_CACHED_ROWS, end - begin), panels.shape[1]), np.float32)
    for top in range(begin, end, MAX_CACHED_ROWS):
        count = min(MAX_CACHED_ROWS, end - top)
        round_rows(address_of(a) + top * a.strides[0], a.strides[0] // 4, address_of(rounded), a.shape[1], 0, count)
        multiply_panels(
            rounded[:count], panels, out[top : top + count, left:right], panel + left // WIDTH,
            from_place(then, top, left),
        )  # fmt: skip
