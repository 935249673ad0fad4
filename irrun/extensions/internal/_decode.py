"""Attention of one new token of each of several sequences, computed for all sequences at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from irrun.extensions.internal._attend import Bias, softmax
from irrun.extensions.internal._caches import bits_of
from irrun.kernels.matmul import narrow, wide

__all__ = ["Decode", "decoded"]


class Decode(Protocol):
    """``decoded``, or another function that computes the same."""

    def __call__(
        self, rows: Sequence[np.ndarray], caches: Sequence[np.ndarray], tables: Sequence[np.ndarray], bias: Bias
    ) -> np.ndarray | None: ...


def decoded(
    rows: Sequence[np.ndarray], caches: Sequence[np.ndarray], tables: Sequence[np.ndarray], bias: Bias
) -> np.ndarray | None:
    """Write one new key and value of each sequence to the caches, and return the averages, [sequences, heads * width].

    ``rows`` are the queries, keys and values, [sequences, n]. The caches are [blocks, groups, slots, width], and
    ``tables`` are ``past_lens``, ``subsequence_begins``, ``block_indices`` and ``block_indices_begins``. Returns None
    for caches of codes, if a sequence has not one new token, and if the lengths of the sequences differ so much that
    each is better computed by itself.
    """
    past, subsequences, blocks, begins = tables
    count, (_, groups, slots, size) = len(past), caches[0].shape
    if not (len(rows[0]) == count > 0 and (np.diff(subsequences) == 1).all()):
        return None
    table = _padded_table(blocks, begins, past + 1, slots)
    if table is None or any(bits_of(cache.dtype) for cache in caches):
        return None
    own = blocks[begins[:-1] + past // slots], slice(None), past % slots
    for cache, new in zip(caches, rows[1:]):
        cache[own] = narrow(new.reshape(count, groups, cache.shape[3]), cache.dtype)
    query = rows[0].astype(wide(rows[0].dtype), copy=False).reshape(count, 1, groups, -1, size)
    key, value = (cache[table].astype(query.dtype, copy=False) for cache in caches)
    scores = np.matmul(query, key.swapaxes(-1, -2))  # [sequences, blocks, groups, heads of a group, slots]
    scores = scores.transpose(0, 2, 3, 1, 4)
    scores = scores.reshape(count, scores.shape[1] * scores.shape[2], -1) * query.dtype.type(bias.scale)
    to, at = np.arange(scores.shape[-1]), past[:, None]
    if bias.slopes is not None:
        scores += bias.slopes[:, None].astype(scores.dtype) * (to - at)[:, None].astype(scores.dtype)
    hidden = (to > at) | np.repeat(table < 0, slots, 1)
    if bias.window:
        hidden |= to <= at - bias.window
    np.copyto(scores, -np.inf, where=hidden[:, None])
    weights = softmax(scores, None if bias.sinks is None else bias.sinks[:, None])
    apart = weights.reshape(count, groups, -1, table.shape[1], slots).transpose(0, 3, 1, 2, 4)
    # a slot that a query does not see may hold infinities
    np.copyto(value, 0, where=hidden.reshape(count, -1, 1, slots, 1))
    return narrow(np.matmul(apart, value).sum(1).reshape(count, -1), rows[0].dtype)


def _padded_table(blocks: np.ndarray, begins: np.ndarray, lengths: np.ndarray, slots: int) -> np.ndarray | None:
    """Return the blocks of each sequence as far as its tokens go, [sequences, blocks], with -1 behind them.

    Return None if more than half of the table would be -1.
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
