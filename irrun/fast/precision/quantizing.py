"""Rows of f32 become rows of i8 in groups, a vector at a time: numba makes no vectors of loops from f32 to bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from irrun.fast.machine.emitting import FLOATS, INTS, at, called, equal, int64, looped, repeated
from irrun.fast.machine.late import array_at, emitted, ir, types
from irrun.fast.machine.memory import address_of, floats_at, words_at
from irrun.fast.machine.processor import VECTOR, compiled
from irrun.planning.groups import GROUP, LEAST_QUANTIZED, MOST_CODE

__all__ = ["largest_bits", "quantize_rows"]

_BYTES: Final = ir.VectorType(ir.IntType(8), VECTOR)
_SIZE: Final = 0x7FFFFFFF
_ROUND: Final = 1.5 * 2**23
"""A number that is so large that a sum with it is rounded to a whole number, halves to the even one."""
_ROUND_BITS: Final = 0x4B400000
"""Its bits: those of the sum are as much more as the whole number is."""
_HUGE_UNIT: Final = np.float32(2.0**90)
_HUGE_FACTOR: Final = np.float32(2.0**32)
"""A row with a unit above the first number is divided by the second one, and its products are multiplied by it."""


def _across(builder: Any, operation: str, vector: ir.Value) -> ir.Value:
    """Return the sum (``add``) or the maximum (``umax``) of the integers of a vector."""
    return called(builder, f"llvm.vector.reduce.{operation}.v{VECTOR}i32", ir.IntType(32), vector)


def _largest(context: Any, numbers: Any, count: Any) -> Any:
    """Return the largest bits, without their sign, of ``count`` f32 at an address, a multiple of ``VECTOR``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        numbers, count = arguments

        def step(index: ir.Value, most: Sequence[ir.Value]) -> list[ir.Value]:
            bits = builder.load(at(builder, numbers, builder.mul(index, int64(4)), INTS), align=4)
            size = builder.and_(bits, equal(INTS, _SIZE))
            return [builder.select(builder.icmp_unsigned(">", size, most[0]), size, most[0])]

        return _across(builder, "umax", *looped(builder, count, VECTOR, [equal(INTS, 0)], step))

    return types.uint32(types.int64, types.int64), generate


def _encode(context: Any, numbers: Any, codes: Any, count: Any, unit: Any) -> Any:
    """Store the codes of ``count`` f32, a multiple of ``VECTOR``, and return their sum.

    ``numbers`` and ``codes`` are addresses. A code is the whole number nearest to number / unit. That of NaN is 0.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        numbers, codes, count, unit = arguments
        units = repeated(builder, unit)

        def step(index: ir.Value, totals: Sequence[ir.Value]) -> list[ir.Value]:
            number = builder.load(at(builder, numbers, builder.mul(index, int64(4)), FLOATS), align=4)
            large = builder.fadd(builder.fdiv(number, units), equal(FLOATS, _ROUND))
            bits = builder.bitcast(large, INTS)
            builder.store(builder.trunc(bits, _BYTES), at(builder, codes, index, _BYTES), align=1)
            return [builder.add(totals[0], builder.sub(bits, equal(INTS, _ROUND_BITS)))]

        return _across(builder, "add", *looped(builder, count, VECTOR, [equal(INTS, 0)], step))

    return types.int32(*[types.int64] * 3, types.float32), generate


largest_bits: Final = cast(Callable[[int, int], Any], emitted(_largest))
_encode_at: Final = cast(Callable[[int, int, int, Any], Any], emitted(_encode))


@compiled
def quantize_rows(
    a: np.ndarray, codes: np.ndarray, units: np.ndarray, sums: np.ndarray, factors: np.ndarray, size: int
) -> None:
    """Quantize rows of f32 to i8 in groups.

    ``units`` holds the unit of each part of ``size`` numbers, and ``sums`` what the codes of each group of a matrix
    that they are multiplied by stand for, summed up. Both are divided by ``factors``, which are 1 except for rows of
    huge numbers, whose sums of products with codes might be infinite where those with codes - zeros are not.
    """
    rows, depth = a.shape
    each = units.shape[1] // sums.shape[1]
    group = GROUP if depth % GROUP == 0 else depth
    parts, whole, whole_size = group // size, group // VECTOR * VECTOR, size // VECTOR * VECTOR
    for n in range(rows):
        for k in range(sums.shape[1]):
            sums[n, k] = 0
        for first in range(0, depth, group):
            part = first // size
            place = address_of(a) + n * a.strides[0] + 4 * first
            bits, numbers = array_at(words_at(place), group), array_at(floats_at(place), group)
            most = np.uint32(largest_bits(place, whole))
            for k in range(whole, group):  # NaN exceeds every number
                most = max(most, np.uint32(bits[k] & np.uint32(_SIZE)))
            array_at(words_at(address_of(units) + n * units.strides[0] + 4 * part), 1)[0] = most
            largest = units[n, part]
            unit = np.float32(largest / np.float32(MOST_CODE))
            if not largest < np.float32(np.inf):
                unit = np.float32(np.nan)
            by = unit
            if not largest >= np.float32(LEAST_QUANTIZED):  # nothing, or no number
                unit, by = np.float32(0) if largest < np.float32(np.inf) else unit, np.float32(np.inf)
            for p in range(parts):
                begin = p * size
                total = np.int32(
                    _encode_at(
                        place + 4 * begin, address_of(codes) + n * codes.strides[0] + first + begin, whole_size, by
                    )
                )
                for k in range(begin + whole_size, begin + size):
                    code = np.int8(
                        np.int32(np.float32(np.float32(numbers[k] / by) + np.float32(_ROUND)).view(np.int32))
                    )
                    codes[n, first + k] = code
                    total += np.int32(code)
                units[n, part + p] = unit
                sums[n, (part + p) // each] += np.float32(total) * unit
        largest = np.float32(0)
        for part in range(units.shape[1]):
            largest = max(largest, units[n, part])
        factors[n] = _HUGE_FACTOR if largest > _HUGE_UNIT else np.float32(1)
        if largest > _HUGE_UNIT:
            for part in range(units.shape[1]):
                units[n, part] /= _HUGE_FACTOR
            for k in range(sums.shape[1]):
                sums[n, k] /= _HUGE_FACTOR
