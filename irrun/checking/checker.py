"""Check a model: infer the outputs of each layer from its inputs, and compare them with the declared outputs.

One fault gives one diagnostic. This module holds the order of the checks; each module of ``faults`` does one of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from irrun.checking.faults.consequences import count_consequences
from irrun.checking.faults.constants import check_bytes, check_presence
from irrun.checking.faults.edges import check_edges
from irrun.checking.faults.evidence import Evidence
from irrun.checking.faults.graph import check_results, check_unused_layers, fix_duplicate_edges
from irrun.checking.faults.outputs import settle
from irrun.checking.faults.runtime_options import check_runtime_options
from irrun.checking.faults.unparsable import fix_unparsable, unparsable_ports
from irrun.checking.faults.variables import check_variables
from irrun.checking.ignore import without_ignored
from irrun.diagnostics import Diagnostic, Report
from irrun.inference.bind import bind_all
from irrun.inference.propagate import propagate
from irrun.inference.trace import Trace
from irrun.ir.parse import Parsed, no_garbage
from irrun.opdef import Value

__all__ = ["check", "examine"]


def check(parsed: Parsed) -> Report:
    """Return all diagnostics of a model, in file order: the problems of its file and those of its layers.

    A comment such as ``<!-- irrun: ignore IR401 -->`` in the file suppresses diagnostics.
    """
    return examine(parsed)[0]


def examine(parsed: Parsed) -> tuple[Report, Trace]:
    """Return all diagnostics of a model, as ``check``, and its values with the origin of each dim.

    The values are empty if two layers or ports share an id, because the model is then not inferred.
    """
    evidence = Evidence(parsed.model, tuple(parsed.problems))
    if not any(p.code in ("IR101", "IR102") for p in parsed.problems):  # duplicate ids: edges are ambiguous
        with no_garbage():
            check_results(evidence)
            check_variables(evidence)
            check_runtime_options(evidence)
            check_presence(evidence)
            _check_layers(evidence)
            check_bytes(evidence)
    fixes = evidence.problem_fixes
    problems = [replace(p, fix=fixes.get(number, p.fix)) for number, p in enumerate(evidence.problems)]
    diagnostics = sorted((*problems, *evidence.findings), key=_position)
    evidence.bodies.clear()  # they refer to each other, and would stay in memory until garbage is collected
    return Report(tuple(without_ignored(parsed.model.source, diagnostics))), evidence.trace


def _position(diagnostic: Diagnostic) -> tuple[int, int]:
    return (diagnostic.line or 0, diagnostic.column or 0)


def _check_layers(evidence: Evidence) -> None:
    """Check the layers and edges of a model or body, and the bodies in it."""
    model = evidence.model
    for layer, op, findings in bind_all(model):
        evidence.ops[layer.id] = op
        evidence.findings += findings
        for body in layer.bodies.values():
            inner = evidence.body(body)
            _check_layers(inner)
            evidence.findings += inner.findings
            if any(d.severity == "error" for d in inner.findings) or any(p.blocks for p in evidence.problems):
                evidence.broken_bodies.add(layer.id)
    unparsable = unparsable_ports(evidence)
    given = {id: Value.of(contents) for id, (contents, _) in model.contents.items()}
    propagate(model, evidence.ops, partial(settle, evidence), evidence.values, given, evidence.bodies)
    check_edges(evidence)
    fix_unparsable(evidence, unparsable)
    fix_duplicate_edges(evidence)
    check_unused_layers(evidence)
    count_consequences(evidence)
