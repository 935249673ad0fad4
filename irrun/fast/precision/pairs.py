"""Vectors of f32 as pairs of bf16, as LLVM code: see ``irrun.kernels.cast.rounded_to_bf16`` for the rounding.

A pair is 32 bits. The first number of it is in the lower half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from irrun.fast.block import FORMS, at, int64
from irrun.fast.machine.late import cgutils, emitted, ir, types
from irrun.fast.machine.processor import VECTOR, has

__all__ = ["GROUP", "interleave", "neighbours", "round_groups"]

GROUP: Final = 2 * VECTOR
"""The numbers of a vector of pairs."""
_FLOATS: Final = FORMS["float32"].stored
_INTS: Final = FORMS["uint32"].stored
_SHORTS: Final = FORMS["int16"].stored


def _numbers(number: int) -> ir.Constant:
    return ir.Constant(_INTS, [number] * VECTOR)


def _native(builder: Any, name: str, result: ir.Type, *vectors: ir.Value) -> ir.Value:
    """Call an instruction for bf16."""
    kind = ir.FunctionType(result, [_FLOATS] * len(vectors))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.avx512bf16.{name}.{32 * VECTOR}")
    return builder.call(function, vectors)


def _rounded(builder: Any, vector: ir.Value) -> ir.Value:
    """Return a vector in bf16, as i16."""
    if has("avx512bf16"):
        return _native(builder, "cvtneps2bf16", _SHORTS, vector)
    bits = builder.bitcast(vector, _INTS)
    size = builder.and_(bits, _numbers(0x7FFFFFFF))
    odd = builder.and_(builder.lshr(bits, _numbers(16)), _numbers(1))
    up = builder.add(bits, builder.add(odd, _numbers(0x7FFF)))
    is_nan = builder.icmp_signed(">", size, _numbers(0x7F800000))
    up = builder.select(is_nan, builder.or_(bits, _numbers(0x400000)), up)
    is_subnormal = builder.icmp_signed("<", size, _numbers(0x800000))
    up = builder.select(is_subnormal, builder.and_(bits, _numbers(0x80000000)), up)
    return builder.trunc(builder.lshr(up, _numbers(16)), _SHORTS)


def neighbours(builder: Any, first: ir.Value, second: ir.Value) -> ir.Value:
    """Return the pairs of neighbours, i32, in ``VECTOR`` numbers and in so many after them."""
    both = ir.VectorType(ir.IntType(16), GROUP)
    if has("avx512bf16"):
        return builder.bitcast(_native(builder, "cvtne2ps2bf16", both, second, first), _INTS)
    halves = [_rounded(builder, vector) for vector in (first, second)]
    order = ir.Constant(ir.VectorType(ir.IntType(32), GROUP), [*range(GROUP)])
    return builder.bitcast(builder.shuffle_vector(*halves, order), _INTS)


def _round_groups(context: Any, source: Any, target: Any, count: Any) -> Any:
    """Store ``count`` vectors of pairs of neighbouring f32. ``source`` and ``target`` are addresses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        source, target, count = arguments
        with cgutils.for_range(builder, count) as loop:
            begin = builder.add(source, builder.mul(loop.index, int64(4 * GROUP)))
            vectors = [builder.load(at(builder, begin, int64(4 * n), _FLOATS), align=4) for n in (0, VECTOR)]
            place = at(builder, target, builder.mul(loop.index, int64(4 * VECTOR)), _INTS)
            builder.store(neighbours(builder, *vectors), place, align=4)
        return context.get_dummy_value()

    return types.void(source, target, count), generate


round_groups: Final[Callable[..., None]] = emitted(_round_groups)


def _interleave(context: Any, first: Any, second: Any, target: Any) -> Any:
    """Store a vector of pairs, each of a number at the address ``first`` and one at ``second``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        *sources, target = arguments
        vectors = [builder.load(at(builder, source, int64(0), _FLOATS), align=4) for source in sources]
        low, high = (builder.zext(_rounded(builder, vector), _INTS) for vector in vectors)
        pairs = builder.or_(low, builder.shl(high, _numbers(16)))
        builder.store(pairs, at(builder, target, int64(0), _INTS), align=4)
        return context.get_dummy_value()

    return types.void(first, second, target), generate


interleave: Final[Callable[..., None]] = emitted(_interleave)
