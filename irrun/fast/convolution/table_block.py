"""The addresses that windows see and at which their results are, as LLVM code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from irrun.fast.machine.emitting import INTS, at, equal, int64, load_lanes, mask_of, repeated, store_lanes
from irrun.fast.machine.late import cgutils, emitted, ir, types
from irrun.fast.machine.processor import ROWS, VECTOR

__all__ = ["BEGIN", "LEFT", "TOP", "copy_windows", "find_taps", "store_row", "store_steps"]

TOP, LEFT, BEGIN = range(3)
"""The rows of what is known of the windows of a block: see ``find_taps``."""
_I64: Final = ir.IntType(64)
_NUMBERS: Final = ir.VectorType(_I64, ROWS)


def _find_taps(
    context: Any, places: Any, entries: Any, down: Any, across: Any, near_y: Any, near_x: Any, next_y: Any, next_x: Any,
    high: Any, broad: Any, nothing: Any, within: Any,
) -> Any:  # fmt: skip
    """Store the addresses that ``ROWS`` windows see through ``down * across`` taps, i64 [taps, ROWS], at ``entries``.

    ``places`` is the address of i64 [3, ROWS]: the row and the column of the first tap of each window, and the address
    of the pixel there. The next taps are ``near_y`` rows and ``near_x`` columns further, or ``next_y`` and ``next_x``
    bytes. What lies outside of ``high`` rows and ``broad`` columns is at the address ``nothing``. If ``within``, no
    element lies there.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        places, entries, down, across, near_y, near_x, next_y, next_x, high, broad, nothing, within = arguments

        def moved(which: int, count: ir.Value, distance: ir.Value) -> ir.Value:
            return builder.add(known[which], repeated(builder, builder.mul(count, distance), ROWS))

        def inside(place: ir.Value, size: ir.Value) -> ir.Value:
            return builder.icmp_unsigned("<", place, repeated(builder, size, ROWS))  # a negative number is a large one

        known = [builder.load(at(builder, places, int64(8 * ROWS * n), _NUMBERS), align=8) for n in range(3)]

        def emit(checks: bool) -> None:
            with cgutils.for_range(builder, down) as row:
                line = moved(BEGIN, row.index, next_y)
                is_line = inside(moved(TOP, row.index, near_y), high) if checks else None
                first = builder.mul(row.index, across)
                with cgutils.for_range(builder, across) as column:
                    address = builder.add(line, repeated(builder, builder.mul(column.index, next_x), ROWS))
                    if is_line is not None:
                        seen = builder.and_(is_line, inside(moved(LEFT, column.index, near_x), broad))
                        address = builder.select(seen, address, repeated(builder, nothing, ROWS))
                    place = builder.mul(builder.add(first, column.index), int64(8 * ROWS))
                    builder.store(address, at(builder, builder.add(entries, place), int64(0), _NUMBERS), align=8)

        with builder.if_else(builder.icmp_signed("!=", within, int64(0))) as (if_within, if_not):
            with if_within:
                emit(False)
            with if_not:
                emit(True)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 12), generate


find_taps: Final[Callable[..., None]] = emitted(_find_taps)


def _store_row(context: Any, place: Any, first: Any, by: Any) -> Any:
    """Store ``ROWS`` numbers i64 at an address, each ``by`` more than the one before.

    A vector that is stored as a whole is read again without waiting for its parts.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        place, first, by = arguments
        further = builder.mul(repeated(builder, by, ROWS), ir.Constant(_NUMBERS, [*range(ROWS)]))
        value = builder.add(repeated(builder, first, ROWS), further)
        builder.store(value, at(builder, place, int64(0), _NUMBERS), align=8)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3), generate


store_row: Final[Callable[..., None]] = emitted(_store_row)


_TOGETHER: Final = 8
"""The windows whose three addresses are stored at once."""
_ADDRESSES: Final = ir.VectorType(_I64, 3 * _TOGETHER)


def _store_steps(
    context: Any, entries: Any, count: Any, first: Any, second: Any, third: Any, step: Any, next: Any, last: Any
) -> Any:
    """Store ``count`` times three numbers at ``entries``, i64 [count, 3]: each is a step further than the one before.

    ``first``, ``second`` and ``third`` are the first three numbers, and ``step``, ``next`` and ``last`` their steps.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        entries, count, *numbers = arguments

        def in_turn(three: Sequence[ir.Value]) -> ir.Value:
            whole = ir.Constant(ir.VectorType(_I64, 3), ir.Undefined)
            for n, number in enumerate(three):
                whole = builder.insert_element(whole, number, ir.Constant(ir.IntType(32), n))
            order = ir.VectorType(ir.IntType(32), 3 * _TOGETHER)
            return builder.shuffle_vector(whole, whole, ir.Constant(order, [n % 3 for n in range(3 * _TOGETHER)]))

        steps = in_turn(numbers[3:])
        ranks = ir.Constant(_ADDRESSES, [n // 3 for n in range(3 * _TOGETHER)])
        held = cgutils.alloca_once_value(builder, builder.add(in_turn(numbers[:3]), builder.mul(steps, ranks)))
        steps = builder.mul(steps, equal(_ADDRESSES, _TOGETHER))
        whole = builder.sdiv(count, int64(_TOGETHER))
        with cgutils.for_range(builder, whole) as some:
            place = builder.mul(some.index, int64(8 * 3 * _TOGETHER))
            builder.store(builder.load(held), at(builder, entries, place, _ADDRESSES), align=8)
            builder.store(builder.add(builder.load(held), steps), held)
        with cgutils.for_range_slice(builder, builder.mul(whole, int64(_TOGETHER)), count, int64(1)) as (n, _):
            for k, (number, by) in enumerate(zip(numbers[:3], numbers[3:])):
                place = builder.add(builder.mul(n, int64(24)), int64(8 * k))
                builder.store(builder.add(number, builder.mul(n, by)), at(builder, entries, place, _I64), align=8)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


store_steps: Final[Callable[..., None]] = emitted(_store_steps)


def _copy_windows(
    context: Any, table: Any, apart: Any, first: Any, last: Any, taps: Any, depth: Any, shift: Any, target: Any,
    words: Any,
) -> Any:  # fmt: skip
    """Copy what windows see, ``depth`` words at each tap, one tap after the other, to rows of so many words.

    ``table`` is the address of blocks, ``apart`` bytes apart, of i64 [taps, ROWS]: the addresses of the windows, to
    which ``shift`` is added. The windows from ``first`` to ``last`` are copied to the address ``target``.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        table, apart, first, last, taps, depth, shift, target, words = arguments
        whole = builder.and_(depth, int64(-VECTOR))
        has_rest = builder.icmp_signed("<", whole, depth)
        mask = mask_of(builder, builder.trunc(builder.sub(depth, whole), ir.IntType(32)))
        with cgutils.for_range_slice(builder, first, last, int64(1)) as (window, _):
            block, row = builder.sdiv(window, int64(ROWS)), builder.srem(window, int64(ROWS))
            entries = builder.add(builder.add(table, builder.mul(block, apart)), builder.mul(row, int64(8)))
            place = builder.mul(builder.mul(builder.sub(window, first), words), int64(4))
            with cgutils.for_range(builder, taps) as tap:
                source = builder.load(at(builder, entries, builder.mul(tap.index, int64(8 * ROWS)), _I64))
                source = builder.add(source, shift)
                into = builder.add(place, builder.mul(builder.mul(tap.index, depth), int64(4)))
                into = builder.add(target, into)
                with cgutils.for_range_slice(builder, int64(0), whole, int64(VECTOR)) as (index, _):
                    offset = builder.mul(index, int64(4))
                    read, written = (at(builder, address, offset, INTS) for address in (source, into))
                    builder.store(builder.load(read, align=4), written, align=4)
                with builder.if_then(has_rest):
                    offset = builder.mul(whole, int64(4))
                    read, written = (at(builder, address, offset, INTS) for address in (source, into))
                    store_lanes(builder, load_lanes(builder, read, mask, 4), written, mask, 4)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 9), generate


copy_windows: Final[Callable[..., None]] = emitted(_copy_windows)
