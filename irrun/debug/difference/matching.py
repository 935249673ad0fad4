"""Pair the layers of two models: by name, and by neighbourhood where a converter changed the names."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from irrun.debug.difference.decompression import Weight, weight_parts
from irrun.debug.difference.sides import Side
from irrun.model import Layer, MapEntry, Model, is_constant
from irrun.model.weights import Weights

__all__ = ["By", "Matching", "Pair", "match"]

By = Literal["name", "neighbourhood", "order"]
"""How a pair was found: by the name of the layer or of its tensor; by type, attributes, shapes, weights, producers and
consumers; or, among layers that these do not tell apart, by their order."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A layer of each model that correspond to each other. ``bodies`` pairs their bodies, by the name of the element.

    Only bodies that both layers have are in ``bodies``.
    """

    a: Layer
    b: Layer
    by: By
    bodies: Mapping[str, Matching]


@dataclass(frozen=True, eq=False)
class Matching:
    """Which layers of the models ``a`` and ``b`` correspond to each other.

    ``pairs`` are in topological order of ``a``. ``only_a`` and ``only_b`` are the layers without a counterpart, in the
    order of their files. Every layer of a model is in exactly one pair or in one of the two. ``weights_a`` and
    ``weights_b`` are the weights that were paired as a whole, with the layers that decompress them, by their outputs.
    """

    a: Model
    b: Model
    pairs: tuple[Pair, ...]
    only_a: tuple[Layer, ...]
    only_b: tuple[Layer, ...]
    weights_a: Mapping[int, Weight]
    weights_b: Mapping[int, Weight]

    @cached_property
    def to_b(self) -> Mapping[int, int]:
        """The id of the layer of ``b``, by the id of its counterpart in ``a``."""
        return {pair.a.id: pair.b.id for pair in self.pairs}

    @cached_property
    def to_a(self) -> Mapping[int, int]:
        """The id of the layer of ``a``, by the id of its counterpart in ``b``."""
        return {pair.b.id: pair.a.id for pair in self.pairs}

    def values(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield the outputs that correspond to each other: (layer id, position) in ``a`` and in ``b``.

        They are in topological order of ``a``. Values inside bodies are those of ``Pair.bodies``.
        """
        for pair in self.pairs:
            for position in range(min(len(pair.a.outputs), len(pair.b.outputs))):
                yield (pair.a.id, position), (pair.b.id, position)

    def results(self) -> Iterator[tuple[Layer, Layer]]:
        """Yield the Result layers that correspond to each other: the outputs of the two models."""
        return ((pair.a, pair.b) for pair in self.pairs if pair.a.type.lower() == pair.b.type.lower() == "result")


def match(a: Model, b: Model) -> Matching:
    """Pair the layers of two models, and the layers of their bodies.

    A name that both models have once identifies a layer if the types agree, unless it is a name that a converter counts
    up (``Add_123``, ``57``). Otherwise a layer is paired with the one that has the same type, attributes, shapes,
    weights, producers and consumers; then, around layers already paired, with the one in the same place that agrees in
    fewer of these. The result does not depend on ids, offsets or, unless layers cannot be told apart otherwise, on the
    order of the layers. The time is nearly proportional to the number of layers and edges.
    """
    return _Matcher(Side(a, a.weights), Side(b, b.weights)).matching()


Key = Callable[[Side, Layer], Hashable]

_LEVELS: Final[tuple[Key, ...]] = (
    lambda side, layer: (side.signature(layer), layer.name),
    lambda side, layer: side.signature(layer),
    lambda side, layer: (side.kind(layer), side.shapes(layer), layer.name),
    lambda side, layer: (side.kind(layer), side.shapes(layer)),
    lambda side, layer: (side.kind(layer), layer.name),
    lambda side, layer: side.kind(layer),
)
"""What two layers in the same place must agree in to be paired, from strict to loose."""
_ROUNDS: Final = (_LEVELS[:2], _LEVELS[:2], _LEVELS[:4], _LEVELS, _LEVELS)
"""The levels of each round of matching by neighbourhood. Loose ones come late: a wrong pair leads to others."""


class _Matcher:
    """Pairs the layers of two sides, from the safest evidence to the weakest."""

    def __init__(self, a: Side, b: Side) -> None:
        self.a, self.b = a, b
        self.a.compare_weights(b)
        self.to_b: dict[int, int] = {}
        self.to_a: dict[int, int] = {}
        self.by: dict[int, By] = {}

    def matching(self, anchors: Iterable[tuple[int, int]] = ()) -> Matching:
        """Return the pairs. ``anchors`` are ids of layers that are known to correspond to each other."""
        for one, other in anchors:
            self._pair(one, other, "neighbourhood")
        self._by_name()
        self._unique(lambda side, layer: _name_of_codes(side, layer), "name")
        self._by_neighbourhood()
        unfolded = [self.a.unfold(self.to_b), self.b.unfold(self.to_a)]
        self._parts()
        if any(unfolded):
            self._by_name()
            self._by_neighbourhood()
        if self._is_open():
            self._ends()
            self._by_neighbourhood()
            self._in_order()
            self._retyped()
        return self._result()

    def _by_name(self) -> None:
        """Pair the open layers by their names, and by the names of their tensors."""
        self._unique(lambda side, layer: (side.kind(layer), layer.name) if _is_chosen(layer) else None, "name")
        self._unique(lambda side, layer: (side.kind(layer), side.tensor(layer)) if side.tensor(layer) else None, "name")

    def _parts(self) -> None:
        """Pair the layers of two weights that are paired, if they are stored by the same layers."""
        for one, weight in self.a.folded.items():
            other = self.b.folded.get(self.to_b[one])
            if other is not None and weight_parts(self.a.model, weight) == weight_parts(self.b.model, other):
                for mine, its in zip(weight.hidden, other.hidden):
                    self._pair(mine, its, self.by[one])

    # -- evidence -------------------------------------------------------------------------------

    def _pair(self, one: int, other: int, by: By) -> bool:
        """Pair two layers, and return True; return False if one of them has a counterpart already."""
        if one in self.to_b or other in self.to_a:
            return False
        self.to_b[one], self.to_a[other], self.by[one] = other, one, by
        return True

    def _is_open(self) -> bool:
        """Return whether both sides have layers without a counterpart."""
        return all(
            any(id not in done for id in side.ordered) for side, done in ((self.a, self.to_b), (self.b, self.to_a))
        )

    def _unique(self, key: Key, by: By) -> None:
        """Pair the open layers whose key no other layer of their own side has. A key of None is none."""
        mine, others = (_singles(side, done, key) for side, done in ((self.a, self.to_b), (self.b, self.to_a)))
        for value, one in mine.items():
            other = others.get(value)
            if one is not None and other is not None:
                self._pair(one, other, by)

    def _by_neighbourhood(self) -> None:
        """Pair layers by the parts of the graphs that lead to them, that depend on them, and that surround them."""
        for levels in _ROUNDS:
            if not self._is_open():
                return
            self._by_cones(small=levels is not _ROUNDS[0])
            for level in levels:
                self._spread(level)
            if levels is _LEVELS:
                self._replaced()

    def _by_cones(self, *, small: bool) -> None:
        """Pair the open layers whose whole sub-graph of producers, of consumers or of both exists once on each side.

        ``small`` also pairs small constants by their contents alone, which may well mean something else elsewhere.
        """
        up = self._cones(up=True)
        down = self._cones(up=False)

        def whole(side: Side, layer: Layer) -> Hashable:
            return up[side is self.b][layer.id], down[side is self.b][layer.id]

        def above(side: Side, layer: Layer) -> Hashable:
            return up[side is self.b][layer.id] if small or side.is_telling(layer) else None

        def below(side: Side, layer: Layer) -> Hashable:
            return down[side is self.b][layer.id]

        self._unique(whole, "neighbourhood")
        self._unique(above, "neighbourhood")
        down = self._cones(up=False)  # above, layers were paired by their weights: hold their consumers against these
        self._unique(below, "neighbourhood")

    def _cones(self, *, up: bool) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """Return the hashes of the cones of the open layers on both sides."""
        return self.a.cones({id: id for id in self.to_b}, up=up), self.b.cones(self.to_a, up=up)

    def _spread(self, level: Key) -> None:
        """Pair the producers and consumers of paired layers that agree in ``level``, and go on from these."""
        queue = deque((one, self.to_b[one]) for one in self.a.ordered if one in self.to_b)
        while queue:
            for one, other in self._around(*queue.popleft(), level):
                if self._pair(one, other, "neighbourhood"):
                    queue.append((one, other))

    def _around(self, one: int, other: int, level: Key) -> Iterator[tuple[int, int]]:
        """Yield open producers and consumers of two paired layers that only each other agree with in ``level``."""
        for mine, its in zip(self.a.feeds[one], self.b.feeds[other]):
            if mine and its and mine[1] == its[1] and mine[0] not in self.to_b and its[0] not in self.to_a:
                first, second = self.a.layers[mine[0]], self.b.layers[its[0]]
                if level(self.a, first) == level(self.b, second):
                    yield first.id, second.id
        mine, its = self._readers(self.a, one, level), self._readers(self.b, other, level)
        for key, ids in mine.items():
            if len(ids) == len(its.get(key, ())) == 1:
                yield ids[0], its[key][0]

    def _readers(self, side: Side, id: int, level: Key) -> dict[Hashable, list[int]]:
        """Return the open consumers of a layer, keyed by port, by ``level``, and by their other paired producers."""
        done = self.to_b if side is self.a else self.to_a
        groups: dict[Hashable, list[int]] = {}
        for position, reader, slot in side.readers.get(id, ()):
            if reader not in done:
                layer = side.layers[reader]
                known = self._producers(side, reader)
                groups.setdefault((position, slot, level(side, layer), known), []).append(reader)
        return groups

    def _producers(self, side: Side, id: int) -> tuple[tuple[int, int] | None, ...]:
        """Return the first producers of a layer with the positions of their outputs; None for an open one."""
        known: list[tuple[int, int] | None] = []
        for feed in side.feeds[id][:_MAX_PRODUCERS]:
            token = None if feed is None else feed[0] if side is self.a else self.to_a.get(feed[0])
            known.append(None if feed is None or token is None or token not in self.to_b else (token, feed[1]))
        return tuple(known)

    def _replaced(self) -> None:
        """Pair open layers, of whatever type, if only they compute a value of their shape from the same inputs."""

        def place(side: Side, layer: Layer) -> Hashable:
            producers = self._producers(side, layer.id)
            return (producers, side.shapes(layer)) if producers and None not in producers and layer.outputs else None

        self._unique(place, "neighbourhood")

    # -- last resorts ---------------------------------------------------------------------------

    def _ends(self) -> None:
        """Pair the open inputs and outputs of equal shape in the order of the files, if there are as many of each."""
        for kind in ("parameter", "result"):
            self._zip(lambda side, layer, kind=kind: side.shapes(layer) if side.kind(layer) == kind else None)

    def _in_order(self) -> None:
        """Pair the open layers of equal signature in topological order, if there are as many of each."""
        self._zip(lambda side, layer: side.signature(layer))
        for level in _LEVELS[1::2]:
            self._spread(level)

    def _zip(self, key: Key) -> None:
        mine, its = (_groups(side, done, key) for side, done in ((self.a, self.to_b), (self.b, self.to_a)))
        for value, ids in mine.items():
            if len(ids) == len(its.get(value, ())):
                for one, other in zip(ids, its[value]):
                    self._pair(one, other, "order")

    def _retyped(self) -> None:
        """Pair open layers of one name whose types differ, if a producer or consumer of both is paired."""
        mine, others = (
            _singles(side, done, lambda _, layer: layer.name or None)
            for side, done in ((self.a, self.to_b), (self.b, self.to_a))
        )
        for name, one in mine.items():
            other = others.get(name)
            if one is not None and other is not None and self._meet(one, other):
                self._pair(one, other, "name")

    def _meet(self, one: int, other: int) -> bool:
        """Return whether a producer in the same place, or a consumer, of two layers is paired."""
        for mine, its in zip(self.a.feeds[one], self.b.feeds[other]):
            if mine and its and self.to_b.get(mine[0]) == its[0]:
                return True
        consumers = {*self.b.model.consumers.get(other, ())}
        return any(self.to_b.get(consumer) in consumers for consumer in self.a.model.consumers.get(one, ()))

    # -- result ---------------------------------------------------------------------------------

    def _result(self) -> Matching:
        ordered = {*self.a.model.order}
        pairs = [
            Pair(self.a.layers[id], self.b.layers[self.to_b[id]], self.by[id], self._bodies(id))
            for id in (*self.a.model.order, *(id for id in self.a.layers if id not in ordered))
            if id in self.to_b
        ]
        only_a = tuple(layer for id, layer in self.a.layers.items() if id not in self.to_b)
        only_b = tuple(layer for id, layer in self.b.layers.items() if id not in self.to_a)
        return Matching(self.a.model, self.b.model, tuple(pairs), only_a, only_b, self.a.folded, self.b.folded)

    def _bodies(self, id: int) -> dict[str, Matching]:
        """Match the bodies that both layers of a pair have."""
        one, other = self.a.layers[id], self.b.layers[self.to_b[id]]
        return {
            tag: _body(body, other.bodies[tag], (self.a.weights, self.b.weights), _anchors(one, other, tag))
            for tag, body in one.bodies.items()
            if tag in other.bodies
        }


_MAX_PRODUCERS: Final = 8
"""Compare at most this many producers of a consumer: a Concat may have thousands."""


def _body(
    a: Model, b: Model, weights: tuple[Weights | None, Weights | None], anchors: Iterable[tuple[int, int]]
) -> Matching:
    return _Matcher(Side(a, weights[0]), Side(b, weights[1])).matching(anchors)


def _anchors(one: Layer, other: Layer, tag: str) -> Iterator[tuple[int, int]]:
    """Yield the Parameters and Results of two bodies that their port maps connect with the same place outside."""
    maps = tag.replace("body", "port_map")
    mine, its = (_by_place(layer.maps.get(maps, ())) for layer in (one, other))
    for place, id in mine.items():
        if id is not None and its.get(place) is not None:
            yield id, its[place] or 0


def _by_place(entries: Iterable[MapEntry]) -> dict[Hashable, int | None]:
    """Return the inner layer of each place outside a body; None if several entries have one place."""
    places: dict[Hashable, int | None] = {}
    for entry in entries:
        if entry.external is not None or entry.purpose:
            place = (entry.kind, entry.external, entry.purpose, entry.axis)
            places[place] = None if place in places else entry.internal
    return places


_COUNTED: Final = re.compile(r"(\D*?)_?(\d+)")
"""A name that may have been counted up: a word and a number."""


def _name_of_codes(side: Side, layer: Layer) -> Hashable:
    """Return the name of the Const of a constant or weight, unless a converter counted it up."""
    codes = side.codes(layer)
    return codes.name if is_constant(codes) and _is_chosen(codes) else None


def _is_chosen(layer: Layer) -> bool:
    """Return whether the name of a layer means something: it is neither empty, a number, nor ``TYPE_NUMBER``."""
    match = _COUNTED.fullmatch(layer.name)
    if match is None:
        return bool(layer.name)
    word = match[1].lower()
    return word not in ("", layer.type.lower(), "constant", "op", "node", "layer")


def _singles(side: Side, done: Mapping[int, int], key: Key) -> dict[Hashable, int | None]:
    """Return the open layer of each key; None if several open layers of the side have the key."""
    singles: dict[Hashable, int | None] = {}
    for id in side.ordered:
        if id not in done and (value := key(side, side.layers[id])) is not None:
            singles[value] = None if value in singles else id
    return singles


def _groups(side: Side, done: Mapping[int, int], key: Key) -> dict[Hashable, list[int]]:
    """Return the open layers of each key, in topological order."""
    groups: dict[Hashable, list[int]] = {}
    for id in side.ordered:
        if id not in done and (value := key(side, side.layers[id])) is not None:
            groups.setdefault(value, []).append(id)
    return groups
