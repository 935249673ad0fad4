"""Compare two layers that correspond to each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from irrun.debug.difference.constants import WeightsError
from irrun.debug.difference.matching import Matching, Pair
from irrun.inference.bind import bind
from irrun.model import Layer, MapEntry, Model, Port, is_constant
from irrun.opdef import Op
from irrun.types import ElementType, PartialShape

__all__ = ["Change", "LayerChanges", "Status", "attributes", "declarations", "json_figure"]

Kind = Literal[
    "name",
    "ir_version",
    "type",
    "version",
    "attribute",
    "precision",
    "shape",
    "tensor_names",
    "ports",
    "edge",
    "stored",
    "weights",
    "body",
    "port_map",
    "back_edges",
    "rt_info",
]


Status = Literal["changed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: its kind, what it concerns (``strides``, ``output 0``), and the text on both sides.

    A side is None where it lacks the thing. ``stored`` says how the files store a weight. ``error`` is set for
    ``weights``, which have no text.
    """

    kind: Kind
    what: str
    a: str | None
    b: str | None
    error: WeightsError | None = None


class LayerChanges:
    """The changes of two paired layers without their constants' values. Iterate over it to get them."""

    def __init__(self, matching: Matching, pair: Pair) -> None:
        self.matching, self.a, self.b, self.bodies = matching, pair.a, pair.b, pair.bodies

    def __iter__(self) -> Iterator[Change]:
        a, b = self.a, self.b
        if a.name != b.name:
            yield Change("name", "", a.name, b.name)
        if _type(a) != _type(b):
            yield Change("type", "", a.type, b.type)
        if _opset(a) != _opset(b):
            yield Change("version", "", a.version, b.version)
        yield from attributes((self.matching.a, a), (self.matching.b, b))
        yield from self._inputs()
        yield from self._outputs()
        if sorted(a.output_names) != sorted(b.output_names):
            yield Change("tensor_names", "", _listed(a.output_names), _listed(b.output_names))
        yield from self._bodies()

    # -- ports and edges ------------------------------------------------------------------------

    def _inputs(self) -> Iterator[Change]:
        """Yield the inputs that another output feeds, and those whose declaration differs for no other reason."""
        feeds, others = self.matching.a.feeds[self.a.id], self.matching.b.feeds[self.b.id]
        for position in range(max(len(feeds), len(others))):
            feed = feeds[position] if position < len(feeds) else None
            other = others[position] if position < len(others) else None
            if (feed and (self.matching.to_b.get(feed[0]), feed[1])) != other:
                what = f"input {position}"
                yield Change("edge", what, _output(self.matching.a, feed), _output(self.matching.b, other))
        for position, (one, other) in enumerate(zip(self.a.inputs, self.b.inputs)):
            mine, its = _fed(self.matching.a, self.a, position), _fed(self.matching.b, self.b, position)
            for change in declarations(f"input {position}", one, other):
                value = (lambda port: port.type) if change.kind == "precision" else (lambda port: str(port.shape))
                if not (mine and its and value(one) == value(mine) and value(other) == value(its)):
                    yield change

    def _outputs(self) -> Iterator[Change]:
        if len(self.a.outputs) != len(self.b.outputs):
            yield Change("ports", "outputs", str(len(self.a.outputs)), str(len(self.b.outputs)))
        for position, (one, other) in enumerate(zip(self.a.outputs, self.b.outputs)):
            yield from declarations(f"output {position}", one, other)
            if sorted(one.names) != sorted(other.names):
                yield Change("tensor_names", f"output {position}", _listed(one.names), _listed(other.names))

    # -- bodies ---------------------------------------------------------------------------------

    def _bodies(self) -> Iterator[Change]:
        """Yield the bodies that only one layer has, and the connections of the others that differ."""
        for tag in dict.fromkeys((*self.a.bodies, *self.b.bodies)):
            one, other = self.a.bodies.get(tag), self.b.bodies.get(tag)
            if one is None or other is None:
                yield Change("body", tag, one and f"{len(one.layers)} layers", other and f"{len(other.layers)} layers")
                continue
            to_b = self.bodies[tag].to_b
            maps = tag.replace("body", "port_map")
            mine = {_entry(self.a, e, to_b.get(e.internal)): _text(self.a, one, e) for e in self.a.maps.get(maps, ())}
            its = {_entry(self.b, e, e.internal): _text(self.b, other, e) for e in self.b.maps.get(maps, ())}
            yield from _sets("port_map", maps, mine, its)
            if tag == "body":
                yield from _sets(
                    "back_edges",
                    "",
                    {(to_b.get(s), to_b.get(e)): _back_edge(one, s, e) for s, e in self.a.back_edges},
                    {(s, e): _back_edge(other, s, e) for s, e in self.b.back_edges},
                )


def attributes(one: tuple[Model, Layer], other: tuple[Model, Layer]) -> Iterator[Change]:
    """Yield the attributes of two layers, each with its model, that differ in value.

    The output port repeats some of those of a Const or Parameter.
    """
    (_, a), (_, b) = one, other
    first, second = _written(a), _written(b)
    if first == second:
        return
    mine, its = bind(*one)[0], bind(*other)[0]
    first, second = _canonical(first, mine), _canonical(second, its)
    for name in dict.fromkeys((*first, *second)):
        text, new = first.get(name), second.get(name)
        if text != new and not _agree(name, mine, its) and not _is_repeated(a, b, name):
            yield Change("attribute", name, text, new)


def _is_repeated(a: Layer, b: Layer, name: str) -> bool:
    """Return whether an attribute says on both sides what the only output port says."""
    texts = a.attributes.get(name), b.attributes.get(name)
    if name not in ("shape", "element_type") or None in texts or len(a.outputs) != 1 or len(b.outputs) != 1:
        return False
    return all(
        ElementType.parse(written or "") is port.type
        if name == "element_type"
        else str(PartialShape.parse(written or "")) == str(port.shape or "[]")
        for written, port in zip(texts, (a.outputs[0], b.outputs[0]))
    )


def _type(layer: Layer) -> str:
    return "const" if is_constant(layer) else layer.type.lower()


def _opset(layer: Layer) -> str:
    return (layer.version or "opset1").lower()  # files of 2020 leave out the version of opset1


def _written(layer: Layer) -> dict[str, str]:
    """Return the attributes of a layer without the place of a constant in the ``.bin``."""
    leave_out = ("offset", "size") if is_constant(layer) else ()
    return {name: text for name, text in layer.attributes.items() if name not in leave_out}


def _canonical(written: Mapping[str, str], op: Op | None) -> dict[str, str]:
    """Return attributes under the names by which ``op`` knows them: an attribute may have several spellings."""
    known = {} if op is None else type(op).attributes
    names = {s: attribute.name for attribute in known.values() for s in (attribute.name, *attribute.aliases)}
    return {names.get(name, name): text for name, text in written.items()}


def _agree(name: str, a: Op | None, b: Op | None) -> bool:
    """Return whether two operations have one value of the attribute ``name``, written or by default."""
    values: list[Any] = []
    for op in (a, b):
        field = op and next((f for f, attribute in type(op).attributes.items() if attribute.name == name), None)
        if op is None or field is None:
            return False
        values.append(getattr(op, field))
    return str(values[0]) == str(values[1])


def declarations(what: str, a: Port, b: Port) -> Iterator[Change]:
    """Yield the differences of what two ports declare."""
    if a.type is not b.type:
        yield Change("precision", what, a.type and a.type.name, b.type and b.type.name)
    if str(a.shape) != str(b.shape):
        yield Change("shape", what, str(a.shape or "[]"), str(b.shape or "[]"))


def json_figure(figure: float | None) -> float | str | None:
    """Return a figure of an error as JSON can hold it: ``inf`` for an infinity."""
    return "inf" if figure is not None and math.isinf(figure) else figure


def _fed(model: Model, layer: Layer, position: int) -> Port | None:
    fed = model.fed_by(layer, position)
    return fed and fed[1]


def _output(model: Model, feed: tuple[int, int] | None) -> str | None:
    return feed and model.output_name(*feed)


def _listed(names: Sequence[str]) -> str | None:
    return ", ".join(sorted(names)) or None


def _entry(layer: Layer, entry: MapEntry, internal: int | None) -> tuple[object, ...]:
    """Return what an entry of a port map says; ``internal`` is the layer in the body of ``b``."""
    slicing = (entry.axis, entry.start, entry.end, entry.stride, entry.part_size) if entry.axis is not None else ()
    return entry.kind, entry.external, internal, entry.purpose, slicing


def _text(layer: Layer, body: Model, entry: MapEntry) -> str:
    """Return an entry of a port map as text: ``input 2 -> "x" axis=1 …``."""
    inner = body.layers[entry.internal].name if entry.internal in body.layers else str(entry.internal)
    outer = "nothing" if entry.external is None else f"{entry.kind} {entry.external}"
    words = [f'{outer} -> "{inner}"' if entry.kind == "input" else f'"{inner}" -> {outer}']
    if entry.axis is not None:
        words.append(
            f"axis={entry.axis} start={entry.start} end={entry.end} stride={entry.stride} part_size={entry.part_size}"
        )
    return " ".join([*words, *([entry.purpose] if entry.purpose else [])])


def _back_edge(body: Model, start: int, end: int) -> str:
    first, last = (body.layers[id].name if id in body.layers else str(id) for id in (start, end))
    return f'"{first}" -> "{last}"'


def _sets(
    kind: Literal["port_map", "back_edges"], what: str, a: Mapping[Any, str], b: Mapping[Any, str]
) -> Iterator[Change]:
    """Yield the entries that only one side has, in pairs."""
    mine, its = ([side[key] for key in side if key not in other] for side, other in ((a, b), (b, a)))
    for position in range(max(len(mine), len(its))):
        one = mine[position] if position < len(mine) else None
        other = its[position] if position < len(its) else None
        yield Change(kind, what, one, other)
