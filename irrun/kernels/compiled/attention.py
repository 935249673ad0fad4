"""Attention with compiled loops: the weights of a few queries stay in the cache between both products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final

import numpy as np

from irrun.kernels import attention as by_numpy
from irrun.kernels.blocks import BLOCK, each_block, scratch
from irrun.kernels.compiled.functions import contracted
from irrun.kernels.compiled.panels import DEPTH, WIDTH, address_of, multiply_panel
from irrun.kernels.compiled.processor import ROWS, compiled
from irrun.kernels.compiled.rows import row_at, weigh
from irrun.kernels.threads import threads
from irrun.opdef import Index, OnTileReady, ignore_tile

__all__ = ["attention"]

_ONE: Final = np.float32(1)
_HIDDEN: Final = np.float32(-np.inf)
_TALL: Final = 8 * ROWS
"""Queries whose weights are in the cache at once."""


def attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    *,
    scale: float,
    masks: Sequence[np.ndarray] = (),
    causal: bool = False,
    out: np.ndarray | None = None,
    on_tile_ready: OnTileReady = ignore_tile,
) -> np.ndarray:
    """Return the same as ``irrun.kernels.attention.attention`` for arrays of f32."""
    queries, keys, width = query.shape[-2], key.shape[-1], value.shape[-1]
    # a causal kernel skips hidden keys, which make NaN of an infinity
    skips = causal and not all(np.isfinite(a).all() for a in (query, key, value))
    if not (keys and query.shape[-1] and width) or skips:
        return by_numpy.attention(
            query, key, value, scale=scale, masks=masks, causal=causal, out=out, on_tile_ready=on_tile_ready
        )
    mask = _sum(masks, keys)
    shapes = [a.shape[:-2] for a in (query, key, value, *(() if mask is None else (mask,)))]
    batch = np.broadcast_shapes(*shapes)
    whole = np.empty((*batch, queries, width), np.float32) if out is None else out
    query, key, value = (np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (query, key, value))
    if mask is not None:
        mask = np.broadcast_to(mask, (*batch, *mask.shape[-2:]))

    def fill(index: Index) -> None:
        *at, rows, _ = index
        heads = tuple(at)
        some = query[(*at, rows)]
        scaled = np.multiply(some, np.float32(scale), out=scratch(0, some.dtype, *some.shape))
        tile = whole[(*at, rows)]
        _attend(
            scaled.reshape(-1, *some.shape[-2:]), _panels(key[heads], 1), _panels(value[heads], 2),
            _NONE if mask is None else _matrices(mask[heads] if mask.shape[-2] == 1 else mask[(*at, rows)]),
            keys, rows.start if causal else -1, tile.reshape(-1, *tile.shape[-2:]),
        )  # fmt: skip
        on_tile_ready((*at, rows, slice(0, width)))

    counts = *batch, queries, keys
    last = len(counts) - 1
    # the keys and values of a head are packed for each block
    uncut = (last,) if math.prod(batch) < threads() else (last - 1, last)
    each_block(fill, counts, 4, BLOCK, work=_WORK * math.prod(counts), least=BLOCK // 8, whole=uncut)
    return whole


_WORK: Final = 128
"""The time that a weight takes, in units of ``threads.WORTH``."""
_NONE: Final = np.empty((0, 0, 0), np.float32)


def _sum(masks: Sequence[np.ndarray], keys: int) -> np.ndarray | None:
    """Return the sum of the masks as f32 [..., queries or 1, keys], or None if there are none."""
    if not masks:
        return None
    mask = reduce(np.add, (by_numpy.addend(mask, np.dtype(np.float32)) for mask in masks))
    return np.broadcast_to(mask, (*mask.shape[:-1], keys))


def _matrices(mask: np.ndarray) -> np.ndarray:
    """Return a mask as a contiguous array of one matrix for each head, or of a single one if all are the same."""
    if not any(step for n, step in zip(mask.shape[:-2], mask.strides) if n > 1):
        mask = mask[(0,) * (mask.ndim - 2)]
    return np.ascontiguousarray(mask).reshape(-1, *mask.shape[-2:])


def _panels(matrices: np.ndarray, number: int) -> np.ndarray:
    """Return the panels of matrices [..., depth, columns] in scratch memory, as [heads, panels, depth, WIDTH]."""
    *batch, depth, columns = matrices.shape
    full, rest = divmod(columns, WIDTH)
    panels = scratch(number, matrices.dtype, *batch, -(-columns // WIDTH), depth, WIDTH)
    parts = matrices[..., : full * WIDTH].reshape(*batch, depth, full, WIDTH)
    np.copyto(panels[..., :full, :, :], parts.swapaxes(-2, -3))
    if rest:
        np.copyto(panels[..., full, :, :rest], matrices[..., full * WIDTH :])
        panels[..., full, :, rest:] = 0
    return panels.reshape(-1, *panels.shape[-3:])


@compiled
def _attend(
    query: np.ndarray, across: np.ndarray, values: np.ndarray, masks: np.ndarray, keys: int, first: int,
    out: np.ndarray,
) -> None:  # fmt: skip
    """Fill ``out`` [heads, rows, width] with the attention of ``query`` [heads, rows, depth], which is scaled already.

    ``across`` and ``values`` are the panels of the transposed keys and of the values. ``masks`` [heads or 1, rows or 1,
    keys] are added, if there are any. ``first`` is the position of the first query, which sees the keys up to its own
    position, or -1 if every query sees all keys.
    """
    heads, rows, depth = query.shape
    columns = across.shape[1] * WIDTH
    width = values.shape[1] * WIDTH
    weights = np.empty((_TALL, columns), np.float32)
    sums = np.empty((_TALL, width), np.float32)
    factors = np.empty(_TALL, np.float32)
    for head in range(heads):
        for top in range(0, rows, _TALL):
            high = min(_TALL, rows - top)
            seen = keys if first < 0 else min(keys, first + top + high)
            panels = -(-seen // WIDTH)
            a = address_of(query) + 4 * (head * rows + top) * depth
            for panel in range(panels):
                b = address_of(across) + 4 * (head * across.shape[1] + panel) * depth * WIDTH
                multiply_panel(
                    across, a, depth, b, 0, address_of(weights) + 4 * panel * WIDTH, columns, high, depth, False
                )
            for i in range(high):
                row = row_at(address_of(weights) + 4 * i * columns, panels * WIDTH)
                if masks.size:
                    _add(row, masks[min(head, masks.shape[0] - 1), min(top + i, masks.shape[1] - 1)])
                for j in range(keys if first < 0 else min(keys, first + top + i + 1), row.size):
                    row[j] = _HIDDEN
                factors[i] = _ONE / weigh(row)
            for start in range(0, seen, DEPTH):
                count = min(DEPTH, seen - start)
                for panel in range(values.shape[1]):
                    b = address_of(values) + 4 * ((head * values.shape[1] + panel) * keys + start) * WIDTH
                    multiply_panel(
                        values, address_of(weights) + 4 * start, columns, b, 0, address_of(sums) + 4 * panel * WIDTH,
                        width, high, count, start > 0,
                    )  # fmt: skip
            for i in range(high):
                for j in range(out.shape[2]):
                    out[head, top + i, j] = sums[i, j] * factors[i]


@contracted
def _add(row: np.ndarray, mask: np.ndarray) -> None:
    for j in range(min(row.size, mask.size)):
        row[j] += mask[j]
