"""Report what releases of OpenVINO lack or refuse in a model: IR901 to IR906."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from irrun.base.text import counted
from irrun.checking.ignore import without_ignored
from irrun.diagnostics import Diagnostic, Report, diagnostic
from irrun.inference.bind import opset_of
from irrun.inference.trace import Trace
from irrun.ir.parse import Parsed
from irrun.model import Model
from irrun.targets.devices import documented
from irrun.targets.facts import facts
from irrun.targets.releases import RELEASES, Target, first_release, span
from irrun.targets.rules import Reason, reasons

__all__ = ["check_targets"]

_SUBJECTS: Final = (("IR902", (" is ",)), ("IR903", ("=", "attribute", "no valid text")), ("IR904", ("",)))
"""The code of a rule by words in each of its sentences: about element types alone, attributes, or anything else."""


def check_targets(parsed: Parsed, report: Report, trace: Trace, targets: Sequence[Target]) -> Report:
    """Return the report of a check, as ``examine`` gives it with ``trace``, and what targets lack or refuse.

    The findings are in the order of the file. A comment in the file suppresses them as it does others.
    """
    if parsed.model.is_fragment:
        return report
    asked = [r for r in RELEASES if any(r in target.releases for target in targets if target.device == "CPU")]
    devices = {target.device for target in targets}
    found = [*_findings(parsed, report, trace, asked)] if asked else []
    if devices - {"CPU"}:
        found += [finding for fact in facts(parsed, report, trace) for finding in documented(fact, devices)]
    found = without_ignored(parsed.model.source, found)
    return Report(tuple(sorted((*report, *found), key=lambda d: (d.line or 0, d.column or 0))))


def _findings(parsed: Parsed, report: Report, trace: Trace, asked: Sequence[str]) -> Iterator[Diagnostic]:
    """Yield the findings. A layer is not reported for a release that already refuses a layer before it."""
    every = list(reasons(parsed, report, trace))
    own: dict[Model, dict[int, frozenset[str]]] = {}
    for reason in every:
        if reason.facts.layer is not None:
            of, id = own.setdefault(reason.facts.model, {}), reason.facts.layer.id
            of[id] = of.get(id, frozenset()).union(reason.releases)
    before = {model: _before(model, refusing) for model, refusing in own.items()}
    for reason in every:
        layer, refusing = reason.facts.layer, set(reason.releases)
        if reason.kind == "rule" and layer is not None:
            refusing -= before[reason.facts.model].get(layer.id, frozenset())
        releases = [release for release in asked if release in refusing]
        if releases and reason.kind == "operation":
            yield _missing(reason, releases)
        elif releases and reason.kind == "rule":
            yield _refused(reason, releases)


def _before(model: Model, refusing: Mapping[int, frozenset[str]]) -> dict[int, frozenset[str]]:
    """Return the releases that refuse a layer on which each layer depends, from those that refuse each layer itself."""
    before: dict[int, frozenset[str]] = {}
    for id in model.order:
        feeds = {feed[0] for feed in model.feeds[id] if feed is not None}
        found = [refusals for feed in feeds for refusals in (before.get(feed), refusing.get(feed)) if refusals]
        if found:
            before[id] = found[0].union(*found[1:])
    return before


def _missing(reason: Reason, lacking: Sequence[str]) -> Diagnostic:
    """Return the finding for a layer whose operation releases lack (IR901)."""
    layer = reason.facts.layer
    assert layer is not None
    first = first_release(layer.type, opset_of(layer.version))
    since = f"OpenVINO {first} is the first release that does" if first else f"no release up to {RELEASES[-1]} does"
    version = layer.version or "opset1"
    message = f'{layer.type} "{layer.name}": OpenVINO {span(lacking)} cannot read it from {version}; {since}'
    if opset_of(layer.version) is None:
        help = "load the library of its extension with openvino.Core.add_extension, or replace the layer"
    else:
        help = f"write an older form with `irrun edit --target openvino=={lacking[0]}`"
    help += f", or deploy OpenVINO {first} or later" if first else ""
    source = reason.facts.model.source
    return diagnostic(
        "IR901", message, source=source, node=layer.node, attribute="version", layer=layer.name, help=help
    )


def _refused(reason: Reason, releases: Sequence[str]) -> Diagnostic:
    """Return the finding for what releases are known to refuse: IR902 to IR904 in a layer, IR905 in the file."""
    rule, layer, source = reason.rule, reason.facts.layer, reason.facts.model.source
    assert rule is not None
    message = f"OpenVINO {span(releases)} does not load it on the CPU: {', and '.join(rule.conditions)}"
    note = f"measured: a release refused {counted(rule.models, 'model')} for this"
    loading = [release for release in RELEASES if release not in reason.releases]
    help = "change the layer, or write an older form with `irrun edit --target`"
    help += f"; OpenVINO {span(loading)} has no such limit" if loading else ""
    if layer is None:
        return diagnostic("IR905", message, source=source, node=0, notes=(note,), help=help)
    code = next(code for code, words in _SUBJECTS if all(any(word in s for word in words) for s in rule.sentences))
    message = f'{layer.type} "{layer.name}": {message}'
    return diagnostic(code, message, source=source, node=layer.node, layer=layer.name, notes=(note,), help=help)
