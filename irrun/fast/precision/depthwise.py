"""Depthwise windows of bf16, as LLVM code: neighbours share what they see, and each number is widened once for all.

Channels 0, 2, 4, … of a vector of bf16 become f32 in one vector, and channels 1, 3, 5, … in another. The weights lie
in memory in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from irrun.base.memory import lasting
from irrun.fast.block import WIDTH
from irrun.fast.machine.emitting import FLOATS, INTS, at, equal, fused, int64, looped
from irrun.fast.machine.late import cgutils, ir
from irrun.fast.machine.processor import ROWS, VECTOR

__all__ = ["BOTH", "Windows", "evens_first", "in_order"]

BOTH: Final = 2 * VECTOR
"""Channels of a vector of bf16."""
_FORMS: Final = ((1, 1), *((side, step) for side in (3, 5, 7) for step in (1, 2)))
"""The sides of square filters, and how many taps further the next window sees the same. In the first form, which is for
all others, windows share nothing."""
_I64: Final = ir.IntType(64)
_SOME, _SAME, _BITS = ir.VectorType(_I64, 4), ir.VectorType(ir.IntType(1), 4), ir.IntType(4)
_Read = Callable[[ir.Value], ir.Value]


def evens_first(weights: np.ndarray) -> np.ndarray:
    """Return filters of single channels, the bits of f32 u32 [channels, taps], as panels [panels, taps, WIDTH].

    Each two vectors have the even channels first.
    """
    channels, taps = weights.shape
    panels = -(-channels // WIDTH)
    whole = np.zeros((panels * WIDTH, taps), np.uint32)
    whole[:channels] = weights
    cut = whole.reshape(panels, -1, VECTOR, 2, taps).swapaxes(2, 3)
    return lasting(cut.reshape(panels, WIDTH, taps).swapaxes(1, 2))


def in_order(builder: Any, even: ir.Value, odd: ir.Value) -> list[ir.Value]:
    """Return two vectors of channels in order."""
    places = [place for n in range(VECTOR) for place in (n, VECTOR + n)]
    orders = (ir.Constant(ir.VectorType(ir.IntType(32), VECTOR), some) for some in (places[:VECTOR], places[VECTOR:]))
    return [builder.shuffle_vector(even, odd, order) for order in orders]


@dataclass(frozen=True)
class Windows:
    """The ``ROWS`` windows of a table of addresses i64 [taps, ROWS]."""

    builder: Any
    table: ir.Value
    taps: ir.Value

    def _seen(self, tap: ir.Value, window: int, type: ir.Type = _I64) -> ir.Value:
        """Return the addresses of what windows see under a tap, from a window on."""
        place = self.builder.add(self.builder.mul(tap, int64(8 * ROWS)), int64(8 * window))
        return self.builder.load(at(self.builder, self.table, place, type), align=8)

    def form(self) -> ir.Value:
        """Return the number of the form that the windows have."""
        builder, found = self.builder, cgutils.alloca_once_value(self.builder, int64(0))
        for number, (side, step) in enumerate(_FORMS[1:], 1):
            with builder.if_then(builder.icmp_signed("==", self.taps, int64(side * side))):
                alike = ir.Constant(_SAME, [True] * _SAME.count)
                for tap in (side * row + column for row in range(side) for column in range(side - step)):
                    for begin in (0, ROWS - 1 - _SAME.count):
                        here = self._seen(int64(tap + step), begin, _SOME)
                        there = self._seen(int64(tap), begin + 1, _SOME)
                        alike = builder.and_(alike, builder.icmp_signed("==", here, there))
                is_alike = builder.icmp_signed("==", builder.bitcast(alike, _BITS), ir.Constant(_BITS, -1))
                builder.store(builder.select(is_alike, int64(number), builder.load(found)), found)
        return builder.load(found)

    def sum_up(self, form: ir.Value, read: _Read, b: ir.Value, totals: Sequence[ir.Value]) -> None:
        """Store the sums of the even and of the odd channels of each window in variables.

        ``read`` returns what is at an address of the table, and ``b`` is the address of the weights.
        """
        builder, start = self.builder, [equal(FLOATS, 0.0)] * (2 * ROWS)
        for number, (side, step) in enumerate(_FORMS):
            with builder.if_then(builder.icmp_signed("==", form, int64(number))):
                rows, add = builder.sdiv(self.taps, int64(side)), partial(self._add_row, side, step, read, b)
                for total, sum in zip(totals, looped(builder, rows, 1, start, add)):
                    builder.store(sum, total)

    def _add_row(
        self, side: int, step: int, read: _Read, b: ir.Value, row: ir.Value, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Add what ``side`` taps of a row contribute."""
        builder, added, tap = self.builder, [*sums], self.builder.mul(row, int64(side))
        begin = builder.add(b, builder.mul(tap, int64(4 * WIDTH)))
        weights = [
            [builder.load(at(builder, begin, int64(4 * (WIDTH * x + VECTOR * n)), FLOATS), align=4) for n in (0, 1)]
            for x in range(side)
        ]
        for column in range(step * (ROWS - 1) + side):
            last = min(column // step, ROWS - 1)
            pairs = read(self._seen(builder.add(tap, int64(column - step * last)), last))
            halves = builder.shl(pairs, equal(INTS, 16)), builder.and_(pairs, equal(INTS, 0xFFFF0000))
            for window in (window for window in range(last + 1) if column - step * window < side):
                for n, bits in enumerate(halves):
                    number, place = builder.bitcast(bits, FLOATS), 2 * window + n
                    added[place] = fused(builder, number, weights[column - step * window][n], added[place])
        return added
