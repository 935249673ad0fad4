"""Compute attention in blocks of heads or queries, so that the weights of a block stay in the cache.

Rotary embeddings say where queries and keys are: they rotate pairs of elements by an angle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Protocol

import numpy as np

from irrun.kernels.blocks import BLOCK_BYTES, each_block, report_in_blocks, scratch
from irrun.kernels.cast import rounded_to_bf16
from irrun.kernels.matmul import matmul
from irrun.kernels.normalization import exponentials, sums
from irrun.opdef import Index, OnTileReady, Operands, ignore_tile

FEW_QUERIES: Final = 4
"""So few queries of a head are not rounded to bf16, nor is what they attend to: each number would be rounded for little
more than one multiplication."""


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """What attention is to compute: ``softmax(query @ key * scale + masks) @ value``, all f32 or all f64."""

    query: np.ndarray
    """[..., L, E]"""
    key: np.ndarray
    """The transposed keys, [..., E, S]."""
    value: np.ndarray
    """[..., S, Ev]"""
    scale: float
    masks: Sequence[np.ndarray] = ()
    """Each broadcasts to [..., L, S]. It holds floats, which are added, or booleans, which are true where a query may
    attend."""
    causal: bool = False
    """Whether query i attends to no key after key i."""
    precision: Operands = "f32"
    """The precision of the operands of both products. The rows of ``weights`` are rounded, too, before they are summed
    up: the exponentials of what a score is less than the largest of its query."""

    def hides(self) -> bool:
        """Return whether hidden keys need not be read: no infinity or NaN of theirs can reach the result.

        An infinite score, also of huge queries and keys, becomes NaN where it is hidden.
        """
        if not self.causal:
            return False
        query, key, value = (
            max(float(a.max()), -float(a.min())) if a.size else 0.0 for a in (self.query, self.key, self.value)
        )
        score = query * key * self.query.shape[-1] * max(abs(self.scale), 1.0)
        return score < float(np.finfo(self.query.dtype).max) and math.isfinite(value)


class Attend(Protocol):
    """``attention``, or another function that computes the same."""

    def __call__(
        self, asked: Attention, /, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
    ) -> np.ndarray: ...


def attention(
    asked: Attention, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
) -> np.ndarray:
    """Return what is asked, [..., L, Ev], and 0 where there are no keys. The weights are never in memory all at once.

    The result is written to ``out`` if that is an array. ``on_tile_ready`` is called with the index of each tile that
    is complete.
    """
    query, key, value, masks = asked.query, asked.key, asked.value, asked.masks
    queries, keys = query.shape[-2], key.shape[-1]
    batch = np.broadcast_shapes(*(a.shape[:-2] for a in (query, key, value)), *(m.shape[:-2] for m in masks))
    whole = np.empty((*batch, queries, value.shape[-1]), query.dtype) if out is None else out
    if not keys:
        whole.fill(0)
        report_in_blocks(whole, on_tile_ready)
        return whole
    rounds = asked.precision == "bf16"
    if rounds:
        query, key, value = map(rounded_to_bf16, (query, key, value))
    added = [addend(mask, query.dtype) for mask in masks]
    query, key, value, *added = (np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (query, key, value, *added))
    every = slice(None)

    hides = asked.hides()

    def fill(index: Index) -> None:
        if not filled(index, shift=False):
            filled(index, shift=True)
        on_tile_ready((*index[:-1], slice(0, value.shape[-1])))

    def filled(index: Index, *, shift: bool) -> bool:
        """Return False if weights above 1 may have made infinities of large values."""
        *at, rows, _ = index
        first, seen = (*at, rows), slice(0, min(rows.stop, keys) if hides else keys)
        some, across = query[first], key[(*at, every, seen)]
        factor = query.dtype.type(asked.scale)
        scaled = some if rounds else np.multiply(some, factor, out=scratch(0, query.dtype, *some.shape))
        weights = matmul(scaled, across, scratch(1, query.dtype, *some.shape[:-1], across.shape[-1]))
        if rounds:
            weights *= factor
        for mask in added:
            down, right = (n == 1 for n in mask.shape[-2:])
            weights += mask[(*at, every if down else rows, every if right else seen)]
        if asked.causal:
            weights[..., rows.start :] += _later(rows.stop - rows.start, max(seen.stop - rows.start, 0), weights.dtype)
        shifted = exponentials(weights, weights.ndim - 1, weights, shift=shift or rounds)
        if rounds:
            weights = rounded_to_bf16(weights)
        total = sums(weights, weights.ndim - 1)
        part = matmul(weights, value[(*at, seen, every)], whole[first])
        np.divide(part, total, part)
        return shifted or bool(np.isfinite(part).all())

    counts = *batch, queries, keys
    each_block(
        fill,
        counts,
        query.itemsize,
        BLOCK_BYTES,
        work=128 * math.prod(counts),
        least=BLOCK_BYTES,
        whole=(len(batch) + 1,),
    )
    return whole


def grouped_attention(
    attend: Attend, asked: Attention, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
) -> np.ndarray:
    """Return the attention of queries [B, H, L, E] to keys [B, G, E, S] and values [B, G, S, Ev].

    Head h of the queries attends to head ``h * G // H`` of the keys and values, which are read in place. For other
    shapes than these, and for G = H, 1 or 0, this is the same as ``attend``.
    """
    query, key, value = asked.query, asked.key, asked.value
    groups = key.shape[1] if query.ndim == key.ndim == value.ndim == 4 else 1
    if groups < 2 or groups == query.shape[1] or query.shape[1] % groups or value.shape[1] != groups:
        return attend(asked, out=out, on_tile_ready=on_tile_ready)
    batch, heads, queries, width = query.shape
    each = heads // groups
    apart = [_divided(mask, groups, each) for mask in asked.masks]
    if queries == 1 and all(mask.ndim < 3 or mask.shape[-3] == 1 for mask in apart):
        # the heads of a group are the rows of one matrix
        query = query.reshape(batch, groups, each, width)
        apart = [mask if mask.ndim < 3 else mask[..., 0, :, :] for mask in apart]
        shape = (batch, groups, each, value.shape[-1])
    else:
        query = query.reshape(batch, groups, each, queries, width)
        key, value = key[:, :, None], value[:, :, None]
        shape = (batch, groups, each, queries, value.shape[-1])
    divided = replace(asked, query=query, key=key, value=value, masks=apart)
    result = attend(divided, out=None if out is None else out.reshape(shape))
    result = result.reshape(len(result), heads, queries, value.shape[-1]) if out is None else out
    report_in_blocks(result, on_tile_ready)
    return result


def _divided(mask: np.ndarray, groups: int, each: int) -> np.ndarray:
    """Return a mask [..., H, L, S] as [..., G, H / G, L, S]. A mask of one head, or of none, stays one for all."""
    if mask.ndim < 3:
        return mask
    *batch, heads, rows, columns = mask.shape
    return mask.reshape(*batch, *((1, 1) if heads == 1 else (groups, each)), rows, columns)


def rotated(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """Return ``x * cos + turned * sin``, where ``turned`` is ``concatenate([-x[..., n:], x[..., :n]], -1)``.

    n is half of the last axis, which ``cos`` and ``sin`` have, too. The result is written to ``out`` if that is an
    array, which overlaps with no input.
    """
    half = x.shape[-1] // 2
    if cos.shape != sin.shape:
        cos, sin = np.broadcast_arrays(cos, sin)
    result = np.multiply(x, cos, out)
    low, high = result[..., :half], result[..., half:]
    part = np.multiply(x[..., half:], sin[..., :half])
    np.subtract(low, part, low)
    np.multiply(x[..., :half], sin[..., half:], part)
    np.add(high, part, high)
    return result


@cache
def _later(rows: int, columns: int, dtype: np.dtype) -> np.ndarray:
    """Return what to add to the weights to hide from each query the keys after its own position."""
    return np.triu(np.full((rows, columns), -np.inf, dtype), 1)


def addend(mask: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a mask as floats to add to the weights, with at least two axes."""
    mask = np.atleast_2d(mask)
    if mask.dtype == np.bool_:
        return np.where(mask, dtype.type(0), dtype.type(-np.inf))
    return mask.astype(dtype, copy=False)
