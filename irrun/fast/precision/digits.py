"""Products of rows of f32 with a constant matrix of integer codes, in integers.

A number of a row is a whole number of 24 bits times the unit of its group. Three digits of 8 bits make the whole
number, and a row of f32 is three rows of i8, whose products with codes are exact. An instruction multiplies 64 bytes,
so that a product takes half the time of one in f32, for which codes are unpacked. A row in which few numbers are far
larger than the others is the sum of two such rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any, Final, cast

import numpy as np

from irrun.fast.codes import group_count
from irrun.fast.functions import Number, contracted
from irrun.fast.integers.dots import BYTES, DOT
from irrun.fast.machine.emitting import FLOATS, INTS, at, called, equal, int64, looped, nearest, repeated
from irrun.fast.machine.late import array_at, emitted, ir, types
from irrun.fast.machine.memory import address_of, row_at, words_at
from irrun.fast.machine.processor import VECTOR, compiled
from irrun.fast.panels import WIDTH, area, finish, from_place
from irrun.fast.precision.codes_block import multiply_quantized
from irrun.fast.precision.i8 import QuantizedCodes
from irrun.fast.precision.quantizing import largest_bits
from irrun.opdef import Stored

__all__ = ["DigitCodes"]

DIGITS: Final = 3
"""Digits of a number: the highest first, each from -128 to 127."""
_TWO_ROWS: Final = 2 * DIGITS
MAX_THREES: Final = 4
"""The most rows of three digits for a row in which most numbers are far below the largest."""
_MAX_SIZE: Final = 256
"""The most numbers with one unit: a sum of so many products of a digit and a code is a number of f32."""
_MAX_ROWS: Final = 48
"""Rows whose digits are in the second-level cache at once."""
_HIGHEST_BITS: Final = (127 + 90) << 23
"""The bits of 2^90. With larger numbers, and with NaN, a product is computed in f32."""
_LOWEST_BITS: Final = (127 - 60) << 23
"""The bits of 2^-60. A row whose numbers are all smaller is computed in f32, too, if there is any but 0."""
_LEAST_EXPONENT: Final = 127 - 87
"""The exponent of a group whose digits are 0, because all are that small beside the largest number of their row."""
_FAR: Final = 8 << 23
"""Bits between the largest number of a part and those that are far from it: below its 256th."""
_NEAR: Final = 3 << 23
"""Bits between the largest number of a part and those that share a unit with it where others do not: its eighth."""
_SIZE: Final = np.uint32(0x7FFFFFFF)
_NOTHING: Final = np.uint32(0)
_TOP: Final = 0x10101
"""What carries the bits of a number into the next exponent if its first digit would be 128."""

_DIGITS: Final = ir.VectorType(ir.IntType(8), VECTOR)


def _split(context: Any, numbers: Any, digits: Any, apart: Any, count: Any, factor: Any, sums: Any) -> Any:
    """Store the digits of ``count`` f32, a multiple of ``VECTOR``, times ``factor``, and three sums of them, in i32.

    All but ``apart``, ``count`` and ``factor`` are addresses. Those of the next digits are ``apart`` bytes further.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        numbers, digits, apart, count, factor, sums = arguments
        factors = repeated(builder, factor)

        def step(index: ir.Value, totals: Sequence[ir.Value]) -> list[ir.Value]:
            number = builder.load(at(builder, numbers, builder.mul(index, int64(4)), FLOATS), align=4)
            left, added = builder.fptosi(nearest(builder, builder.fmul(number, factors)), INTS), [*totals]
            for n in reversed(range(DIGITS)):
                digit = builder.trunc(left, _DIGITS)
                place = builder.add(digits, builder.mul(apart, int64(n)))
                builder.store(digit, at(builder, place, index, _DIGITS), align=1)
                added[n] = builder.add(totals[n], builder.sext(digit, INTS))
                left = builder.ashr(builder.add(left, equal(INTS, 128)), equal(INTS, 8))
            return added

        for n, total in enumerate(looped(builder, count, VECTOR, [equal(INTS, 0)] * DIGITS, step)):
            whole = called(builder, f"llvm.vector.reduce.add.v{VECTOR}i32", ir.IntType(32), total)
            number = builder.sitofp(whole, ir.FloatType())
            builder.store(number, at(builder, sums, int64(4 * n), ir.FloatType()), align=4)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4, types.float32, types.int64), generate


_split_at: Final = cast(Callable[[int, int, int, int, Any, int], None], emitted(_split))


@contracted
def _fits(place: int, depth: int) -> bool:
    """Return whether the numbers of the row of f32 at ``place`` are neither too large nor all too small."""
    most = np.uint32(largest_bits(place, depth))
    return bool(most == 0 or _LOWEST_BITS <= most < _HIGHEST_BITS)


@contracted
def _is_uneven(place: int, depth: int, size: int) -> bool:
    """Return whether most numbers of a part are far below the largest of it, whose unit would be too large for them."""
    for begin in range(place, place + 4 * depth, 4 * size):
        least = np.int32(largest_bits(begin, size)) - np.int32(_FAR)
        near = some = np.int32(0)
        words = array_at(words_at(begin), size)
        for k in range(size):
            bits = np.int32(words[k] & _SIZE)
            near += bits >= least
            some += bits > 0
        if 4 * near < some:
            return True
    return False


@contracted
def _part_largest(place: int, size: int, large: np.ndarray, rest: np.ndarray) -> None:
    """Fill two rows, whose sum is the row at ``place``: the numbers near the largest of their part, and the others.

    ``rest`` may be the row itself.
    """
    for first in range(0, len(rest), size):
        least = np.int32(largest_bits(place + 4 * first, size)) - np.int32(_NEAR)
        words = array_at(words_at(place + 4 * first), size)
        for k in range(size):
            word = words[k]
            is_near = np.int32(word & _SIZE) >= least
            large[first + k] = word if is_near else _NOTHING
            rest[first + k] = _NOTHING if is_near else word


@contracted
def _split_row(
    place: int, depth: int, digits: np.ndarray, units: np.ndarray, sums: np.ndarray, row: int, size: int,
    totals: np.ndarray,
) -> None:  # fmt: skip
    """Fill three rows of digits, of their units and of their sums, from ``row`` on, for the row at ``place``."""
    each = units.shape[1] // sums.shape[1]
    for digit in range(DIGITS):
        for k in range(sums.shape[1]):
            sums[row + digit, k] = 0
    for part in range(units.shape[1]):
        begin = place + 4 * part * size
        exponent = (np.int32(largest_bits(begin, size)) + np.int32(_TOP)) >> 23
        factor = unit = np.float32(0)
        if exponent > _LEAST_EXPONENT:
            factor = np.int32((127 + 127 + 22 - exponent) << 23).view(np.float32)
            unit = np.int32((exponent - 22) << 23).view(np.float32)
        _split_at(
            begin, address_of(digits) + row * digits.strides[0] + part * size, digits.strides[0], size, factor,
            address_of(totals),
        )  # fmt: skip
        for digit in range(DIGITS - 1, -1, -1):
            units[row + digit, part] = unit
            sums[row + digit, part // each] += totals[digit] * unit
            unit *= np.float32(256)


@compiled
def split_rows(
    a: np.ndarray, digits: np.ndarray, units: np.ndarray, sums: np.ndarray, rows_of: np.ndarray, size: int
) -> int:
    """Split rows of f32 into rows of digits in i8: three for each row, or up to ``MAX_THREES`` times as many.

    ``units`` holds the unit of each digit of a part of ``size`` numbers, and ``sums`` what the digits of each group of
    a matrix that they are multiplied by stand for, summed up. ``rows_of`` says whose row three rows of digits are.
    Returns how many threes there are: none of a row that ``_multiply_plainly`` has to multiply.
    """
    rows, depth = a.shape
    totals, held, count = np.empty(DIGITS, np.float32), np.empty((2, depth), np.uint32), 0
    large, rest = held[0], held[1]
    for n in range(rows):
        place, begin = address_of(a) + n * a.strides[0], count
        while _fits(place, depth) and count < begin + MAX_THREES:
            rows_of[count] = n
            count += 1
            if not _is_uneven(place, depth, size):
                _split_row(place, depth, digits, units, sums, DIGITS * (count - 1), size, totals)
                break
            _part_largest(place, size, large, rest)
            _split_row(address_of(large), depth, digits, units, sums, DIGITS * (count - 1), size, totals)
            place = address_of(rest)
        else:
            count = begin
    return count


@contracted
def _multiply_plainly(
    a: np.ndarray, panels: np.ndarray, zeros: np.ndarray, scales: np.ndarray, out: np.ndarray, panel: int, first: int,
    last: int,
) -> None:  # fmt: skip
    """Fill the columns ``first`` to ``last`` of a row of a product: see ``_multiply_part``. It takes long."""
    depth, words, groups = a.size, panels.shape[1], scales.shape[1]
    share = depth // words
    for column in range(first, last):
        number, j = panel + column // WIDTH, column % WIDTH
        total = np.float32(0)
        for k in range(depth):
            group = k * groups // depth
            code = np.int32(panels[number, k // share, BYTES * j + k % BYTES])
            if share > BYTES:
                code = code >> (4 * (k % share // BYTES)) & 15
            elif _UNSIGNED:
                code &= 255
            total += a[k] * ((np.float32(code) - zeros[number, group, j]) * scales[number, group, j])
        out[column] = total


_UNSIGNED: Final = DOT is not None and not DOT.offset


@compiled
def _multiply_part(
    a: np.ndarray, panels: np.ndarray, zeros: np.ndarray, scales: np.ndarray, sizes: np.ndarray, out: np.ndarray,
    panel: int, by_rows: bool, bias: int, residual: int, apart: int, low: Number, high: Number, first: int, last: int,
) -> None:  # fmt: skip
    """Fill a part of ``out``: see ``panels.multiply_part``. ``sizes[0]`` numbers of a row have one unit."""
    begin, end, left, right = area(out, by_rows, first, last)
    depth, groups, size = a.shape[1], scales.shape[1], sizes[0]
    parts, then = depth // groups // size, (bias, residual, apart, low, high)
    most = min(end - begin, _MAX_ROWS)
    threes = MAX_THREES * most
    digits = np.empty((DIGITS * threes, depth), np.int8)
    units = np.empty((DIGITS * threes, groups * parts), np.float32)
    sums, rows_of = np.empty((DIGITS * threes, groups), np.float32), np.empty(threes, np.int64)
    found = np.empty((_TWO_ROWS, WIDTH), np.float32)
    ldb = panels.strides[0]
    for top in range(begin, end, most):
        height = min(most, end - top)
        count = split_rows(a[top : top + height], digits, units, sums, rows_of, size)
        for column in range(left, right, WIDTH):
            number, width = panel + column // WIDTH, min(WIDTH, right - column)
            b = address_of(panels) + number * ldb
            shifts = address_of(zeros) + number * zeros.strides[0]
            factors = address_of(scales) + number * scales.strides[0]
            for three in range(0, count, 2):
                of = address_of(digits) + DIGITS * three * depth
                unit = address_of(units) + DIGITS * three * units.strides[0]
                sum = address_of(sums) + DIGITS * three * sums.strides[0]
                some, c = min(2, count - three), address_of(found)  # numba frees an array after its last use
                if some == 2:
                    multiply_quantized(
                        _TWO_ROWS, 1, panels, zeros, of, depth, unit, sum, b, ldb, shifts, factors, c, WIDTH, groups,
                        parts, size,
                    )  # fmt: skip
                else:
                    multiply_quantized(
                        DIGITS, 1, panels, zeros, of, depth, unit, sum, b, ldb, shifts, factors, c, WIDTH, groups,
                        parts, size,
                    )  # fmt: skip
                for i in range(some):
                    row = rows_of[three + i]
                    filled = row_at(address_of(out) + (top + row) * out.strides[0] + 4 * column, width)
                    source = c + 4 * DIGITS * i * WIDTH
                    highest, middle, lowest = (
                        row_at(source, width), row_at(source + 4 * WIDTH, width), row_at(source + 8 * WIDTH, width)
                    )  # fmt: skip
                    if three + i > 0 and rows_of[three + i - 1] == row:
                        for j in range(width):
                            filled[j] += highest[j] + (middle[j] + lowest[j])
                    else:
                        for j in range(width):
                            filled[j] = highest[j] + (middle[j] + lowest[j])
        three = 0
        for row in range(height):
            if three < count and rows_of[three] == row:
                while three < count and rows_of[three] == row:
                    three += 1
            else:
                _multiply_plainly(a[top + row], panels, zeros, scales, out[top + row], panel, left, right)
    place = address_of(out) + begin * out.strides[0] + 4 * left
    finish(place, out.strides[0] // 4, end - begin, right - left, from_place(then, begin, left))


class DigitCodes(QuantizedCodes):
    """A matrix of codes by which rows of f32 are multiplied, each of them split into three rows of i8."""

    part = staticmethod(_multiply_part)

    def __init__(self, source: Stored, transposed: bool) -> None:
        super().__init__(source, transposed)
        self.name = f"compiled, {source.type}"

    @staticmethod
    def size_of(depth: int, groups: int) -> int:
        """Return how many numbers have one unit: a group of the matrix, or a part of it."""
        each = depth // groups
        return each if each <= _MAX_SIZE else gcd(each, _MAX_SIZE)

    @classmethod
    def holds(cls, source: Stored, transposed: bool) -> bool:
        """Return whether an instruction adds four products at once, and vectors divide what has one unit."""
        is_fast = DOT is not None and DOT.products == BYTES
        if not is_fast or not super().holds(source, transposed):
            return False
        return cls.size_of(source.shape[1 if transposed else 0], group_count(source, transposed)) % VECTOR == 0
