"""Say where two models differ, by structure: layers, attributes, ports, edges, weights and bodies.

Ids, the order of layers and edges, and the offsets of constants make no difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from irrun.debug.difference.constants import WeightsError, constant, weights_error
from irrun.debug.difference.layers import Change, LayerChanges
from irrun.debug.difference.matching import By, Matching, Pair, match
from irrun.ir.rt_info import rt_infos
from irrun.model import Layer, Model, is_constant

__all__ = ["Change", "Difference", "LayerDifference", "Place", "WeightsError", "diff"]

Status = Literal["changed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class Place:
    """A layer of one of the two models, and where it is in its file.

    ``inside`` is the path of the body that holds it, such as ``loop/body``; empty outside of bodies. ``line`` is None
    if the model has no file.
    """

    name: str
    type: str
    inside: str
    file: str
    line: int | None


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """A layer that differs. ``a`` is None for an added layer, ``b`` for a removed one, which have no ``changes``.

    ``by`` says how the two layers were paired. ``follows`` is whether the layer differs in nothing but declared shapes
    and precisions, and reads, or contains, a layer that differs: then that one is the cause.
    """

    a: Place | None
    b: Place | None
    by: By | None
    changes: tuple[Change, ...]
    follows: bool = False

    @property
    def status(self) -> Status:
        return "added" if self.a is None else "removed" if self.b is None else "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two models: ``model`` are changes of the whole model, ``layers`` those of layers.

    ``layers`` are in topological order. ``without_weights`` are the files whose ``.bin`` is missing; ``uncompared`` is
    the number of constants whose values were therefore not compared.
    """

    a: str
    b: str
    model: tuple[Change, ...]
    layers: tuple[LayerDifference, ...]
    without_weights: tuple[str, ...]
    uncompared: int

    @property
    def same(self) -> bool:
        """Whether no difference was found."""
        return not self.model and not self.layers

    def record(self) -> dict[str, Any]:
        """Return the difference as a dict for JSON. ``version`` grows when a field changes its meaning."""
        return {
            "version": 1,
            "a": self.a,
            "b": self.b,
            "same": self.same,
            "without_weights": list(self.without_weights),
            "uncompared_constants": self.uncompared,
            "model": [_change(change) for change in self.model],
            "layers": [
                {
                    "status": layer.status,
                    "a": layer.a and _place(layer.a),
                    "b": layer.b and _place(layer.b),
                    "by": layer.by,
                    "follows": layer.follows,
                    "changes": [_change(change) for change in layer.changes],
                }
                for layer in self.layers
            ],
        }


def diff(a: Model, b: Model, *, rt_info: bool = False) -> Difference:
    """Return where model ``b`` differs from model ``a``.

    Layers are paired as ``match`` does. Attributes are compared by value, so that a default makes no difference whether
    it is written or not. Constants are compared by their values, in blocks; if one of the models has no ``.bin``, the
    rest is compared. With ``rt_info``, also compare the elements that irrun does not interpret. Raises ModelError if a
    constant is outside of the ``.bin``.
    """
    differ = _Differ(a, b, rt_info=rt_info)
    matching = match(a, b)
    layers = tuple(differ.layers(matching, "", ""))
    lacking = tuple(m.source.path for m in (a, b) if m.weights is None and m.constants)
    return Difference(a.source.path, b.source.path, tuple(differ.model()), layers, lacking, differ.uncompared)


class _Differ:
    """Compares the layers of two models."""

    def __init__(self, a: Model, b: Model, *, rt_info: bool) -> None:
        self.a, self.b = a, b
        self.uncompared = 0
        self._infos = (rt_infos(a), rt_infos(b)) if rt_info else ({}, {})

    def model(self) -> Iterator[Change]:
        """Yield the changes of the whole model."""
        if self.a.name != self.b.name:
            yield Change("name", "", self.a.name, self.b.name)
        if self.a.version != self.b.version:
            yield Change("ir_version", "", str(self.a.version), str(self.b.version))
        yield from self._info("", 0, 0)

    def layers(
        self, matching: Matching, inside_a: str, inside_b: str, *, entering: bool = False
    ) -> Iterator[LayerDifference]:
        """Yield the layers of a model or body that differ, in topological order of ``a``.

        ``entering`` is whether a value that enters the body differs.
        """
        differing: set[int] = set()
        by_a = {pair.a.id: pair for pair in matching.pairs}
        removed = {layer.id: layer for layer in matching.only_a}
        added = _after(matching)
        for layer in added.get(None, ()):
            yield LayerDifference(None, self._place(self.b, layer, inside_b), None, ())
        for id in dict.fromkeys((*matching.a.order, *matching.a.layers)):
            pair = by_a.get(id)
            if pair is None:
                yield LayerDifference(self._place(self.a, removed[id], inside_a), None, None, ())
                continue
            changes = tuple(self._changes(matching, pair))
            reads = any(feed is not None and feed[0] in differing for feed in matching.a.feeds.get(id, ()))
            reads = reads or (entering and pair.a.type.lower() == "parameter")
            inner = [
                layer
                for tag, body in pair.bodies.items()
                for layer in self.layers(
                    body, f"{inside_a}{pair.a.name}/{tag}/", f"{inside_b}{pair.b.name}/{tag}/", entering=reads
                )
            ]
            if any(change.kind not in _NAMES for change in (*changes, *(c for layer in inner for c in layer.changes))):
                differing.add(id)
            if changes:
                places = self._place(self.a, pair.a, inside_a), self._place(self.b, pair.b, inside_b)
                follows = all(change.kind in _DECLARED for change in changes) and (reads or bool(inner))
                yield LayerDifference(*places, pair.by, changes, follows)
            yield from inner
            for layer in added.get(id, ()):
                yield LayerDifference(None, self._place(self.b, layer, inside_b), None, ())

    def _place(self, model: Model, layer: Layer, inside: str) -> Place:
        line = model.source.span(layer.node).line if model.source.data and layer.node >= 0 else None
        return Place(layer.name, layer.type, inside.removesuffix("/"), model.source.path, line)

    def _changes(self, matching: Matching, pair: Pair) -> Iterator[Change]:
        """Yield the changes of two layers that are paired."""
        a, b = pair.a, pair.b
        yield from LayerChanges(matching, pair)
        if is_constant(a) and is_constant(b):
            yield from self._weights(matching, a, b)
        yield from self._info("", a.node, b.node)
        for side in ("inputs", "outputs"):
            for position, (one, other) in enumerate(zip(getattr(a, side), getattr(b, side))):
                yield from self._info(f"{side[:-1]} {position} ", one.node, other.node)

    def _weights(self, matching: Matching, a: Layer, b: Layer) -> Iterator[Change]:
        if self.a.weights is None or self.b.weights is None:
            self.uncompared += 1
            return
        one, other = constant(matching.a, a, self.a.weights), constant(matching.b, b, self.b.weights)
        if one is None or other is None or one.count != other.count:
            return  # the attributes differ, or neither can be read
        if (one.type.kind == "string") != (other.type.kind == "string"):
            return  # the element types differ, and there is no distance
        error = weights_error(one, other)
        if error is not None:
            yield Change("weights", "", None, None, error)

    def _info(self, where: str, a: int, b: int) -> Iterator[Change]:
        """Yield the changes of uninterpreted elements inside the elements with the ordinals ``a`` and ``b``."""
        none: Mapping[str, str] = {}
        one, other = self._infos[0].get(a, none), self._infos[1].get(b, none)
        for path in dict.fromkeys((*one, *other)):
            if one.get(path) != other.get(path):
                yield Change("rt_info", f"{where}{path}", one.get(path), other.get(path))


def _after(matching: Matching) -> dict[int | None, list[Layer]]:
    """Return the layers only in ``b``, by the layer of ``a`` after which they are reported: their last producer."""
    position = {pair.b.id: (number, pair.a.id) for number, pair in enumerate(matching.pairs)}
    last: dict[int, tuple[int, int] | None] = dict(position)
    after: dict[int | None, list[Layer]] = {}
    only = {layer.id: layer for layer in matching.only_b}
    order: Iterable[int] = dict.fromkeys((*matching.b.order, *only))
    for id in order:
        if id in only:
            producers = [place for feed in matching.b.feeds[id] if feed and (place := last.get(feed[0])) is not None]
            place = last[id] = max(producers, default=None)
            after.setdefault(place and place[1], []).append(only[id])
    return after


_DECLARED: Final = ("shape", "precision")
"""The kinds of changes that follow from those of producers."""
_NAMES: Final = ("name", "tensor_names", "rt_info")
"""The kinds of changes from which nothing follows."""
_FIGURES: Final = {math.inf: "inf"}


def _change(change: Change) -> dict[str, Any]:
    """Return a change as a dict for JSON."""
    record: dict[str, Any] = {"kind": change.kind, "what": change.what, "a": change.a, "b": change.b}
    if change.error is not None:
        error = change.error
        record["error"] = {
            "elements": error.elements,
            "different": error.different,
            "share": error.share,
            "max_abs": _FIGURES.get(error.max_abs or 0.0, error.max_abs),
            "max_rel": _FIGURES.get(error.max_rel or 0.0, error.max_rel),
            "worst": list(error.worst),
        }
    return record


def _place(place: Place) -> dict[str, Any]:
    return {
        "name": place.name,
        "type": place.type,
        "inside": place.inside,
        "file": place.file,
        "line": place.line,
    }
