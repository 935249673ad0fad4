"""Say where two models differ, by structure: layers, attributes, ports, edges, weights and bodies.

Ids, the order of layers and edges, and the offsets of constants make no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from irrun.debug.difference.constants import WeightsError, weights_error
from irrun.debug.difference.decompression import Weight, numbers, weight_parts
from irrun.debug.difference.layers import Change, LayerChanges, Status, declarations, json_figure
from irrun.debug.difference.matching import By, Matching, Pair, match
from irrun.debug.difference.summary import Summary, summarize
from irrun.ir.rt_info import rt_infos
from irrun.model import Layer, Model, is_constant

__all__ = ["Change", "Difference", "LayerDifference", "Place", "WeightsError", "diff"]


@dataclass(frozen=True, slots=True)
class Place:
    """A layer of one of the two models, and where it is in its file.

    ``id`` is its layer id. ``inside`` is the path of the body that holds it, such as ``loop/body``; empty outside of
    bodies. ``line`` is None if the model has no file.
    """

    id: int
    name: str
    type: str
    inside: str
    file: str
    line: int | None


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """A layer that differs. ``a`` is None for an added layer, ``b`` for a removed one, which have no ``changes``.

    ``matching`` pairs the layers of the two models, or of the two bodies, that hold the layer.
    ``by`` says how the two layers were paired. ``follows`` is whether another layer is the cause: the layer differs in
    nothing but declared shapes and precisions, and reads, or contains, a layer that differs; or it belongs to a weight
    that the two models store in different forms.
    """

    a: Place | None
    b: Place | None
    by: By | None
    changes: tuple[Change, ...]
    matching: Matching = field(repr=False)
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

    @property
    def summary(self) -> Summary:
        """The layers that differ by kind: weights by the forms in which they are stored, and layers by type."""
        places = [(layer.a or layer.b, layer) for layer in self.layers]
        return summarize((p.name, p.type, l.status, l.changes, l.follows) for p, l in places if p is not None)

    def record(self) -> dict[str, Any]:
        """Return the difference as a dict for JSON. ``version`` grows when a field changes its meaning."""
        return {
            "version": 1,
            "a": self.a,
            "b": self.b,
            "same": self.same,
            "without_weights": list(self.without_weights),
            "uncompared_constants": self.uncompared,
            "summary": self.summary.record(),
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
    it is written or not. Constants are compared by their values, in blocks; a constant with the layers that
    decompress or quantize it is one weight, whose values are compared after these layers. If one of the models has no
    ``.bin``, the rest is compared. With ``rt_info``, also compare the elements that irrun does not interpret. Raises
    ModelError if a constant is outside of the ``.bin``.
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
        parts = _Parts(matching)

        def only_in_b(after: int | None) -> Iterator[LayerDifference]:
            for layer in added.get(after, ()):
                place = self._place(self.b, layer, inside_b)
                yield LayerDifference(None, place, None, (), matching, layer.id in parts.hidden_b)

        yield from only_in_b(None)
        for id in dict.fromkeys((*matching.a.order, *matching.a.layers)):
            pair = by_a.get(id)
            if pair is None:
                place = self._place(self.a, removed[id], inside_a)
                yield LayerDifference(place, None, None, (), matching, id in parts.hidden_a)
                continue
            changes = tuple(self._changes(matching, pair, parts))
            reads = any(feed is not None and feed[0] in differing for feed in matching.a.feeds.get(id, ()))
            reads = reads or (entering and pair.a.type.lower() == "parameter") or id in parts.restored
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
                yield LayerDifference(*places, pair.by, changes, matching, follows)
            yield from inner
            yield from only_in_b(id)

    def _place(self, model: Model, layer: Layer, inside: str) -> Place:
        line = model.source.span(layer.node).line if model.source.data and layer.node >= 0 else None
        return Place(layer.id, layer.name, layer.type, inside.removesuffix("/"), model.source.path, line)

    def _changes(self, matching: Matching, pair: Pair, parts: _Parts) -> Iterator[Change]:
        """Yield the changes of two layers that are paired."""
        a, b = pair.a, pair.b
        if a.id in parts.stored:
            yield from declarations("output 0", a.outputs[0], b.outputs[0]) if a.outputs and b.outputs else ()
            yield Change("stored", "", *parts.stored[a.id])
            yield from self._values(matching, a, b)
            return
        if a.id in parts.codes:
            own = LayerChanges(matching, pair)
            outputs, forms = parts.codes[a.id]
            yield from (change for change in own if forms is None or change.kind not in _DECLARED)
            yield from [] if forms is None else [Change("stored", "", *forms)]
            yield from self._values(matching, *outputs)
        else:
            yield from LayerChanges(matching, pair)
            if is_constant(a) and is_constant(b) and a.id not in parts.hidden_a:
                yield from self._values(matching, a, b)
        yield from self._info("", a.node, b.node)
        for side in ("inputs", "outputs"):
            for position, (one, other) in enumerate(zip(getattr(a, side), getattr(b, side))):
                yield from self._info(f"{side[:-1]} {position} ", one.node, other.node)

    def _values(self, matching: Matching, a: Layer, b: Layer) -> Iterator[Change]:
        """Yield the error of the values of two constants, or of two weights, by the layers whose outputs they are."""
        if self.a.weights is None or self.b.weights is None:
            self.uncompared += 1
            return
        one = numbers(matching.a, a, matching.weights_a.get(a.id), self.a.weights)
        other = numbers(matching.b, b, matching.weights_b.get(b.id), self.b.weights)
        if one is None or other is None or one.count != other.count:
            return  # the attributes differ, or neither can be read
        if (one.meaning is None) != (other.meaning is None):
            return  # one of them has strings, and there is no distance
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


class _Parts:
    """The layers of the weights of two models. A weight is reported as a whole, at one of its layers.

    ``hidden_a`` and ``hidden_b`` are the layers but the outputs. ``stored`` holds the two forms of a weight that the
    models store by other layers, by its output in ``a``. ``codes`` holds the outputs of a weight that both models store
    by the same layers, and its forms if these differ, by the Const of ``a``; ``restored`` are the layers of ``a`` of
    which only the form differs.
    """

    def __init__(self, matching: Matching) -> None:
        self.hidden_a = {id for weight in matching.weights_a.values() for id in weight.hidden}
        self.hidden_b = {id for weight in matching.weights_b.values() for id in weight.hidden}
        self.stored: dict[int, tuple[str, str]] = {}
        self.codes: dict[int, tuple[tuple[Layer, Layer], tuple[str, str] | None]] = {}
        self.restored: set[int] = set()
        for pair in matching.pairs:
            mine, its = matching.weights_a.get(pair.a.id), matching.weights_b.get(pair.b.id)
            if mine is None and its is None:
                continue
            kinds = [_kinds(matching.a, pair.a, mine), _kinds(matching.b, pair.b, its)]
            forms = _form(pair.a, mine), _form(pair.b, its)
            if mine is not None and kinds[0] == kinds[1]:
                self.codes[mine.layers[0]] = (pair.a, pair.b), None if forms[0] == forms[1] else forms
                self.restored |= set() if forms[0] == forms[1] else {*mine.hidden}
            elif forms[0] != forms[1]:
                self.stored[pair.a.id] = forms
            else:
                texts = [f"{form}: {', '.join(kind)}" for form, kind in zip(forms, kinds)]
                self.stored[pair.a.id] = texts[0], texts[1]


def _kinds(model: Model, layer: Layer, weight: Weight | None) -> list[str]:
    return [layer.type] if weight is None else weight_parts(model, weight)


def _form(layer: Layer, weight: Weight | None) -> str:
    return layer.attributes.get("element_type", "unknown") if weight is None else weight.form


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
_NAMES: Final = ("name", "tensor_names", "rt_info", "stored")
"""The kinds of changes from which nothing follows."""


def _change(change: Change) -> dict[str, Any]:
    """Return a change as a dict for JSON."""
    record: dict[str, Any] = {"kind": change.kind, "what": change.what, "a": change.a, "b": change.b}
    if change.error is not None:
        error = change.error
        record["error"] = {
            "elements": error.elements,
            "different": error.different,
            "share": error.share,
            "max_abs": json_figure(error.max_abs),
            "max_rel": json_figure(error.max_rel),
            "snr": error.snr,
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
