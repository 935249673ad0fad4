"""A block of windows whose results stay in registers, as LLVM code: for convolutions and poolings, channels last.

A block has up to ``ROWS`` windows and ``VECTORS`` vectors of output channels. The elements of the windows are found
through a table of addresses, one for each window and tap, so that nothing is copied: strides, dilations and pads change
the table alone. Bias, residual and clamp are applied before the results leave the registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from irrun.fast.block import FORMS, WIDTH, Form, widened
from irrun.fast.machine.emitting import (
    FLOATS,
    INTS,
    at,
    equal,
    fetch,
    fused,
    int64,
    load_lanes,
    mask_of,
    repeated,
    store_lanes,
)  # fmt: skip
from irrun.fast.machine.late import cgutils, emitted, ir, literal, types
from irrun.fast.machine.processor import ROWS, VECTOR, VECTORS
from irrun.fast.precision.depthwise import BOTH, Windows, in_order
from irrun.fast.precision.pairs import SHORTS, in_bf16, neighbours

__all__ = [
    "ADDED",
    "ADDED_IN_BF16",
    "ADDED_ROUNDED",
    "AVERAGE",
    "DENSE",
    "DEPTHWISE",
    "MAXIMUM",
    "SUMMED",
    "window_block",
]

DENSE: Final = 0
"""Each element of a window is multiplied by a row of weights, which has an element for each output channel."""
DEPTHWISE: Final = 1
"""Each channel of a window is multiplied by a weight of its own for each tap. If the dtype of the weights is that of
pairs, the elements are bf16, and the weights are those of ``depthwise.evens_first``."""
MAXIMUM: Final = 2
"""The elements are bf16 if the dtype of the weights, which are not read, is that of pairs."""
AVERAGE: Final = 3
SUMMED: Final = 4
"""The sums of each window and channel are known: see ``window_tiles``."""

ADDED: Final = 1
"""A residual of f32 is added."""
ADDED_ROUNDED: Final = 2
"""A residual of f32 is rounded to bf16 and added."""
ADDED_IN_BF16: Final = 3
"""A residual of bf16 is added. Half of the column is then added to its address."""

_F32: Final = ir.FloatType()
_I16: Final = ir.IntType(16)
_I32: Final = ir.IntType(32)
_I64: Final = ir.IntType(64)
_BOTH: Final = ir.VectorType(_I16, BOTH)
_Vectors = list[list[ir.Value]]
"""A value, or the variable that holds it, for each window of a block and vector of channels."""


@dataclass(frozen=True)
class _Arguments:
    """The arguments of ``window_block`` from ``table`` on, as LLVM values."""

    table: ir.Value
    taps: ir.Value
    depth: ir.Value
    b: ir.Value
    targets: ir.Value
    shift: ir.Value
    column: ir.Value
    last: ir.Value
    bias: ir.Value
    adds: ir.Value
    clamps: ir.Value
    low: ir.Value
    high: ir.Value
    keeps: ir.Value
    rounds: ir.Value
    ahead: ir.Value
    pace: ir.Value


def _window_block(
    context: Any, kind: Any, vectors: Any, windows: Any, weights: Any, table: Any, taps: Any, depth: Any, b: Any,
    targets: Any, shift: Any, column: Any, last: Any, bias: Any, adds: Any, clamps: Any, low: Any, high: Any,
    keeps: Any, rounds: Any, ahead: Any, pace: Any,
) -> Any:  # fmt: skip
    """Compute ``windows`` windows for ``vectors`` vectors of output channels, or more windows, up to ``ROWS``.

    ``kind`` is a literal, ``windows`` is 1 to ``ROWS``, ``vectors`` 1 to ``VECTORS``. ``weights`` is an array of which
    only the dtype matters: see ``FORMS``. ``table`` is the address of i64 [taps, ROWS]: the address at which each
    window has its elements for a tap. ``shift`` is added to all of them. A dense window has ``depth`` > 0 elements
    there, the other kinds a channel for each output.
    ``b`` is the address of the weights: a row of ``VECTORS`` vectors for each element of a dense window, or for each
    tap of a depthwise one. Where sums are known, ``table`` is the address of f32 [windows, WIDTH], and any number of
    windows is computed.

    ``targets`` is the address of i64 [ROWS, 3]: the addresses of the results of each window, of the residual, which is
    added, and of the results rounded to bf16 or, for averages, of the factor of the sum. ``column`` is added to the
    first two, half of it to that of rounded results. ``adds`` says how the residual is added: 0, or ``ADDED``, with
    pairs also ``ADDED_ROUNDED`` or ``ADDED_IN_BF16``. The last vector has ``last`` channels, 1 to ``VECTOR``. ``bias``
    is the address of a number for each channel of the block, or 0. If ``clamps``, results below ``low`` or above
    ``high`` become these; NaN stays. Results are stored if ``keeps``, rounded ones if ``rounds``.

    At each element of a dense window whose block has ``VECTORS`` vectors, the processor fetches a line of memory into
    its second-level cache: first at the address ``ahead``, then ``pace`` bytes further each time.
    """
    how, form = literal(kind), FORMS[weights.dtype.name]
    by_channels = how == DEPTHWISE and form is FORMS["uint32"]

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _, vectors, windows, _, *others = arguments
        if by_channels:
            _emit_channels(builder, vectors, form, _Arguments(*others))
            return context.get_dummy_value()
        for count in range(1, VECTORS + 1):
            heights = _HEIGHTS if how == DENSE and count == VECTORS else (ROWS,)
            with builder.if_then(builder.icmp_signed("==", vectors, int64(count))):
                if how == SUMMED:
                    whole = builder.and_(windows, int64(-_TOGETHER))
                    for rows, begin, end in (_TOGETHER, int64(0), whole), (1, whole, windows):
                        _Block(builder, how, (rows, count), form, _Arguments(*others)).emit_summed(begin, end)
                    continue
                for least, most in zip((0, *heights), heights):
                    above = builder.icmp_signed(">", windows, int64(least))
                    with builder.if_then(builder.and_(above, builder.icmp_signed("<=", windows, int64(most)))):
                        _Block(builder, how, (most, count), form, _Arguments(*others)).emit()
        return context.get_dummy_value()

    numbers = (
        table, taps, depth, b, targets, shift, column, last, bias, adds, clamps, low, high, keeps, rounds, ahead, pace
    )  # fmt: skip
    return types.void(kind, types.int64, types.int64, weights, *numbers), generate


_HEIGHTS: Final = (1, 2, 4, ROWS)
"""The windows of a dense block of ``VECTORS`` vectors. Pictures of 49 or 196 windows leave one or four of them to the
last block."""
_TOGETHER: Final = 4
"""The windows whose sums are known and become results at once."""
window_block: Final[Callable[..., None]] = emitted(_window_block, prefer_literal=True)


def _emit_channels(builder: Any, vectors: ir.Value, form: Form, of: _Arguments) -> None:
    """Emit depthwise windows of bf16, two vectors of channels after the other."""
    windows, whole = Windows(builder, of.table, of.taps), builder.sdiv(vectors, int64(2))
    shared, has_bias = windows.form(), builder.icmp_signed("!=", of.bias, int64(0))

    def emit(index: ir.Value, count: int, last: ir.Value) -> None:
        begin = builder.mul(index, int64(BOTH))
        shift, further = (builder.mul(begin, int64(size)) for size in (2, 4))
        bias = builder.select(has_bias, builder.add(of.bias, further), int64(0))
        b, column = (builder.add(value, further) for value in (of.b, of.column))
        own = replace(of, shift=builder.add(of.shift, shift), b=b, column=column, bias=bias, last=last)
        _Block(builder, DEPTHWISE, (ROWS, count), form, own).emit_channels(windows, shared)

    with cgutils.for_range(builder, whole) as loop:
        is_last = builder.icmp_signed("==", builder.mul(builder.add(loop.index, int64(1)), int64(2)), vectors)
        emit(loop.index, 2, builder.select(is_last, of.last, int64(VECTOR)))
    with builder.if_then(builder.trunc(vectors, ir.IntType(1))):  # the vectors are odd
        emit(whole, 1, of.last)


class _Block:
    """Emits one block. The sums are variables on the stack, which LLVM moves to registers."""

    def __init__(self, builder: Any, kind: int, shape: tuple[int, int], form: Form, arguments: _Arguments) -> None:
        self.builder, self.kind, self.form, self.of = builder, kind, form, arguments
        self.rows, self.count = shape
        self.mask = mask_of(builder, arguments.last)
        self.full = builder.icmp_signed("==", arguments.last, int64(VECTOR))

    def emit_channels(self, windows: Windows, form: ir.Value) -> None:
        """Emit the depthwise windows of a table of bf16, one or two vectors of channels."""
        builder, of = self.builder, self.of
        totals = [cgutils.alloca_once(builder, FLOATS) for _ in range(2 * ROWS)]
        windows.sum_up(form, lambda begin: self.read_both(builder.add(begin, of.shift)), of.b, totals)
        pairs = zip(*[(builder.load(total) for total in totals)] * 2)
        sums = [in_order(builder, *pair)[: self.count] for pair in pairs]
        self.finish([[cgutils.alloca_once_value(builder, sum) for sum in row] for row in sums])

    def emit_summed(self, begin: ir.Value, end: ir.Value) -> None:
        """Emit some windows whose sums are known."""
        builder, of = self.builder, self.of
        with cgutils.for_range_slice(builder, begin, end, int64(self.rows)) as (window, _):
            table, targets = (builder.mul(window, int64(size)) for size in (4 * WIDTH, 24))
            table, targets = builder.add(of.table, table), builder.add(of.targets, targets)
            self.of = replace(of, table=table, targets=targets)
            self.emit()

    def emit(self) -> None:
        start = equal(FLOATS, float("-inf") if self.kind == MAXIMUM else 0.0)
        sums = [[cgutils.alloca_once(self.builder, FLOATS) for _ in range(self.count)] for _ in range(self.rows)]
        for row in sums:
            for sum in row:
                self.builder.store(start, sum)
        if self.kind == DENSE:
            with self.if_biased() as bias:
                for row in sums:
                    for sum, number in zip(row, bias):
                        self.builder.store(number, sum)
        self.accumulate(sums)
        self.finish(sums)

    @contextmanager
    def if_biased(self) -> Iterator[list[ir.Value]]:
        """Emit code for the case that there is a bias, whose vectors this yields."""
        with self.builder.if_then(self.builder.icmp_signed("!=", self.of.bias, int64(0))):
            yield [self.read(self.of.bias, n) for n in range(self.count)]

    def accumulate(self, sums: _Vectors) -> None:
        """Add what each tap contributes to the sums, or compare it with them."""
        builder, of = self.builder, self.of
        if self.kind == SUMMED:
            for row, own in enumerate(sums):
                for n, sum in enumerate(own):
                    place = at(builder, of.table, int64(4 * (WIDTH * row + VECTOR * n)), FLOATS)
                    builder.store(builder.load(place, align=4), sum)
            return
        step = int64(VECTORS // self.form.share * VECTOR * self.form.bytes)
        address, ahead = (cgutils.alloca_once(builder, _I64) for _ in range(2))
        builder.store(of.b, address)
        builder.store(of.ahead, ahead)
        with cgutils.for_range(builder, of.taps) as tap:
            entries = builder.add(of.table, builder.mul(tap.index, int64(8 * ROWS)))
            begins = [
                builder.add(builder.load(at(builder, entries, int64(8 * row), _I64)), of.shift)
                for row in range(self.rows)
            ]
            if self.kind == DENSE:
                with cgutils.for_range(builder, of.depth) as k:
                    place = builder.load(address)
                    if self.count == VECTORS:
                        fetch(builder, builder.load(ahead))
                        builder.store(builder.add(builder.load(ahead), of.pace), ahead)
                    vectors = widened(builder, self.form, place)[: self.count]
                    offset = builder.mul(k.index, int64(4))
                    loads = [builder.load(at(builder, begin, offset, _F32), align=4) for begin in begins]
                    before = [[builder.load(sum) for sum in row] for row in sums]
                    added = self.form.add(builder, [repeated(builder, load) for load in loads], vectors, before)
                    for row, values in zip(sums, added):
                        for sum, value in zip(row, values):
                            builder.store(value, sum)
                    builder.store(builder.add(place, step), address)
                return
            vectors = []
            if self.kind == DEPTHWISE:
                place = builder.load(address)
                vectors = widened(builder, self.form, place)[: self.count]
                builder.store(builder.add(place, step), address)
            read = self.read_bf16 if self.form is FORMS["uint32"] else self.read
            for begin, row in zip(begins, sums):
                for n, sum in enumerate(row):
                    element, before = read(begin, n), builder.load(sum)
                    if self.kind == DEPTHWISE:
                        after = fused(builder, element, vectors[n], before)
                    elif self.kind == AVERAGE:
                        after = builder.fadd(before, element)
                    else:
                        larger = builder.fcmp_ordered(">", element, before)
                        is_nan = builder.fcmp_unordered("uno", element, element)
                        after = builder.select(builder.or_(larger, is_nan), element, before)
                    builder.store(after, sum)

    def finish(self, sums: _Vectors) -> None:
        """Apply factor, bias, residual and clamp, and store the results."""
        builder, of = self.builder, self.of
        targets = [
            [builder.load(at(builder, of.targets, int64(8 * (3 * row + n)), _I64)) for n in range(3)]
            for row in range(self.rows)
        ]
        if self.kind == AVERAGE:
            for row, (_, _, factor) in zip(sums, targets):
                share = repeated(builder, builder.load(at(builder, factor, int64(0), _F32), align=4))
                for sum in row:
                    builder.store(builder.fmul(builder.load(sum), share), sum)
        if self.kind != DENSE:
            with self.if_biased() as bias:
                for row in sums:
                    for sum, number in zip(row, bias):
                        builder.store(builder.fadd(builder.load(sum), number), sum)
        how = [(ADDED, of.column, self.read)]
        if self.form is FORMS["uint32"]:
            half = builder.lshr(of.column, int64(1))
            how += [(ADDED_ROUNDED, of.column, self.read_rounded), (ADDED_IN_BF16, half, self.read_bf16)]
        for number, column, read in how:
            with builder.if_then(builder.icmp_signed("==", of.adds, int64(number))):
                for row, (_, residual, _) in zip(sums, targets):
                    for n, sum in enumerate(row):
                        added = builder.fadd(builder.load(sum), read(builder.add(residual, column), n))
                        builder.store(added, sum)
        with builder.if_then(builder.trunc(of.clamps, ir.IntType(1))):
            for limit, sign in ((of.low, "<"), (of.high, ">")):
                bound = repeated(builder, limit)
                for row in sums:
                    for sum in row:
                        value = builder.load(sum)
                        builder.store(builder.select(builder.fcmp_ordered(sign, value, bound), bound, value), sum)
        with builder.if_then(builder.trunc(of.keeps, ir.IntType(1))):
            for row, (target, _, _) in zip(sums, targets):
                for n, sum in enumerate(row):
                    self.write(builder.load(sum), builder.add(target, of.column), n, 4)
        with builder.if_then(builder.trunc(of.rounds, ir.IntType(1))):
            column = builder.lshr(of.column, int64(1))
            for row, (_, _, target) in zip(sums, targets):
                self.write_rounded([builder.load(sum) for sum in row], builder.add(target, column))

    def write_rounded(self, row: Sequence[ir.Value], address: ir.Value) -> None:
        """Store the vectors of a row in bf16, two at once: to round two takes as long as to round one."""
        builder = self.builder

        def write_pairs(first: int, end: int) -> None:
            for n in range(first, end, 2):
                place = at(builder, address, int64(2 * VECTOR * n), INTS)
                builder.store(neighbours(builder, *row[n : n + 2]), place, align=2)

        first = (len(row) - 1) // 2 * 2  # the last vector may have few lanes
        write_pairs(0, first)
        if first == len(row) - 1:
            self.write(in_bf16(builder, row[first]), address, first, 2)
            return
        with builder.if_else(self.full) as (if_full, if_part):
            with if_full:
                write_pairs(first, len(row))
            with if_part:
                for n in range(first, len(row)):
                    self.write(in_bf16(builder, row[n]), address, n, 2)

    def read(self, address: ir.Value, n: int) -> ir.Value:
        """Return the vector ``n`` of a row. Lanes beyond the last channel are zeros."""
        place = at(self.builder, address, int64(4 * VECTOR * n), FLOATS)
        if n < self.count - 1:
            return self.builder.load(place, align=4)
        return load_lanes(self.builder, place, self.mask, 4)

    def read_rounded(self, address: ir.Value, n: int) -> ir.Value:
        """Return the vector ``n`` of a row, rounded to bf16, as f32."""
        return self.wide(in_bf16(self.builder, self.read(address, n)))

    def read_bf16(self, address: ir.Value, n: int) -> ir.Value:
        """Return the vector ``n`` of a row of bf16 as f32. Lanes beyond the last channel are zeros."""
        place = at(self.builder, address, int64(2 * VECTOR * n), SHORTS)
        if n < self.count - 1:
            return self.wide(self.builder.load(place, align=2))
        return self.wide(load_lanes(self.builder, place, self.mask, 2))

    def wide(self, halves: ir.Value) -> ir.Value:
        """Return a vector of bf16 as f32."""
        return FORMS["int16"].widen(self.builder, [halves])[0]

    def read_both(self, address: ir.Value) -> ir.Value:
        """Return two vectors of a row of bf16, as i32. Lanes beyond the last channel are zeros."""
        builder, place = self.builder, at(self.builder, address, int64(0), _BOTH)
        channels = builder.add(self.of.last, int64((self.count - 1) * VECTOR))
        mask = mask_of(builder, builder.trunc(channels, _I16), BOTH)
        return builder.bitcast(load_lanes(builder, place, mask, 2), INTS)

    def write(self, value: ir.Value, address: ir.Value, n: int, size: int) -> None:
        """Store the vector ``n`` of a row of elements of ``size`` bytes, without lanes beyond the last channel."""
        place = at(self.builder, address, int64(size * VECTOR * n), FLOATS if size == 4 else SHORTS)
        if n < self.count - 1:
            self.builder.store(value, place, align=size)
            return
        with self.builder.if_else(self.full) as (if_full, if_part):
            with if_full:
                self.builder.store(value, place, align=size)
            with if_part:
                store_lanes(self.builder, value, place, self.mask, size)
