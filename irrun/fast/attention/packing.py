"""Queries, keys and values as products read them: rows of words, and panels of keys or of values."""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.fast.attention.weights import as_columns
from irrun.fast.functions import Number, contracted
from irrun.fast.machine.memory import address_of, row_at
from irrun.fast.machine.processor import VECTOR
from irrun.fast.panels import WIDTH
from irrun.fast.precision.pairs import interleave, round_row

__all__ = ["copy_row", "pack_keys", "pack_rows", "pack_values"]

_ONE: Final = np.float32(1)
_ZERO: Final = np.float32(0)


@contracted
def pack_rows(
    source: int, step: int, rows: int, count: int, share: int, target: int, apart: int
) -> None:  # fmt: skip
    """Copy rows of numbers, ``step`` bytes apart, to rows of words, ``apart`` bytes apart. What follows them stays."""
    for i in range(rows):
        row, place = source + i * step, target + i * apart
        if share == 1:
            copy_row(row, place, count, _ONE)
        else:
            round_row(row, place, count)


@contracted
def pack_keys(
    source: int, step: int, keys: int, depth: int, share: int, across: np.ndarray, some: np.ndarray
) -> None:  # fmt: skip
    """Fill panels, whose columns are keys. The rows of ``source`` are ``step`` bytes apart."""
    held, rows, begin, size = some.shape[1], address_of(some), address_of(across), across.strides[0]
    for j in range(0, keys, VECTOR):
        pack_rows(source + j * step, step, min(VECTOR, keys - j), depth, share, rows, 4 * held)
        for n in range(keys - j, VECTOR):
            row = row_at(rows + 4 * n * held, held)
            for k in range(held):
                row[k] = _ZERO
        target = begin + j // WIDTH * size + 4 * (j % WIDTH)
        for k in range(0, held, VECTOR):
            as_columns(rows + 4 * k, 4 * held, target + 4 * k * WIDTH, 4 * WIDTH)


@contracted
def pack_values(
    source: int, step: int, keys: int, width: int, share: int, values: np.ndarray, spare: np.ndarray
) -> None:  # fmt: skip
    """Fill panels, whose rows are values. The rows of ``source`` are ``step`` bytes apart."""
    one, other, zeros = address_of(spare), address_of(spare) + 4 * VECTOR, address_of(spare) + 8 * VECTOR
    begin, size, panels = address_of(values), values.strides[0], len(values)
    for j in range(0, keys, share):
        row, target = source + j * step, begin + 4 * (j // share) * WIDTH
        if share == 1:
            for panel in range(panels):
                copy_row(row + 4 * panel * WIDTH, target + panel * size, min(WIDTH, width - panel * WIDTH), _ONE)
            continue
        is_last = j + 1 == keys
        for k in range(0, width, VECTOR):
            first, second = row + 4 * k, zeros if is_last else row + step + 4 * k
            if k + VECTOR > width:
                copy_row(first, one, width - k, _ONE)
                copy_row(second, other, width - k, _ONE)
                first, second = one, other
            interleave(first, second, target + k // WIDTH * size + 4 * (k % WIDTH))


@contracted
def copy_row(source: int, target: int, count: int, factor: Number) -> None:
    """Copy a row of numbers from an address to another, multiplied by a factor."""
    row, filled = row_at(source, count), row_at(target, count)
    for j in range(count):
        filled[j] = row[j] * factor
