"""Answer "where does this dim come from?": find the outputs that a question names, and explain them as text or JSON."""

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
"""A line of text in two columns: a number or formula, and where it comes from."""

_LONGEST: Final = 64
"""The most numbers and symbols of a formula that is written out; a longer one would be unreadable."""
_WIDEST: Final = 60
"""The greatest width of the first column, in characters, so that one long row does not move all others."""
_MOST_PLACES: Final = 4
"""The most dims whose history a diagnostic shows, to keep its notes short."""
_MOST_LINKS: Final = 5
"""The most steps of each history that a diagnostic shows."""


# ---------------------------------------------------------------------------------------------
# the question


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question is about: outputs of a layer (by position), or only their dim ``axis``."""

    trace: Trace
    layer: Layer
    outputs: tuple[int, ...]
    axis: int | None = None


def by_name(traces: Sequence[Trace], name: str) -> Asked:
    """Return the outputs that a name means: the name of a layer or of a tensor, or ``LAYER:PORT``.

    The port of an input means the output that feeds it. Layers of bodies are found as well. Raises ModelError (IR606)
    if no layer, or more than one, has the name.
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
    """Return the outputs at a line of the file: those of a layer, of one of its ports, or one dim of a port.

    A line with an edge means the output where the edge begins. Without ``column``, the first element that begins on
    the line counts. Raises ModelError (IR606) if there is no layer on the line, or if several layers begin on the line
    and no column is given.
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
    """Return the outputs of each model, or of the layer of each example of a page."""
    found: list[Asked] = []
    for trace in traces:
        model = trace.model
        layers = [model.layers[0]] if model.is_fragment else list(model.results)
        found += [_whole(trace, layer) for layer in layers]
    return found


def _layers(traces: Sequence[Trace]) -> Iterator[Layer]:
    """Yield the layers of models and bodies, without the Parameters and Results added to an example of a page."""
    for trace in traces:
        layers = trace.model.layers
        yield from [layers[0]] if trace.model.is_fragment and trace.outer is None else layers.values()


def _called(traces: Sequence[Trace], name: str) -> list[Asked]:
    """Return all layers with a name or, if there are none, all outputs with a tensor of this name."""
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
    """Return the only item of ``found``. Raises ModelError (IR606) if there are several."""
    if len(found) == 1:
        return found[0]
    source = found[0].trace.model.source
    lines = [_line(asked.layer, asked.trace) for asked in found]
    message = f'{len(found)} layers are called "{name}", on the lines {", ".join(map(str, lines))}'
    raise ModelError(
        diagnostic("IR606", message, source=source, help=f"name one by its line: {source.path}:{lines[0]}")
    )


def _whole(trace: Trace, layer: Layer) -> Asked:
    """Return all outputs of a layer; for a Result, the output that feeds it."""
    if not layer.outputs and layer.inputs and trace.model.fed_by(layer, 0):
        return _at_port(trace, layer, layer.inputs[0].id)
    return Asked(trace, layer, tuple(range(len(layer.outputs))))


def _at_port(trace: Trace, layer: Layer, id: int) -> Asked:
    """Return the output with a port id, or the output that feeds the input with this id. Raises ModelError (IR606)."""
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
    """Return the outputs that an element of the file means: a layer, a port or an edge; None for any other element."""
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
    """The origin of each dim of a layer's outputs and, for small integer contents, of each element.

    ``str()`` returns the answer as text, ``record()`` as a dict for JSON. Layers that only pass a number on are
    counted in one line, unless ``everything`` is true.
    """

    def __init__(self, asked: Asked, *, everything: bool = False) -> None:
        self.asked = asked
        self.everything = everything

    @property
    def refused(self) -> str | None:
        """The reason why the layer cannot be inferred, or None if it can."""
        why = self.asked.trace.refused.get(self.asked.layer.id)
        return (
            why.message if isinstance(why, Refused) else None if why is None else f"irrun failed to infer it: {why!r}"
        )

    def places(self, output: int) -> list[Place]:
        """Return the dims and elements of one output that the question is about."""
        found = self.asked.trace.places(self.asked.layer.id, output)
        return [p for p in found if self.asked.axis is None or (p.index == self.asked.axis and not p.is_element)]

    def __str__(self) -> str:
        asked, chains = self.asked, _Chains(self.everything)
        lines: list[str] = []
        for output in asked.outputs:
            lines.append(self._title(output))
            if self.refused:
                lines.append(f"  cannot be inferred: {self.refused}; this is what it declares")
            places = self.places(output)
            plain = [p for p in places if p.is_element and not p.trace.step(p).sources]
            rows = [row for place in places if place not in plain for row in chains.rows(place)]
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
        """Return the answer as a dict for JSON: the outputs, and the steps that lead to them, linked by number."""
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
    """Return the attributes whose numbers occur in the formula of a step.

    For a dim of a layer without inputs (Parameter, Const), return its ``shape``.
    """
    if not step.layer.inputs and not step.place.is_element:
        return {name: text for name, text in step.layer.attributes.items() if name == "shape"}
    held = set(step.numbers())
    return {
        name: re.sub(r"\s", "", text)
        for name, text in step.layer.attributes.items()
        if re.fullmatch(r"-?\d[-\d, ]*", text) and not held.isdisjoint(re.findall(r"\d+", text))
    }


class _Chains:
    """Writes chains as rows of text. A step that an earlier row explains is only named again."""

    def __init__(self, everything: bool = False) -> None:
        self.everything = everything
        self.places: set[Place] = set()
        self._names: dict[Place, str] = {}

    def rows(self, place: Place, name: str | None = None, most: int | None = None) -> list[Row]:
        """Return the rows of the chain of one place: its formula, then each number in the formula, and so on.

        The place is called ``name``, or after its axis. ``most`` limits the number of steps; ``…`` marks a cut.
        """
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
        """Return the number of a place, or a symbol if the number is unknown.

        Unknown numbers are named after their Parameter (``ids[1]``), otherwise n1, n2, …
        """
        dim = place.trace.dim(place)
        if dim.is_static:
            return str(dim)
        if dim.term is not None and not dim.term.args:
            return dim.term.op
        return self._names.setdefault(place, f"n{len(self._names) + 1}")

    def _where(self, link: Link, is_asked: bool = False) -> str:
        """Return where the number of a link comes from: line, layer, attributes and bounds.

        ``is_asked`` marks the place that the question is about: its line and layer are left out.
        """
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
            bounds = "" if step.dim.is_static else _bounds(step.dim)
            reason = "known only when it runs" if layer.inputs and not step.dim.is_static else ""
            parts += filter(None, (bounds, reason))
        if is_asked and isinstance(step.formula, int) and not parts:
            parts.append(f"as {layer.type} gives")
        if link.through:
            parts.append(f"through {counted(link.through, 'layer')}")
        return ", ".join(parts)


def _what(place: Place) -> str:
    """Return the name of a place within its output: ``dim 1``, ``value``, ``element 3`` or ``element [0,2]``."""
    if not place.is_element:
        return f"dim {place.index}"
    value = place.trace.values[place.layer, place.output]
    if value.rank == 0:
        return "value"
    if value.rank == 1:
        return f"element {place.index}"
    return f"element [{','.join(map(str, np.unravel_index(place.index, value.shape.static or (0,))))}]"


def _bounds(dim: Dim) -> str:
    """Return the known bounds of an unknown dim, as ``1..8`` or ``at least 1``; an empty text if it has none."""
    if dim.hi >= INF:
        return f"at least {dim.lo}" if dim.lo > 0 else ""
    return f"{dim.lo}..{dim.hi}" if dim.lo > -INF else f"at most {dim.hi}"


def aligned(rows: Sequence[Row]) -> list[str]:
    """Return rows as lines of text, with the second column aligned."""
    width = min(max((len(what) for what, where in rows if where), default=0), _WIDEST)
    return [f"{what:<{width}}  {where}".rstrip() for what, where in rows]


def history(layer: Layer, places: Mapping[str, Place]) -> tuple[str, ...]:
    """Return a few lines of text on where dims of the inputs or outputs of ``layer`` come from, for a diagnostic.

    ``places`` holds the dims by the names to show. A dim that comes unchanged from the layer itself or from one of its
    producers is left out, because its origin is obvious.
    """
    chains = _Chains()
    rows: list[Row] = []
    for name, place in list(places.items())[:_MOST_PLACES]:
        first, *_ = chain(place, most=1)
        near = {layer.id, *(feed[0] for feed in place.trace.model.feeds[layer.id] if feed)}
        is_formula = isinstance(first.step.formula, Term) and first.step.formula.args
        if is_formula or first.step.place.trace is not place.trace or first.step.place.layer not in near:
            rows += chains.rows(place, name, _MOST_LINKS)
    return tuple(aligned(rows))
