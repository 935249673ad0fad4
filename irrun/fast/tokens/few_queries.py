"""Attention of a few queries to many keys: a token of a language model and its past."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from irrun.fast.functions import contracted, summing
from irrun.fast.machine.emitting import FLOATS, at, called, equal, fused, int64, looped, repeated
from irrun.fast.machine.late import array_at, emitted, ir, literal, types
from irrun.fast.machine.memory import address_of, bytes_at, data_address, row_at
from irrun.fast.machine.processor import VECTOR, compiled
from irrun.fast.machine.sharing import share
from irrun.fast.normalization import weigh
from irrun.fast.tokens.rotary import rotate_row
from irrun.opdef import Call

__all__ = ["attend_in_place", "is_told", "mix", "score", "tell_mask", "tell_past", "to_past"]

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
    the rows of a head have to follow each other in memory. ``out`` is contiguous.
    """
    if not (query.ndim == key.ndim == value.ndim == 4):
        return False
    batch, heads, queries, width = query.shape
    groups, keys = key.shape[1], key.shape[2]
    fits = key.shape == (batch, groups, keys, width) and value.shape[:3] == (batch, groups, keys)
    in_rows = _in_rows(key) and _in_rows(value) and out.flags.c_contiguous
    if not fits or not key.size or not value.size or heads % groups or not in_rows:
        return False
    if (masks := _masks(mask, (batch, heads, queries, keys))) is None:
        return False
    query, factor = np.ascontiguousarray(query), np.float32(scale)
    # addresses, so that numba compiles one function for contiguous arrays and for views
    places = (*_place(key), *_place(value), groups, keys)

    share(_attend, batch * groups, _WORK_PER_PAIR * query.size * keys, query, *places, *masks, factor, out)
    return True


def _masks(mask: np.ndarray | None, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return what is added to weights of a shape of four axes, in f32, and where they are not hidden.

    Returns None for a mask that does not broadcast to the shape.
    """
    added, shown = _NONE
    if mask is None:
        return added, shown
    mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    if mask.ndim > 4 or any(n not in (1, of) for n, of in zip(mask.shape, shape)):
        return None
    mask = np.ascontiguousarray(mask)
    return (added, mask) if mask.dtype == np.bool_ else (mask, shown)


def to_past(rows: Sequence[np.ndarray], out: np.ndarray, sizes: Sequence[int], numbers: np.ndarray) -> Call:
    """Return a call to rotate a query and its key, append key and value to the past, and attend to the past.

    ``rows`` are the query [B, H, 1, E], the key [B, G, 1, E], the value [B, G, 1, Ev], and cosines and sines of the
    rotation, E numbers each, or B rows of E. They and ``out`` [B, H, 1, Ev] are f32 and contiguous. ``sizes`` are B, H,
    G, E and Ev. ``numbers`` is what ``tell_past`` and ``tell_mask`` write before the call: 12 numbers of i64.
    """
    batch, heads, groups, width, wide = sizes
    apart = 0 if rows[3].size == width else 4 * width
    arguments = (numbers, *map(data_address, (*rows, out)), apart, heads, groups, width, wide)
    return Call(_attend_to_past, arguments, batch * groups)


def tell_past(memory: np.ndarray, keys: np.ndarray, values: np.ndarray) -> None:
    """Write to ``memory``, u8 [96], where the past of a token is: see ``to_past``.

    ``keys`` [B, G, S, E] and ``values`` [B, G, S, Ev] are f32 with contiguous heads. The call fills their last rows.
    """
    memory.view(np.int64)[:_PLACES] = *_place(keys), *_place(values)


def is_told(memory: np.ndarray, number: int, past: np.ndarray, length: int) -> bool:
    """Return whether the keys (number 0) or values (1) that one call was told of begin with ``past``, of a length."""
    told = memory.view(np.int64)[:, 3 * number : 3 * number + 3]
    return past.shape[2] == length and told.tolist() == [[*_place(past)]]


def tell_mask(memory: np.ndarray, mask: np.ndarray, scale: float, length: int) -> None:
    """Write to ``memory``, u8 [n, 96], how long the past of n tokens is with the new ones, and how it is seen.

    ``scale`` is the factor of the scores. ``mask`` has four axes and broadcasts to [B, H, 1, length]; its last axis is
    contiguous. A mask of f32 is added to the scores. A boolean mask hides keys where it is false.
    """
    (batch, heads, _, columns), (apart, between, _, _) = mask.shape, mask.strides
    seen = apart if batch > 1 else 0, between if heads > 1 else 0, -columns if mask.dtype == np.bool_ else columns
    memory.view(np.int64)[:, _PLACES : _PLACES + 5] = length, data_address(mask), *seen
    memory.view(np.float32)[:, _SCALE] = scale


_PLACES: Final = 6
"""The numbers that say where keys and values are."""
_SCALE: Final = 22
"""The number of the scale among numbers of f32."""


_WORK_PER_PAIR: Final = 32
"""The time that a key and a value take for each number of a query, in units of ``threads.WORTH``."""


def _place(array: np.ndarray) -> tuple[int, int, int]:
    """Return the address of an array and its first two strides, in bytes."""
    return data_address(array), array.strides[0], array.strides[1]


def _in_rows(array: np.ndarray) -> bool:
    size, strides = array.itemsize, array.strides
    return strides[3] == size and (strides[2] == size * array.shape[3] or array.shape[2] == 1)


_KEYS: Final = 4
"""Keys that a query is multiplied with at once: each of their sums waits for its own addition."""
_VECTORS: Final = 4
"""Vectors of a value that are summed up at once, for the same reason."""


def _dots(context: Any, keys: Any, a: Any, b: Any, apart: Any, width: Any, c: Any) -> Any:
    """Store the products of a row with ``keys`` rows, which is literal, at the address ``c``.

    ``a`` and ``b`` are addresses of rows of ``width`` floats, a multiple of ``VECTOR``. The rows from ``b`` on are
    ``apart`` bytes apart.
    """
    count = literal(keys)

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        a, b, apart, width, c = arguments[1:]
        places = [builder.add(b, builder.mul(apart, int64(n))) for n in range(count)]
        zeros = [equal(FLOATS, 0.0)] * count

        def step(offset: ir.Value, sums: Sequence[ir.Value]) -> list[ir.Value]:
            row = builder.load(at(builder, a, offset, FLOATS), align=4)
            loads = (builder.load(at(builder, place, offset, FLOATS), align=4) for place in places)
            return [fused(builder, row, load, sum) for load, sum in zip(loads, sums)]

        zero, name = ir.Constant(ir.FloatType(), -0.0), f"llvm.vector.reduce.fadd.v{VECTOR}f32"
        for n, sum in enumerate(looped(builder, builder.mul(width, int64(4)), 4 * VECTOR, zeros, step)):
            total = called(builder, name, ir.FloatType(), zero, sum, fastmath=("reassoc",))
            builder.store(total, at(builder, c, int64(4 * n), ir.FloatType()), align=4)
        return context.get_dummy_value()

    return types.void(keys, a, b, apart, width, c), generate


def _weighted(context: Any, vectors: Any, weights: Any, count: Any, b: Any, apart: Any, c: Any) -> Any:
    """Store the sum of ``count`` rows, each times its weight, at the address ``c``.

    The rows from the address ``b`` on have ``vectors`` vectors, which is literal, and are ``apart`` bytes apart.
    """
    wide = range(literal(vectors))

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        weights, count, b, apart, c = arguments[1:]
        zeros = [equal(FLOATS, 0.0)] * len(wide)

        def step(offset: ir.Value, sums: Sequence[ir.Value]) -> list[ir.Value]:
            weight = repeated(builder, builder.load(at(builder, weights, offset, ir.FloatType()), align=4))
            row = builder.add(b, builder.mul(builder.udiv(offset, int64(4)), apart))
            loads = (builder.load(at(builder, row, int64(4 * VECTOR * n), FLOATS), align=4) for n in wide)
            return [fused(builder, weight, load, sum) for load, sum in zip(loads, sums)]

        for n, sum in enumerate(looped(builder, builder.mul(count, int64(4)), 4, zeros, step)):
            builder.store(sum, at(builder, c, int64(4 * VECTOR * n), FLOATS), align=4)
        return context.get_dummy_value()

    return types.void(vectors, weights, count, b, apart, c), generate


_dots_of: Final[Callable[..., None]] = emitted(_dots, prefer_literal=True)
_weighted_sum: Final[Callable[..., None]] = emitted(_weighted, prefer_literal=True)


@contracted
def score(query: int, key: int, apart: int, width: int, keys: int, scores: int) -> None:
    """Store the products of a query with its keys. All but ``apart``, ``width`` and ``keys`` are addresses."""
    whole = width // VECTOR * VECTOR
    for s in range(0, keys // _KEYS * _KEYS, _KEYS):
        _dots_of(_KEYS, query, key + s * apart, apart, whole, scores + 4 * s)
    for s in range(keys // _KEYS * _KEYS, keys):
        _dots_of(1, query, key + s * apart, apart, whole, scores + 4 * s)
    if whole < width:
        row, rest = row_at(scores, keys), row_at(query, width)
        for s in range(keys):
            across = row_at(key + s * apart, width)
            for i in range(whole, width):
                row[s] += rest[i] * across[i]


@contracted
def mix(weights: int, keys: int, value: int, apart: int, width: int, sums: int) -> None:
    """Store the sum of the values, each times its weight. All but ``keys``, ``apart`` and ``width`` are addresses."""
    whole, some = width // VECTOR * VECTOR, width // (_VECTORS * VECTOR) * _VECTORS * VECTOR
    for column in range(0, some, _VECTORS * VECTOR):
        _weighted_sum(_VECTORS, weights, keys, value + 4 * column, apart, sums + 4 * column)
    for column in range(some, whole, VECTOR):
        _weighted_sum(1, weights, keys, value + 4 * column, apart, sums + 4 * column)
    if whole < width:
        row, factors = row_at(sums, width), row_at(weights, keys)
        for i in range(whole, width):
            row[i] = _ZERO
        for s in range(keys):
            across = row_at(value + s * apart, width)
            for i in range(whole, width):
                row[i] += across[i] * factors[s]


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
    scaled = np.empty(width, np.float32)
    weights = np.empty((rows, keys), np.float32)
    for group in range(first, last):
        b, g = group // groups, group % groups
        for row in range(rows):
            h, q = g * (heads // groups) + row // queries, row % queries
            for i in range(width):
                scaled[i] = query[b, h, q, i] * scale
            of = address_of(weights) + 4 * row * keys
            score(address_of(scaled), key + b * key_batch + g * key_group, 4 * width, width, keys, of)
            _add(weights[row], added[_at(added, b, 0), _at(added, h, 1), _at(added, q, 2)])
            _hide(weights[row], shown[_at(shown, b, 0), _at(shown, h, 1), _at(shown, q, 2)])
            factor = _ONE / weigh(weights[row])
            for s in range(keys):
                weights[row, s] *= factor
        for row in range(rows):
            place = address_of(out) + 4 * wide * ((b * heads + g * (heads // groups)) * queries + row)
            of = address_of(weights) + 4 * row * keys
            mix(of, keys, value + b * value_batch + g * value_group, 4 * wide, wide, place)


@compiled
def _attend_to_past(
    numbers: np.ndarray, query: int, key: int, value: int, cosines: int, sines: int, out: int, apart: int, heads: int,
    groups: int, width: int, wide: int, first: int, last: int,
) -> None:  # fmt: skip
    """Compute the groups of heads from ``first`` to before ``last``: see ``to_past``, and ``_attend``."""
    past, past_batch, past_group, values, values_batch, values_group = numbers[:6]
    keys, mask, mask_batch, mask_head, columns = numbers[6:11]
    scale = row_at(address_of(numbers) + 8 * 11, 1)[0]
    rows = heads // groups
    turned = np.empty(width, np.float32)
    weights = np.empty(keys, np.float32)
    of = address_of(weights)
    for group in range(first, last):
        b, g = group // groups, group % groups
        own = past + b * past_batch + g * past_group
        theirs = values + b * values_batch + g * values_group
        cosine, sine = cosines + b * apart, sines + b * apart
        rotate_row(key + 4 * width * group, cosine, sine, own + 4 * width * (keys - 1), width, _ONE)
        new, given = row_at(theirs + 4 * wide * (keys - 1), wide), row_at(value + 4 * wide * group, wide)
        for i in range(wide):
            new[i] = given[i]
        for h in range(g * rows, (g + 1) * rows):
            rotate_row(query + 4 * width * (b * heads + h), cosine, sine, address_of(turned), width, scale)
            score(address_of(turned), own, 4 * width, width, keys, of)
            seen = mask + b * mask_batch + h * mask_head
            if columns > 0:
                _add(weights, row_at(seen, columns))
            else:
                _hide(weights, array_at(bytes_at(seen), -columns))
            factor = _ONE / weigh(weights)
            for s in range(keys):
                weights[s] *= factor
            mix(of, keys, theirs, 4 * wide, wide, out + 4 * wide * (b * heads + h))


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
    if mask.size == 1:
        if not mask[0]:
            row += _HIDDEN
    else:
        for s in range(row.size):
            row[s] += _ZERO if mask[s] else _HIDDEN
