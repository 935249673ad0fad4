"""Attention of a few queries to many keys: a token of a language model and its past."""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.fast.functions import contracted, summing
from irrun.fast.machine.memory import data_address, row_at
from irrun.fast.machine.processor import compiled
from irrun.fast.machine.sharing import share
from irrun.fast.normalization import weigh

__all__ = ["MAX_QUERIES", "attend_in_place"]

MAX_QUERIES: Final = 4
"""The most queries of a head. For more, a product of matrices is faster, which reads a key once for several of them."""
_ONE: Final = np.float32(1)
_ZERO: Final = np.float32(0)
_HIDDEN: Final = np.float32(-np.inf)
_NONE: Final = np.zeros((1, 1, 1, 1), np.float32), np.ones((1, 1, 1, 1), np.bool_)


def attend_in_place(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None, scale: float, out: np.ndarray
) -> bool:
    """Fill ``out`` with ``softmax(query @ keyᵀ * scale + mask) @ value``, and return whether that was possible.

    All but the mask are f32: ``query`` is [B, H, L, E], ``key`` [B, G, S, E], ``value`` [B, G, S, Ev] and ``out``
    [B, H, L, Ev], where head h of the queries attends to head ``h * G // H`` of the keys and values. The mask is f32 or
    boolean and broadcasts to [B, H, L, S]; a mask of more axes is left to others. Keys and values are read in place:
    the rows of a head have to follow each other in memory.
    """
    if not (query.ndim == key.ndim == value.ndim == 4):
        return False
    batch, heads, queries, width = query.shape
    groups, keys = key.shape[1], key.shape[2]
    fits = key.shape == (batch, groups, keys, width) and value.shape[:3] == (batch, groups, keys)
    if not fits or not key.size or not value.size or heads % groups or not (_in_rows(key) and _in_rows(value)):
        return False
    added, shown = _NONE
    if mask is not None:
        mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        if mask.ndim > 4 or any(n not in (1, of) for n, of in zip(mask.shape, (batch, heads, queries, keys))):
            return False
        mask = np.ascontiguousarray(mask)
        added, shown = (added, mask) if mask.dtype == np.bool_ else (mask, shown)
    query, factor = np.ascontiguousarray(query), np.float32(scale)
    # addresses, so that numba compiles one function for contiguous arrays and for views
    places = (*_place(key), *_place(value), groups, keys)

    share(_attend, batch * groups, _WORK_PER_PAIR * query.size * keys, query, *places, added, shown, factor, out)
    return True


_WORK_PER_PAIR: Final = 32
"""The time that a key and a value take for each number of a query, in units of ``threads.WORTH``."""


def _place(array: np.ndarray) -> tuple[int, int, int]:
    """Return the address of an array and its first two strides, in bytes."""
    return data_address(array), array.strides[0], array.strides[1]


def _in_rows(array: np.ndarray) -> bool:
    size, strides = array.itemsize, array.strides
    return strides[3] == size and (strides[2] == size * array.shape[3] or array.shape[2] == 1)


@summing
def _dot(a: np.ndarray, b: np.ndarray) -> np.float32:
    total = _ZERO
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled
def _attend(
    query: np.ndarray, key: int, key_batch: int, key_group: int, value: int, value_batch: int, value_group: int,
    groups: int, keys: int, added: np.ndarray, shown: np.ndarray, scale: np.float32, out: np.ndarray, first: int,
    last: int,
) -> None:  # fmt: skip
    """Compute the groups of heads from ``first`` to before ``last``, counted through the batch.

    Keys and values are addresses, each with the bytes from a batch to the next and from a group to the next.
    """
    heads, queries, width = query.shape[1:]
    wide = out.shape[3]
    rows = heads // groups * queries  # a group attends to its keys in rows: head by head, query by query
    scaled = np.empty((rows, width), np.float32)
    weights = np.empty((rows, keys), np.float32)
    sums = np.empty((rows, wide), np.float32)
    for group in range(first, last):
        b, g = group // groups, group % groups
        at = key + b * key_batch + g * key_group
        for row in range(rows):
            h, q = g * (heads // groups) + row // queries, row % queries
            for i in range(width):
                scaled[row, i] = query[b, h, q, i] * scale
        for s in range(keys):
            across = row_at(at + 4 * s * width, width)
            for row in range(rows):
                weights[row, s] = _dot(scaled[row], across)
        for row in range(rows):
            h, q = g * (heads // groups) + row // queries, row % queries
            _add(weights[row], added[_at(added, b, 0), _at(added, h, 1), _at(added, q, 2)])
            _hide(weights[row], shown[_at(shown, b, 0), _at(shown, h, 1), _at(shown, q, 2)])
            factor = _ONE / weigh(weights[row])
            for s in range(keys):
                weights[row, s] *= factor
        at = value + b * value_batch + g * value_group
        sums[:] = 0
        for s in range(keys):
            across = row_at(at + 4 * s * wide, wide)
            for row in range(rows):
                _add_times(sums[row], across, weights[row, s])
        for row in range(rows):
            out[b, g * (heads // groups) + row // queries, row % queries] = sums[row]


@contracted
def _at(mask: np.ndarray, index: int, axis: int) -> int:
    """Return an index of an axis of a mask, which is the same for all if the axis has one element."""
    return min(index, mask.shape[axis] - 1)


@summing
def _add(row: np.ndarray, mask: np.ndarray) -> None:
    if mask.size == 1:
        row += mask[0]
    else:
        for s in range(row.size):
            row[s] += mask[s]


@summing
def _hide(row: np.ndarray, mask: np.ndarray) -> None:
    for s in range(row.size):
        if not mask[min(s, mask.size - 1)]:
            row[s] += _HIDDEN


@summing
def _add_times(sums: np.ndarray, row: np.ndarray, weight: float) -> None:
    for i in range(row.size):
        sums[i] += row[i] * weight
