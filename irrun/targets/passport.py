"""The passport of a model: what it needs, and which releases of OpenVINO load it, as a dict for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from irrun.checking.facts import facts_of
from irrun.diagnostics import Report
from irrun.inference.bind import opset_of
from irrun.inference.trace import Trace
from irrun.ir.parse import Parsed
from irrun.model import Layer, Model
from irrun.targets.devices import documented
from irrun.targets.facts import facts
from irrun.targets.releases import DEVICES, RELEASES, first_release
from irrun.targets.rules import Reason, reasons

__all__ = ["passport"]


def passport(parsed: Parsed, report: Report, trace: Trace) -> dict[str, Any]:
    """Return the needs of a model, and for each release whether it loads the model or why not.

    ``examine`` gives ``report`` and ``trace``. ``operations`` has the layers by type and version, each with the first
    measured release that reads it (None for an operation of no numbered opset). ``is_static`` is true if every output
    of a layer has a known shape. A release refuses the model for the ``reasons`` at these positions. ``devices`` has
    what the documentation of each device rules out.
    """
    model = parsed.model
    known = facts_of(model)
    every = list(facts(parsed, report, trace))
    sentences = {sentence for fact in every for sentence in fact.sentences}
    found = list(reasons(parsed, report, trace))
    return {
        "name": model.name,
        "ir_version": model.version,
        "inputs": known["inputs"],
        "outputs": known["outputs"],
        "is_static": not sentences & {"an output has unknown dims", "an output has unknown rank"},
        "variables": sorted({a for layer in _layers(model) if (a := layer.attributes.get("variable_id"))}),
        "types": sorted(_types(sentences)),
        "weight_bytes": known["weight_bytes"],
        "operations": list(_operations(model)),
        "reasons": [_record(reason) for reason in found],
        "releases": [
            {"release": release, "loads": not why, "reasons": why}
            for release in RELEASES
            for why in [[number for number, reason in enumerate(found) if release in reason.releases]]
        ],
        "devices": [
            {"device": name, "limits": sorted({d.message for fact in every for d in documented(fact, {name})})}
            for name in map(str.upper, DEVICES)
        ],
    }


def _layers(model: Model) -> Iterator[Layer]:
    for layer in model.layers.values():
        yield layer
        for body in layer.bodies.values():
            yield from _layers(body)


def _types(sentences: set[str]) -> set[str]:
    """Return the element types of all ports: the words of ``an output is f32`` that name one."""
    words = {sentence.removeprefix("an output is ") for sentence in sentences if sentence.startswith("an output is ")}
    return {word for word in words if " " not in word and word != "empty"}


def _operations(model: Model) -> Iterator[dict[str, Any]]:
    counts = Counter((layer.type, layer.version or "opset1") for layer in _layers(model))
    for (type, version), count in sorted(counts.items()):
        try:
            since = first_release(type, opset_of(version))
        except ValueError:  # no operation set of irrun has this name
            since = None
        yield {"type": type, "version": version, "count": count, "since": since}


def _record(reason: Reason) -> dict[str, Any]:
    layer, rule = reason.facts.layer, reason.rule
    if reason.kind == "operation" and layer is not None:
        text = f"cannot read {layer.type} from {layer.version or 'opset1'}"
    elif rule is not None:
        text = f"probably refuses it on the CPU: {', and '.join(rule.conditions)}"
    else:
        text = ", ".join(sorted(s for s in reason.facts.sentences if s.startswith("irrun reports")))
    node = 0 if layer is None else layer.node
    where = {"layer": layer.name if layer else None, "line": reason.facts.model.source.span(node).line}
    return {"kind": reason.kind, "text": text, **where, "models": rule.models if rule else None}
