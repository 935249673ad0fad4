"""Pair the inner values and the outputs of two sides.

``compare`` takes any function from two ``Subject``s to pairs of places. ``by_name_or_structure`` is its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from irrun.debug.difference import Matching, match
from irrun.debug.difference.decompression import weights_of
from irrun.debug.subjects import Subject
from irrun.engines import Loaded, Place
from irrun.model import Model

__all__ = ["Pairing", "by_name", "by_name_or_structure", "pair_outputs"]

Pairing = Callable[[Subject, Subject], Mapping[Place, Place]]
"""A function that returns the place in the candidate (the second argument) for places in the reference."""


_MIN_SHARE_OF_EQUAL_NAMES: Final = 0.9
"""The share of the inner values that must have the same name and type on both sides, so that names are trusted. A copy
of a model shares nearly all; a model that was converted again has other names, or counts up names differently."""


def by_name_or_structure(reference: Subject, candidate: Subject) -> dict[Place, Place]:
    """Return the pairs of places by name or, for two IR files whose names differ, by the structure of the models.

    ``irrun.debug.match`` pairs layers by structure; a layer that it leaves alone is still paired by name. The
    layers inside a weight are not paired if the two sides store the weight in different forms: only its values
    correspond.
    """
    pairs = _by_name_or_structure(reference, candidate)
    if reference.model is None or candidate.model is None:
        return pairs
    mine, its = dict(_forms(reference.model, "")), dict(_forms(candidate.model, ""))
    return {place: other for place, other in pairs.items() if mine.get(place.layer) == its.get(other.layer)}


def _forms(model: Model, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the layers inside weights, by the names of their places, with the form of the weight."""
    for weight in weights_of(model).values():
        for id in weight.hidden:
            yield prefix + model.unique_names[id], weight.form
    for id, layer in model.layers.items():
        for body in layer.bodies.values():
            yield from _forms(body, f"{prefix}{model.unique_names[id]}/")


def _by_name_or_structure(reference: Subject, candidate: Subject) -> dict[Place, Place]:
    """Return the pairs of places by name or by structure, also those inside weights."""
    named = by_name(reference, candidate)
    origins, others = reference.loaded.places, candidate.loaded.places
    same = sum(origins[place].type == others[other].type for place, other in named.items())
    if (
        reference.model is None
        or candidate.model is None
        or same >= _MIN_SHARE_OF_EQUAL_NAMES * min(len(origins), len(others))
    ):
        return named
    matched = _matched(match(reference.model, candidate.model), "", "")
    pairs = {place: other for place, other in matched if place in origins and other in others}
    taken = set(pairs.values())
    pairs |= {place: other for place, other in named.items() if place not in pairs and other not in taken}
    return {place: pairs[place] for place in origins if place in pairs}


def _matched(matching: Matching, prefix: str, other: str) -> Iterator[tuple[Place, Place]]:
    """Yield the places of the values that correspond to each other, also those in bodies."""
    a, b = matching.a.unique_names, matching.b.unique_names
    for (id, position), (other_id, other_position) in matching.values():
        yield Place(prefix + a[id], position), Place(other + b[other_id], other_position)
    for pair in matching.pairs:
        for inner in pair.bodies.values():
            yield from _matched(inner, f"{prefix}{a[pair.a.id]}/", f"{other}{b[pair.b.id]}/")


def by_name(reference: Subject, candidate: Subject) -> dict[Place, Place]:
    """Return the pairs of places whose layers have the same name or whose values share another name.

    A name that belongs to several values of one side pairs none.
    """
    pairs = {place: place for place in reference.loaded.places if place in candidate.loaded.places}
    taken = set(pairs.values())
    named = _unambiguous(candidate.loaded)
    for name, place in _unambiguous(reference.loaded).items():
        other = named.get(name)
        if place not in pairs and other is not None and other not in taken:
            pairs[place] = other
            taken.add(other)
    return {place: pairs[place] for place in reference.loaded.places if place in pairs}


def _unambiguous(loaded: Loaded) -> dict[str, Place]:
    """Return the places by each name that only one of them has: that of the first output's layer, or of the value."""
    by_name: dict[str, set[Place]] = {}
    for place, origin in loaded.places.items():
        for name in (*origin.names, *([place.layer] if place.port == 0 else [])):
            by_name.setdefault(name, set()).add(place)
    return {name: next(iter(places)) for name, places in by_name.items() if len(places) == 1}


def pair_outputs(reference: Sequence[tuple[str, ...]], candidate: Sequence[tuple[str, ...]]) -> dict[int, int]:
    """Return the position of the candidate's output for positions of outputs of the reference.

    Outputs are paired by a common name. If no two have one, and there are as many on both sides, they are paired in
    order.
    """
    pairs: dict[int, int] = {}
    for position, names in enumerate(reference):
        for other, others in enumerate(candidate):
            if other not in pairs.values() and set(names) & set(others):
                pairs[position] = other
                break
    if not pairs and len(reference) == len(candidate):
        return {position: position for position in range(len(reference))}
    return pairs
