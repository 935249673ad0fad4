"""Products of rows that are quantized to i8 in groups with a constant matrix of integer codes.

Products and sums of a group are exact, in i32: each group costs one multiplication by the unit of the row and the
scale of the matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import ClassVar, Final

import numpy as np

from irrun.fast.codes import PackedCodes, group_count, nibble
from irrun.fast.functions import Number
from irrun.fast.integers.dots import BYTES, DOT
from irrun.fast.machine.memory import address_of
from irrun.fast.machine.processor import ROWS, compiled
from irrun.fast.panels import MAX_CACHED_ROWS, WIDTH, area, finish, from_place, zero_panels
from irrun.fast.precision.codes_block import multiply_quantized
from irrun.fast.precision.quantizing import quantize_rows
from irrun.opdef import Stored
from irrun.planning.groups import GROUP

__all__ = ["QuantizedCodes"]

_WORD: Final[Mapping[int, int]] = {8: BYTES, 4: 2 * BYTES}
"""Codes of a column that a kernel reads at once, by their bits."""


@compiled
def _multiply_part(
    a: np.ndarray, panels: np.ndarray, zeros: np.ndarray, scales: np.ndarray, sizes: np.ndarray, out: np.ndarray,
    panel: int, by_rows: bool, bias: int, residual: int, apart: int, low: Number, high: Number, first: int, last: int,
) -> None:  # fmt: skip
    """Fill a part of ``out``: see ``panels.multiply_part``. ``sizes[0]`` numbers of a row have one unit."""
    begin, end, left, right = area(out, by_rows, first, last)
    depth, groups, size = a.shape[1], scales.shape[1], sizes[0]
    parts, then = depth // groups // size, (bias, residual, apart, low, high)
    most = min(end - begin, MAX_CACHED_ROWS)
    codes = np.empty((most, depth), np.int8)
    units = np.empty((most, groups * parts), np.float32)
    sums = np.empty((most, groups), np.float32)
    powers = np.empty(most, np.float32)
    edge = np.empty((ROWS, WIDTH), np.float32)
    ldb = panels.strides[0]
    for top in range(begin, end, MAX_CACHED_ROWS):
        height = min(MAX_CACHED_ROWS, end - top)
        quantize_rows(a[top : top + height], codes, units, sums, powers, size)
        for column in range(left, right, WIDTH):
            at = panel + column // WIDTH
            b = address_of(panels) + at * ldb
            shifts = address_of(zeros) + at * zeros.strides[0]
            factors = address_of(scales) + at * scales.strides[0]
            width = min(WIDTH, right - column)
            is_whole = width == WIDTH
            for row in range(0, height, ROWS):
                some = min(ROWS, height - row)
                of, unit, sum = (
                    address_of(codes) + row * depth,
                    address_of(units) + row * units.strides[0],
                    address_of(sums) + row * sums.strides[0],
                )
                place = address_of(out) + (top + row) * out.strides[0] + 4 * column
                c, ldc = (place, out.strides[0] // 4) if is_whole else (address_of(edge), WIDTH)
                if some == 1:
                    multiply_quantized(
                        1, 1, panels, zeros, of, depth, unit, sum, b, ldb, shifts, factors, c, ldc, groups, parts, size
                    )
                elif some == 2:
                    multiply_quantized(
                        2, 1, panels, zeros, of, depth, unit, sum, b, ldb, shifts, factors, c, ldc, groups, parts, size
                    )
                elif some == 3:
                    multiply_quantized(
                        3, 1, panels, zeros, of, depth, unit, sum, b, ldb, shifts, factors, c, ldc, groups, parts, size
                    )
                elif some == 4:
                    multiply_quantized(
                        4, 1, panels, zeros, of, depth, unit, sum, b, ldb, shifts, factors, c, ldc, groups, parts, size
                    )
                elif some == 5:
                    multiply_quantized(
                        5, 1, panels, zeros, of, depth, unit, sum, b, ldb, shifts, factors, c, ldc, groups, parts, size
                    )
                else:
                    multiply_quantized(
                        6, 1, panels, zeros, of, depth, unit, sum, b, ldb, shifts, factors, c, ldc, groups, parts, size
                    )
                for i in range(0 if is_whole else some):
                    for j in range(width):
                        out[top + row + i, column + j] = edge[i, j]
                for i in range(some):
                    if powers[row + i] > 1:
                        for j in range(width):
                            out[top + row + i, column + j] *= powers[row + i]
                finish(place, out.strides[0] // 4, some, width, from_place(then, top + row, column))


@compiled
def _pack_words(raw: np.ndarray, down: int, across: int, columns: int, flip: int, panels: np.ndarray) -> None:
    """Pack codes of 4 bits, which lie ``down`` and ``across`` codes apart along a column and along a row.

    ``panels`` are [panels, words, columns, 4]. A word holds eight codes of a column: the first four of them in the low
    bits of its bytes.
    """
    count, words, width, _ = panels.shape
    for panel in range(count):
        for word in range(words):
            for j in range(min(width, columns - panel * width)):
                place = (panel * width + j) * across + 8 * word * down
                for n in range(4):
                    low = nibble(raw, place + n * down) ^ flip
                    panels[panel, word, j, n] = low | (nibble(raw, place + (n + 4) * down) ^ flip) << 4


class QuantizedCodes(PackedCodes):
    """A matrix of codes by which rows of i8 are multiplied.

    Panels hold words of four codes of 8 bits of a column, or eight codes of 4 bits. The codes are unsigned, but signed
    for an instruction that takes signed bytes alone.
    """

    part = staticmethod(_multiply_part)
    shifts: ClassVar[Mapping[str, int]] = {"i4": 8, **({"u8": -128} if DOT is not None and DOT.offset else {"i8": 128})}

    def __init__(self, source: Stored, transposed: bool) -> None:
        super().__init__(source, transposed)
        self.name += " times i8"
        self.size = np.array([self.size_of(self.depth, group_count(source, transposed))])

    @staticmethod
    def size_of(depth: int, groups: int) -> int:
        """Return how many numbers have one unit and one scale: they are in one group of rows and of the matrix."""
        return gcd(GROUP if depth % GROUP == 0 else depth, depth // groups)

    @classmethod
    def holds(cls, source: Stored, transposed: bool) -> bool:
        """Return whether the processor multiplies bytes, and words of codes divide the groups of the matrix."""
        groups, depth = group_count(source, transposed), source.shape[1 if transposed else 0]
        return DOT is not None and depth > 0 < groups and cls.size_of(depth, groups) % _WORD[source.type.bits] == 0

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return *super().arrays, self.size

    def pack(self, source: Stored, transposed: bool, flip: int) -> np.ndarray:
        count, word = -(-self.columns // WIDTH), _WORD[source.type.bits]
        held = zero_panels(self.columns, self.depth // word, np.int32)
        panels = held.view(np.int8 if word == BYTES else np.uint8).reshape(count, -1, WIDTH, BYTES)
        if word == BYTES:
            codes = source.raw.reshape(source.shape).T if transposed else source.raw.reshape(source.shape)
            for number, panel in enumerate(panels.view(np.uint8)):
                part = codes[:, number * WIDTH : (number + 1) * WIDTH].reshape(self.depth // word, word, -1)
                np.bitwise_xor(part.transpose(0, 2, 1), np.uint8(flip), panel[:, : part.shape[2]])
        else:
            down, across = (1, self.depth) if transposed else (self.columns, 1)
            _pack_words(source.raw, down, across, self.columns, flip, panels)
        return panels.reshape(count, -1, BYTES * WIDTH)
