"""Depthwise windows of bytes, four taps at once, as LLVM code: a lane has the bytes of a channel under four taps.

The bytes of four taps are interleaved within each sixteen bytes, by instructions for that. So a vector has four
channels of each sixteen, and three others have the rest. The sums are brought in order after the last tap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from irrun.base.memory import lasting
from irrun.fast.block import at, int64
from irrun.fast.machine.late import cgutils, ir
from irrun.fast.machine.processor import ROWS

__all__ = ["TAPS", "add_quads", "in_quads"]

TAPS: Final = 4
"""Taps whose products one lane of a vector of sums adds up."""
_LANE: Final = 16
"""Bytes within which instructions interleave."""
_EACH: Final = _LANE // TAPS
"""Channels of each sixteen in a vector."""
_MAX_LANES: Final = 4
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


def add_quads(
    builder: Any, table: ir.Value, taps: ir.Value, weights: ir.Value, shift: ir.Value, channels: ir.Value, count: int
) -> Sequence[ir.Value]:
    """Return the sums of products of a window, ``count`` vectors of 16 i32.

    ``table`` is the address of the addresses of the bytes of each tap, which are ``ROWS`` apart; ``shift`` is added to
    them. ``weights`` is the address of a panel of ``in_quads``. Nothing is read beyond ``channels``.
    """
    lanes = next(n for n in (1, 2, _MAX_LANES) if n >= count)
    bytes, sums = ir.VectorType(_I8, _LANE * lanes), ir.VectorType(_I32, _EACH * lanes)
    places = ir.Constant(bytes, [*range(_LANE * lanes)])
    first = builder.insert_element(ir.Constant(bytes, ir.Undefined), builder.trunc(channels, _I8), _index(0))
    mask = builder.icmp_unsigned("<", places, builder.shuffle_vector(first, first, _order([0] * _LANE * lanes)))
    load = _function(
        builder, f"llvm.masked.load.v{_LANE * lanes}i8.p0", bytes, bytes.as_pointer(), _I32, mask.type, bytes
    )
    add = _function(builder, f"llvm.x86.avx512.vpdpbusd.{8 * _LANE * lanes}", sums, sums, sums, sums)
    totals = [cgutils.alloca_once(builder, sums) for _ in range(TAPS)]
    for total in totals:
        builder.store(ir.Constant(sums, [0] * _EACH * lanes), total)
    zeros, size = ir.Constant(bytes, [0] * _LANE * lanes), int64(TAPS)

    def add_quad(quad: ir.Value, known: int) -> None:
        """Add the products of a quad of which so many taps are known."""
        entries = builder.add(table, builder.mul(quad, int64(TAPS * 8 * ROWS)))
        loads = [zeros] * TAPS
        for n in range(known):
            entry = builder.load(at(builder, entries, int64(n * 8 * ROWS), _I64))
            place = at(builder, builder.add(entry, shift), int64(0), bytes)
            loads[n] = builder.call(load, [place, _index(1), mask, zeros])
        pairs = [_interleaved(builder, two, lanes, 1, half) for half in range(2) for two in (loads[:2], loads[2:])]
        words = [_interleaved(builder, pairs[2 * n : 2 * n + 2], lanes, 2, half) for n in range(2) for half in range(2)]
        begin = builder.add(weights, builder.mul(quad, int64(TAPS * _LANE * _MAX_LANES)))
        for n, (word, total) in enumerate(zip(words, totals)):
            weight = builder.load(at(builder, begin, int64(n * _LANE * _MAX_LANES), sums), align=4)
            builder.store(builder.call(add, [builder.load(total), builder.bitcast(word, sums), weight]), total)

    whole, rest = builder.sdiv(taps, size), builder.srem(taps, size)
    with cgutils.for_range(builder, whole) as quad:
        add_quad(quad.index, TAPS)
    for known in range(1, TAPS):
        with builder.if_then(builder.icmp_signed("==", rest, int64(known))):
            add_quad(whole, known)
    found = [builder.load(total) for total in totals]
    return [_in_order(builder, found, lane) for lane in range(count)]


def _interleaved(builder: Any, two: Sequence[ir.Value], lanes: int, size: int, half: int) -> ir.Value:
    """Return units of so many bytes of two vectors in turn, of the lower or the upper half of each lane."""
    order: list[int] = []
    for lane in range(lanes):
        for begin in range(_LANE * lane + _LANE // 2 * half, _LANE * lane + _LANE // 2 * (half + 1), size):
            order += [*range(begin, begin + size)]
            order += [*range(_LANE * lanes + begin, _LANE * lanes + begin + size)]
    return builder.shuffle_vector(*two, _order(order))


def _in_order(builder: Any, found: Sequence[ir.Value], lane: int) -> ir.Value:
    """Return the sums of the channels of a lane, of which each vector has four."""
    own, width = [_EACH * lane + n for n in range(_EACH)], found[0].type.count  # type: ignore[attr-defined]
    halves = [
        builder.shuffle_vector(a, b, _order([*own, *(width + n for n in own)])) for a, b in (found[:2], found[2:])
    ]
    return builder.shuffle_vector(*halves, _order([*range(4 * _EACH)]))


def _order(places: Sequence[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(_I32, len(places)), [*places])


def _index(number: int) -> ir.Constant:
    return ir.Constant(_I32, number)


def _function(builder: Any, name: str, result: ir.Type, *arguments: ir.Type) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)
