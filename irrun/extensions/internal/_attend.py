"""Attention of the new tokens of one sequence to all of its tokens: masks, biases, sinks, sparse blocks, scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.base.deadline import require_time
from irrun.kernels.matmul import matmul

__all__ = ["Bias", "attended", "block_diversity", "kept_blocks", "rotated_rows", "softmax"]


@dataclass(frozen=True, slots=True, eq=False)
class Bias:
    """What changes the scores of the queries of one sequence before the softmax, and in the softmax."""

    scale: float
    window: int = 0
    """The most positions, counted back from its own, that a query attends to; 0 for all."""
    slopes: np.ndarray | None = None
    """The slope of ALiBi of each head, [heads]."""
    sinks: np.ndarray | None = None
    """The score of a key without a value, for each head, [heads]."""
    evicted: np.ndarray | None = None
    """Whether the key at a position has been evicted, [keys]."""
    blocks: np.ndarray | None = None
    """Whether a block of queries attends to a block of keys, [heads, blocks, blocks]."""
    block_size: int = 1
    """The positions of such a block."""


def attended(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, bias: Bias, counted: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the averages of ``value``, [queries, heads, width], and the sums of the weights of the keys, [keys].

    ``query`` is [queries, heads, size], ``key`` [groups, keys, size], ``value`` [groups, keys, width]. The queries are
    the last of the positions of the keys; no query attends to a later position. Only the weights of the last
    ``counted`` queries are summed, over all heads. A query without any key gives zeros.
    """
    count, heads, size = query.shape
    groups, keys, width = value.shape
    work = query.dtype
    past = keys - count
    averages = np.zeros((count, heads, width), work)
    sums = np.zeros(keys, work)
    rows = max(1, _SCORES // max(1, heads * keys))
    for begin in range(0, count, rows):
        require_time()
        end = min(begin + rows, count)
        seen = past + end
        first = max(0, past + begin + 1 - bias.window) if bias.window else 0
        some = query[begin:end].swapaxes(0, 1).reshape(groups, -1, size)
        scores = matmul(some, key[:, first:seen].swapaxes(1, 2)).reshape(heads, end - begin, seen - first)
        scores *= work.type(bias.scale)
        _mask(scores, np.arange(past + begin, seen)[:, None], np.arange(first, seen), bias)
        weights = softmax(scores, None if bias.sinks is None else bias.sinks[:, None, None])
        part = matmul(weights.reshape(groups, -1, seen - first), value[:, first:seen])
        averages[begin:end] = part.reshape(heads, end - begin, width).swapaxes(0, 1)
        if end > count - counted:
            sums[first:seen] += weights[:, max(0, count - counted - begin) :].sum((0, 1))
    return averages, sums


_SCORES: Final = 1 << 21
"""The most scores in memory at once: 8 MB in f32."""


def _mask(scores: np.ndarray, at: np.ndarray, to: np.ndarray, bias: Bias) -> None:
    """Add the biases to ``scores`` [heads, queries, keys], and -inf where no attention is paid, in place.

    ``at`` are the positions of the queries, [queries, 1], ``to`` those of the keys.
    """
    if bias.slopes is not None:
        scores += bias.slopes[:, None, None].astype(scores.dtype) * (to - at).astype(scores.dtype)
    hidden = to > at
    if bias.window:
        hidden |= to <= at - bias.window
    if bias.evicted is not None:
        hidden |= bias.evicted[to]
    scores[:, hidden] = -np.inf
    if bias.blocks is not None:
        scores[~bias.blocks[:, at // bias.block_size, to // bias.block_size]] = -np.inf


def softmax(scores: np.ndarray, sinks: np.ndarray | None) -> np.ndarray:
    """Return the weights of ``scores`` along the last axis, computed in place. A row of -inf gets zeros.

    ``sinks`` are the scores of keys without a value, which can be broadcast to the rows.
    """
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    if sinks is not None:
        largest = np.maximum(largest, sinks.astype(scores.dtype))
    largest[np.isneginf(largest)] = 0
    scores -= largest
    np.exp(scores, scores)
    total = scores.sum(-1, keepdims=True)
    if sinks is not None:
        total += np.exp(sinks.astype(scores.dtype) - largest)
    total[total == 0] = 1
    scores /= total
    return scores


def kept_blocks(
    query: np.ndarray, key: np.ndarray, scale: float, threshold: float, size: int, stride: int
) -> np.ndarray:
    """Return which blocks of keys each block of queries attends to in a sparse prefill, [heads, blocks, blocks].

    ``query`` is [tokens, heads, width], ``key`` [groups, tokens, width]. The importance of a pair of blocks is the sum
    of the softmax of strided scores: the score of rows a and b is the mean of the products of the queries ``a * stride
    + stride - 1 - i`` and the keys ``b * stride + i``. Each block keeps its own and the first, and then the most
    important blocks until they have ``threshold`` of the sum.
    """
    count, heads, width = query.shape
    groups = len(key)
    strided, each = -(-count // stride), size // stride
    padded = np.zeros((2, heads, strided * stride, width), query.dtype)
    padded[0, :, :count] = query.swapaxes(0, 1)
    padded[1, :, :count] = np.repeat(key, heads // groups, 0)
    queries, keys = padded.reshape(2, heads, strided, stride, width)
    queries, keys = queries[:, :, ::-1].reshape(heads, strided, -1), keys.reshape(heads, strided, -1)
    scores = matmul(queries, keys.swapaxes(1, 2)) * query.dtype.type(scale / stride)
    scores[:, ~np.tri(strided, dtype=bool)] = -np.inf
    weights = softmax(scores, None)
    blocks = -(-count // size)
    whole = np.zeros((heads, blocks * each, blocks * each), query.dtype)
    whole[:, :strided, :strided] = weights
    importance = whole.reshape(heads, blocks, each, blocks, each).sum((2, 4))
    kept = np.zeros((heads, blocks, blocks), bool)
    kept[:, :, 0] = kept[:, range(blocks), range(blocks)] = True
    for head in range(heads):
        for row in range(blocks):
            own = importance[head, row, : row + 1]
            target = own.sum() * threshold
            reached = own[kept[head, row, : row + 1]].sum()
            for block in np.argsort(-own, kind="stable"):
                if reached >= target:
                    break
                if not kept[head, row, block]:
                    kept[head, row, block] = True
                    reached += own[block]
    return kept


def rotated_rows(rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return rows [heads, count, width] rotated by the cosines and sines of ``table``, [count, width].

    Element d and element d + width / 2 are a pair. The first half of a row of the table holds cosines, the other sines.
    """
    half = rows.shape[-1] // 2
    cosines, sines = table[:, :half], table[:, half:]
    low, high = rows[..., :half], rows[..., half:]
    return np.concatenate([low * cosines - high * sines, low * sines + high * cosines], -1)


def block_diversity(keys: np.ndarray, first: int, count: int, size: int) -> np.ndarray:
    """Return how much each token of an eviction zone differs from the keys of each block, [count / size, count].

    ``keys`` is [heads, tokens, width]; the zone holds ``count`` tokens from ``first`` on, in blocks of ``size``. The
    value is minus the sum of the cosine similarities to the keys of the block. A similarity below the mean of its row
    counts 0, and so does that of a token to itself. The similarities are means over the heads.
    """
    zone = keys[:, first : first + count]
    zone = zone / np.sqrt((zone * zone).sum(-1, keepdims=True) + np.finfo(np.float32).eps)
    similar = matmul(zone, zone.swapaxes(1, 2))
    similar[:, range(count), range(count)] = 0
    similar[similar < similar.mean(-1, keepdims=True)] = 0
    return -similar.mean(0).reshape(count // size, size, count).sum(1)
