"""What becomes of sums of windows of bytes that are known, as LLVM code: see ``integer_block``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from irrun.fast.integers.block import Arguments, IntegerBlock, Row
from irrun.fast.integers.dots import DOT, Dot
from irrun.fast.machine.emitting import at, int64
from irrun.fast.machine.late import cgutils, emitted, ir, types
from irrun.fast.machine.processor import VECTORS

__all__ = ["summed_block"]

_TOGETHER: Final = 4
"""The windows whose sums become results at once."""


def _summed_block(
    context: Any, vectors: Any, out: Any, sums: Any, windows: Any, targets: Any, column: Any, last: Any, numbers: Any,
    rounds: Any, adds: Any,
) -> Any:  # fmt: skip
    """Make results of the sums of any number of windows, for ``vectors`` vectors of output channels.

    ``sums`` is the address of i32 [windows, VECTORS vectors], to which ``START`` is not yet added, and ``targets`` of
    i64 [windows, 3]. See ``integer_block`` for the other arguments. Results may be stored where their sums are.
    """
    is_level = out.dtype.name == "uint8"

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        assert DOT is not None
        vectors, _, sums, windows, targets, column, last, numbers, rounds, adds = arguments
        zero, whole = int64(0), builder.and_(windows, int64(-_TOGETHER))
        of = Arguments(sums, zero, zero, zero, targets, zero, column, last, numbers, rounds, adds)
        for count in range(1, VECTORS + 1):
            with builder.if_then(builder.icmp_signed("==", vectors, int64(count))):
                for rows, begin, end in (_TOGETHER, zero, whole), (1, whole, windows):
                    _SummedBlock(builder, DOT, rows, count, is_level, of).emit_windows(begin, end)
        return context.get_dummy_value()

    given = (sums, windows, targets, column, last, numbers, rounds, adds)
    return types.void(types.int64, out, *given), generate


summed_block: Final[Callable[..., None]] = emitted(_summed_block)


class _SummedBlock(IntegerBlock):
    """Emits so many windows at once."""

    def __init__(self, builder: Any, dot: Dot, rows: int, vectors: int, levels: bool, arguments: Arguments) -> None:
        super().__init__(builder, dot, False, vectors, levels, arguments)
        self.rows, self.start = rows, arguments

    def emit_windows(self, begin: ir.Value, end: ir.Value) -> None:
        """Emit the windows ``begin`` to ``end``."""
        self.begin()
        builder, start, size = self.builder, self.start, 4 * self.lanes
        sums = self.variables(self.dot.vector)
        with cgutils.for_range_slice(builder, begin, end, int64(self.rows)) as (window, _):
            place = builder.add(start.table, builder.mul(window, int64(VECTORS * size)))
            self.of = replace(start, targets=builder.add(start.targets, builder.mul(window, int64(24))))
            for n in range(self.count):
                first = self.number(Row.START, n, self.dot.vector)
                for row, own in enumerate(sums):
                    sum = at(builder, place, int64(size * (VECTORS * row + n)), self.dot.vector)
                    builder.store(builder.add(builder.load(sum, align=4), first), own[n])
            self.finish(sums)
