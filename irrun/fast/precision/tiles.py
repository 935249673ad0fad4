"""Products of rows with panels in the tiles of AMX, as LLVM code.

A tile is a register of ``TILE`` rows of ``TILE`` words of four bytes. One instruction multiplies a tile of rows by a
tile of a panel, whose words are pairs of bf16 or four bytes, and adds the products to a tile of sums: 16 times as many
as an instruction of AVX-512.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from irrun.fast.block import WIDTH
from irrun.fast.functions import contracted
from irrun.fast.machine.emitting import (
    CACHE_LINE_BYTES,
    FLOATS,
    INTS,
    at,
    called,
    fetch,
    int64,
    load_lanes,
    looped,
    mask_of,
    repeated,
    store_lanes,
)  # fmt: skip
from irrun.fast.machine.late import cgutils, emitted, ir, literal, types
from irrun.fast.machine.processor import VECTOR, has

__all__ = [
    "LEAST_ROWS", "LINES", "PAIRS", "TILE", "TILES", "UNSIGNED", "begin_tiles", "copy_words", "end_tiles",
    "holds_pairs", "multiply_rows", "multiply_tiles", "rows_at_once", "store_sums",
]  # fmt: skip

TILES: Final = has("amx-tile") and has("amx-bf16") and has("amx-int8") and has("avx512bf16")
"""Whether the processor has tiles. Where it has none, no instruction for them is emitted, not even in code that nobody
calls: LLVM would refuse it."""
TILE: Final = 16
"""Rows of a tile, and the words in each of them."""
LEAST_ROWS: Final = 2
"""The fewest rows for which tiles, most of whose rows are then empty, are faster than vectors."""
_MAX_HELD_BYTES: Final = 1 << 20
"""Bytes of the rows that each panel is multiplied with in turn, so that they stay in the second-level cache."""
_MAX_HELD_ROWS: Final = 8 * TILE
"""The most of these rows: their sums with a panel stay there, too."""

PAIRS: Final = 0
"""Words are pairs of bf16, and sums are f32. Subnormal numbers are 0."""
UNSIGNED: Final = 1
"""A word of a row is four u8, a word of a panel four i8, and sums are i32."""
_PRODUCTS: Final = ("llvm.x86.tdpbf16ps", "llvm.x86.tdpbusd")
_LOAD: Final = "llvm.x86.tileloadd64"
_STORE: Final = "llvm.x86.tilestored64"
_VOID: Final = ir.VoidType()
_I8: Final = ir.IntType(8)
_I64: Final = ir.IntType(64)
_SUMS, _ROW, _PANELS = (0, 1, 2, 3), 4, (5, 6)
"""The numbers of the tiles."""
LINES: Final = 4
"""Lines of memory that the processor fetches with each tile of a row: sixteen tiles of rows fetch the next panel."""
_MAX_CACHED_WORDS: Final = 144
"""The most rows of a panel that stay in the first-level cache, next to the sums of a tile of rows: 36 KiB. With all
rows of a panel, products take up to 1.4 times as long."""


@contracted
def rows_at_once(rows: int, words: int) -> int:
    """Return how many of so many rows, with so many words each, are held at once: whole tiles."""
    most = max(min(_MAX_HELD_BYTES // (4 * words), _MAX_HELD_ROWS) // TILE, 1) * TILE
    return min(-(-rows // TILE) * TILE, most)


def _holds_pairs(context: Any, panels: Any) -> Any:
    """Return whether an array is of pairs of bf16, which the compiler knows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        return ir.Constant(ir.IntType(1), int(panels.dtype.name == "uint32"))

    return types.boolean(panels), generate


holds_pairs: Final = cast(Callable[[Any], bool], emitted(_holds_pairs))


def _begin(context: Any, rows: Any) -> Any:
    """Configure the tiles of this thread. Those of rows and sums have ``rows`` rows, 1 to ``TILE``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        if not TILES:
            return context.get_dummy_value()
        few = (*_SUMS, _ROW)
        whole = int64(sum(TILE << 8 * tile for tile in range(8) if tile not in few))
        high = builder.add(builder.mul(arguments[0], int64(sum(1 << 8 * tile for tile in few))), whole)
        # the number of the layout; from byte 16 on, bytes in a row of each tile, two bytes each; from 48 on, rows
        sizes = [*map(int64, (1, 0, *[0x0001_0001_0001_0001 * 4 * TILE] * 2, 0, 0)), high, int64(0)]
        place = cgutils.alloca_once(builder, ir.ArrayType(_I64, 8))
        for n, size in enumerate(sizes):
            builder.store(size, cgutils.gep_inbounds(builder, place, 0, n))
        called(builder, "llvm.x86.ldtilecfg", _VOID, builder.bitcast(place, _I8.as_pointer()))
        return context.get_dummy_value()

    return types.void(rows), generate


def _end(context: Any) -> Any:
    """Leave the tiles empty, so that the system need not keep them when threads take turns."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        if TILES:
            called(builder, "llvm.x86.tilerelease", _VOID)
        return context.get_dummy_value()

    return types.void(), generate


begin_tiles: Final = cast(Callable[[int], None], emitted(_begin))
end_tiles: Final = cast(Callable[[], None], emitted(_end))


def _multiply_tiles(
    context: Any, kind: Any, adds: Any, a: Any, lda: Any, parts: Any, apart: Any, b: Any, words: Any, c: Any, ldc: Any,
    columns: Any, ahead: Any,
) -> Any:  # fmt: skip
    """Multiply ``TILE`` rows by the first columns of a panel, and store the sums at ``c``, or add them if ``adds``.

    ``kind`` is a literal. ``a``, ``b`` and ``c`` are addresses: of rows in ``parts`` parts, ``apart`` bytes apart, of
    ``words`` > 0 words, a multiple of ``TILE``; of as many rows of the panel; and of sums, of which there are whole
    tiles. The rows of ``a`` and ``c`` are ``lda`` and ``ldc`` bytes apart. Meanwhile, the processor fetches memory from
    ``ahead`` on.
    """
    products = _PRODUCTS[literal(kind)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        if not TILES:
            return context.get_dummy_value()
        _, adds, a, lda, parts, apart, b, words, c, ldc, columns, ahead = arguments
        rows = a, lda, parts, apart
        for wide in range(1, len(_SUMS) + 1):
            fits = builder.icmp_signed(">", columns, int64(TILE * (wide - 1)))
            if wide < len(_SUMS):
                fits = builder.and_(fits, builder.icmp_signed("<=", columns, int64(TILE * wide)))
            with builder.if_then(fits):
                _row_of_tiles(builder, products, _SUMS[:wide], adds, rows, b, words, (c, ldc), ahead)
        return context.get_dummy_value()

    return types.void(kind, adds, a, lda, parts, apart, b, words, c, ldc, columns, ahead), generate


multiply_tiles: Final[Callable[..., None]] = emitted(_multiply_tiles, prefer_literal=True)


def _row_of_tiles(
    builder: Any, products: str, sums: Sequence[int], adds: ir.Value, rows: Sequence[ir.Value], b: ir.Value,
    words: ir.Value, out: tuple[ir.Value, ir.Value], ahead: ir.Value,
) -> None:  # fmt: skip
    """Multiply a tile of rows by as many tiles of a panel as there are sums."""
    (a, lda, parts, apart), (c, ldc) = rows, out
    places = [at(builder, c, int64(4 * TILE * n), _I8) for n in range(len(sums))]
    with builder.if_else(builder.trunc(adds, ir.IntType(1))) as (if_more, if_first):
        with if_more:
            for sum, place in zip(sums, places):
                called(builder, _LOAD, _VOID, _tile(sum), place, ldc)
        with if_first:
            for sum in sums:
                called(builder, "llvm.x86.tilezero", _VOID, _tile(sum))

    def step(index: ir.Value, values: Sequence[ir.Value]) -> list[ir.Value]:
        left, top, fetched = values
        called(builder, _LOAD, _VOID, _tile(_ROW), at(builder, top, int64(0), _I8), lda)
        for n, sum in enumerate(sums):
            own, place = _tile(_PANELS[n % 2]), at(builder, left, int64(4 * TILE * n), _I8)
            called(builder, _LOAD, _VOID, own, place, int64(4 * WIDTH))
            called(builder, products, _VOID, _tile(sum), _tile(_ROW), own)
        for line in range(LINES):
            fetch(builder, builder.add(fetched, int64(CACHE_LINE_BYTES * line)))
        steps = 4 * WIDTH * TILE, 4 * TILE, CACHE_LINE_BYTES * LINES
        return [builder.add(value, int64(by)) for value, by in zip(values, steps)]

    def in_part(index: ir.Value, values: Sequence[ir.Value]) -> list[ir.Value]:
        begin = builder.add(a, builder.mul(index, apart))
        left, _, fetched = looped(builder, words, TILE, [values[0], begin, values[1]], step)
        return [left, fetched]

    looped(builder, parts, 1, [b, ahead], in_part)
    for sum, place in zip(sums, places):
        called(builder, _STORE, _VOID, _tile(sum), place, ldc)


@contracted
def multiply_rows(
    kind: int, a: int, lda: int, parts: int, apart: int, b: int, size: int, words: int, c: int, ldc: int, rows: int,
    columns: int,
) -> None:  # fmt: skip
    """Multiply any number of rows by the first columns of panels: see ``multiply_tiles``.

    A row has so many parts of ``words`` words, which are ``apart`` bytes apart; a panel has rows for all of them. A
    panel is ``size`` bytes behind the one before it. Some rows of it stay in the first-level cache, for all of ``a``.
    """
    pieces, together, tiles = -(-words // _MAX_CACHED_WORDS), max(_MAX_CACHED_WORDS // words, 1), words // TILE
    for column in range(0, columns, WIDTH):
        panel, place = b + column // WIDTH * size, c + 4 * column
        ahead, end = panel + size, panel + 2 * size
        for part in range(0, parts, together):
            some = min(together, parts - part)
            for piece in range(pieces):
                first, last = tiles * piece // pieces * TILE, tiles * (piece + 1) // pieces * TILE
                begin, weights = a + part * apart + 4 * first, panel + 4 * WIDTH * (part * words + first)
                for row in range(0, rows, TILE):
                    multiply_tiles(
                        kind, part + piece > 0, begin + row * lda, lda, some, apart, weights, last - first,
                        place + row * ldc, ldc, columns - column, ahead,
                    )  # fmt: skip
                    ahead = min(ahead + LINES * CACHE_LINE_BYTES // TILE * some * (last - first), end)


def _tile(number: int) -> ir.Constant:
    return ir.Constant(_I8, number)


def _store_sums(context: Any, sums: Any, rows: Any, columns: Any, c: Any, ldc: Any, then: Any) -> Any:
    """Store what becomes of sums of f32 [rows, WIDTH] at an address: see ``block.multiply_block``.

    Of each row, the first ``columns`` numbers are stored, 1 to ``WIDTH``. The rows of ``c`` are ``ldc`` floats apart.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        sums, rows, columns, c, ldc, then = arguments
        bias, residual, apart, low, high = cgutils.unpack_tuple(builder, then, 5)
        low, high = repeated(builder, low), repeated(builder, high)
        left = (builder.trunc(builder.sub(columns, int64(n)), ir.IntType(32)) for n in range(0, WIDTH, VECTOR))
        masks = [mask_of(builder, count) for count in left]
        is_bias, is_residual = (builder.icmp_signed("!=", address, int64(0)) for address in (bias, residual))
        # to read address 0 takes long, even if no lane is in the mask
        bias, residual = (builder.select(*known, sums) for known in ((is_bias, bias), (is_residual, residual)))
        added = [_read(builder, bias, n, mask, is_bias) for n, mask in enumerate(masks)]
        with cgutils.for_range(builder, rows) as loop:
            begin = builder.add(sums, builder.mul(loop.index, int64(4 * WIDTH)))
            more = builder.add(residual, builder.mul(builder.mul(loop.index, apart), int64(4)))
            line = builder.add(c, builder.mul(builder.mul(loop.index, ldc), int64(4)))
            for n, mask in enumerate(masks):
                value = builder.load(at(builder, begin, int64(4 * VECTOR * n), FLOATS), align=4)
                value = builder.fadd(builder.fadd(value, added[n]), _read(builder, more, n, mask, is_residual))
                value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
                value = builder.select(builder.fcmp_ordered(">", value, high), high, value)  # NaN stays
                store_lanes(builder, value, at(builder, line, int64(4 * VECTOR * n), FLOATS), mask, 4)
        return context.get_dummy_value()

    return types.void(sums, rows, columns, c, ldc, then), generate


def _read(builder: Any, address: ir.Value, n: int, mask: ir.Value, is_there: ir.Value) -> ir.Value:
    """Return the lanes in a mask of vector ``n`` at an address, or what changes no sum if nothing is there."""
    place = at(builder, address, int64(4 * VECTOR * n), FLOATS)
    return load_lanes(builder, place, builder.and_(mask, repeated(builder, is_there)), 4, -0.0)


store_sums: Final[Callable[..., None]] = emitted(_store_sums)


def _copy_words(context: Any, source: Any, target: Any, count: Any) -> Any:
    """Copy ``count`` words from an address to another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        source, target, count = arguments
        whole = builder.and_(count, int64(-VECTOR))

        def places(index: ir.Value) -> list[ir.Value]:
            offset = builder.mul(index, int64(4))
            return [at(builder, address, offset, INTS) for address in (source, target)]

        with cgutils.for_range_slice(builder, int64(0), whole, int64(VECTOR)) as (index, _):
            read, written = places(index)
            builder.store(builder.load(read, align=4), written, align=4)
        with builder.if_then(builder.icmp_signed("<", whole, count)):
            read, written = places(whole)
            mask = mask_of(builder, builder.trunc(builder.sub(count, whole), ir.IntType(32)))
            store_lanes(builder, load_lanes(builder, read, mask, 4), written, mask, 4)
        return context.get_dummy_value()

    return types.void(source, target, count), generate


copy_words: Final[Callable[..., None]] = emitted(_copy_words)
