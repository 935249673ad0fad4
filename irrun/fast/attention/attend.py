"""Attention with compiled loops: the weights of a few queries stay in the cache between both products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from math import prod
from typing import Final, NamedTuple, Protocol

import numpy as np

from irrun.fast.attention.packing import copy_row, pack_keys, pack_rows, pack_values
from irrun.fast.attention.weights import TOGETHER, fetch_row, weigh_block, weigh_rows
from irrun.fast.block import HALF
from irrun.fast.functions import Number, contracted
from irrun.fast.machine.memory import address_of, data_address
from irrun.fast.machine.processor import ROWS, VECTOR, VECTORS, compiled
from irrun.fast.machine.sharing import share_call
from irrun.fast.panels import AS_THEY_ARE, MAX_SUMMED_ROWS, WIDTH, multiply_half, multiply_panel
from irrun.fast.precision.pairs import GROUP
from irrun.fast.precision.tiles import PAIRS, TILE, TILES, begin_tiles, copy_words, end_tiles, multiply_rows
from irrun.fast.tokens.few_queries import attend_in_place
from irrun.kernels import attention as by_numpy
from irrun.kernels.blocks import report_in_blocks
from irrun.kernels.threads import threads
from irrun.opdef import Call, Calls, Joins, Kernel, OnTileReady, Request, ignore_tile

__all__ = ["attention", "offer"]

_ONE: Final = np.float32(1)
_ZERO: Final = np.float32(0)
_HIDDEN: Final = np.float32(-np.inf)
_MAX_CACHED_QUERIES: Final = 4 * TILE if TILES else 10 * ROWS
"""Queries whose weights are in the cache at once."""


class _Attention(Protocol):
    causal: bool

    def prepared(self, request: Request, attend: by_numpy.Attend, /) -> Kernel | None: ...


def offer(op: _Attention, request: Request) -> Kernel | None:
    """Return the kernel of ScaledDotProductAttention for f32, or None for others."""
    query = request.inputs[0]
    kernel = op.prepared(request, attention) if query is not None and query.type.name == "f32" else None
    if kernel is None:
        return None
    in_blocks = kernel.call

    def call(
        query: np.ndarray, key: np.ndarray, value: np.ndarray,
        mask: np.ndarray | None = None, scale: np.ndarray | None = None, sink: np.ndarray | None = None,
        *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile,
    ) -> np.ndarray:  # fmt: skip
        width = query.shape[-1]
        if width and query.shape[-2] <= by_numpy.FEW_QUERIES and not op.causal:
            whole = np.empty((*query.shape[:-1], value.shape[-1]), np.float32) if out is None else out
            factor = float(width) ** -0.5 if scale is None else scale.item()
            if attend_in_place(query, key, value, mask, factor, whole):
                on_tile_ready((slice(None),) * whole.ndim)
                return whole
        return in_blocks(query, key, value, mask, scale, sink, out=out, on_tile_ready=on_tile_ready)

    return replace(kernel, call=call, algorithm="compiled", joins=replace(_joins(op, request), by_heads=True))


def _joins(op: _Attention, request: Request) -> Joins:
    """Return the calls of attention, if shapes and types of the inputs tell which these are."""
    query, key, value, mask, scale = request.first(5)
    queries, keys, values = ([] if one is None else [*(one.shape.static or ())] for one in (query, key, value))
    if not (prod(queries) and prod(keys) and prod(values)) or min(map(len, (queries, keys, values))) < 2:
        return Joins()
    if op.causal or queries[-2] <= by_numpy.FEW_QUERIES or (scale is not None and scale.exact is None):
        return Joins()
    if mask is not None and mask.exact is not None and _changes_nothing(mask.exact, len(queries)):
        mask = None
    sizes, type = ((), "") if mask is None else (mask.shape.static or (), mask.type.name)
    if mask is not None and ([*sizes[-1:]] != keys[-2:-1] or prod(sizes) < 2 or type not in ("f32", "boolean")):
        return Joins()  # a single number may change nothing in one run alone
    is_bool, size = type == "boolean", prod(sizes)

    def calls(*inputs: np.ndarray | None, out: np.ndarray, spare: np.ndarray) -> Calls:
        made, given, shown = list[Call](), [*inputs], inputs[3] if is_bool else None
        if shown is not None:
            given[3] = spare[: 4 * size].view(np.float32).reshape(shown.shape)
            made.append(Call(_fill_addends, (shown.view(np.uint8).reshape(-1), given[3].reshape(-1)), size))

        def record(
            asked: by_numpy.Attention, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
        ) -> np.ndarray:
            assert out is not None
            made.append(_prepared(asked, out).call)
            return out

        kernel = op.prepared(request, record)
        assert kernel is not None
        kernel.call(*given, out=out)
        return made

    return Joins(calls=calls, reads_view=_reads_view, spare_bytes=4 * size if is_bool else 0)


def _reads_view(number: int, array: np.ndarray) -> bool:
    """Return whether attention reads queries, keys and values with such strides in place: their rows are contiguous."""
    return number < 3 and array.strides[-1] == array.itemsize


@compiled
def _fill_addends(mask: np.ndarray, added: np.ndarray, first: int, last: int) -> None:
    """Fill what is added to scores: 0 where a mask of bytes is true, and -Inf elsewhere."""
    for i in range(first, last):
        added[i] = _ZERO if mask[i] else _HIDDEN


def attention(
    asked: by_numpy.Attention, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
) -> np.ndarray:
    """Return the same as ``irrun.kernels.attention.attention`` for arrays of f32."""
    reads_hidden = asked.causal and not asked.hides()
    if not (asked.key.shape[-1] and asked.query.shape[-1] and asked.value.shape[-1]) or reads_hidden:
        return by_numpy.attention(asked, out=out, on_tile_ready=on_tile_ready)
    whole = _result(asked) if out is None else out
    prepared = _prepared(asked, whole)
    share_call(prepared.call, prepared.work)
    report_in_blocks(whole, on_tile_ready)
    return whole


class _Prepared(NamedTuple):
    """A call, its work (see ``share_call``), and the arrays whose addresses it has."""

    call: Call
    work: int
    arrays: Sequence[np.ndarray]


def _prepared(asked: by_numpy.Attention, whole: np.ndarray) -> _Prepared:
    """Return the call that fills ``whole``."""
    query, key, value = asked.query, asked.key, asked.value
    queries, keys, width = query.shape[-2], key.shape[-1], value.shape[-1]
    mask = _sum([mask for mask in asked.masks if not _changes_nothing(mask, query.ndim)], keys)
    arrays = [_in_rows(query), _keys(key), _in_rows(value), whole, *(() if mask is None else (_in_rows(mask),))]
    offsets, steps = _layout(tuple((a.shape, a.strides) for a in arrays))
    begins = np.array([data_address(array) for array in arrays])
    places = begins.reshape(-1, 1) + offsets
    heads = places.shape[1]
    # where there are too few heads, the keys and values of a head are packed for each part of it
    even = heads % threads() == 0 or heads > _MANY_HEADS_PER_THREAD * threads()
    unit = max(queries if even else min(_MAX_CACHED_QUERIES, queries), 1)
    work, sizes = _WORK_PER_WEIGHT * heads * queries * keys, (query.shape[-1], queries, keys, width)
    more = np.float32(asked.scale), *sizes, asked.causal
    return _Prepared(
        Call(_attend, (*_FORMS[asked.precision], places, steps, *more), heads * queries, unit), work, arrays
    )


_FORMS: Final = {"f32": (np.empty((0, 0, 0), np.float32), 1), "bf16": (np.empty((0, 0, 0), np.uint32), 2)}
"""The first arguments of ``_attend`` for each precision of operands."""
_MANY_HEADS_PER_THREAD: Final = 4
"""Heads for each thread, with more of which it does not matter that a thread has one more than another."""


def _result(asked: by_numpy.Attention) -> np.ndarray:
    """Return a new array for the results."""
    batch = np.broadcast_shapes(*(a.shape[:-2] for a in (asked.query, asked.key, asked.value, *asked.masks)))
    return np.empty((*batch, asked.query.shape[-2], asked.value.shape[-1]), np.float32)


def _in_rows(array: np.ndarray) -> np.ndarray:
    """Return matrices of f32 whose rows are contiguous."""
    contiguous = array.strides[-1] == 4 and all(step % 4 == 0 for step in array.strides)
    return array if contiguous else np.ascontiguousarray(array)


def _keys(key: np.ndarray) -> np.ndarray:
    """Return transposed keys [..., depth, keys], of which each key is contiguous."""
    return _in_rows(key.swapaxes(-1, -2)).swapaxes(-1, -2)


@lru_cache(1 << 8)
def _layout(
    arrays: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...],
) -> tuple[np.ndarray, np.ndarray]:
    """Return what follows from the shapes and strides of queries, keys, values, results and masks.

    That is the offset of each matrix in bytes [arrays, heads], and how many numbers apart the rows of the queries, the
    keys, and the rows of the values, results and masks are.
    """
    batch = arrays[3][0][:-2]
    offsets = np.zeros((len(arrays), *batch), np.int64)
    for offset, (shape, strides) in zip(offsets, arrays):
        for axis, (count, step) in enumerate(zip(shape[-3::-1], strides[-3::-1])):
            along = np.arange(count) * step
            offset += along.reshape(-1, *(1,) * axis)
    steps = [strides[-1 if number == 1 else -2] // 4 for number, (_, strides) in enumerate(arrays)]
    if len(arrays) == 5 and arrays[4][0][-2] == 1:
        steps[4] = 0  # the same mask for all queries
    return offsets.reshape(len(arrays), -1), np.array(steps)


_HALF_COLUMNS: Final = WIDTH // 2 if WIDTH // 2 % GROUP == 0 else 0
"""Columns of half a panel, if they are whole groups: weights are made of a group at a time."""
_FEW_VECTORS: Final = HALF if _HALF_COLUMNS else VECTORS
"""Vectors of these columns, or of a panel if there are none."""
_WORK_PER_WEIGHT: Final = 128
"""The time that a weight takes, in units of ``threads.WORTH``."""


def _changes_nothing(mask: np.ndarray, axes: int) -> bool:
    """Return whether a mask is a single 0 that is added, or True, as exporters write where there is no mask."""
    return mask.size == 1 and mask.ndim <= axes and mask.item() == (1 if mask.dtype == np.bool_ else 0)


def _sum(masks: Sequence[np.ndarray], keys: int) -> np.ndarray | None:
    """Return the sum of the masks as f32 [..., queries or 1, keys], or None if there are none."""
    if not masks:
        return None
    mask = np.atleast_2d(reduce(np.add, map(_addend, masks)))
    return np.broadcast_to(mask, (*mask.shape[:-1], keys))


def _addend(mask: np.ndarray) -> np.ndarray:
    """Return a mask as f32 that is added: 0 for True, whose bits are all 0, and -Inf for False."""
    if mask.dtype != np.bool_:
        return mask.astype(np.float32, copy=False)
    words = np.subtract(mask.view(np.int8), 1, dtype=np.int8).astype(np.int32)
    words &= _HIDDEN.view(np.int32)
    return words.view(np.float32)


@compiled
def _attend(
    form: np.ndarray, share: int, places: np.ndarray, steps: np.ndarray, scale: Number, depth: int, queries: int,
    keys: int, width: int, causal: bool, first: int, last: int,
) -> None:  # fmt: skip
    """Compute the attention of the queries ``first`` to ``last``, counted over the heads.

    The products are those of the form ``form.dtype``, of which a word of 32 bits holds ``share`` numbers: f32, or pairs
    of bf16 (see ``block.FORMS``). ``places`` i64 [4 or 5, heads] holds the addresses of the matrices of f32 of each
    head: of the queries, the keys, the values, the results and, if there is one, the mask that is added. ``steps`` i64
    [4 or 5] says how many numbers apart their rows are, which are contiguous. If ``causal``, a query sees the keys up
    to its own position.
    """
    panels, tall = -(-keys // WIDTH), min(_MAX_CACHED_QUERIES, queries, last - first)
    columns, wide, words = panels * WIDTH, -(-width // WIDTH), -(-depth // share)
    held, whole = -(-depth // GROUP) * GROUP // share, -(-tall // TILE) * TILE
    in_tiles = TILES and share == 2
    across = np.zeros((panels, held, WIDTH), form.dtype)
    values = np.zeros((wide, columns // share, WIDTH), form.dtype)
    some = np.zeros((whole, held), np.float32)
    weights = np.empty((whole, columns), np.float32)
    sums = np.empty((whole, wide * WIDTH), np.float32)
    factors, spare = np.empty(tall, np.float32), np.zeros((3, VECTOR), np.float32)
    # what is added to scores: zeros for the keys that a query sees, or its mask, and -Inf for the others
    shown, masks = np.zeros(2 * columns, np.float32), np.empty((tall, columns), np.float32)
    shown[columns:] = _HIDDEN
    masks[:, keys:] = _HIDDEN
    if in_tiles:
        begin_tiles(TILE)
    for head in range(first // queries, -(-last // queries)):
        begin, end = max(first - head * queries, 0), min(last - head * queries, queries)
        pack_keys(places[1, head], 4 * steps[1], keys, depth, share, across, some)
        pack_values(places[2, head], 4 * steps[2], keys, width, share, values, spare)
        for top in range(begin, end, tall):
            high = min(tall, end - top)
            a, lda = places[0, head] + 4 * top * steps[0], steps[0]
            if share == 2:
                pack_rows(a, 4 * lda, high, depth, share, address_of(some), 4 * held)
                a, lda = address_of(some), held
            _fetch_next(places, steps, head, (top, top + high), (depth, width), keys)
            seen = min(keys, top + high) if causal else keys
            if panels == 1 and not in_tiles:
                mask, step = (places[4, head], steps[4]) if len(places) == 5 else (address_of(shown), 0)
                rows, sees = (mask + 4 * top * step, step), (top + 1 if causal else keys, int(causal), keys)
                _weigh_few(across, weights, factors, (a, lda, words), rows, sees, scale, high)
            else:
                _score(across, (a, lda, words), weights, high, seen, in_tiles)
                groups, place, inverse = -(-seen // GROUP), address_of(weights), address_of(factors)
                mask, step, rising = address_of(shown) + 4 * (columns - keys), 0, 0
                if len(places) == 5:
                    mask, step = places[4, head] + 4 * top * steps[4], 4 * steps[4]
                    if keys % GROUP:
                        for i in range(high if step else 1):
                            copy_words(mask + i * step, address_of(masks) + 4 * i * columns, keys)
                        mask, step = address_of(masks), 4 * columns if step else 0
                elif causal:  # each query sees one key more than the one before it
                    rising = max(min(keys - top, high), 0)
                    more = address_of(shown) + 4 * (columns - top - 1)
                    _weigh_many(form, place, 4 * columns, more, -4, scale, groups, inverse, rising)
                place, inverse = place + 4 * rising * columns, inverse + 4 * rising
                _weigh_many(form, place, 4 * columns, mask, step, scale, groups, inverse, high - rising)
            _sum_up(values, weights, sums, high, seen, width, share, in_tiles)
            for i in range(high):
                place = places[3, head] + 4 * (top + i) * steps[3]
                copy_row(address_of(sums) + 4 * i * wide * WIDTH, place, width, factors[i])
    if in_tiles:
        end_tiles()


@contracted
def _weigh_many(
    form: np.ndarray, row: int, apart: int, mask: int, step: int, scale: Number, groups: int, factors: int, rows: int
) -> None:
    """Make weights of so many rows of scores: see ``weights.weigh_rows``."""
    whole = rows - rows % TOGETHER
    for n in range(0, whole, TOGETHER):
        weigh_rows(TOGETHER, form, row + n * apart, apart, mask + n * step, step, scale, groups, factors + 4 * n)
    for n in range(whole, rows):
        weigh_rows(1, form, row + n * apart, apart, mask + n * step, step, scale, groups, factors + 4 * n)


@contracted
def _score(
    across: np.ndarray, queries: tuple[int, int, int], weights: np.ndarray, high: int, seen: int, in_tiles: bool
) -> None:
    """Fill ``weights`` with the products of ``high`` queries with the first ``seen`` keys: see ``_weigh_few``."""
    (a, lda, words), columns, size = queries, weights.shape[1], across.strides[0]
    if in_tiles:
        b, right = address_of(across), -(-seen // GROUP) * GROUP
        c, ldc = address_of(weights), 4 * columns
        multiply_rows(PAIRS, a, 4 * lda, 1, 0, b, size, across.shape[1], c, ldc, high, right)
        return
    for panel in range(-(-seen // WIDTH)):
        b, c = address_of(across) + panel * size, address_of(weights) + 4 * panel * WIDTH
        if seen - panel * WIDTH <= _HALF_COLUMNS:
            multiply_half(across, a, lda, b, c, columns, high, words, False, AS_THEY_ARE)
        else:
            multiply_panel(across, a, lda, b, size, c, columns, high, words, False, AS_THEY_ARE)


@contracted
def _sum_up(
    values: np.ndarray, weights: np.ndarray, sums: np.ndarray, high: int, seen: int, width: int, share: int,
    in_tiles: bool,
) -> None:  # fmt: skip
    """Fill ``sums`` with the first ``seen`` values, times the weights of ``high`` queries. A word holds ``share``."""
    columns, size, wide = weights.shape[1], values.strides[0], sums.shape[1]
    if in_tiles:
        a, b, words = address_of(weights), address_of(values), -(-seen // GROUP) * GROUP // share
        multiply_rows(PAIRS, a, 4 * columns, 1, 0, b, size, words, address_of(sums), 4 * wide, high, width)
        return
    count = -(-seen // share)
    for start in range(0, count, MAX_SUMMED_ROWS):
        rows, at = min(MAX_SUMMED_ROWS, count - start), address_of(weights) + 4 * start
        for panel in range(len(values)):
            b, c = address_of(values) + panel * size + 4 * start * WIDTH, address_of(sums) + 4 * panel * WIDTH
            if width - panel * WIDTH <= WIDTH // 2:
                multiply_half(values, at, columns, b, c, wide, high, rows, start > 0, AS_THEY_ARE)
            else:
                multiply_panel(values, at, columns, b, 0, c, wide, high, rows, start > 0, AS_THEY_ARE)


@contracted
def _fetch_next(
    places: np.ndarray, steps: np.ndarray, head: int, rows: tuple[int, int], sizes: tuple[int, int], keys: int
) -> None:
    """Fetch rows of the queries, keys, values and results of the next head, which the processor does not guess.

    Where heads lie side by side, the rows of a head are far apart. ``sizes`` are those of a query and of a value.
    """
    (first, last), (depth, width) = rows, sizes
    if head + 1 == places.shape[1]:
        return
    for row in range(first, last):
        for number, size, count in ((0, depth, row + 1), (1, depth, keys), (2, width, keys), (3, width, row + 1)):
            if row < count:
                fetch_row(places[number, head + 1] + 4 * row * steps[number], 4 * size)


@contracted
def _weigh_few(
    across: np.ndarray, weights: np.ndarray, factors: np.ndarray, queries: tuple[int, int, int], mask: tuple[int, int],
    visible: tuple[int, int, int], scale: Number, count: int,
) -> None:  # fmt: skip
    """Fill the weights of queries, and one divided by the sum of each row, if one panel ``across`` holds all keys.

    ``queries`` are their address, how many numbers apart they are, and their words; ``mask`` is its address, and how
    many numbers apart its rows are. ``visible`` are the keys that the first query sees, how many more each other one
    sees than the one before it, and all keys.
    """
    (a, lda, words), (added, step), (seen, more, keys) = queries, mask, visible
    b, columns, row = address_of(across), weights.shape[1], 0
    while row < count:
        c, ldc, inverse, high = address_of(weights) + 4 * row * columns, columns, address_of(factors) + 4 * row, 1
        at, begin, sees = a + 4 * row * lda, added + 4 * row * step, seen + more * row
        if row + ROWS <= count:
            high = ROWS
            if keys <= _HALF_COLUMNS:
                weigh_block(
                    ROWS, _FEW_VECTORS, across, at, lda, b, words, begin, step, sees, more, keys, scale, c, ldc, inverse
                )
            else:
                weigh_block(
                    ROWS, VECTORS, across, at, lda, b, words, begin, step, sees, more, keys, scale, c, ldc, inverse
                )
        elif keys <= _HALF_COLUMNS:
            weigh_block(
                1, _FEW_VECTORS, across, at, lda, b, words, begin, step, sees, more, keys, scale, c, ldc, inverse
            )
        else:
            weigh_block(1, VECTORS, across, at, lda, b, words, begin, step, sees, more, keys, scale, c, ldc, inverse)
        row += high
