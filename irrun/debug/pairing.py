"""Pair the inner values and the outputs of two sides.

``compare`` takes any function from two ``Subject``s to pairs of places. ``by_name`` is the one that it uses by default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irrun.debug.subjects import Subject
from irrun.engines import Loaded, Place

__all__ = ["Pairing", "by_name", "pair_outputs"]

Pairing = Callable[[Subject, Subject], Mapping[Place, Place]]
"""A function that returns the place in the candidate (the second argument) for places in the reference."""


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
