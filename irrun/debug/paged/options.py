"""The options of a layer with paged attention: which other value gives a value of the stateful model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from irrun.debug.paged.scene import Scene, near
from irrun.debug.paged.sides import contents
from irrun.model import Layer

__all__ = ["Option", "wrong_option"]

_POSITIONS: Final = {"scale": 9, "sliding_window": 10, "alibi_slopes": 11, "sinks": 20}


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """An option of a layer: the position of its input, the right value, and what is wrong with it."""

    position: int
    value: float | int | np.ndarray
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class _Options:
    scale: float
    sliding_window: int
    alibi_slopes: np.ndarray
    sinks: np.ndarray


def wrong_option(scene: Scene, layer: Layer) -> Option | None:
    """Return which option of an attention layer is wrong, if another value of it gives an expected value.

    The token, its keys and its values are those of the layer.
    """
    given, rows = _given(scene, layer), _rows(scene, layer)
    if given is None or rows is None:
        return None
    query, keys, values = rows
    found = scene.found(layer)
    if found is None or not near(_attended(query, keys, values, given), found):
        return None
    for name, value in _candidates(scene, given, query.shape[1], len(query)):
        other = _attended(query, keys, values, replace(given, **{name: value}))
        if not near(other, found) and (same := scene.same(other)):
            shown = _shown(value)
            if name == "sliding_window" and value in (0, len(keys[0])):  # no token lies outside of either
                if scene.position + 1 < scene.piece.end:
                    return wrong_option(scene.last(), layer)
                shown = f"{len(keys[0])} or more, or 0,"
            said = f"{name} is {_shown(getattr(given, name))}; {shown} gives"
            text = f'{said} the value of "{same[0]}" in the stateful model'
            return Option(_POSITIONS[name], value, text)
    return None


def _candidates(
    scene: Scene, given: _Options, width: int, heads: int
) -> Iterator[tuple[str, float | int | np.ndarray]]:
    """Yield other values of options: those of the stateful model's attention, and windows of every size."""
    model, paged = scene.stateful.model.model, scene.paged
    seen: set[float] = {given.scale}
    scales = [width**-0.5, 1.0]
    for other in paged.layers("PagedAttentionExtension"):
        scale = paged.constant(other, _POSITIONS["scale"])
        scales += [float(scale.ravel()[0])] if scale is not None and scale.size == 1 else []
    for layer in (model.layers[id] for id in model.order if model.layers[id].type == "ScaledDotProductAttention"):
        feeds = model.feeds[layer.id]
        data = contents(scene.stateful.model, feeds[4]) if len(feeds) > 4 else None
        scales += [float(data.ravel()[0])] if data is not None and data.size == 1 else []
    for scale in scales:
        if scale not in seen:
            seen.add(scale)
            yield "scale", scale
    last = scene.piece.slot(scene.position) + 1
    for other in paged.layers("PagedAttentionExtension"):
        for name in ("alibi_slopes", "sinks"):
            value = paged.constant(other, _POSITIONS[name])
            if value is not None and not np.array_equal(value.ravel(), getattr(given, name)):
                yield name, value.ravel()
    for layer in (model.layers[id] for id in model.order if model.layers[id].type == "ScaledDotProductAttention"):
        slopes = _slopes(scene, layer, heads, last)
        if slopes is not None and not np.array_equal(slopes, given.alibi_slopes):
            yield "alibi_slopes", slopes
    yield from (("sinks", given.sinks[order]) for order in _exchanged(given.sinks))
    windows = sorted((0, *range(2, last + 1)), key=lambda window: (abs(window - given.sliding_window), window))
    yield from (("sliding_window", window) for window in windows if window != given.sliding_window)


def _exchanged(values: np.ndarray) -> Iterator[list[int]]:
    """Yield the orders in which two elements are exchanged."""
    for a in range(values.size):
        for b in range(a + 1, values.size):
            order = list(range(values.size))
            order[a], order[b] = b, a
            yield order


def _slopes(scene: Scene, layer: Layer, heads: int, last: int) -> np.ndarray | None:
    """Return the slopes that the mask of an attention of the stateful model has for the token, one for each head."""
    feeds = scene.stateful.model.model.feeds[layer.id]
    feed = feeds[3] if len(feeds) > 3 else None
    mask = None if feed is None else scene.wanted(scene.stateful.model.model.layers[feed[0]])
    if (
        mask is None
        or mask.dtype.kind != "f"
        or mask.ndim != 4
        or mask.shape[1] not in (1, heads)
        or mask.shape[3] < last
    ):
        return None
    if last < 2 or mask.shape[1] == 1:
        return np.zeros(0, np.float32)
    row = mask[0, :, -1]
    return (row[:, -1] - row[:, -2]).astype(np.float32)


def _shown(value: Any) -> str:
    text = str(value.tolist()) if isinstance(value, np.ndarray) else f"{value:.6g}"
    return "empty" if text == "[]" else text


def _given(scene: Scene, layer: Layer) -> _Options | None:
    """Return the options of a layer, or None if one is not constant or the layer has others."""
    found = {name: scene.paged.constant(layer, position) for name, position in _POSITIONS.items()}
    scale, window, slopes, sinks = found.values()
    if scale is None or window is None or slopes is None or sinks is None or scale.size != 1:
        return None
    return _Options(float(scale.ravel()[0]), int(window.ravel()[0]), slopes.ravel(), sinks.ravel())


def _rows(scene: Scene, layer: Layer) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the query of the token, [heads, size], and the keys and values that it sees, [heads, tokens, size]."""
    new = [scene.tap(scene.paged.source(layer, position)) for position in range(3)]
    caches = [scene.caches.get(scene.paged.source(layer, position).name) for position in (3, 4)]
    if any(a is None for a in new) or any(c is None or c.dtype.kind != "f" for c in caches):
        return None
    piece, row, slots = scene.piece, scene.row, scene.slots
    first, last, _ = piece.evicted
    past = [scene.call.place(scene.part, p, slots) for p in range(piece.begin) if not first <= p < last]
    blocks, places = [block for block, _ in past], [slot for _, slot in past]
    seen: list[np.ndarray] = []
    for rows, cache in zip(new[1:], caches):
        assert rows is not None
        assert cache is not None
        if blocks and not 0 <= min(blocks) <= max(blocks) < len(cache):
            return None
        fresh = rows[scene.first : row + 1].reshape(row + 1 - scene.first, cache.shape[1], -1)
        seen.append(np.concatenate([cache[blocks, :, places], fresh]).swapaxes(0, 1))
    query = new[0]
    assert query is not None
    size = seen[0].shape[2]
    heads = query[row].size // size
    keys, values = (np.repeat(array, heads // len(array), 0) for array in seen)
    return query[row].reshape(heads, size), keys, values


def _attended(query: np.ndarray, keys: np.ndarray, values: np.ndarray, options: _Options) -> np.ndarray:
    """Return the average of the values for one query, [heads * width]."""
    scores = np.einsum("hd,htd->ht", query.astype(np.float64), keys) * options.scale
    distances = np.arange(scores.shape[1])[::-1]
    if options.alibi_slopes.size:
        scores -= options.alibi_slopes[:, None] * distances
    if options.sliding_window:
        scores[:, distances >= options.sliding_window] = -np.inf
    sinks = options.sinks[:, None] if options.sinks.size else np.full((len(scores), 1), -np.inf)
    highest = np.maximum(scores.max(1, keepdims=True), sinks)
    weights = np.exp(scores - highest)
    weights /= weights.sum(1, keepdims=True) + np.exp(sinks - highest)
    return np.einsum("ht,htd->hd", weights, values).ravel()
