"""The document of a report: one dict for JSON, which the page shows and `irrun report --format json` prints.

Parts with many rows are tables: ``{"columns": [names], "rows": [[values]]}``. Layers are numbered from 0. The numbers
of groups follow those of the layers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from irrun import __version__
from irrun.checking.origins import Row
from irrun.checking.render import record as finding_record
from irrun.debug.results import Layer as Compared
from irrun.model import Layer, Port
from irrun.report.contents import Contents
from irrun.report.observations import Observed
from irrun.types import ElementType, PartialShape

__all__ = ["VERSION", "document"]

VERSION: Final = 1
"""The version of the document. It changes when a field changes its meaning or goes away."""
_VISIBLE: Final = 30
"""The most nodes that the page shows at first: a few more than a window shows at a readable size."""
_MAX_TEXT_CHARS: Final = 2000
"""The most characters of an attribute or name that the document keeps: a hostile file has megabytes of them."""


def document(report: Contents) -> dict[str, Any]:
    """Return the document of a report."""
    formulas: dict[tuple[Row, ...], int] = {(): 0}
    outputs = list(_outputs(report, formulas))
    places = {(row[0], row[1]): number for number, row in enumerate(outputs)}
    tree = report.tree
    return {
        "version": VERSION,
        "irrun": __version__,
        "file": report.model.source.path,
        "model": dict(report.facts),
        "run": _run(report),
        "comparison": _comparison(report, places),
        "runtime": _runtime(report),
        "expected": _expected(report, places),
        "layers": _table(
            ("name", "label", "type", "version", "line", "attributes", "inputs", "hidden", "refused"), _layers(report)
        ),
        "outputs": _table(("layer", "position", "port", "names", "declared", "inferred", "formula"), outputs),
        "formulas": [list(map(list, rows)) for rows in formulas],
        "statistics": _table(
            (
                "output",
                "type",
                "shape",
                "size",
                "min",
                "mean",
                "max",
                "std",
                "zeros",
                "nan",
                "inf",
                "calls",
                "low",
                "high",
                "counts",
            ),
            _statistics(report, places),
        ),
        "steps": _table(("layers", "algorithm", "seconds", "calls", "fractions"), _steps(report)),
        "groups": _table(
            ("label", "kind", "owner", "summary"),
            ((g.label, g.kind, g.owner, tree.summary(len(report.entries) + n)) for n, g in enumerate(tree.groups)),
        ),
        "parents": tree.parents,
        "open": sorted(tree.opened(_VISIBLE)),
        "links": _table(("from", "to", "kind"), report.entries.links()),
        "findings": list(_findings(report)),
    }


def _table(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    return {"columns": list(columns), "rows": [list(row) for row in rows]}


_DIGITS: Final = 9
"""The digits of a figure: as many as tell two float32 numbers apart. More would make the document a third larger."""


def _number(value: float | None) -> float | int | None:
    """Return a number as JSON can hold it, with ``_DIGITS`` digits: None for NaN and infinities."""
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_CHARS else f"{text[:_MAX_TEXT_CHARS]}… ({len(text):,} characters)"


def _layers(report: Contents) -> Iterator[tuple[Any, ...]]:
    hidden = report.entries.hidden
    for entry in report.entries:
        layer = entry.layer
        inputs = [
            [report.inferred.input_name(entry.number, position), *(feed or (-1, 0)), _declared(layer.inputs[position])]
            for position, feed in enumerate(report.entries.feeds(entry))
        ]
        first = report.inferred.outputs.get((entry.number, 0))
        attributes = [[name, _cut(text)] for name, text in layer.attributes.items()]
        yield (
            _cut(entry.name),
            _cut(layer.name),
            layer.type,
            layer.version,
            entry.line,
            attributes,
            inputs,
            int(hidden[entry.number]),
            first.refused if first else None,
        )


def _outputs(report: Contents, formulas: dict[tuple[Row, ...], int]) -> Iterator[tuple[Any, ...]]:
    for entry in report.entries:
        for position, port in enumerate(entry.layer.outputs):
            known = report.inferred.outputs.get((entry.number, position))
            shown = [known.type, known.shape] if known else None
            formula = formulas.setdefault(known.formula if known else (), len(formulas))
            yield entry.number, position, port.id, list(map(_cut, port.names)), _declared(port), shown, formula


def _declared(port: Port) -> list[str]:
    """Return the type and shape that a port declares, as text; empty where it declares none."""
    return ["" if port.type is None else str(port.type), "" if port.shape is None else str(port.shape)]


def _run(report: Contents) -> dict[str, Any]:
    seen = report.observations
    parameters: Sequence[Layer] = report.model.parameters
    return {
        "state": "done" if seen else "failed" if report.not_run else "not asked for",
        "why": [finding_record(d) for d in report.not_run],
        "seconds": _number(seen.seconds) if seen else None,
        "runs": seen.runs if seen else 0,
        "inputs": [
            {
                "name": parameters[position].name,
                "layer": report.entries.number(parameters[position]),
                "type": str(ElementType.of(array.dtype) or array.dtype),
                "shape": str(PartialShape.of(array.shape)),
                "from": origin,
            }
            for position, (array, origin) in report.inputs.items()
        ],
    }


def _statistics(report: Contents, places: dict[tuple[Any, Any], int]) -> Iterator[tuple[Any, ...]]:
    if report.observations is None:
        return
    for place, seen in sorted(report.observations.outputs.items()):
        yield places[place], seen.type, seen.shape, *_figures(seen)


def _figures(seen: Observed) -> tuple[Any, ...]:
    known, bars = seen.statistics, seen.histogram
    figures = (_number(known.min), _number(known.mean), _number(known.max), _number(known.std))
    histogram = (_number(bars.low), _number(bars.high), list(bars.counts)) if bars else (None, None, None)
    return (known.size, *figures, known.zeros, known.nan, known.inf, seen.calls, *histogram)


def _steps(report: Contents) -> Iterator[tuple[Any, ...]]:
    seen = report.observations
    for row, calls in seen.steps if seen else ():
        numbers = [report.entries.number(layer) for layer in row.members]
        known = [number for number in numbers if number is not None]
        fractions = row.fractions(seen.costs) if seen and len(known) == len(numbers) else None
        yield known, row.algorithm, _number(row.seconds), calls, fractions and list(map(_number, fractions))


def _comparison(report: Contents, places: dict[tuple[Any, Any], int]) -> dict[str, Any] | None:
    """Return what the comparison says, with a table of the errors of outputs; None if there was none."""
    comparison = report.comparison
    if comparison is None:
        return None
    errors: dict[int, Compared] = {}
    for compared in comparison.layers:
        place = _place(report, compared)
        if place is not None and place in places:
            errors[places[place]] = compared
    first = None if comparison.first is None else _place(report, comparison.first.layer)
    failure = comparison.failure
    outcome = None if failure is None else failure.outcome
    message = None if outcome is None else f"{failure.side if failure else ''}: {getattr(outcome, 'message', outcome)}"
    return {
        "reference": list(comparison.reference),
        "candidate": list(comparison.candidate),
        "verdict": comparison.verdict,
        "failure": message,
        "first": None if first is None else first[0],
        "differences": list(comparison.first.differences) if comparison.first else [],
        "outputs": [{"name": o.label, **_errors(o)} for o in comparison.outputs],
        "errors": _table(("output", *_ERRORS), ((place, *_errors(e).values()) for place, e in errors.items())),
    }


_ERRORS: Final = (
    "agrees",
    "error",
    "max_abs",
    "max_rel",
    "cosine",
    "snr",
    "outside",
    "worst",
    "rtol",
    "atol",
    "problem",
)


def _errors(compared: Compared) -> dict[str, Any]:
    m = compared.measurement
    worst = None if m.worst is None else list(m.worst)
    values = (
        compared.agrees,
        _number(m.error),
        _number(m.max_abs),
        _number(m.max_rel),
        _number(m.cosine),
        _number(m.snr),
        _number(m.share),
        worst,
        compared.rtol,
        compared.atol,
        m.problem,
    )
    return dict(zip(_ERRORS, values))


def _runtime(report: Contents) -> dict[str, Any] | None:
    """Return the graph that an engine runs, whose nodes are numbered from 0; None if there is none."""
    shown = report.graph
    if shown is None:
        return None
    named, numbers = report.entries.named, {node.name: number for number, node in enumerate(shown.graph.nodes)}
    known = shown.record()
    return {
        **{key: known[key] for key in ("side", "engine", "properties", "runs", "microseconds", "summary")},
        "nodes": _table(
            ("name", "type", "precision", "primitive", "microseconds", "share"),
            (
                (_cut(node.name), node.type, node.computes_in, node.primitive, node.time, _number(shown.share(node)))
                for node in shown.graph.nodes
            ),
        ),
        "layers": _table(
            ("layer", "state", "nodes"),
            (
                (named[layer.name], layer.state, [numbers[node.name] for node in layer.nodes])
                for layer in shown.layers
                if layer.name in named
            ),
        ),
        "inserted": _table(
            ("node", "from", "to", "changes", "before_run"),
            (
                (numbers[item.node.name], _cut(item.source), _cut(item.target), item.changes, item.before_run)
                for item in shown.inserted
            ),
        ),
        "fusions": _table(
            ("pattern", "layer", "fused", "condition", "found"),
            ((f.pattern, named.get(f.layer), f.fused, f.condition, _cut(f.found)) for f in shown.fusions),
        ),
    }


def _expected(report: Contents, places: dict[tuple[Any, Any], int]) -> dict[str, Any] | None:
    """Return the errors to expect in a precision, for values and for outputs of the model; None if it is not known."""
    expected, named = report.expected, report.entries.named
    if expected is None:
        return None
    rows = [
        (places[named[name], port], _number(error))
        for (name, port), error in expected.errors.items()
        if name in named and (named[name], port) in places
    ]
    outputs = [
        {
            "name": report.model.result_name(report.model.results[position]),
            "error": _number(known.error),
            "allowed": _number(known.allowed),
        }
        for position, known in expected.outputs.items()
    ]
    return {"precision": expected.precision, "outputs": outputs, "errors": _table(("output", "error"), rows)}


def _place(report: Contents, compared: Compared) -> tuple[int, int] | None:
    """Return the number of the layer in the model of the report, and the position of the output, that was compared."""
    named = report.entries.named
    number = named.get(compared.candidate)
    if number is not None:
        return number, 0
    name, _, port = compared.candidate.rpartition(":")
    number = named.get(name)
    if number is None:
        return None
    ports = [str(p.id) for p in report.entries[number].layer.outputs]
    return (number, ports.index(port)) if port in ports else None


def _findings(report: Contents) -> Iterator[dict[str, Any]]:
    """Yield the findings, each with the number of its layer: the last of the name that begins before the finding."""
    named: dict[str, list[tuple[int, int]]] = {}
    for entry in report.entries:
        named.setdefault(entry.layer.name, []).append((entry.line, entry.number))
    for places in named.values():
        places.sort()  # the layers of bodies have the last numbers, but not the last lines
    for finding in report.findings:
        places = named.get(finding.layer, []) if finding.layer is not None else []
        before = bisect_right(places, (finding.line or 0, len(report.entries)))
        number = places[max(before - 1, 0)][1] if places else None
        record = finding_record(finding)
        kept = {key: record[key] for key in ("code", "name", "severity", "message", "line", "notes", "help")}
        yield {**kept, "layer": number}
