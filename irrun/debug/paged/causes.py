"""Find the cause of a token that differs: the first layer with another value, and what explains its values.

A cause is named only if it is proved: by values of caches, tokens and layers, or by a run of the corrected model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from irrun.debug.paged.cached import held, shared_slots, wrong_rows, wrong_state
from irrun.debug.paged.constants import difference
from irrun.debug.paged.options import wrong_option
from irrun.debug.paged.proof import with_attribute, with_constant, with_source
from irrun.debug.paged.scene import Scene, near
from irrun.debug.paged.sides import ATTENTION, contents
from irrun.debug.paged.twins import root
from irrun.model import Layer, is_constant

__all__ = ["Cause", "cause"]


@dataclass(frozen=True, slots=True)
class Cause:
    """The layer at fault in the paged model, and what is wrong with it: None where no cause is proved."""

    layer: Layer
    text: str | None


def cause(scene: Scene) -> Cause | None:
    """Return the first layer whose value for the token is not that of the stateful model, and why."""
    for layer in scene.ordered():
        if scene.right(layer) is not False:
            continue
        special, others = scene.behind(layer)
        for suspect in reversed(special):
            if text := _special(scene, suspect, layer):
                return Cause(suspect, text)
        for suspect in (layer, *others):
            if text := _constants(scene, suspect, layer):
                return Cause(suspect, text)
        for suspect in () if special else (layer, *others):
            if text := _sources(scene, suspect, layer):
                return Cause(suspect, text)
        return Cause(special[0] if special else layer, None)
    return None


def _special(scene: Scene, layer: Layer, wrong: Layer) -> str | None:
    """Return what is wrong with a layer with caches, which feeds the layer ``wrong``."""
    if layer.type != ATTENTION:
        return _constants(scene, layer, wrong) or wrong_state(scene, layer)
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
        rows = scene.tap(scene.paged.source(layer, position))
        if position not in expected or rows is None:
            continue
        row, wanted = rows[scene.row].ravel(), scene.expected(expected[position])
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


def _constants(scene: Scene, layer: Layer, wrong: Layer) -> str | None:
    """Return how a constant input of a layer differs from that of the stateful model, if its contents make it right."""
    mine = scene.paged.model
    for position, feed in enumerate(mine.model.feeds[layer.id]):
        constant = root(mine.model, feed)
        found = None if constant is None else contents(mine, (constant.id, 0))
        if constant is None or found is None:
            continue
        for expected in _candidates(scene, layer, position, constant, found):
            text = difference(found, expected)
            proof = text and scene.proof(partial(with_constant, scene.paged, constant, expected), wrong)
            if proof:
                return f'the constant "{constant.name}" (input {position}) {text}; {proof}'
    return None


def _candidates(scene: Scene, layer: Layer, position: int, constant: Layer, found: np.ndarray) -> Iterator[np.ndarray]:
    """Yield constants of the stateful model in the place of a constant ``found``, which an input of a layer comes from.

    They are that of the counterpart of the layer, the counterpart of the Const, the one with the most equal elements,
    and those of its type and size without a counterpart. Which of them is right, only a run can tell.
    """
    theirs, twin, other = scene.stateful.model, scene.twin(layer), scene.twin(constant)
    feeds = () if twin is None else theirs.model.feeds[twin.id]
    own = root(theirs.model, feeds[position]) if position < len(feeds) else None
    ids = dict.fromkeys(one.id for one in (own, other) if one is not None and is_constant(one))
    arrays = [contents(theirs, (id, 0)) for id in ids]
    for array in (*arrays, _nearest(scene, found), *_unpaired(scene, found.size)):
        if array is not None and array.dtype == found.dtype:
            yield array.reshape(found.shape) if array.size == found.size else array


def _unpaired(scene: Scene, size: int) -> Iterator[np.ndarray | None]:
    """Yield the constants of the stateful model with ``size`` elements, more than one, and without a counterpart."""
    theirs, paired = scene.stateful.model, {*scene.twins.values()}
    for id, layer in theirs.model.layers.items():
        shape = layer.outputs[0].shape if is_constant(layer) and id not in paired else None
        if shape is not None and shape.static is not None and math.prod(shape.static) == size > 1:
            yield contents(theirs, (id, 0))


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


def _sources(scene: Scene, layer: Layer, wrong: Layer) -> str | None:
    """Return which input or attribute of a layer is another one than in the stateful model, if that is the fault."""
    twin = scene.twin(layer)
    if twin is None or layer.type in ("Const", "Parameter"):  # their attributes say where contents lie
        return None
    for name, value in twin.attributes.items():
        if layer.attributes.get(name) != value:
            proof = scene.proof(partial(with_attribute, scene.paged, layer, name, value), wrong)
            if proof:
                return f"{name} is {layer.attributes.get(name)}, and {value} in the stateful model; {proof}"
    mine, theirs = scene.paged.model.model, scene.stateful.model.model
    counterparts = {other: id for id, other in scene.twins.items()}
    for position, (feed, other) in enumerate(zip(mine.feeds[layer.id], theirs.feeds[twin.id])):
        if feed is None or other is None or other[0] not in counterparts:
            continue
        here, there, right = mine.layers[feed[0]], theirs.layers[other[0]], (counterparts[other[0]], other[1])
        if right == feed or scene.right(here) is not True:
            continue
        proof = scene.proof(partial(with_source, scene.paged, layer, position, right), wrong)
        if proof:
            return f'input {position} is "{here.name}", and "{there.name}" in the stateful model; {proof}'
    return None
