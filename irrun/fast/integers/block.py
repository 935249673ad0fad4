"""A block of windows of bytes whose sums stay in registers, as LLVM code: convolutions of integers, channels last.

A block has ``ROWS`` windows and up to ``VECTORS`` vectors of output channels, as ``convolution.window_block`` has. Its
sums are i32, and exact. They leave the registers as levels of a FakeQuantize, one byte each, or as f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from irrun.fast.integers.dots import BYTES, DOT, Dot
from irrun.fast.machine.emitting import at, called, equal, fused, int64, load_lanes, mask_of, nearest, store_lanes
from irrun.fast.machine.late import cgutils, emitted, ir, literal, types
from irrun.fast.machine.processor import ROWS, VECTORS

__all__ = ["TWICE", "Arguments", "IntegerBlock", "Row", "as_bytes", "integer_block"]


TWICE: Final = VECTORS
"""Is added to the number of vectors for two blocks: the products of few vectors wait for each other's sums."""


class Row(IntEnum):
    """The rows of the numbers of a panel: see ``integer_block``."""

    START = 0
    FACTOR = 1
    BIAS = 2
    OWN_LOW = 3
    OWN_HIGH = 4
    OWN = 5
    ADDEND = 6
    OTHER = 7
    LOW = 8
    HIGH = 9


_F32: Final = ir.FloatType()
_I8: Final = ir.IntType(8)
_I32: Final = ir.IntType(32)
_I64: Final = ir.IntType(64)
_BIT: Final = ir.IntType(1)
_ROUNDING: Final = float(3 << 22)
"""A number whose neighbours in f32 are 1 away."""
_PACKS: Final = {
    4: ("llvm.x86.sse2.packssdw.128", "llvm.x86.sse2.packuswb.128"),
    8: ("llvm.x86.avx2.packssdw", "llvm.x86.avx2.packuswb"),
    16: ("llvm.x86.avx512.packssdw.512", "llvm.x86.avx512.packuswb.512"),
}
"""What packs i32 to i16, and these to bytes, by the numbers in a vector. Others become the nearest limit."""
_WHOLE: Final = {4: "llvm.x86.sse2.cvtps2dq", 8: "llvm.x86.avx.cvt.ps2dq.256", 16: "llvm.x86.avx512.mask.cvtps2dq.512"}
"""What rounds f32 to i32, by the numbers in a vector."""
_WIDEST: Final = 16
"""The numbers in a vector of AVX-512, whose instructions have masks."""
_EACH: Final = 4
"""Vectors that are packed to one."""
_Vectors = Sequence[Sequence[ir.Value]]
"""The variable that holds a vector, for each window of a block and vector of channels."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of ``integer_block`` from ``table`` on, as LLVM values."""

    table: ir.Value
    taps: ir.Value
    depth: ir.Value
    b: ir.Value
    targets: ir.Value
    shift: ir.Value
    column: ir.Value
    last: ir.Value
    numbers: ir.Value
    rounds: ir.Value
    adds: ir.Value


def _integer_block(
    context: Any,
    depthwise: Any,
    vectors: Any,
    out: Any,
    table: Any,
    taps: Any,
    depth: Any,
    b: Any,
    targets: Any,
    shift: Any,
    column: Any,
    last: Any,
    numbers: Any,
    rounds: Any,
    adds: Any,
) -> Any:
    """Compute ``ROWS`` windows for ``vectors`` vectors of output channels.

    ``depthwise`` is a literal, ``vectors`` is 1 to ``VECTORS``; for two blocks of dense windows, it is up to half as
    many and ``TWICE`` more. ``out`` is an array of which only the dtype matters: u8 for levels, or f32. ``table`` is
    the address of i64 [taps, ROWS]: the address at which each window has its bytes for a tap. ``shift`` is added to all
    of them. A dense window has ``depth`` > 0 words there, of four bytes or two i16 (see ``Dot.wide``), a depthwise one
    a byte for each output. ``b`` is the address of the weights: for each word of a dense window ``VECTORS`` vectors of
    four i8 or two i16 in each lane, and for each tap of a depthwise one ``VECTORS`` vectors of i16.

    ``targets`` is the address of i64 [ROWS, 3]: each row begins with the addresses of the results and of the residual
    of a window. ``column`` counts the channels before those of the block. The last vector has ``last``
    channels.

    ``numbers`` is the address of f32 [rows of ``Row``, VECTORS vectors]; the row ``START`` holds i32. A result is::

        x = (START + sum of products) * FACTOR + BIAS
        x = round(clamp(x, OWN_LOW, OWN_HIGH)) * OWN + ADDEND     if rounds
        x = x + residual * OTHER                                  if adds
        x = clamp(x, LOW, HIGH)

    and is rounded if it is a level.
    """
    is_depthwise, is_level = bool(literal(depthwise)), out.dtype.name == "uint8"

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        assert DOT is not None
        for vectors in range(1, (VECTORS if is_depthwise else TWICE + VECTORS // 2) + 1):
            with builder.if_then(builder.icmp_signed("==", arguments[1], int64(vectors))):
                of = Arguments(*arguments[3:])
                IntegerBlock(builder, DOT, is_depthwise, vectors, is_level, of).emit()
        return context.get_dummy_value()

    given = (table, taps, depth, b, targets, shift, column, last, numbers, rounds, adds)
    return types.void(depthwise, types.int64, out, *given), generate


integer_block: Final[Callable[..., None]] = emitted(_integer_block, prefer_literal=True)


class IntegerBlock:
    """Emits one block. The sums are variables on the stack, which LLVM moves to registers."""

    def __init__(
        self, builder: Any, dot: Dot, depthwise: bool, vectors: int, levels: bool, arguments: Arguments
    ) -> None:
        self.builder, self.dot, self.depthwise, self.levels = builder, dot, depthwise, levels
        self.of, self.lanes, blocks = arguments, dot.lanes, 1 + (vectors > VECTORS)
        self.count = vectors - TWICE * (blocks - 1)
        self.rows = blocks * ROWS
        self.floats, self.bytes = (ir.VectorType(type, self.lanes) for type in (_F32, _I8))
        self.full = builder.icmp_signed("==", arguments.last, int64(self.lanes))
        self.mask = mask_of(builder, arguments.last, self.lanes)
        self.packs = self.lanes == _WIDEST and self.count > 1
        self.least: ir.Value | None = None

    def emit(self) -> None:
        self.begin()
        sums = self.variables(self.dot.vector)
        for n in range(self.count):
            start = self.number(Row.START, n, self.dot.vector)
            for row in sums:
                self.builder.store(start, row[n])
        if self.depthwise:
            self.multiply_channels(sums)
        else:
            self.multiply(sums)
        self.finish(sums)

    def begin(self) -> None:
        """Find what all results of the block need: the least level of each channel."""
        if self.levels and self.packs:
            self.least = packed(self.builder, [self.number(Row.LOW, n) for n in range(self.count)])

    def variables(self, type: ir.Type) -> _Vectors:
        return [[cgutils.alloca_once(self.builder, type) for _ in range(self.count)] for _ in range(self.rows)]

    def loaded(self, variables: _Vectors) -> list[list[ir.Value]]:
        return [[self.builder.load(variable) for variable in row] for row in variables]

    def stored(self, values: Sequence[Sequence[ir.Value]], variables: _Vectors) -> None:
        for row, own in zip(values, variables):
            for value, variable in zip(row, own):
                self.builder.store(value, variable)

    def begins(self, tap: ir.Value) -> list[ir.Value]:
        """Return the address of the bytes that each window has for a tap."""
        builder, of, begins = self.builder, self.of, []
        for block in range(self.rows // ROWS):
            place = builder.add(tap, builder.mul(of.taps, int64(block)))
            entries = builder.add(of.table, builder.mul(place, int64(8 * ROWS)))
            loads = (builder.load(at(builder, entries, int64(8 * row), _I64)) for row in range(ROWS))
            begins += [builder.add(load, of.shift) for load in loads]
        return begins

    def multiply(self, sums: _Vectors) -> None:
        """Add the products of a dense window."""
        builder, of = self.builder, self.of
        size = BYTES * self.lanes
        address = cgutils.alloca_once(builder, _I64)
        builder.store(of.b, address)
        with cgutils.for_range(builder, of.taps) as tap:
            begins = self.begins(tap.index)
            with cgutils.for_range(builder, of.depth) as k:
                place, offset = builder.load(address), builder.mul(k.index, int64(BYTES))
                rows = (at(builder, place, int64(n * size), self.dot.vector) for n in range(self.count))
                weights = [builder.load(row, align=BYTES) for row in rows]
                words = [builder.load(at(builder, begin, offset, _I32), align=1) for begin in begins]
                add = self.dot.wide or self.dot.add
                self.stored(add(builder, self.dot, self.loaded(sums), words, weights), sums)
                builder.store(builder.add(place, int64(VECTORS * size)), address)

    def multiply_channels(self, sums: _Vectors) -> None:
        """Add the products of a depthwise window, in a loop without masks if the last vector is full."""
        with self.builder.if_else(self.full) as (if_full, if_part):
            with if_full:
                self.multiply_taps(sums, self.read_full)
            with if_part:
                self.multiply_taps(sums, self.read)

    def multiply_taps(self, sums: _Vectors, read: Callable[[ir.Value, int], ir.Value]) -> None:
        """Add the products of all taps. LLVM finds the instructions for products of narrow integers."""
        builder, shorts = self.builder, ir.VectorType(ir.IntType(16), self.lanes)
        size = 2 * self.lanes
        with cgutils.for_range(builder, self.of.taps) as tap:
            place = builder.add(self.of.b, builder.mul(tap.index, int64(VECTORS * size)))
            rows = [at(builder, place, int64(n * size), shorts) for n in range(self.count)]
            weights = [builder.sext(builder.load(row, align=2), self.dot.vector) for row in rows]
            for begin, row in zip(self.begins(tap.index), sums):
                for n, (weight, sum) in enumerate(zip(weights, row)):
                    product = builder.mul(builder.zext(read(begin, n), self.dot.vector), weight)
                    builder.store(builder.add(builder.load(sum), product), sum)

    def finish(self, sums: _Vectors) -> None:
        """Make results of the sums, and store them."""
        builder, of, results = self.builder, self.of, self.variables(self.floats)
        for n in range(self.count):
            factor, bias = self.number(Row.FACTOR, n), self.number(Row.BIAS, n)
            for row, own in zip(results, sums):
                sum = builder.sitofp(builder.load(own[n]), self.floats)
                builder.store(fused(builder, sum, factor, bias), row[n])
        with builder.if_then(builder.trunc(of.rounds, _BIT)):
            for n in range(self.count):
                own, addend = self.number(Row.OWN, n), self.number(Row.ADDEND, n)
                for row in results:
                    level = nearest(builder, self.clamped(builder.load(row[n]), Row.OWN_LOW, Row.OWN_HIGH, n))
                    builder.store(fused(builder, level, own, addend), row[n])
        places = [
            [builder.load(at(builder, of.targets, int64(8 * (3 * row + which)), _I64)) for which in range(2)]
            for row in range(self.rows)
        ]
        with builder.if_then(builder.trunc(of.adds, _BIT)):
            for (_, residual), row in zip(places, results):
                for n, level in enumerate(self.read_levels(builder.add(residual, of.column))):
                    other = self.number(Row.OTHER, n)
                    builder.store(fused(builder, level, other, builder.load(row[n])), row[n])
        for (place, _), row in zip(places, results):
            numbers = [*map(builder.load, row)]
            if self.levels:
                self.write_levels(builder.add(place, of.column), numbers)
            else:
                self.write_numbers(builder.add(place, builder.mul(of.column, int64(4))), numbers)

    def read_levels(self, address: ir.Value) -> Sequence[ir.Value]:
        """Return a row of levels as f32."""
        return [self.builder.uitofp(self.read(address, n), self.floats) for n in range(self.count)]

    def write_levels(self, address: ir.Value, numbers: Sequence[ir.Value]) -> None:
        """Store a row of numbers as levels."""
        builder = self.builder
        if self.least is None:
            for n, number in enumerate(numbers):
                self.write(as_bytes(builder, self.clamped(number, Row.LOW, Row.HIGH, n)), address, n)
            return
        size = _EACH * self.lanes
        words, bytes = ir.VectorType(_I32, self.lanes), ir.VectorType(_I8, size)
        order = [_EACH * lane + n for n in range(_EACH) for lane in range(self.lanes // _EACH)]
        found = builder.bitcast(self.as_levels(numbers), words)
        found = builder.bitcast(builder.shuffle_vector(found, found, ir.Constant(words, order)), bytes)
        known = builder.trunc(builder.add(self.of.last, int64(self.lanes * (self.count - 1))), _I8)
        store_lanes(builder, found, at(builder, address, int64(0), bytes), mask_of(builder, known, size), 1)

    def as_levels(self, numbers: Sequence[ir.Value]) -> ir.Value:
        """Return a row of numbers as levels, in the order of ``packed``. NaN becomes the least level."""
        builder, least = self.builder, self.least
        bounds = [self.number(Row.HIGH, n) for n in range(self.count)]
        most = [
            builder.select(builder.fcmp_ordered(">", number, bound), bound, number)
            for number, bound in zip(numbers, bounds)
        ]
        found = packed(builder, most)
        return builder.select(builder.icmp_unsigned(">", found, least), found, least)

    def write_numbers(self, address: ir.Value, numbers: Sequence[ir.Value]) -> None:
        """Store a row of f32."""
        for n, number in enumerate(numbers):
            self.write(self.clamped(number, Row.LOW, Row.HIGH, n), address, n)

    def number(self, which: Row, n: int, type: ir.Type | None = None) -> ir.Value:
        """Return the vector ``n`` of a row of the numbers."""
        place = int64(4 * self.lanes * (VECTORS * which + n))
        return self.builder.load(at(self.builder, self.of.numbers, place, type or self.floats), align=4)

    def clamped(self, value: ir.Value, low: Row, high: Row, n: int) -> ir.Value:
        for sign, which in ((">", low), ("<", high)):
            bound = self.number(which, n)
            value = self.builder.select(self.builder.fcmp_ordered(sign, value, bound), value, bound)
        return value

    def read_full(self, address: ir.Value, n: int) -> ir.Value:
        """Return the vector ``n`` of a row of bytes, all of whose lanes are channels."""
        return self.builder.load(at(self.builder, address, int64(self.lanes * n), self.bytes), align=1)

    def read(self, address: ir.Value, n: int) -> ir.Value:
        """Return the vector ``n`` of a row of bytes. Lanes beyond the last channel are zeros."""
        builder, place = self.builder, at(self.builder, address, int64(self.lanes * n), self.bytes)
        if n < self.count - 1:
            return self.read_full(address, n)
        loaded = cgutils.alloca_once(builder, self.bytes)
        with builder.if_else(self.full) as (if_full, if_part):
            with if_full:
                builder.store(self.read_full(address, n), loaded)
            with if_part:
                builder.store(load_lanes(builder, place, self.mask, 1), loaded)
        return builder.load(loaded)

    def write(self, value: ir.Value, address: ir.Value, n: int) -> None:
        """Store the vector ``n`` of a row, without lanes beyond the last channel."""
        builder, (type, size) = self.builder, (self.bytes, 1) if self.levels else (self.floats, 4)
        place = at(builder, address, int64(size * self.lanes * n), type)
        if n < self.count - 1:
            builder.store(value, place, align=size)
            return
        with builder.if_else(self.full) as (if_full, if_part):
            with if_full:
                builder.store(value, place, align=size)
            with if_part:
                store_lanes(builder, value, place, self.mask, size)


def as_bytes(builder: Any, numbers: ir.Value) -> ir.Value:
    """Return a vector of f32 from 0 to 255, rounded to bytes; a number in the middle between two becomes the even one.

    The sum with a large number has the integer in its lowest bits.
    """
    type: Any = numbers.type  # type: ignore[attr-defined]
    large = builder.fadd(numbers, equal(type, _ROUNDING))
    bits = builder.bitcast(large, ir.VectorType(_I32, type.count))
    return builder.trunc(bits, ir.VectorType(_I8, type.count))


def packed(builder: Any, numbers: Sequence[ir.Value]) -> ir.Value:
    """Return up to four vectors of f32, rounded, as one of bytes: in each sixteen bytes, four numbers of each vector.

    The vectors have 16 numbers (AVX-512), 8 (AVX2) or 4 (SSE), each below 2^31. Smaller ones than 0, and NaN, become 0.
    """
    type: Any = numbers[0].type  # type: ignore[attr-defined]
    whole: Any = ir.VectorType(_I32, type.count)
    # in the mode of the processor: to the nearest, or the even one
    more = () if type.count < _WIDEST else (equal(whole, 0), ir.Constant(ir.IntType(16), -1), ir.Constant(_I32, 4))
    found = [called(builder, _WHOLE[type.count], whole, number, *more) for number in numbers]
    found = [found[n % len(found)] for n in range(_EACH)]
    for name in _PACKS[type.count]:
        wide: Any = found[0].type
        narrow = ir.VectorType(ir.IntType(wide.element.width // 2), 2 * wide.count)
        found = [called(builder, name, narrow, *found[n : n + 2]) for n in range(0, len(found), 2)]
    return found[0]
