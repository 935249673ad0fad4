"""Check the graph of a model: Results, unused layers, and duplicate edges."""

from __future__ import annotations

from collections.abc import Container, Iterable

from irrun.base.edits import remove_element
from irrun.base.text import counted
from irrun.checking.faults.evidence import Evidence
from irrun.checking.faults.suggest import fix
from irrun.diagnostics import diagnostic
from irrun.model import Layer, Model

__all__ = ["check_results", "check_unused_layers", "fix_duplicate_edges"]


def check_results(evidence: Evidence) -> None:
    """Report a model without a Result (IR107)."""
    model = evidence.model
    if not model.is_fragment and not model.results:
        help = "add a Result layer for each output"
        evidence.add(diagnostic("IR107", "the model has no Result", source=model.source, node=0, help=help))


def check_unused_layers(evidence: Evidence) -> None:
    """Report layers on which no Result and no variable depends (IR108): one finding at the last layer of each chain.

    A layer before several of these is counted at the first of them. Report nothing if reading found problems, because
    these may have cut off the layers.
    """
    model = evidence.model
    if model.is_fragment or not model.results or any(d.code.startswith(("IR0", "IR1")) for d in evidence.problems):
        return
    read = model.consumers.keys()
    if all(id in read or _has_purpose(evidence, layer) for id, layer in model.layers.items()):
        return
    final = [id for id, layer in model.layers.items() if _has_purpose(evidence, layer)]
    unused = model.layers.keys() - _with_producers(model, final)
    for id in sorted(unused - read):
        layer, chain = model.layers[id], _with_producers(model, [id], unused)
        unused -= chain
        notes = (f"also unused: {counted(len(chain) - 1, 'layer')} before it",) if len(chain) > 1 else ()
        message = f'{layer.type} "{layer.name}": its outputs have no consumer'
        help = "add the missing edge or Result, or remove the layer"
        evidence.report("IR108", message, layer, layer.node, notes=notes, help=help)


def _with_producers(model: Model, ids: Iterable[int], among: Container[int] | None = None) -> set[int]:
    """Return layers and all layers on which they depend; only those ``among`` some layers, if these are passed."""
    allowed = model.layers.keys() if among is None else among
    waiting = list(ids)
    reached = set(waiting)
    while waiting:
        for feed in model.feeds[waiting.pop()]:
            if feed is not None and feed[0] not in reached and feed[0] in allowed:
                reached.add(feed[0])
                waiting.append(feed[0])
    return reached


def _has_purpose(evidence: Evidence, layer: Layer) -> bool:
    """Return whether a layer may have a purpose although no layer reads its outputs.

    That is an unknown operation, an operation with side effects, or a layer without inputs or without outputs.
    (OpenVINO itself keeps unused constants.)
    """
    op = evidence.ops[layer.id]
    return op is None or not layer.inputs or not layer.outputs or not op.pure


def fix_duplicate_edges(evidence: Evidence) -> None:
    """Add a fix to each problem of an input that two edges feed (IR105), if both edges begin at the same output."""
    source = evidence.model.source
    spans = {d.span: number for number, d in enumerate(evidence.problems) if d.code == "IR105"}
    seen: set[tuple[int, int, int, int]] = set()
    for edge in evidence.model.edges if spans else ():
        ends = (edge.from_layer, edge.from_port, edge.to_layer, edge.to_port)
        if ends in seen and (number := spans.get(source.span(edge.node))) is not None:
            removal = fix("remove the edge", remove_element(source, edge.node), is_safe=False)
            if removal is not None:
                evidence.problem_fixes[number] = removal
        seen.add(ends)
