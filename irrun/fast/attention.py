"""Attention with compiled loops: the weights of a few queries stay in the cache between both products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Final, Protocol

import numpy as np

from irrun.fast.few_queries import MAX_QUERIES, attend_in_place
from irrun.fast.functions import Number, contracted
from irrun.fast.machine.memory import address_of, data_address, row_at
from irrun.fast.machine.processor import ROWS, compiled
from irrun.fast.machine.sharing import share
from irrun.fast.normalization import weigh
from irrun.fast.panels import MAX_SUMMED_ROWS, WIDTH, multiply_half, multiply_panel
from irrun.kernels import attention as by_numpy
from irrun.kernels.blocks import report_in_blocks
from irrun.kernels.threads import threads
from irrun.opdef import Kernel, OnTileReady, Request, ignore_tile

__all__ = ["attention", "offer"]

_ONE: Final = np.float32(1)
_HIDDEN: Final = np.float32(-np.inf)
_MAX_CACHED_QUERIES: Final = 8 * ROWS
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
        if width and query.shape[-2] <= MAX_QUERIES and not op.causal:
            whole = np.empty((*query.shape[:-1], value.shape[-1]), np.float32) if out is None else out
            factor = float(width) ** -0.5 if scale is None else scale.item()
            if attend_in_place(query, key, value, mask, factor, whole):
                on_tile_ready((slice(None),) * whole.ndim)
                return whole
        return in_blocks(query, key, value, mask, scale, sink, out=out, on_tile_ready=on_tile_ready)

    return replace(kernel, call=call, algorithm="compiled")


def attention(
    asked: by_numpy.Attention, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
) -> np.ndarray:
    """Return the same as ``irrun.kernels.attention.attention`` for arrays of f32."""
    query, key, value = asked.query, asked.key, asked.value
    queries, keys, width = query.shape[-2], key.shape[-1], value.shape[-1]
    reads_hidden = asked.causal and not asked.hides()
    if not (keys and query.shape[-1] and width) or reads_hidden:
        return by_numpy.attention(asked, out=out, on_tile_ready=on_tile_ready)
    mask = _sum(asked.masks, keys)
    whole = _result(query, key, value, mask) if out is None else out
    arrays = [_in_rows(query), _keys(key), _in_rows(value), whole, *(() if mask is None else (_in_rows(mask),))]
    offsets, steps = _layout(tuple((a.shape, a.strides) for a in arrays))
    begins = np.array([data_address(array) for array in arrays])
    places = begins.reshape(-1, 1) + offsets
    heads = places.shape[1]
    # where there are too few heads, the keys and values of a head are packed for each part of it
    even = heads % threads() == 0 or heads > _MANY_HEADS_PER_THREAD * threads()
    unit = max(queries if even else min(_MAX_CACHED_QUERIES, queries), 1)
    work, sizes = _WORK_PER_WEIGHT * heads * queries * keys, (query.shape[-1], queries, keys, width)
    share(_attend, heads * queries, work, places, steps, np.float32(asked.scale), *sizes, asked.causal, unit=unit)
    report_in_blocks(whole, on_tile_ready)
    return whole


_MANY_HEADS_PER_THREAD: Final = 4
"""Heads for each thread, with more of which it does not matter that a thread has one more than another."""


def _result(query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return a new array for the results."""
    batch = np.broadcast_shapes(*(a.shape[:-2] for a in (query, key, value, mask) if a is not None))
    return np.empty((*batch, query.shape[-2], value.shape[-1]), np.float32)


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


_WORK_PER_WEIGHT: Final = 128
"""The time that a weight takes, in units of ``threads.WORTH``."""


def _sum(masks: Sequence[np.ndarray], keys: int) -> np.ndarray | None:
    """Return the sum of the masks as f32 [..., queries or 1, keys], or None if there are none."""
    if not masks:
        return None
    mask = reduce(np.add, (by_numpy.addend(mask, np.dtype(np.float32)) for mask in masks))
    return np.broadcast_to(mask, (*mask.shape[:-1], keys))


@compiled
def _attend(
    places: np.ndarray, steps: np.ndarray, scale: Number, depth: int, queries: int, keys: int, width: int,
    causal: bool, first: int, last: int,
) -> None:  # fmt: skip
    """Compute the attention of the queries ``first`` to ``last``, counted over the heads.

    ``places`` i64 [4 or 5, heads] holds the addresses of the matrices of f32 of each head: of the queries, the keys,
    the values, the results and, if there is one, the mask that is added. ``steps`` i64 [4 or 5] says how many numbers
    apart their rows are, which are contiguous. If ``causal``, a query sees the keys up to its own position.
    """
    panels, tall = -(-keys // WIDTH), min(_MAX_CACHED_QUERIES, queries, last - first)
    columns, wide = panels * WIDTH, -(-width // WIDTH)
    across = np.zeros((panels, depth, WIDTH), np.float32)
    values = np.zeros((wide, keys, WIDTH), np.float32)
    some = np.empty((tall, depth), np.float32)
    weights = np.empty((tall, columns), np.float32)
    sums = np.empty((tall, wide * WIDTH), np.float32)
    factors = np.empty(tall, np.float32)
    for head in range(first // queries, -(-last // queries)):
        begin, end = max(first - head * queries, 0), min(last - head * queries, queries)
        for j in range(keys):
            key = row_at(places[1, head] + 4 * j * steps[1], depth)
            for k in range(depth):
                across[j // WIDTH, k, j % WIDTH] = key[k]
        for panel in range(wide):
            for j in range(keys):
                _copy(
                    places[2, head] + 4 * (j * steps[2] + panel * WIDTH),
                    address_of(values) + 4 * (panel * keys + j) * WIDTH, min(WIDTH, width - panel * WIDTH), _ONE,
                )  # fmt: skip
        for top in range(begin, end, tall):
            high = min(tall, end - top)
            for i in range(high):
                _copy(places[0, head] + 4 * (top + i) * steps[0], address_of(some) + 4 * i * depth, depth, scale)
            seen = min(keys, top + high) if causal else keys
            for panel in range(-(-seen // WIDTH)):
                b = address_of(across) + panel * across.strides[0]
                c = address_of(weights) + 4 * panel * WIDTH
                multiply_panel(across, address_of(some), depth, b, 0, c, columns, high, depth, False)
            for i in range(high):
                row = row_at(address_of(weights) + 4 * i * columns, -(-seen // WIDTH) * WIDTH)
                if len(places) == 5:
                    _add(row, row_at(places[4, head] + 4 * (top + i) * steps[4], keys))
                for j in range(min(keys, top + i + 1) if causal else keys, row.size):
                    row[j] = _HIDDEN
                factors[i] = _ONE / weigh(row)
            for start in range(0, seen, MAX_SUMMED_ROWS):
                count, at = min(MAX_SUMMED_ROWS, seen - start), address_of(weights) + 4 * start
                for panel in range(wide):
                    b = address_of(values) + panel * values.strides[0] + 4 * start * WIDTH
                    c, ldc, adds = address_of(sums) + 4 * panel * WIDTH, wide * WIDTH, start > 0
                    if width - panel * WIDTH <= WIDTH // 2:
                        multiply_half(values, at, columns, b, 0, c, ldc, high, count, adds)
                    else:
                        multiply_panel(values, at, columns, b, 0, c, ldc, high, count, adds)
            for i in range(high):
                place = places[3, head] + 4 * (top + i) * steps[3]
                _copy(address_of(sums) + 4 * i * wide * WIDTH, place, width, factors[i])


@contracted
def _copy(source: int, target: int, count: int, factor: Number) -> None:
    """Copy a row of numbers from an address to another, multiplied by a factor."""
    row, filled = row_at(source, count), row_at(target, count)
    for j in range(count):
        filled[j] = row[j] * factor


@contracted
def _add(row: np.ndarray, mask: np.ndarray) -> None:
    for j in range(min(row.size, mask.size)):
        row[j] += mask[j]
