"""Matrix products with a constant matrix of integers of 8 or 4 bits, which have scales and zero points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np

from irrun.base.memory import lasting_zeros
from irrun.fast.block import multiply_codes, unpack_block
from irrun.fast.functions import Number, contracted
from irrun.fast.machine.memory import address_of
from irrun.fast.machine.processor import ROWS, compiled
from irrun.fast.panels import (
    AS_THEY_ARE,
    WIDTH,
    Packed,
    Then,
    area,
    finish,
    from_place,
    multiply_panels,
    zero_panels,
)  # fmt: skip
from irrun.opdef import Stored

__all__ = ["PackedCodes", "group_count", "nibble", "unpack_rows"]

_MAX_UNPACKED_FLOATS: Final = 1 << 12
"""The most floats of a panel that are unpacked at once for many rows. They stay in the first-level cache."""


_MIN_GROUP_ROWS: Final = 8
"""The least rows of a group. With shorter ones, a product spends more time on scales than on codes."""


def group_count(source: Stored, transposed: bool) -> int:
    """Return into how many groups scales and zeros divide the rows, or 0 if their groups overlap."""
    axis = 1 if transposed else 0
    counts = [1 if numbers is None else numbers.shape[axis] for numbers in (source.zeros, source.scales)]
    return max(counts) if max(counts) % min(counts) == 0 else 0


def _in_panels(numbers: np.ndarray, transposed: bool, groups: int, matrix: PackedCodes) -> np.ndarray:
    """Return zeros or scales of a ``Stored`` as f32 [panels, groups, WIDTH]."""
    numbers = numbers.T if transposed else numbers
    every = np.repeat(np.repeat(numbers, groups // len(numbers), 0), matrix.columns // numbers.shape[1], 1)
    panels = lasting_zeros((-(-matrix.columns // WIDTH), groups, WIDTH), np.float32)
    for number, panel in enumerate(panels):
        part = every[:, number * WIDTH : (number + 1) * WIDTH]
        panel[:, : part.shape[1]] = part
    return panels


@compiled
def nibble(raw: np.ndarray, place: int) -> int:
    return raw[place >> 1] >> ((place & 1) * 4) & 15


@compiled
def _pack(raw: np.ndarray, down: int, across: int, columns: int, flip: int, panels: np.ndarray) -> None:
    """Pack codes of 4 bits, which lie ``down`` and ``across`` codes apart along a column and along a row.

    The low bits of a byte hold a column of the first half of the panel, the high bits one of the second half.
    """
    count, depth, half = panels.shape
    for panel in range(count):
        for j in range(half):
            low = panel * 2 * half + j
            high = low + half
            for k in range(depth):
                code = 0
                if low < columns:
                    code = nibble(raw, low * across + k * down) ^ flip
                if high < columns:
                    code |= (nibble(raw, high * across + k * down) ^ flip) << 4
                panels[panel, k, j] = code


_MAX_SUM: Final = np.float32(2.0**112)
"""The most that the sizes of the numbers of a group of one row may sum up to. Of more, the products with the codes and
with the zeros might be infinite both, and their difference no number."""


@compiled
def _multiply_few(
    a: np.ndarray, panels: np.ndarray, zeros: np.ndarray, scales: np.ndarray, out: np.ndarray, start: int, then: Then,
    first: int, last: int,
) -> None:  # fmt: skip
    """Fill the columns ``first`` to ``last`` of ``out``, whose first column is that of the panel ``start``."""
    rows, depth = a.shape
    groups = scales.shape[1]
    size = depth // groups
    lda, ldb = a.strides[0] // 4, panels.strides[0]
    sums = np.zeros((rows, groups), np.float32)
    is_small = True
    for row in range(rows):
        for group in range(groups):
            sizes = np.float32(0)
            for k in range(group * size, (group + 1) * size):
                sums[row, group] += a[row, k]
                sizes += abs(a[row, k])
            is_small &= sizes < _MAX_SUM  # which NaN is not
    if not is_small:
        _multiply_many(a, panels, zeros, scales, out, start, then, first, last)
        return
    total = np.empty((ROWS, 4 * WIDTH), np.float32)
    at, of, ldc = address_of(a), address_of(sums), 4 * WIDTH
    column = first
    while column < last:
        panel = start + column // WIDTH
        # a single row leaves registers for four panels, which are read from memory at the same time
        count = 4 if rows == 1 and panel + 4 <= len(panels) and column + 3 * WIDTH < last else 1
        b, c = address_of(panels) + panel * ldb, address_of(total)
        shifts = address_of(zeros) + panel * zeros.strides[0]
        factors = address_of(scales) + panel * scales.strides[0]
        if count == 4:
            multiply_codes(1, 4, panels, zeros, at, lda, b, ldb, of, shifts, factors, c, ldc, groups, size)
        elif rows == 1:
            multiply_codes(1, 1, panels, zeros, at, lda, b, ldb, of, shifts, factors, c, ldc, groups, size)
        elif rows == 2:
            multiply_codes(2, 1, panels, zeros, at, lda, b, ldb, of, shifts, factors, c, ldc, groups, size)
        elif rows == 3:
            multiply_codes(3, 1, panels, zeros, at, lda, b, ldb, of, shifts, factors, c, ldc, groups, size)
        elif rows == 4:
            multiply_codes(4, 1, panels, zeros, at, lda, b, ldb, of, shifts, factors, c, ldc, groups, size)
        elif rows == 5:
            multiply_codes(5, 1, panels, zeros, at, lda, b, ldb, of, shifts, factors, c, ldc, groups, size)
        width = min(count * WIDTH, last - column)
        for row in range(rows):
            for j in range(width):
                out[row, column + j] = total[row, j]
        finish(address_of(out) + 4 * column, out.strides[0] // 4, rows, width, from_place(then, 0, column))
        column += width


@contracted
def unpack_rows(
    panels: np.ndarray, zeros: np.ndarray, scales: np.ndarray, panel: int, begin: int, end: int, depth: int,
    floats: np.ndarray,
) -> None:  # fmt: skip
    """Fill the first rows of ``floats`` with the numbers of the rows ``begin`` to ``end`` of a panel of ``depth``."""
    size, row = depth // scales.shape[1], begin
    shifts = np.empty(WIDTH, np.float32)
    while row < end:
        group = row // size
        count = min((group + 1) * size, end) - row
        for j in range(WIDTH):
            shifts[j] = zeros[panel, group, j]
        unpack_block(
            panels, address_of(panels) + panel * panels.strides[0] + row * panels.strides[1], address_of(shifts),
            address_of(scales) + panel * scales.strides[0] + group * scales.strides[1],
            address_of(floats) + (row - begin) * floats.strides[0], count,
        )  # fmt: skip
        row += count


@compiled
def _multiply_many(
    a: np.ndarray, panels: np.ndarray, zeros: np.ndarray, scales: np.ndarray, out: np.ndarray, start: int, then: Then,
    first: int, last: int,
) -> None:  # fmt: skip
    """Unpack a part of a panel at a time and multiply all rows with it, so that unpacking takes little of the time.

    See ``_multiply_few`` for the columns.
    """
    depth = a.shape[1]
    floats = np.empty((1, min(depth, _MAX_UNPACKED_FLOATS // WIDTH), WIDTH), np.float32)
    for column in range(first, last, WIDTH):
        panel, target = start + column // WIDTH, out[:, column : min(column + WIDTH, last)]
        for begin in range(0, depth, floats.shape[1]):
            end = min(begin + floats.shape[1], depth)
            unpack_rows(panels, zeros, scales, panel, begin, end, depth, floats[0])
            own = from_place(then, 0, column) if end == depth else AS_THEY_ARE
            multiply_panels(a[:, begin:end], floats[:, : end - begin], target, 0, own, begin > 0)


@compiled
def _multiply_part(
    a: np.ndarray, panels: np.ndarray, zeros: np.ndarray, scales: np.ndarray, out: np.ndarray, panel: int,
    by_rows: bool, bias: int, residual: int, apart: int, low: Number, high: Number, first: int, last: int,
) -> None:  # fmt: skip
    """Fill a part of ``out``: see ``panels.multiply_part``."""
    top, bottom, left, right = area(out, by_rows, first, last)
    then = from_place((bias, residual, apart, low, high), top, 0)
    if by_rows or len(a) >= ROWS:
        _multiply_many(a[top:bottom], panels, zeros, scales, out[top:bottom], panel, then, left, right)
    else:
        _multiply_few(a, panels, zeros, scales, out, panel, then, left, right)


class PackedCodes(Packed):
    """A constant matrix ``(codes - zeros) * scales`` in panels of ``WIDTH`` columns, the last of them padded.

    The codes are i8 or, two in a byte, unsigned numbers of 4 bits; u8 and i4 are shifted to these. Zeros and scales are
    [panels, groups, ``WIDTH``]: one for each column and group of consecutive rows. ``transposed`` packs the transposed
    matrix. A row of the other matrix is multiplied with the codes, and each sum over a group once with its scale, so
    that a product with few rows reads no more than the codes.
    """

    part = staticmethod(_multiply_part)
    shifts: ClassVar[Mapping[str, int]] = {"u8": -128, "i4": 8}
    """What is added to the codes of a type, and to their zeros, so that they are i8 or u4."""

    def __init__(self, source: Stored, transposed: bool) -> None:
        super().__init__(source)
        self.depth, self.columns = source.shape[::-1] if transposed else source.shape
        self.name = f"compiled, {source.type}"
        groups = group_count(source, transposed)
        zeros, scales = (
            _in_panels(np.full((1, 1), default, np.float32) if numbers is None else numbers, transposed, groups, self)
            for numbers, default in ((source.zeros, 0), (source.scales, 1))
        )
        shift = self.shifts.get(source.type.name, 0)
        zeros += shift
        small = zeros.astype(np.int8)
        self.zeros, self.scales = small if np.array_equal(small, zeros) else zeros, scales
        self.panels = self.pack(source, transposed, abs(shift))

    def pack(self, source: Stored, transposed: bool, flip: int) -> np.ndarray:
        """Return the codes in panels, each with the bits ``flip`` flipped."""
        count = -(-self.columns // WIDTH)
        if source.type.bits == 8:
            codes = source.raw.reshape(source.shape).T if transposed else source.raw.reshape(source.shape)
            panels = zero_panels(self.columns, self.depth, np.int8)
            for number, panel in enumerate(panels.view(np.uint8)):
                part = codes[:, number * WIDTH : (number + 1) * WIDTH]
                np.bitwise_xor(part, np.uint8(flip), panel[:, : part.shape[1]])
            return panels
        panels = lasting_zeros((count, self.depth, WIDTH // 2), np.uint8)
        down, across = (1, self.depth) if transposed else (self.columns, 1)
        _pack(source.raw, down, across, self.columns, flip, panels)
        return panels

    @classmethod
    def holds(cls, source: Stored, transposed: bool) -> bool:
        """Return whether the groups of the scales and of the zeros fit together, and are not too short."""
        depth = source.shape[1 if transposed else 0]
        return bool(groups := group_count(source, transposed)) and depth // groups >= _MIN_GROUP_ROWS

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.panels, self.zeros, self.scales
