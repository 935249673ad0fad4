"""The addresses that a block of windows sees, a vector for each tap, as LLVM code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from irrun.fast.block import at, int64
from irrun.fast.machine.late import cgutils, emitted, ir, types
from irrun.fast.machine.processor import ROWS

__all__ = ["BEGIN", "LEFT", "TOP", "find_taps"]

TOP, LEFT, BEGIN = range(3)
"""The rows of what is known of the windows of a block: see ``find_taps``."""
_I64: Final = ir.IntType(64)
_NUMBERS: Final = ir.VectorType(_I64, ROWS)


def _find_taps(
    context: Any, places: Any, entries: Any, down: Any, across: Any, near_y: Any, near_x: Any, next_y: Any, next_x: Any,
    high: Any, broad: Any, nothing: Any,
) -> Any:  # fmt: skip
    """Store the addresses that ``ROWS`` windows see through ``down * across`` taps, i64 [taps, ROWS], at ``entries``.

    ``places`` is the address of i64 [3, ROWS]: the row and the column of the first tap of each window, and the address
    of the pixel there. The next taps are ``near_y`` rows and ``near_x`` columns further, or ``next_y`` and ``next_x``
    bytes. What lies outside of ``high`` rows and ``broad`` columns is at the address ``nothing``.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        places, entries, down, across, near_y, near_x, next_y, next_x, high, broad, nothing = arguments

        def every(number: ir.Value) -> ir.Value:
            first = builder.insert_element(ir.Constant(_NUMBERS, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(ir.IntType(32), ROWS), [0] * ROWS))

        def moved(which: int, count: ir.Value, distance: ir.Value) -> ir.Value:
            return builder.add(known[which], every(builder.mul(count, distance)))

        def inside(place: ir.Value, size: ir.Value) -> ir.Value:
            return builder.icmp_unsigned("<", place, every(size))  # a negative number is a large one

        known = [builder.load(at(builder, places, int64(8 * ROWS * n), _NUMBERS), align=8) for n in range(3)]
        with cgutils.for_range(builder, down) as row:
            line, is_line = moved(BEGIN, row.index, next_y), inside(moved(TOP, row.index, near_y), high)
            first = builder.mul(row.index, across)
            with cgutils.for_range(builder, across) as column:
                seen = builder.and_(is_line, inside(moved(LEFT, column.index, near_x), broad))
                address = builder.add(line, every(builder.mul(column.index, next_x)))
                place = builder.mul(builder.add(first, column.index), int64(8 * ROWS))
                into = at(builder, builder.add(entries, place), int64(0), _NUMBERS)
                builder.store(builder.select(seen, address, every(nothing)), into, align=8)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 11), generate


find_taps: Final[Callable[..., None]] = emitted(_find_taps)
