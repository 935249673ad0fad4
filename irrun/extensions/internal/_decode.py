"""Attention of one new token of each of several sequences, computed for all sequences at once."""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.extensions.internal._attend import Bias, softmax
from irrun.kernels.matmul import narrow

__all__ = ["decoded", "padded_table"]


def padded_table(blocks: np.ndarray, begins: np.ndarray, lengths: np.ndarray, slots: int) -> np.ndarray | None:
    """Return the blocks of each sequence as far as its tokens go, [sequences, blocks], with -1 behind them.

    Return None if more than half of the table would be -1: then each sequence is better computed by itself.
    """
    counts = -(-lengths // slots)
    if len(counts) * counts.max(initial=0) > _PADDED * counts.sum():
        return None
    table = np.full((len(counts), counts.max(initial=0)), -1, np.int32)
    for row, begin, count in zip(table, begins.tolist(), counts.tolist()):
        row[:count] = blocks[begin : begin + count]
    return table


_PADDED: Final = 2
"""The most entries of a table for each block that a sequence has."""


def decoded(
    query: np.ndarray,
    rows: tuple[np.ndarray, np.ndarray],
    caches: tuple[np.ndarray, np.ndarray],
    table: np.ndarray,
    at: np.ndarray,
    bias: Bias,
) -> np.ndarray:
    """Write a key and a value of each sequence to the caches, and return the averages, [sequences, heads, width].

    ``query`` is [sequences, heads, size], ``rows`` are the new keys and values, [sequences, groups, width], ``caches``
    [blocks, groups, slots, width], in floats, and ``at`` are the positions of the new tokens.
    """
    count, heads, _ = query.shape
    groups, slots = caches[0].shape[1:3]
    own = table[np.arange(count), at // slots], slice(None), at % slots
    for cache, new in zip(caches, rows):
        cache[own] = narrow(new, cache.dtype)
    key, value = (cache[table].astype(query.dtype, copy=False) for cache in caches)
    some = query.reshape(count, 1, groups, -1, query.shape[-1])
    scores = np.matmul(some, key.swapaxes(-1, -2))  # [sequences, blocks, groups, heads of a group, slots]
    scores = scores.transpose(0, 2, 3, 1, 4).reshape(count, heads, -1) * query.dtype.type(bias.scale)
    to = np.arange(scores.shape[-1])
    if bias.slopes is not None:
        scores += bias.slopes[:, None].astype(scores.dtype) * (to - at[:, None])[:, None].astype(scores.dtype)
    hidden = (to > at[:, None]) | np.repeat(table < 0, slots, 1)
    if bias.window:
        hidden |= to <= at[:, None] - bias.window
    np.copyto(scores, -np.inf, where=hidden[:, None])
    weights = softmax(scores, None if bias.sinks is None else bias.sinks[:, None])
    apart = weights.reshape(count, groups, -1, table.shape[1], slots).transpose(0, 3, 1, 2, 4)
    value[table < 0] = 0  # a block of another sequence may hold infinities
    return np.matmul(apart, value).sum(1).reshape(count, heads, -1)
