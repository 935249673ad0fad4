"""Find the cause of a token that differs: the first layer with another value, and what explains its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from irrun.debug.paged.cached import held, shared_slots, wrong_rows, wrong_state
from irrun.debug.paged.constants import difference
from irrun.debug.paged.options import wrong_option
from irrun.debug.paged.scene import Scene, near
from irrun.debug.paged.sides import ATTENTION, contents
from irrun.model import Layer

__all__ = ["Cause", "cause"]


@dataclass(frozen=True, slots=True)
class Cause:
    """The layer at fault in the paged model, and what is wrong with it: None where no explanation fits the values."""

    layer: Layer
    text: str | None


def cause(scene: Scene) -> Cause | None:
    """Return the first layer whose value for the token is not that of the stateful model, and why."""
    for layer in scene.ordered():
        if scene.right(layer) is not False:
            continue
        special, others = scene.behind(layer)
        for suspect in reversed(special):
            if text := _special(scene, suspect):
                return Cause(suspect, text)
        for suspect in (layer, *others):
            if text := _constants(scene, suspect):
                return Cause(suspect, text)
        for suspect in () if special else (layer, *others):
            if text := _sources(scene, suspect):
                return Cause(suspect, text)
        return Cause(special[0] if special else layer, None)
    return None


def _special(scene: Scene, layer: Layer) -> str | None:
    """Return what is wrong with a layer with caches."""
    if text := _constants(scene, layer):
        return text
    if layer.type != ATTENTION:
        return wrong_state(scene, layer)
    if not _writes(layer):
        cache = scene.paged.source(layer, 3)
        sharing = [other for other in scene.paged.layers(ATTENTION) if scene.paged.source(other, 3) is cache]
        if not any(map(_writes, sharing)):
            return f'write_kv_cache is false, and no other layer writes "{cache.name}"'
    shared = shared_slots(scene.call, scene.part, scene.slots)
    return _new_rows(scene, layer) or shared or wrong_rows(scene, layer) or wrong_option(scene, layer)


def _writes(layer: Layer) -> bool:
    """Return whether an attention layer writes its caches."""
    return layer.attributes.get("write_kv_cache", "true") not in ("false", "0")


def _new_rows(scene: Scene, layer: Layer) -> str | None:
    """Return which of query, key and value of the token comes from another layer than in the stateful model."""
    number = [other.id for other in scene.paged.layers(ATTENTION)].index(layer.id)
    model = scene.stateful.model.model
    attentions = [model.layers[id] for id in model.order if model.layers[id].type == "ScaledDotProductAttention"]
    expected: dict[int, Layer] = {}
    for position, kind in zip((1, 2), held(model)):
        if number < len(kind):
            expected[position] = kind[number].appended
    if number < len(attentions) and (feed := model.feeds[attentions[number].id][0]):
        expected[0] = model.layers[feed[0]]
    for position, name in enumerate(("query", "key", "value")):
        rows = scene.taps.get(scene.paged.source(layer, position).name)
        if position not in expected or rows is None:
            continue
        row, wanted = rows[scene.row].ravel(), scene.expected(expected[position].name)
        if not wanted or any(row.size == other.size and near(row, other) for other in wanted):
            continue
        same = scene.same(row)
        factor = _factor(row, [other for other in wanted if other.size == row.size])
        if same:
            return f'{name} is the value of "{same[0]}", and that of "{expected[position].name}" in the stateful model'
        if factor is not None:
            return f'{name} is {factor:.4g} times the value of "{expected[position].name}" in the stateful model'
        return f'{name} is not the value of "{expected[position].name}" in the stateful model'
    return None


def _factor(row: np.ndarray, wanted: list[np.ndarray]) -> float | None:
    """Return the number that a row is times another one."""
    for other in wanted:
        with np.errstate(all="ignore"):
            factor = float(np.median(row / other))
        if np.isfinite(factor) and np.allclose(row, factor * other, rtol=1e-3, atol=1e-6):
            return factor
    return None


def _constants(scene: Scene, layer: Layer) -> str | None:
    """Return how a constant input of a layer differs from that of the stateful model."""
    for position, name, found, expected in _pairs(scene, layer):
        if text := difference(found, expected):
            return f'the constant "{name}" (input {position}) {text}'
    return None


def _pairs(scene: Scene, layer: Layer) -> Iterator[tuple[int, str, np.ndarray, np.ndarray]]:
    """Yield the constant inputs of a layer: their position, name and contents, and those in the stateful model."""
    mine, theirs = scene.paged.model, scene.stateful.model
    twin = scene.shared.get(layer.name)
    for position, feed in enumerate(mine.model.feeds[layer.id]):
        own = contents(mine, feed)
        if feed is None or own is None:
            continue
        source = mine.model.layers[feed[0]]
        feeds = theirs.model.feeds[twin.id] if twin is not None and twin.type == layer.type else ()
        other = feeds[position] if position < len(feeds) else None
        if other is None:
            other = _named(scene, source)
        expected = contents(theirs, other) if other is not None or layer.name in scene.shared else _nearest(scene, own)
        if expected is not None and own.dtype == expected.dtype:
            yield position, source.name, own.reshape(expected.shape) if own.size == expected.size else own, expected


def _named(scene: Scene, source: Layer) -> tuple[int, int] | None:
    """Return the output of the stateful model that has the name of a constant, perhaps before it is reshaped."""
    model = scene.paged.model.model
    while source.name not in scene.shared and source.type in ("Reshape", "Convert", "Unsqueeze", "Squeeze"):
        feed = model.feeds[source.id][0]
        if feed is None:
            return None
        source = model.layers[feed[0]]
    twin = scene.shared.get(source.name)
    return None if twin is None or not twin.outputs else (twin.id, twin.outputs[0].id)


def _nearest(scene: Scene, found: np.ndarray) -> np.ndarray | None:
    """Return the constant of the stateful model with the most elements of another one, if most are equal."""
    model = scene.stateful.model
    best, most = None, found.size // 2
    if found.dtype.kind != "f":  # shapes are not those of the stateful model
        return None
    for feed, value in model.plan.values.items():
        if value.shape.static != found.shape or value.data is None or value.data.dtype != found.dtype:
            continue
        equal = int((value.data == found).sum())
        if most < equal:
            best, most = contents(model, feed), equal
    return best


def _sources(scene: Scene, layer: Layer) -> str | None:
    """Return which input or attribute of a layer is another one than in the stateful model."""
    twin = scene.shared.get(layer.name)
    if twin is None or layer.type in ("Const", "Parameter"):  # their attributes say where contents lie
        return None
    if twin.type != layer.type:
        return f"the layer is {layer.type}, and {twin.type} in the stateful model"
    for name, value in twin.attributes.items():
        if layer.attributes.get(name) != value:
            return f"{name} is {layer.attributes.get(name)}, and {value} in the stateful model"
    mine, theirs = scene.paged.model.model, scene.stateful.model.model
    for position, (feed, other) in enumerate(zip(mine.feeds[layer.id], theirs.feeds[twin.id])):
        if feed is None or other is None:
            continue
        here, there = mine.layers[feed[0]], theirs.layers[other[0]]
        if here.name == there.name or scene.right(here) is not True:
            continue
        found, wanted = scene.found(here), scene.expected(there.name)
        if found is not None and wanted and not any(row.size == found.size and near(found, row) for row in wanted):
            return f'input {position} is "{here.name}", and "{there.name}" in the stateful model'
    return None
