"""Explain where the dims of outputs come from, as text or JSON, and in the notes of diagnostics."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from irrun.base.text import counted, printable
from irrun.checking.questions import Asked
from irrun.diagnostics import Refused
from irrun.inference.trace import FAR, Derivation, Link, Place, Trace, chain
from irrun.model import Layer
from irrun.types import INF, Dim, Term

__all__ = ["Explanation", "Row", "history"]

Row = tuple[str, str]
"""A line of text in two columns: a number or formula, and where it comes from."""

_MAX_FORMULA_TERMS: Final = 64
"""The most numbers and symbols of a formula that is written out; a longer one would be unreadable."""
_MAX_COLUMN_CHARS: Final = 60
"""The greatest width of the first column, in characters, so that one long row does not move all others."""
_MAX_SHOWN_DIMS: Final = 4
"""The most dims whose history a diagnostic shows, to keep its notes short."""
_MAX_SHOWN_STEPS: Final = 5
"""The most steps of each history that a diagnostic shows."""


def _line(layer: Layer, trace: Trace) -> int:
    """Return the line on which a layer begins."""
    return trace.model.source.line_of(layer.node)


# ---------------------------------------------------------------------------------------------
# an explanation


class Explanation:
    """The origin of each dim of a layer's outputs and, for small integer contents, of each element.

    ``str()`` returns the answer as text, ``record()`` as a dict for JSON. Layers that only pass a number on are
    counted in one line, unless ``everything`` is true.
    """

    def __init__(self, asked: Asked, *, everything: bool = False, most: int | None = None, far: int = FAR) -> None:
        """``most`` limits the number of steps in the text of each dim, and ``far`` the layers that a step skips.

        ``…`` marks a cut.
        """
        self.asked = asked
        self.everything = everything
        self.most = most
        self.far = far

    @property
    def refused(self) -> str | None:
        """The reason why the layer cannot be inferred, or None if it can."""
        error = self.asked.trace.refused.get(self.asked.layer.id)
        if isinstance(error, Refused):
            return error.message
        return None if error is None else f"irrun failed to infer it: {error!r}"

    def places(self, output: int) -> list[Place]:
        """Return the dims and elements of one output that the question is about."""
        places = self.asked.trace.places(self.asked.layer.id, output)
        return [p for p in places if self.asked.axis is None or (p.index == self.asked.axis and not p.is_element)]

    def __str__(self) -> str:
        chains = _Chains(self.everything, self.far)
        lines: list[str] = []
        for output in self.asked.outputs:
            lines.append(self._title(output))
            if self.refused:
                lines.append(f"  cannot be inferred: {self.refused}; the declared dims are shown")
            lines += [f"  {line}" for line in aligned(self._rows(output, chains))]
        return "".join(f"{printable(line)}\n" for line in lines)

    def rows(self, output: int) -> list[Row]:
        """Return the lines about one output, by its position: formulas, each with where its numbers come from."""
        return self._rows(output, _Chains(self.everything, sys.maxsize))

    def _rows(self, output: int, chains: _Chains) -> list[Row]:
        places = self.places(output)
        plain = [p for p in places if p.is_element and not p.trace.derivation(p).sources]
        rows = [row for place in places if place not in plain for row in chains.rows(place, most=self.most)]
        if plain:
            numbers = ", ".join(str(p.trace.dim(p)) for p in plain)
            rows.append((f"{'value' if len(plain) == 1 else 'elements'} = {numbers}", ""))
        return rows

    def _title(self, output: int) -> str:
        layer, trace = self.asked.layer, self.asked.trace
        port, value = layer.outputs[output], trace.values.get((layer.id, output))
        shape = value.shape if value else "unknown, because the layer is on a cycle"
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
                steps = chain(place, everything=self.everything, told=links)
                asked[place] = steps[0].derivation.place
                for link in steps:
                    links.setdefault(link.derivation.place, link)
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
                        _record(trace.derivation(p), numbers[asked[p]]) for p in self.places(output) if not p.is_element
                    ],
                    "contents": [
                        _record(trace.derivation(p), numbers[asked[p]]) for p in self.places(output) if p.is_element
                    ],
                }
                for output in self.asked.outputs
            ],
            "steps": [
                _record(link.derivation, number, {name: numbers[end] for name, end in link.ends.items()})
                for number, link in enumerate(links.values())
            ],
        }


def _record(derivation: Derivation, number: int, ends: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return a step as a dict for JSON. ``ends`` maps its symbols to the numbers of the steps that explain them.

    Without ``ends``, the dict only refers to the step: it leaves out the layer and the sources.
    """
    place, dim, layer = derivation.place, derivation.dim, derivation.layer
    term = dim.term if dim.term and dim.term.size <= _MAX_FORMULA_TERMS else None
    record: dict[str, Any] = {
        "step": number,
        "dim" if not place.is_element else "element": place.index,
        "value": dim.value,
        "min": None if dim.lo <= -INF else dim.lo,
        "max": None if dim.hi >= INF else dim.hi,
        "symbol": str(term) if term else None,
        "formula": None if derivation.formula is None or _is_long(derivation.formula) else str(derivation.formula),
    }
    if ends is not None:
        record |= {
            "layer": layer.name,
            "type": layer.type,
            "line": _line(layer, place.trace),
            "port": layer.outputs[place.output].id,
            "attributes": _attributes(derivation),
            "sources": [{"symbol": name, "step": end} for name, end in ends.items()],
        }
    return record


def _is_long(formula: Term | int) -> bool:
    return isinstance(formula, Term) and formula.size > _MAX_FORMULA_TERMS


def _attributes(derivation: Derivation) -> dict[str, str]:
    """Return the attributes whose numbers occur in the formula of a step.

    For a dim of a layer without inputs (Parameter, Const), return its ``shape``.
    """
    if not derivation.layer.inputs and not derivation.place.is_element:
        return {name: text for name, text in derivation.layer.attributes.items() if name == "shape"}
    numbers = set(derivation.numbers())
    return {
        name: re.sub(r"\s", "", text)
        for name, text in derivation.layer.attributes.items()
        if re.fullmatch(r"-?\d[-\d, ]*", text) and not numbers.isdisjoint(re.findall(r"\d+", text))
    }


class _Chains:
    """Writes chains as rows of text. If an earlier row explains a step, later rows only refer to it."""

    def __init__(self, everything: bool = False, far: int = FAR) -> None:
        """``far`` limits the layers that a step of a chain with a limited number of steps skips."""
        self.everything = everything
        self.far = far
        self.places: set[Place] = set()
        self._names: dict[Place, str] = {}

    def rows(self, place: Place, name: str | None = None, most: int | None = None) -> list[Row]:
        """Return the rows of the chain of one place: its formula, then each number in the formula, and so on.

        ``name`` is shown for the place, by default the name of its axis. ``most`` limits the number of steps; ``…``
        marks a cut.
        """
        links = chain(place, everything=self.everything, most=most, told=self.places, far=self.far)
        first, *rest = links
        head = f"{name or _name(place)} = {self._formula(first)}"
        if isinstance(first.derivation.formula, Term) and first.derivation.formula.args:
            head += f" = {first.derivation.dim}" if first.derivation.dim.is_static else ""
        rows = [(head, self._where(first, first.derivation.place == place))]
        for link in rest:
            value, formula = self._spelt(link.derivation.place), self._formula(link)
            again = link.derivation.place in self.places and value != formula
            text = value if again or value == formula else f"{value} = {formula}"
            rows.append((f"  {text}", self._where(link) + (", as above" if again else "")))
        self.places.update(link.derivation.place for link in links)
        if any(not self.places.issuperset(link.ends.values()) for link in links):
            rows.append(("  …", ""))
        return rows

    def _formula(self, link: Link) -> str:
        formula = link.derivation.formula
        if not isinstance(formula, Term):
            return self._spelt(link.derivation.place)
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
        derivation, place = link.derivation, link.derivation.place
        trace, layer = place.trace, derivation.layer
        parts: list[str] = []
        if not is_asked:
            port = f" output {layer.outputs[place.output].id}" if len(layer.outputs) > 1 else ""
            name = f'{layer.type} "{layer.name}"{port}'
            if trace.model.is_fragment and trace.outer is None and layer in trace.model.parameters:
                name = f"input {layer.name}"
            parts.append(f"line {_line(layer, trace)}, {name} {_name(place)}")
        if (attributes := _attributes(derivation)) and (is_asked or layer.inputs):
            parts.append(" ".join(f"{name}={text}" for name, text in attributes.items()))
        if derivation.formula is None:
            bounds = "" if derivation.dim.is_static else _bounds(derivation.dim)
            reason = "known only at run time" if layer.inputs and not derivation.dim.is_static else ""
            parts += filter(None, (bounds, reason))
        if is_asked and isinstance(derivation.formula, int) and not parts:
            parts.append(f"set by {layer.type}")
        if link.through:
            parts.append(f"through {counted(link.through, 'layer')}")
        return ", ".join(parts)


def _name(place: Place) -> str:
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
    width = min(max((len(left) for left, where in rows if where), default=0), _MAX_COLUMN_CHARS)
    return [f"{left:<{width}}  {where}".rstrip() for left, where in rows]


def history(layer: Layer, places: Mapping[str, Place]) -> tuple[str, ...]:
    """Return a few lines of text on where dims of the inputs or outputs of ``layer`` come from, for a diagnostic.

    ``places`` holds the dims by the names to show. A dim that comes unchanged from the layer itself or from one of its
    producers is left out, because its origin is obvious.
    """
    chains = _Chains()
    rows: list[Row] = []
    for name, place in list(places.items())[:_MAX_SHOWN_DIMS]:
        first, *_ = chain(place, most=1)
        near = {layer.id, *(feed[0] for feed in place.trace.model.feeds[layer.id] if feed)}
        is_formula = isinstance(first.derivation.formula, Term) and first.derivation.formula.args
        if is_formula or first.derivation.place.trace is not place.trace or first.derivation.place.layer not in near:
            rows += chains.rows(place, name, _MAX_SHOWN_STEPS)
    return tuple(aligned(rows))
