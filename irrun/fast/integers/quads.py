"""Depthwise windows of bytes, four taps at once, as LLVM code: a lane has the bytes of a channel under four taps.

The bytes of four taps are interleaved within each sixteen bytes, by instructions for that. So a vector has four
channels of each sixteen, and three others have the rest. To pack the results to bytes brings them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from irrun.base.memory import lasting
from irrun.fast.integers.block import Arguments, IntegerBlock, Row
from irrun.fast.integers.dots import DOTS, Dot
from irrun.fast.machine.emitting import at, called, equal, int64, load_lanes, mask_of, store_lanes
from irrun.fast.machine.late import cgutils, emitted, ir, types
from irrun.fast.machine.processor import ROWS

__all__ = ["TAPS", "by_quads", "emit_windows", "in_quads", "quad_block"]

TAPS: Final = 4
"""Taps whose products one lane of a vector of sums adds up."""
_LANE: Final = 16
"""Bytes within which instructions interleave."""
_EACH: Final = _LANE // TAPS
"""Channels of each sixteen in a vector."""
_MAX_LANES: Final = 4
_HELD_TAPS: Final = 9
"""The taps of most depthwise filters, whose weights stay in registers."""
_I8: Final = ir.IntType(8)
_I32: Final = ir.IntType(32)
_I64: Final = ir.IntType(64)


def in_quads(codes: np.ndarray) -> np.ndarray:
    """Return filters i8 [channels, taps] as panels i16 [panels, quads of taps, 128], in which two i8 are an i16.

    A panel has the weights of 64 channels: of each quad four vectors of four channels of each sixteen.
    """
    channels, taps = codes.shape
    panels, quads = -(-channels // (_MAX_LANES * _LANE)), -(-taps // TAPS)
    whole = np.zeros((panels * _MAX_LANES * _LANE, quads * TAPS), np.int8)
    whole[:channels, :taps] = codes
    cut = whole.reshape(panels, _MAX_LANES, TAPS, _EACH, quads, TAPS).transpose(0, 4, 2, 1, 3, 5)
    return lasting(cut).reshape(panels, quads, -1).view(np.int16)


def by_quads(numbers: np.ndarray, channels: int) -> np.ndarray:
    """Return numbers [panels, rows, 64] of so many channels in the order in which ``quad_block`` has sums."""
    ordered = np.zeros_like(numbers)
    for n, panel in enumerate(numbers):
        lanes = _lanes(-(-min(channels - n * _MAX_LANES * _LANE, _MAX_LANES * _LANE) // _LANE))
        cut = panel[:, : lanes * _LANE].reshape(-1, lanes, TAPS, _EACH).swapaxes(1, 2)
        ordered[n, :, : lanes * _LANE] = cut.reshape(len(panel), -1)
    return ordered


def _lanes(vectors: int) -> int:
    """Return how many times sixteen bytes a vector holds for so many vectors of sums in order."""
    return next(n for n in (1, 2, _MAX_LANES) if n >= vectors)


def _quad_block(
    context: Any, vectors: Any, out: Any, table: Any, taps: Any, b: Any, targets: Any, column: Any, last: Any,
    numbers: Any, rounds: Any, adds: Any,
) -> Any:  # fmt: skip
    """Compute ``ROWS`` depthwise windows as ``integer_block`` does, with the weights of ``in_quads``.

    ``numbers`` is the address of a panel of ``by_quads``. The block begins with the channel ``column`` of the data.
    """
    is_level = out.dtype.name == "uint8"

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        vectors, _, table, taps, b, targets, column, last, numbers, rounds, adds = arguments
        channels = builder.add(builder.mul(builder.sub(vectors, int64(1)), int64(_LANE)), last)
        of = Arguments(table, taps, taps, b, targets, column, column, channels, numbers, rounds, adds)
        for least, lanes in ((0, 1), (1, 2), (2, _MAX_LANES)):
            fits = builder.icmp_signed("<=", vectors, int64(lanes))
            with builder.if_then(builder.and_(builder.icmp_signed(">", vectors, int64(least)), fits)):
                emit_windows(builder, lanes, is_level, of)
        return context.get_dummy_value()

    given = (table, taps, b, targets, column, last, numbers, rounds, adds)
    return types.void(types.int64, out, *given), generate


quad_block: Final[Callable[..., None]] = emitted(_quad_block)


def emit_windows(builder: Any, lanes: int, levels: bool, of: Arguments) -> None:
    """Emit the block, whose channels ``of.last`` counts. The weights of nine taps stay in registers."""
    block = _QuadBlock(builder, DOTS["avx512vnni"], lanes, levels, of)
    with builder.if_else(builder.icmp_signed("==", of.taps, int64(_HELD_TAPS))) as (if_held, if_other):
        with if_held:
            weights = [block.weights(int64(quad)) for quad in range(-(-_HELD_TAPS // TAPS))]
            with cgutils.for_range(builder, int64(ROWS)) as row:
                block.emit_window(row.index, weights)
        with if_other, cgutils.for_range(builder, int64(ROWS)) as row:
            block.emit_window(row.index, None)


class _QuadBlock(IntegerBlock):
    """Emits a window after the other. Its vectors are the sums of four channels of each sixteen."""

    def __init__(self, builder: Any, dot: Dot, lanes: int, levels: bool, arguments: Arguments) -> None:
        super().__init__(builder, dot, True, TAPS, levels, arguments)
        self.rows, self.lanes, self.whole = 1, _EACH * lanes, lanes
        self.floats, self.sums = (ir.VectorType(type, self.lanes) for type in (ir.FloatType(), _I32))
        self.bytes = ir.VectorType(_I8, _LANE * lanes)
        self.mask = mask_of(builder, builder.trunc(arguments.last, _I8), _LANE * lanes)
        self.full = builder.icmp_signed("==", arguments.last, int64(_LANE * lanes))
        self.start, self.packs = arguments, True
        self.begin()

    def emit_window(self, row: ir.Value, weights: Sequence[Sequence[ir.Value]] | None) -> None:
        """Emit the window of a row of the table, with the weights of each quad, or those in memory."""
        builder, start = self.builder, self.start
        table = builder.add(start.table, builder.mul(row, int64(8)))
        self.of = replace(start, table=table, targets=builder.add(start.targets, builder.mul(row, int64(24))))
        (sums,) = variables = self.variables(self.sums)
        for n, sum in enumerate(sums):
            builder.store(self.number(Row.START, n, self.sums), sum)
        if weights is None:
            whole, rest = builder.sdiv(start.taps, int64(TAPS)), builder.srem(start.taps, int64(TAPS))
            with cgutils.for_range(builder, whole) as quad:
                self.add_quad(sums, quad.index, TAPS, self.weights(quad.index))
            for known in range(1, TAPS):
                with builder.if_then(builder.icmp_signed("==", rest, int64(known))):
                    self.add_quad(sums, whole, known, self.weights(whole))
        else:
            for quad, own in enumerate(weights):
                self.add_quad(sums, int64(quad), min(TAPS, _HELD_TAPS - TAPS * quad), own)
        self.finish(variables)

    def weights(self, quad: ir.Value) -> list[ir.Value]:
        """Return the weights of a quad, a vector for each vector of sums."""
        begin = self.builder.add(self.start.b, self.builder.mul(quad, int64(TAPS * _LANE * _MAX_LANES)))
        places = (at(self.builder, begin, int64(n * _LANE * _MAX_LANES), self.sums) for n in range(TAPS))
        return [self.builder.load(place, align=4) for place in places]

    def add_quad(self, sums: Sequence[ir.Value], quad: ir.Value, known: int, weights: Sequence[ir.Value]) -> None:
        """Add the products of a quad of which so many taps are known."""
        builder, of = self.builder, self.of
        entries = builder.add(of.table, builder.mul(quad, int64(TAPS * 8 * ROWS)))
        addresses = (builder.load(at(builder, entries, int64(n * 8 * ROWS), _I64)) for n in range(known))
        loads = [self.read_bytes(builder.add(address, of.shift)) for address in addresses]
        name = f"llvm.x86.avx512.vpdpbusd.{32 * self.lanes}"
        for word, weight, sum in zip(self.spread(loads), weights, sums):
            builder.store(called(builder, name, self.sums, builder.load(sum), word, weight), sum)

    def read_bytes(self, address: ir.Value) -> ir.Value:
        """Return the bytes of all channels of a pixel. Lanes beyond the last channel are zeros."""
        return load_lanes(self.builder, at(self.builder, address, int64(0), self.bytes), self.mask, 1)

    def spread(self, loads: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the bytes of up to four taps, as vectors of four bytes of a channel."""
        builder, lanes = self.builder, self.whole
        four = [*loads, *[equal(self.bytes, 0)] * (TAPS - len(loads))]
        pairs = [_interleaved(builder, two, lanes, 1, half) for half in range(2) for two in (four[:2], four[2:])]
        words = [_interleaved(builder, pairs[2 * n : 2 * n + 2], lanes, 2, half) for n in range(2) for half in range(2)]
        return [builder.bitcast(word, self.sums) for word in words]

    def number(self, which: Row, n: int, type: ir.Type | None = None) -> ir.Value:
        place = int64(4 * (_MAX_LANES * _LANE * which + self.lanes * n))
        return self.builder.load(at(self.builder, self.of.numbers, place, type or self.floats), align=4)

    def read_levels(self, address: ir.Value) -> Sequence[ir.Value]:
        return [self.builder.uitofp(word, self.floats) for word in self.spread([self.read_bytes(address)])]

    def write_levels(self, address: ir.Value, numbers: Sequence[ir.Value]) -> None:
        """Store numbers as levels. To pack them brings them in order."""
        self.store(address, self.as_levels(numbers), 1)

    def write_numbers(self, address: ir.Value, numbers: Sequence[ir.Value]) -> None:
        clamped = [self.clamped(number, Row.LOW, Row.HIGH, n) for n, number in enumerate(numbers)]
        self.store(address, _in_order(self.builder, clamped, self.whole), 4)

    def store(self, address: ir.Value, value: Any, size: int) -> None:
        """Store what belongs to the channels, in elements of ``size`` bytes."""
        place = at(self.builder, address, int64(0), value.type)
        with self.builder.if_else(self.full) as (if_full, if_part):
            with if_full:
                self.builder.store(value, place, align=size)
            with if_part:
                store_lanes(self.builder, value, place, self.mask, size)


def _interleaved(builder: Any, two: Sequence[ir.Value], lanes: int, size: int, half: int) -> ir.Value:
    """Return units of so many bytes of two vectors in turn, of the lower or the upper half of each lane."""
    order: list[int] = []
    for lane in range(lanes):
        for begin in range(_LANE * lane + _LANE // 2 * half, _LANE * lane + _LANE // 2 * (half + 1), size):
            order += [*range(begin, begin + size)]
            order += [*range(_LANE * lanes + begin, _LANE * lanes + begin + size)]
    return builder.shuffle_vector(*two, _order(order))


def _in_order(builder: Any, found: Sequence[ir.Value], lanes: int) -> ir.Value:
    """Return all channels in order. Each vector of ``found`` has four channels of each sixteen."""
    width = _EACH * lanes
    halves = [builder.shuffle_vector(a, b, _order([*range(2 * width)])) for a, b in (found[:2], found[2:])]
    places = [n * width + lane * _EACH + k for lane in range(lanes) for n in range(TAPS) for k in range(_EACH)]
    return builder.shuffle_vector(*halves, _order(places))


def _order(places: Sequence[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(_I32, len(places)), [*places])
