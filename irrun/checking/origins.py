"""The question "where does this dim come from?": what is asked about, and the answer as text or JSON."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from irrun.diagnostics import ModelError, Refused, counted, diagnostic
from irrun.inference.trace import Link, Place, Step, Trace, chain
from irrun.model import Layer
from irrun.types import INF, Dim, Term

__all__ = ["Asked", "Explanation", "at_line", "by_name", "history", "outputs"]

Row = tuple[str, str]
"""A line of text: what, and where it comes from."""

_LONGEST: Final = 64
"""A formula of more numbers and symbols than this is not written out."""
_WIDEST: Final = 60
"""Where the column of places begins at the latest."""
_MOST_PLACES: Final = 4
_MOST_LINKS: Final = 5
"""What stands of a history under a finding."""


# ---------------------------------------------------------------------------------------------
# what is asked about


@dataclass(frozen=True, slots=True)
class Asked:
    """Outputs of a layer, or one dim of one of them."""

    trace: Trace
    layer: Layer
    outputs: tuple[int, ...]
    axis: int | None = None


def by_name(traces: Sequence[Trace], name: str) -> Asked:
    """The layer, or ``LAYER:PORT``, that is called so: by its own name, or that of a tensor it gives.

    The port of an input stands for the output that feeds it. Layers of bodies are found as well. Raises ModelError
    (IR606) where there is none, or more than one.
    """
    everywhere = [t for trace in traces for t in trace.all()]
    if found := _called(everywhere, name):
        return _only(found, name)
    layer, colon, port = name.rpartition(":")
    if colon and port.isdecimal() and (found := _called(everywhere, layer)):
        asked = _only(found, layer)
        return _at_port(asked.trace, asked.layer, int(port))
    names = list(dict.fromkeys(n for t in everywhere for n in t.model.unique_names.values()))
    wanted = layer if colon and port.isdecimal() else name
    near = difflib.get_close_matches(wanted, names, 1) or [n for n in names if wanted.lower() in n.lower()][:3]
    known = ", ".join(f'"{n}"' for n in near)
    help = f"did you mean {known}?" if near else "name a layer, or a line as FILE.xml:LINE"
    source = traces[0].model.source
    raise ModelError(diagnostic("IR606", f'no layer is called "{wanted}"', source=source, help=help))


def at_line(traces: Sequence[Trace], line: int, column: int | None = None) -> Asked:
    """What stands at a line: a layer, one of its ports, or one dim; on an edge, the output that it begins at.

    Raises ModelError (IR606) where no layer stands there, or more than one begins.
    """
    path = traces[0].model.source.path
    for top in traces:
        source, inside = top.model.source, list(top.all())
        if column is None:
            begun = source.begun_on(line)
            count = sum(layer.node in begun for layer in _layers(inside))
            if count > 1:
                message, help = f"{count} layers begin on line {line}", f"name a layer, or {path}:{line}:COLUMN"
                raise ModelError(diagnostic("IR606", message, source=source, help=help))
        nodes = source.around(line, column)
        for node in nodes:
            if found := _at_node(inside, node):
                dims = source.children(node, "dim") if node != nodes[0] else []
                return replace(found, axis=dims.index(nodes[0]) if nodes[0] in dims else None)
    help = "name a line of a <layer> or an <edge>"
    raise ModelError(diagnostic("IR606", f"no layer stands on line {line}", source=traces[0].model.source, help=help))


def outputs(traces: Sequence[Trace]) -> list[Asked]:
    """What a model gives; of the examples of a page, what their layers give."""
    found: list[Asked] = []
    for trace in traces:
        model = trace.model
        layers = [model.layers[0]] if model.is_fragment else list(model.results)
        found += [_whole(trace, layer) for layer in layers]
    return found


def _layers(traces: Sequence[Trace]) -> Iterator[Layer]:
    """The layers of models and bodies, without those that a fragment has its ports for."""
    for trace in traces:
        layers = trace.model.layers
        yield from [layers[0]] if trace.model.is_fragment and trace.outer is None else layers.values()


def _called(traces: Sequence[Trace], name: str) -> list[Asked]:
    """All that a name may mean: layers, or else tensors."""
    layers = [
        _whole(trace, layer)
        for trace in traces
        for layer in _layers([trace])
        if name in (layer.name, trace.model.unique_names[layer.id])
    ]
    return layers or [
        Asked(trace, layer, (position,))
        for trace in traces
        for layer in _layers([trace])
        for position, port in enumerate(layer.outputs)
        if name in port.names
    ]


def _only(found: Sequence[Asked], name: str) -> Asked:
    if len(found) == 1:
        return found[0]
    source = found[0].trace.model.source
    lines = [_line(asked.layer, asked.trace) for asked in found]
    message = f'{len(found)} layers are called "{name}", on the lines {", ".join(map(str, lines))}'
    raise ModelError(
        diagnostic("IR606", message, source=source, help=f"name one by its line: {source.path}:{lines[0]}")
    )


def _whole(trace: Trace, layer: Layer) -> Asked:
    """All outputs of a layer; of a Result, what feeds it."""
    if not layer.outputs and layer.inputs and trace.model.fed_by(layer, 0):
        return _at_port(trace, layer, layer.inputs[0].id)
    return Asked(trace, layer, tuple(range(len(layer.outputs))))


def _at_port(trace: Trace, layer: Layer, id: int) -> Asked:
    """An output by its port, or the output that feeds the port of an input."""
    for position, port in enumerate(layer.outputs):
        if port.id == id:
            return Asked(trace, layer, (position,))
    for position, port in enumerate(layer.inputs):
        feed = trace.model.feeds[layer.id][position]
        if port.id == id and feed is not None:
            return Asked(trace, trace.model.layers[feed[0]], (feed[1],))
    known = ", ".join(str(port.id) for port in (*layer.inputs, *layer.outputs)) or "none"
    message = f'{layer.type} "{layer.name}" has no connected port {id}'
    source = trace.model.source
    raise ModelError(diagnostic("IR606", message, source=source, node=layer.node, help=f"its ports are {known}"))


def _at_node(traces: Sequence[Trace], node: int) -> Asked | None:
    """The layer, port or edge that an element is."""
    for trace in traces:
        for layer in _layers([trace]):
            if layer.node == node:
                return _whole(trace, layer)
            for port in (*layer.inputs, *layer.outputs):
                if port.node == node:
                    return _at_port(trace, layer, port.id)
        for edge in trace.model.edges:
            if edge.node == node and edge.from_layer in trace.model.layers and not trace.model.is_fragment:
                return _at_port(trace, trace.model.layers[edge.from_layer], edge.from_port)
    return None


def _line(layer: Layer, trace: Trace) -> int:
    return trace.model.source.span(layer.node).line


# ---------------------------------------------------------------------------------------------
# the answer


class Explanation:
    """Where the dims of a layer's outputs come from, and the elements of their contents where these are few.

    ``str()`` is the answer as text, ``record()`` as JSON has it. What layers only pass on is told in one line, unless
    ``everything`` is asked for.
    """

    def __init__(self, asked: Asked, *, everything: bool = False) -> None:
        self.asked = asked
        self.everything = everything

    @property
    def refused(self) -> str | None:
        """Why the layer cannot be inferred, where it cannot."""
        why = self.asked.trace.refused.get(self.asked.layer.id)
        return (
            why.message if isinstance(why, Refused) else None if why is None else f"irrun failed to infer it: {why!r}"
        )

    def places(self, output: int) -> list[Place]:
        """What is asked about of one output: its dims, and elements of its contents."""
        found = self.asked.trace.places(self.asked.layer.id, output)
        return [p for p in found if self.asked.axis is None or (p.index == self.asked.axis and not p.is_element)]

    def __str__(self) -> str:
        asked, told = self.asked, _Told(self.everything)
        lines: list[str] = []
        for output in asked.outputs:
            lines.append(self._title(output))
            if self.refused:
                lines.append(f"  cannot be inferred: {self.refused}; this is what it declares")
            places = self.places(output)
            plain = [p for p in places if p.is_element and not p.trace.step(p).sources]
            rows = [row for place in places if place not in plain for row in told.rows(place)]
            if plain:
                numbers = ", ".join(str(p.trace.dim(p)) for p in plain)
                rows.append((f"{'value' if len(plain) == 1 else 'elements'} = {numbers}", ""))
            lines += [f"  {line}" for line in aligned(rows)]
        return "\n".join(lines) + "\n"

    def _title(self, output: int) -> str:
        layer, trace = self.asked.layer, self.asked.trace
        port, value = layer.outputs[output], trace.values.get((layer.id, output))
        shape = value.shape if value else "nothing is known, as it stands on a cycle"
        declared = ""
        if value and port.shape is not None and value.shape.meet(port.shape) is None:
            declared = f", declared {port.shape}"
        dims = "" if not value or value.rank else " (a scalar)" if value.rank == 0 else " (of unknown rank)"
        title = f'{layer.type} "{layer.name}" output {port.id}: {shape}{dims}{declared}'
        return f"{title}  {trace.model.source.path}:{_line(layer, trace)}"

    def record(self) -> dict[str, Any]:
        """The answer for JSON: the outputs, and the steps that their dims lead to, which name each other by number."""
        layer, trace = self.asked.layer, self.asked.trace
        links: dict[Place, Link] = {}
        asked: dict[Place, Place] = {}
        for output in self.asked.outputs:
            for place in self.places(output):
                found = chain(place, everything=self.everything, told=links)
                asked[place] = found[0].step.place
                for link in found:
                    links.setdefault(link.step.place, link)
        numbers = {place: number for number, place in enumerate(links)}
        return {
            "file": trace.model.source.path,
            "layer": layer.name,
            "type": layer.type,
            "line": _line(layer, trace),
            "refused": self.refused,
            "outputs": [
                {
                    "port": layer.outputs[output].id,
                    "dims": [
                        _record(trace.step(p), numbers[asked[p]]) for p in self.places(output) if not p.is_element
                    ],
                    "contents": [
                        _record(trace.step(p), numbers[asked[p]]) for p in self.places(output) if p.is_element
                    ],
                }
                for output in self.asked.outputs
            ],
            "steps": [
                _record(link.step, number, {name: numbers[end] for name, end in link.ends.items()})
                for number, link in enumerate(links.values())
            ],
        }


def _record(step: Step, number: int, ends: Mapping[str, int] | None = None) -> dict[str, Any]:
    place, dim, layer = step.place, step.dim, step.layer
    term = dim.term if dim.term and dim.term.size <= _LONGEST else None
    found: dict[str, Any] = {
        "step": number,
        "dim" if not place.is_element else "element": place.index,
        "value": dim.value,
        "min": None if dim.lo <= -INF else dim.lo,
        "max": None if dim.hi >= INF else dim.hi,
        "symbol": str(term) if term else None,
        "formula": None if step.formula is None or _is_long(step.formula) else str(step.formula),
    }
    if ends is not None:
        found |= {
            "layer": layer.name,
            "type": layer.type,
            "line": _line(layer, place.trace),
            "port": layer.outputs[place.output].id,
            "attributes": _attributes(step),
            "sources": [{"symbol": name, "step": end} for name, end in ends.items()],
        }
    return found


def _is_long(formula: Term | int) -> bool:
    return isinstance(formula, Term) and formula.size > _LONGEST


def _attributes(step: Step) -> dict[str, str]:
    """The attributes that numbers in a formula may be from; of a Parameter or constant, its shape."""
    if not step.layer.inputs and not step.place.is_element:
        return {name: text for name, text in step.layer.attributes.items() if name == "shape"}
    held = set(step.numbers())
    return {
        name: re.sub(r"\s", "", text)
        for name, text in step.layer.attributes.items()
        if re.fullmatch(r"-?\d[-\d, ]*", text) and not held.isdisjoint(re.findall(r"\d+", text))
    }


class _Told:
    """Chains as rows of text. What was told once is only named again."""

    def __init__(self, everything: bool = False) -> None:
        self.everything = everything
        self.places: set[Place] = set()
        self._names: dict[Place, str] = {}

    def rows(self, place: Place, name: str | None = None, most: int | None = None) -> list[Row]:
        """The chain of one place, by default named by its axis: its formula, then each number of it, and so on."""
        links = chain(place, everything=self.everything, most=most, told=self.places)
        first, *rest = links
        head = f"{name or _what(place)} = {self._formula(first)}"
        if isinstance(first.step.formula, Term) and first.step.formula.args:
            head += f" = {first.step.dim}" if first.step.dim.is_static else ""
        found = [(head, self._where(first, first.step.place == place))]
        for link in rest:
            value, formula = self._spelt(link.step.place), self._formula(link)
            again = link.step.place in self.places and value != formula
            text = value if again or value == formula else f"{value} = {formula}"
            found.append((f"  {text}", self._where(link) + (", as above" if again else "")))
        self.places.update(link.step.place for link in links)
        if any(not self.places.issuperset(link.ends.values()) for link in links):
            found.append(("  …", ""))
        return found

    def _formula(self, link: Link) -> str:
        formula = link.step.formula
        if not isinstance(formula, Term):
            return self._spelt(link.step.place)
        if _is_long(formula):
            return f"a formula of {formula.size} terms"
        return formula.text(lambda symbol: self._spelt(link.ends[symbol]))

    def _spelt(self, place: Place) -> str:
        """A number or symbol for it; an unknown that no Parameter names is called n1, n2, …"""
        dim = place.trace.dim(place)
        if dim.is_static:
            return str(dim)
        if dim.term is not None and not dim.term.args:
            return dim.term.op
        return self._names.setdefault(place, f"n{len(self._names) + 1}")

    def _where(self, link: Link, is_asked: bool = False) -> str:
        step, place = link.step, link.step.place
        trace, layer = place.trace, step.layer
        parts: list[str] = []
        if not is_asked:
            port = f" output {layer.outputs[place.output].id}" if len(layer.outputs) > 1 else ""
            name = f'{layer.type} "{layer.name}"{port}'
            if trace.model.is_fragment and trace.outer is None and layer in trace.model.parameters:
                name = f"input {layer.name}"
            parts.append(f"line {_line(layer, trace)}, {name} {_what(place)}")
        if (attributes := _attributes(step)) and (is_asked or layer.inputs):
            parts.append(" ".join(f"{name}={text}" for name, text in attributes.items()))
        if step.formula is None:
            told = "" if step.dim.is_static else _bounds(step.dim)
            untold = "known only when it runs" if layer.inputs and not step.dim.is_static else ""
            parts += filter(None, (told, untold))
        if is_asked and isinstance(step.formula, int) and not parts:
            parts.append(f"as {layer.type} gives")
        if link.through:
            parts.append(f"through {counted(link.through, 'layer')}")
        return ", ".join(parts)


def _what(place: Place) -> str:
    """How a place is called within its output."""
    if not place.is_element:
        return f"dim {place.index}"
    value = place.trace.values[place.layer, place.output]
    if value.rank == 0:
        return "value"
    if value.rank == 1:
        return f"element {place.index}"
    return f"element [{','.join(map(str, np.unravel_index(place.index, value.shape.static or (0,))))}]"


def _bounds(dim: Dim) -> str:
    """What is known of an unknown: ``1..8``, ``at least 1``; nothing where that is every number."""
    if dim.hi >= INF:
        return f"at least {dim.lo}" if dim.lo > 0 else ""
    return f"{dim.lo}..{dim.hi}" if dim.lo > -INF else f"at most {dim.hi}"


def aligned(rows: Sequence[Row]) -> list[str]:
    """Rows as lines, the places below each other."""
    width = min(max((len(what) for what, where in rows if where), default=0), _WIDEST)
    return [f"{what:<{width}}  {where}".rstrip() for what, where in rows]


def history(layer: Layer, places: Mapping[str, Place]) -> tuple[str, ...]:
    """Where dims that ``layer`` gives or reads come from, under their names, in a few lines of text.

    Only what is not plain from the layer and those that feed it.
    """
    told = _Told()
    rows: list[Row] = []
    for name, place in list(places.items())[:_MOST_PLACES]:
        first, *_ = chain(place, most=1)
        near = {layer.id, *(feed[0] for feed in place.trace.model.feeds[layer.id] if feed)}
        is_formula = isinstance(first.step.formula, Term) and first.step.formula.args
        if is_formula or first.step.place.trace is not place.trace or first.step.place.layer not in near:
            rows += told.rows(place, name, _MOST_LINKS)
    return tuple(aligned(rows))
