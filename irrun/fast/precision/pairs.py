"""Pairs of bf16, made of numbers of f32 or of integer codes, as LLVM code.

See ``irrun.kernels.cast.rounded_to_bf16`` for the rounding. A pair is 32 bits. The first number of it is in the lower
half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from irrun.fast.block import FORMS, WIDTH, row_bytes, widened
from irrun.fast.machine.emitting import FLOATS, INTS, at, called, equal, int64, load_lanes, looped, mask_of, store_lanes
from irrun.fast.machine.late import cgutils, emitted, ir, types
from irrun.fast.machine.processor import VECTOR, has

__all__ = ["GROUP", "SHORTS", "SPLIT", "in_bf16", "interleave", "neighbours", "round_codes", "round_row", "split_row"]

GROUP: Final = 2 * VECTOR
"""The numbers of a vector of pairs."""
SHORTS: Final = ir.VectorType(ir.IntType(16), VECTOR)
"""A vector of bf16."""
_BOTH: Final = ir.VectorType(ir.IntType(16), GROUP)


def in_bf16(builder: Any, vector: ir.Value) -> ir.Value:
    """Return a vector of f32 rounded to bf16, as i16."""
    if has("avx512bf16"):
        return called(builder, f"llvm.x86.avx512bf16.cvtneps2bf16.{32 * VECTOR}", SHORTS, vector)
    bits = builder.bitcast(vector, INTS)
    size = builder.and_(bits, equal(INTS, 0x7FFFFFFF))
    is_odd = builder.and_(builder.lshr(bits, equal(INTS, 16)), equal(INTS, 1))
    up = builder.add(bits, builder.add(is_odd, equal(INTS, 0x7FFF)))
    is_nan = builder.icmp_signed(">", size, equal(INTS, 0x7F800000))
    up = builder.select(is_nan, builder.or_(bits, equal(INTS, 0x400000)), up)
    is_subnormal = builder.icmp_signed("<", size, equal(INTS, 0x800000))
    up = builder.select(is_subnormal, builder.and_(bits, equal(INTS, 0x80000000)), up)
    return builder.trunc(builder.lshr(up, equal(INTS, 16)), SHORTS)


def neighbours(builder: Any, first: ir.Value, second: ir.Value) -> ir.Value:
    """Return the pairs of neighbours, i32, in ``VECTOR`` numbers and in so many after them."""
    if has("avx512bf16"):
        name = f"llvm.x86.avx512bf16.cvtne2ps2bf16.{32 * VECTOR}"
        return builder.bitcast(called(builder, name, _BOTH, second, first), INTS)
    halves = [in_bf16(builder, vector) for vector in (first, second)]
    order = ir.Constant(ir.VectorType(ir.IntType(32), GROUP), [*range(GROUP)])
    return builder.bitcast(builder.shuffle_vector(*halves, order), INTS)


def _paired(builder: Any, first: ir.Value, second: ir.Value) -> ir.Value:
    """Return pairs, i32, each of a number of the first vector of f32 and the one of the second in the same place."""
    if has("avx512bf16"):
        both = builder.bitcast(neighbours(builder, first, second), _BOTH)
        places = [place for n in range(VECTOR) for place in (n, VECTOR + n)]
        order = ir.Constant(ir.VectorType(ir.IntType(32), GROUP), places)
        return builder.bitcast(builder.shuffle_vector(both, both, order), INTS)
    low, high = (builder.zext(in_bf16(builder, vector), INTS) for vector in (first, second))
    return builder.or_(low, builder.shl(high, equal(INTS, 16)))


def _round_row(context: Any, source: Any, target: Any, count: Any) -> Any:
    """Store ``count`` f32 as bf16, two bytes each. ``source`` and ``target`` are addresses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        source, target, count = arguments
        groups, rest = (operation(count, int64(GROUP)) for operation in (builder.sdiv, builder.srem))

        def places(group: ir.Value, stored: ir.Type) -> tuple[list[ir.Value], ir.Value]:
            begin, into = (builder.mul(group, int64(size * GROUP)) for size in (4, 2))
            begin = builder.add(source, begin)
            return [at(builder, begin, int64(4 * n), FLOATS) for n in (0, VECTOR)], at(builder, target, into, stored)

        with cgutils.for_range(builder, groups) as loop:
            read, written = places(loop.index, INTS)
            builder.store(neighbours(builder, *(builder.load(place, align=4) for place in read)), written, align=2)
        with builder.if_then(builder.icmp_signed(">", rest, int64(0))):
            read, written = places(groups, _BOTH)
            masks = (mask_of(builder, builder.sub(rest, int64(n))) for n in (0, VECTOR))
            pairs = neighbours(builder, *(load_lanes(builder, place, mask, 4) for place, mask in zip(read, masks)))
            store_lanes(builder, builder.bitcast(pairs, _BOTH), written, mask_of(builder, rest, GROUP), 2)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3), generate


round_row: Final[Callable[..., None]] = emitted(_round_row)


SPLIT: Final = 3
"""The numbers of bf16 for a number that is split: the nearest one, the rest, and the nearest one again."""


def _split_row(context: Any, source: Any, target: Any, count: Any) -> Any:
    """Store ``SPLIT`` numbers of bf16 for each of ``count`` f32, and zeros for the last of ``GROUP`` of these.

    ``source`` and ``target`` are addresses. Return whether all numbers of bf16 are finite.
    """
    order = ir.Constant(
        ir.VectorType(ir.IntType(32), SPLIT * VECTOR), [n + VECTOR * k for n in range(VECTOR) for k in (0, 1, 0)]
    )

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        source, target, count = arguments

        def step(index: ir.Value, most: Sequence[ir.Value]) -> list[ir.Value]:
            mask = mask_of(builder, builder.trunc(builder.sub(count, index), ir.IntType(32)))
            number = load_lanes(builder, at(builder, source, builder.mul(index, int64(4)), FLOATS), mask, 4)
            first = in_bf16(builder, number)
            bits = builder.shl(builder.zext(first, INTS), equal(INTS, 16))
            second = in_bf16(builder, builder.fsub(number, builder.bitcast(bits, FLOATS)))
            three = builder.shuffle_vector(first, second, order)
            builder.store(three, at(builder, target, builder.mul(index, int64(2 * SPLIT)), three.type), align=2)
            size = builder.and_(bits, equal(INTS, 0x7FFFFFFF))
            return [builder.select(builder.icmp_signed(">", size, most[0]), size, most[0])]

        (most,) = looped(builder, count, VECTOR, [equal(INTS, 0)], step)
        size = called(builder, f"llvm.vector.reduce.smax.v{VECTOR}i32", INTS.element, most)
        return builder.icmp_signed("<", size, ir.Constant(INTS.element, 0x7F800000))

    return types.boolean(*[types.int64] * 3), generate


split_row: Final = cast(Callable[[int, int, int], bool], emitted(_split_row))


def _interleave(context: Any, first: Any, second: Any, target: Any) -> Any:
    """Store a vector of pairs, each of a number at the address ``first`` and one at ``second``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        *sources, target = arguments
        vectors = (builder.load(at(builder, source, int64(0), FLOATS), align=4) for source in sources)
        builder.store(_paired(builder, *vectors), at(builder, target, int64(0), INTS), align=4)
        return context.get_dummy_value()

    return types.void(first, second, target), generate


interleave: Final[Callable[..., None]] = emitted(_interleave)


def _round_codes(
    context: Any, weights: Any, zeros: Any, b: Any, shifts: Any, scales: Any, c: Any, depth: Any
) -> Any:  # fmt: skip
    """Store ``(codes - zeros) * scales``, rounded to bf16, in ``c``: u32 [depth / 2, WIDTH], pairs of two rows each.

    The dtypes of the arrays ``weights`` and ``zeros`` say how codes and zeros are stored. ``depth`` is even. See
    ``block.unpack_block`` for the other parameters.
    """
    form, zero_form = FORMS[weights.dtype.name], FORMS[zeros.dtype.name]

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _, _, b, shifts, scales, c, depth = arguments
        numbers = widened(builder, zero_form, shifts), widened(builder, FORMS["float32"], scales)
        with cgutils.for_range_slice(builder, int64(0), depth, int64(2)) as (row, _):
            begin = builder.add(b, builder.mul(row, int64(row_bytes(form))))
            rows = [widened(builder, form, builder.add(begin, int64(n * row_bytes(form)))) for n in range(2)]
            into = builder.add(c, builder.mul(row, int64(2 * WIDTH)))
            for n, (first, second, zero, factor) in enumerate(zip(*rows, *numbers)):
                both = (builder.fmul(builder.fsub(code, zero), factor) for code in (first, second))
                builder.store(_paired(builder, *both), at(builder, into, int64(4 * VECTOR * n), INTS), align=4)
        return context.get_dummy_value()

    return types.void(weights, zeros, b, shifts, scales, c, depth), generate


round_codes: Final[Callable[..., None]] = emitted(_round_codes)
