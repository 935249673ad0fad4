"""Find the cause of a token that differs: the first layer with another value, and what explains its values.

A cause is named only if it is proved: by values of caches, tokens and layers, or by a run of the corrected model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from irrun.debug.paged.cached import held, shared_slots, wrong_rows, wrong_state
from irrun.debug.paged.constants import difference
from irrun.debug.paged.options import wrong_option
from irrun.debug.paged.proof import Correction, every, with_attribute, with_caches, with_constant, with_source
from irrun.debug.paged.scene import Scene, near
from irrun.debug.paged.sides import ATTENTION, contents
from irrun.debug.paged.twins import PAIRINGS, root
from irrun.debug.paged.wires import wrong_wires
from irrun.model import Layer, is_constant

__all__ = ["Cause", "cause"]


@dataclass(frozen=True, slots=True)
class Cause:
    """The layer at fault in the paged model, and what is wrong with it: None where no cause is proved."""

    layer: Layer
    text: str | None


@dataclass(frozen=True, slots=True)
class _Found:
    """What is wrong with a layer. With ``correct``, the values after the correction are those of ``scene``."""

    layer: Layer
    text: str | None
    correct: Correction | None = None
    scene: Scene | None = None
    is_wire: bool = False


def cause(scene: Scene) -> Cause | None:
    """Return the layer at fault for the token, and what is wrong with it.

    What differs is corrected, layer by layer in the order of the graph, until the token agrees. The cause is what alone
    makes it agree, or all of it. Wires and constants may explain the same values: constants are preferred.
    """
    if found := _rounded_weights(scene):
        return found
    best, most = None, (False, 0)
    for by in PAIRINGS:
        now = scene.paired(by)
        found, end = _chain(now)
        is_proved = bool(found) and end is None
        if is_proved and not any(one.is_wire for one in found):
            return _told(now, found)
        is_told = best is not None and not is_proved and (best[1] or (best[2] is not None and best[2].text is not None))
        if not is_told and (best is None or most < (is_proved, len(found))):
            best, most = (now, found, end), (is_proved, len(found))
    assert best is not None
    return _told(*best[:2]) if most[0] else _partly(*best)


def _chain(scene: Scene) -> tuple[list[_Found], _Found | None]:
    """Return what was corrected until the token agreed, and what cannot be corrected, or None if the token agrees."""
    found: list[_Found] = []
    while not scene.agrees:
        one = _first(scene)
        if one is None or one.scene is None:
            return found, one or _Found(found[-1].layer if found else next(scene.ordered()), None)
        found.append(one)
        scene = one.scene
    return found, None


def _told(scene: Scene, found: Sequence[_Found]) -> Cause:
    """Return what is at fault if the corrections together make the token agree: one that does so alone, or all."""
    if len(found) == 1:
        return Cause(found[0].layer, f"{found[0].text}; corrected, the token agrees")
    for one in reversed(found):
        if one.correct is not None and scene.corrected(one.correct) is not None:
            rest = "; also differs: ".join(str(other.text) for other in found if other is not one)
            return Cause(one.layer, f"{one.text}; corrected, the token agrees; also differs: {rest}")
    every = "; ".join(str(one.text) for one in found)
    return Cause(found[0].layer, f"{every}; {'both' if len(found) == 2 else 'all'} corrected, the token agrees")


def _partly(scene: Scene, found: Sequence[_Found], end: _Found | None) -> Cause | None:
    """Return what is at fault if the corrections do not make the token agree, and ``end`` cannot be corrected.

    It is the first one that brings the token nearer to the expected logits.
    """
    before = scene.difference
    for one in found:
        assert one.scene is not None
        if not before <= one.scene.difference:
            name = scene.paged.model.model.unique_names[one.layer.id]
            more = "there is another fault" if end is None or end.text is None else f"also: {end.text}"
            return Cause(one.layer, f'{one.text}; corrected, "{name}" agrees; the token still differs: {more}')
        before = one.scene.difference
    if end is None:
        return None
    return Cause(end.layer, end.text and "; also differs: ".join((end.text, *(str(one.text) for one in found))))


def _first(scene: Scene) -> _Found | None:
    """Return what is wrong behind the first layer whose value for the token is not that of the stateful model."""
    for layer in scene.ordered():
        if scene.right(layer) is not False:
            continue
        special, others = scene.behind(layer)
        for suspect in reversed(special):
            if found := _special(scene, suspect, layer):
                return found
        for suspect in (layer, *others):
            if found := _constants(scene, suspect, layer):
                return found
        for suspect in () if special else (layer, *others):
            if found := _sources(scene, suspect, layer):
                return found
        return _Found(special[0] if special else layer, None)
    return None


def _corrected(
    scene: Scene, layer: Layer, text: str | None, correct: Correction, wrong: Layer, *, is_wire: bool = False
) -> _Found | None:
    """Return a fault, if its correction makes the layer ``wrong`` or the token agree."""
    after = scene.corrected(correct, wrong) if text else None
    return None if after is None else _Found(layer, text, correct, after, is_wire)


def _special(scene: Scene, layer: Layer, wrong: Layer) -> _Found | None:
    """Return what is wrong with a layer with caches, which feeds the layer ``wrong``."""
    if layer.type != ATTENTION:
        if found := _constants(scene, layer, wrong):
            return found
        text = wrong_state(scene, layer)
        return None if text is None else _Found(layer, text)
    for other in scene.paged.layers(ATTENTION):
        wires = wrong_wires(scene.paged, other)
        if wires is not None and (found := _corrected(scene, other, *wires, wrong)):
            return found
    if found := _rounded(scene, layer, wrong):
        return found
    text = _unwritten(scene, layer) or _new_rows(scene, layer) or shared_slots(scene.call, scene.part, scene.slots)
    text = text or wrong_rows(scene, layer)
    if text is not None:
        return _Found(layer, text)
    option = wrong_option(scene, layer)
    if option is None:
        return None
    constant = root(scene.paged.model.model, scene.paged.model.model.feeds[layer.id][option.position])
    if constant is not None:
        array = np.asarray(option.value, constant.outputs[0].type.dtype if constant.outputs[0].type else None)
        correct = partial(with_constant, constant=constant, array=array.reshape(_static(constant, array)))
        if found := _corrected(scene, layer, option.text, correct, wrong):
            return found
    return _Found(layer, option.text)


def _static(constant: Layer, array: np.ndarray) -> tuple[int, ...]:
    """Return the shape of a Const if an array has as many elements, or else the shape of the array."""
    shape = constant.outputs[0].shape
    static = None if shape is None else shape.static
    return static if static is not None and math.prod(static) == array.size else array.shape


def _rounded(scene: Scene, layer: Layer, wrong: Layer) -> _Found | None:
    """Return which caches round keys and values, if this is the fault."""
    rounding: dict[str, np.ndarray] = {}
    for position in (3, 4):
        name, rows = scene.paged.source(layer, position).name, scene.tap(scene.paged.source(layer, position - 2))
        cache = scene.caches.get(name)
        if cache is None or rows is None or cache.dtype == np.float32:
            continue
        blocks, heads, slots, _ = cache.shape
        rounding[name] = np.zeros((blocks, heads, slots, rows[0].size // heads), np.float32)
    if not rounding:
        return None
    precisions = sorted({str(scene.caches[name].dtype) for name in rounding})
    text = f"the precision of {' and '.join(rounding)} is {', '.join(precisions)}, not float32"
    return _corrected(scene, layer, text, partial(with_caches, caches=rounding), wrong)


def _unwritten(scene: Scene, layer: Layer) -> str | None:
    """Return that no layer writes the caches of an attention layer."""
    if _writes(layer):
        return None
    cache = scene.paged.source(layer, 3)
    sharing = [other for other in scene.paged.layers(ATTENTION) if scene.paged.source(other, 3) is cache]
    if any(map(_writes, sharing)):
        return None
    return f'write_kv_cache is false, and no other layer writes "{cache.name}"'


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


def _constants(scene: Scene, layer: Layer, wrong: Layer) -> _Found | None:
    """Return how constant inputs of a layer differ from those of the stateful model, if that is the fault."""
    mine, texts, corrections = scene.paged.model, list[str](), list[Correction]()
    for position, feed in enumerate(mine.model.feeds[layer.id]):
        constant = root(mine.model, feed)
        found = None if constant is None else contents(mine, (constant.id, 0))
        if constant is None or found is None:
            continue
        for number, expected in enumerate(_candidates(scene, layer, position, constant, found)):
            difference = _difference(scene, constant, found, expected)
            if difference is None:
                continue
            text = f'the constant "{constant.name}" (input {position}) {difference}'
            correct = partial(with_constant, constant=constant, array=expected)
            if one := _corrected(scene, layer, text, correct, wrong):
                return one
            if not number:
                texts.append(text)
                corrections.append(correct)
    if len(texts) < 2:
        return None
    return _corrected(scene, layer, "; ".join(texts), partial(every, corrections), wrong)


def _rounded_weights(scene: Scene) -> Cause | None:
    """Return which constants are those of the stateful model in fewer bits, if this is the fault."""
    mine, theirs = scene.paged.model, scene.stateful.model
    corrections: list[Correction] = []
    types: set[str] = set()
    first: Layer | None = None
    full = [contents(theirs, (id, 0)) for id, layer in theirs.model.layers.items() if is_constant(layer)]
    for layer in scene.ordered():
        type = layer.outputs[0].type if is_constant(layer) and layer.outputs else None
        found = contents(mine, (layer.id, 0)) if type is not None and str(type) in ("f16", "bf16") else None
        if found is None:
            continue
        for array in full:
            if array is None or array.dtype != np.float32 or array.shape != found.shape:
                continue
            with np.errstate(over="ignore"):
                is_rounded = np.array_equal(array.astype(found.dtype), found)
            if is_rounded:
                corrections.append(partial(with_constant, constant=layer, array=array))
                types.add(str(type))
                first = first or layer
                break
    if first is None or scene.corrected(partial(every, corrections)) is None:
        return None
    reader = mine.model.layers[mine.model.consumers[first.id][0]]
    text = f'weights are rounded to {", ".join(sorted(types))}: "{first.name}" and {len(corrections) - 1} others'
    return Cause(reader, f"{text}; corrected, the token agrees")


def _difference(scene: Scene, constant: Layer, found: np.ndarray, expected: np.ndarray) -> str | None:
    """Return how a constant differs from the expected one, as a clause, or None if it does not.

    A constant that is another one of the stateful model, of another name, is called so.
    """
    text = difference(found, expected)
    theirs = scene.stateful.model
    if text is None or found.size < _TELLING:
        return text
    for id, layer in theirs.model.layers.items():
        shape = layer.outputs[0].shape if is_constant(layer) else None
        if shape is None or shape.static != found.shape or layer.name == constant.name:
            continue
        other = contents(theirs, (id, 0))
        if other is not None and np.array_equal(other, found):
            return f'holds the values of "{layer.name}" of the stateful model'
    return text


_TELLING: Final = 16
"""The fewest elements of a constant that is no scale, axis or shape, which may well be equal to another one."""


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


def _sources(scene: Scene, layer: Layer, wrong: Layer) -> _Found | None:
    """Return which input or attribute of a layer is another one than in the stateful model, if that is the fault."""
    twin = scene.twin(layer)
    if twin is None or layer.type in ("Const", "Parameter"):  # their attributes say where contents lie
        return None
    for name, value in twin.attributes.items():
        if layer.attributes.get(name) != value:
            text = f"{name} is {layer.attributes.get(name)}, and {value} in the stateful model"
            if found := _corrected(
                scene, layer, text, partial(with_attribute, layer=layer, name=name, value=value), wrong
            ):
                return found
    mine, theirs = scene.paged.model.model, scene.stateful.model.model
    counterparts = {other: id for id, other in scene.twins.items()}
    for position, (feed, other) in enumerate(zip(mine.feeds[layer.id], theirs.feeds[twin.id])):
        if feed is None or other is None or other[0] not in counterparts:
            continue
        here, there, right = mine.layers[feed[0]], theirs.layers[other[0]], (counterparts[other[0]], other[1])
        if right == feed or here.name == there.name or scene.right(here) is not True:
            continue
        text = f'input {position} is "{here.name}", and "{there.name}" in the stateful model'
        correct = partial(with_source, layer=layer, position=position, source=right)
        if found := _corrected(scene, layer, text, correct, wrong, is_wire=True):
            return found
    return None
