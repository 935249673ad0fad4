"""Attention of one new token of each of several sequences to keys and values in caches of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

import numpy as np

from irrun.fast.functions import contracted
from irrun.fast.machine.memory import address_of, row_at
from irrun.fast.machine.processor import compiled
from irrun.fast.machine.sharing import share
from irrun.fast.normalization import weigh
from irrun.fast.tokens.few_queries import mix, score
from irrun.opdef import Kernel, Request

__all__ = ["offer"]

_ONE: Final = np.float32(1)
_ZERO: Final = np.float32(0)
_HIDDEN: Final = np.float32(-np.inf)
_NONE: Final = np.zeros(0, np.float32)
_WORK_PER_PAIR: Final = 32
"""The time that a key and a value take for each number of a query, in units of ``threads.WORTH``."""


class _Bias(Protocol):
    @property
    def scale(self) -> float: ...

    @property
    def window(self) -> int: ...

    @property
    def slopes(self) -> np.ndarray | None: ...

    @property
    def sinks(self) -> np.ndarray | None: ...


class _PagedAttention(Protocol):
    def prepared(self, request: Request, decode: Callable[..., np.ndarray | None], /) -> Kernel: ...


def offer(op: _PagedAttention, request: Request) -> Kernel | None:
    """Return the kernel of PagedAttentionExtension for queries, keys and values in f32, or None for others."""
    types = [None if value is None else value.type.name for value in request.first(3)]
    return replace(op.prepared(request, decoded), algorithm="compiled") if types == ["f32"] * 3 else None


def decoded(
    rows: Sequence[np.ndarray], caches: Sequence[np.ndarray], tables: Sequence[np.ndarray], bias: _Bias
) -> np.ndarray | None:
    """Write one new key and value of each sequence to the caches, and return the averages, or None for other calls.

    ``rows`` are the queries, keys and values, f32 [sequences, n]. The caches are f32 [blocks, groups, slots, width],
    and ``tables`` are ``past_lens``, ``subsequence_begins``, ``block_indices`` and ``block_indices_begins``. None is
    also returned for tables that name no room of the caches; the caches may then have new rows.
    """
    key, value = caches
    if not (key.dtype == value.dtype == np.float32 and key.flags.c_contiguous and value.flags.c_contiguous):
        return None
    count, groups, slots, width = len(tables[0]), *key.shape[1:]
    if not (count and width and slots and value.shape[3] and len(rows[0]) == count == len(tables[1]) - 1):
        return None
    heads = rows[0].shape[1] // width
    out = np.empty((count, heads * value.shape[3]), np.float32)
    past, begins, blocks, block_begins = (np.ascontiguousarray(table, np.int32) for table in tables)
    slopes, sinks = (_NONE if own is None else own.astype(np.float32) for own in (bias.slopes, bias.sinks))
    work = _WORK_PER_PAIR * heads * width * slots * blocks.size
    arrays = (*map(np.ascontiguousarray, rows), key, value, past, begins, blocks, block_begins)
    factors = np.float32(bias.scale), bias.window, slopes, sinks
    return out if share(_attend, count * groups, work, *arrays, *factors, out) else None


@compiled
def _attend(
    query: np.ndarray, new_key: np.ndarray, new_value: np.ndarray, key: np.ndarray, value: np.ndarray,
    past: np.ndarray, begins: np.ndarray, blocks: np.ndarray, block_begins: np.ndarray, scale: np.float32, window: int,
    slopes: np.ndarray, sinks: np.ndarray, out: np.ndarray, first: int, last: int,
) -> int:  # fmt: skip
    """Compute the groups of heads from ``first`` to before ``last``, counted through the sequences.

    Returns 0 for sequences that have not one new token, or no room for it in the caches, and else 1.
    """
    groups, slots, width, wide = key.shape[1], key.shape[2], key.shape[3], value.shape[3]
    each, longest, cached = query.shape[1] // width // groups, 0, min(len(key), len(value))
    for pair in range(first, last):
        s = pair // groups
        room = (block_begins[s + 1] - block_begins[s]) * slots
        fits = begins[s] == s and begins[s + 1] == s + 1 and 0 <= past[s] < room
        if not (fits and block_begins[s] >= 0 and block_begins[s + 1] <= blocks.size):
            return 0
        longest = max(longest, past[s] + 2)
    scaled = np.empty(width, np.float32)
    weights = np.empty((each, longest), np.float32)
    some = np.empty(wide, np.float32)
    for pair in range(first, last):
        s, g = pair // groups, pair % groups
        at, begin = int(past[s]), int(block_begins[s])
        start = max(0, at + 1 - window) if window > 0 else 0
        for part in range(start // slots, at // slots + 1):
            if blocks[begin + part] >= cached or blocks[begin + part] < -1:
                return 0
        own = blocks[begin + at // slots]
        if own < 0:
            return 0
        key[own, g, at % slots] = new_key[s, g * width : (g + 1) * width]
        value[own, g, at % slots] = new_value[s, g * wide : (g + 1) * wide]
        for row in range(each):
            h, scores = g * each + row, address_of(weights) + 4 * row * longest
            for i in range(width):
                scaled[i] = query[s, h * width + i] * scale
            for part in range(start // slots, at // slots + 1):
                block, low, high = blocks[begin + part], max(part * slots, start), min(part * slots + slots, at + 1)
                if block < 0:
                    row_at(scores + 4 * (low - start), high - low)[:] = _HIDDEN
                else:
                    place = address_of(key) + 4 * width * ((block * groups + g) * slots + low - part * slots)
                    score(address_of(scaled), place, 4 * width, width, high - low, scores + 4 * (low - start))
            _finish(weights[row], slopes, sinks, h, at, start)
            sums = row_at(address_of(out) + 4 * (s * out.shape[1] + h * wide), wide)
            sums[:] = _ZERO
            for part in range(start // slots, at // slots + 1):
                block, low, high = blocks[begin + part], max(part * slots, start), min(part * slots + slots, at + 1)
                if block >= 0:
                    place = address_of(value) + 4 * wide * ((block * groups + g) * slots + low - part * slots)
                    mix(scores + 4 * (low - start), high - low, place, 4 * wide, wide, address_of(some))
                    for i in range(wide):
                        sums[i] += some[i]
    return 1


@contracted
def _finish(row: np.ndarray, slopes: np.ndarray, sinks: np.ndarray, head: int, at: int, start: int) -> None:
    """Replace the scores of the positions from ``start`` to ``at`` by their weights, or by zeros if all are -inf."""
    count = at + 1 - start
    if slopes.size:
        for i in range(count):
            row[i] += slopes[head] * np.float32(start + i - at)
    if sinks.size:
        row[count] = sinks[head]
        count += 1
    scores = row[:count]
    is_hidden = True
    for i in range(count):
        is_hidden = is_hidden and scores[i] == _HIDDEN
    factor = _ZERO if is_hidden else _ONE / weigh(scores)
    for i in range(count):
        scores[i] = _ZERO if is_hidden else scores[i] * factor
