"""Numbers become levels a vector at a time, as LLVM code: numba makes no vectors of loops from f32 to bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from irrun.fast.integers.block import as_bytes
from irrun.fast.machine.emitting import FLOATS, INTS, at, equal, fused, int64, repeated
from irrun.fast.machine.late import cgutils, emitted, ir, types
from irrun.fast.machine.processor import VECTOR

__all__ = ["encode_planes", "encode_row"]

_F32: Final = ir.FloatType()
_I32: Final = ir.IntType(32)
_BYTES: Final = ir.VectorType(ir.IntType(8), VECTOR)


def _encode_row(context: Any, data: Any, levels: Any, count: Any, scale: Any, shift: Any, top: Any) -> Any:
    """Store the levels of ``count`` f32, a multiple of ``VECTOR``. Each has a factor and an addend.

    All but ``count`` and ``top``, the highest level, are addresses. NaN becomes 0.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        data, levels, count, scale, shift, top = arguments
        with cgutils.for_range_slice(builder, int64(0), count, int64(VECTOR)) as (c, _):
            offset = builder.mul(c, int64(4))
            x, factor, addend = (
                builder.load(at(builder, place, offset, FLOATS), align=4) for place in (data, scale, shift)
            )
            level = as_bytes(builder, _placed(builder, x, factor, addend, repeated(builder, top)))
            builder.store(level, at(builder, levels, c, _BYTES), align=1)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5, types.float32), generate


encode_row: Final[Callable[..., None]] = emitted(_encode_row)


def _encode_planes(
    context: Any,
    data: Any,
    apart: Any,
    planes: Any,
    levels: Any,
    width: Any,
    count: Any,
    scale: Any,
    shift: Any,
    top: Any,
) -> Any:
    """Store the levels of ``count`` pixels, a multiple of ``VECTOR``, with up to four channels each.

    ``data`` is the address of f32, whose ``planes`` channels are ``apart`` bytes apart. The levels of a pixel are four
    bytes, those of the next one ``width`` bytes further. Each channel has a factor and an addend.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        data, apart, planes, levels, width, count, scale, shift, top = arguments
        word = cgutils.alloca_once(builder, INTS)
        is_dense = builder.icmp_signed("==", width, int64(4))
        with cgutils.for_range_slice(builder, int64(0), count, int64(VECTOR)) as (pixel, _):
            builder.store(equal(INTS, 0), word)
            with cgutils.for_range(builder, planes) as plane:
                begin = builder.add(data, builder.mul(plane.index, apart))
                x = builder.load(at(builder, begin, builder.mul(pixel, int64(4)), FLOATS), align=4)
                offset = builder.mul(plane.index, int64(4))
                factor, addend = (
                    repeated(builder, builder.load(at(builder, place, offset, _F32), align=4))
                    for place in (scale, shift)
                )
                level = as_bytes(builder, _placed(builder, x, factor, addend, repeated(builder, top)))
                bits = builder.trunc(builder.mul(plane.index, int64(8)), _I32)
                moved = builder.shl(builder.zext(level, INTS), repeated(builder, bits))
                builder.store(builder.or_(builder.load(word), moved), word)
            words, place = builder.load(word), builder.add(levels, builder.mul(pixel, width))
            with builder.if_else(is_dense) as (if_dense, if_apart):
                with if_dense:
                    builder.store(words, at(builder, place, int64(0), INTS), align=1)
                with if_apart:
                    for lane in range(VECTOR):
                        into = at(builder, place, builder.mul(width, int64(lane)), _I32)
                        builder.store(builder.extract_element(words, ir.Constant(_I32, lane)), into, align=1)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8, types.float32), generate


encode_planes: Final[Callable[..., None]] = emitted(_encode_planes)


def _placed(builder: Any, x: ir.Value, factor: ir.Value, addend: ir.Value, top: ir.Value) -> ir.Value:
    """Return ``x * factor + addend`` between 0 and ``top``."""
    place, zeros = fused(builder, x, factor, addend), equal(FLOATS, 0.0)
    place = builder.select(builder.fcmp_ordered(">", place, zeros), place, zeros)
    return builder.select(builder.fcmp_ordered("<", place, top), place, top)
