"""Report what releases of OpenVINO do not read or compile: IR901 and those after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irrun.checking.ignore import without_ignored
from irrun.diagnostics import Diagnostic, Report, diagnostic
from irrun.inference.bind import opset_of
from irrun.inference.trace import Trace
from irrun.ir.parse import Parsed
from irrun.model import Layer, Model
from irrun.targets.releases import RELEASES, Target, first_release, has_operation, span

__all__ = ["check_targets"]


def check_targets(parsed: Parsed, report: Report, trace: Trace, targets: Sequence[Target]) -> Report:
    """Return the report of a check, as ``examine`` gives it with ``trace``, and what targets lack or refuse.

    The findings are in the order of the file. A comment in the file suppresses them as it does others.
    """
    if parsed.model.is_fragment:
        return report
    releases = [r for r in RELEASES if any(r in target.releases for target in targets if target.device == "CPU")]
    found = without_ignored(parsed.model.source, _operations(parsed.model, releases))
    return Report(tuple(sorted((*report, *found), key=lambda d: (d.line or 0, d.column or 0))))


def _operations(model: Model, releases: Sequence[str]) -> Iterator[Diagnostic]:
    """Yield the layers whose operation a release lacks (IR901)."""
    for layer in model.layers.values():
        finding = _missing(model, layer, releases)
        if finding is not None:
            yield finding
        for body in layer.bodies.values():
            yield from _operations(body, releases)


def _missing(model: Model, layer: Layer, releases: Sequence[str]) -> Diagnostic | None:
    try:
        opset = opset_of(layer.version)
    except ValueError:  # reported as IR207
        return None
    if opset is None:
        return None
    lacking = [release for release in releases if not has_operation(release, layer.type, opset)]
    if not lacking:
        return None
    first = first_release(layer.type, opset)
    since = f"OpenVINO {first} is the first release that does" if first else f"no release up to {RELEASES[-1]} does"
    message = f'{layer.type} "{layer.name}": OpenVINO {span(lacking)} cannot read it from opset{opset}; {since}'
    help = f"write an older form with `irrun edit --target openvino=={lacking[0]}`"
    help += f", or deploy OpenVINO {first} or later" if first else ""
    return diagnostic(
        "IR901", message, source=model.source, node=layer.node, attribute="version", layer=layer.name, help=help
    )
