"""Check the graph of a model: Results, unused layers, and duplicate edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irrun.checking.faults.evidence import Evidence
from irrun.checking.faults.suggest import fix
from irrun.diagnostics import counted, diagnostic
from irrun.edits import remove_element
from irrun.model import Layer, Model

__all__ = ["check_results", "check_unused_layers", "check_variables", "fix_duplicate_edges"]


def check_results(evidence: Evidence) -> None:
    """Report a model without a Result (IR107)."""
    model = evidence.model
    if not model.is_fragment and not model.results:
        help = "add a Result layer for each output"
        evidence.add(diagnostic("IR107", "the model has no Result", source=model.source, node=0, help=help))


def check_variables(evidence: Evidence) -> None:
    """Report variables that do not have exactly one ReadValue and one Assign (IR111), in the model and its bodies."""
    if evidence.model.is_fragment:
        return
    of_variable: dict[str, dict[str, list[Layer]]] = {"readvalue": {}, "assign": {}}
    for layer in _all_layers(evidence.model):
        if layer.type.lower() in of_variable and "variable_id" in layer.attributes:
            of_variable[layer.type.lower()].setdefault(layer.attributes["variable_id"], []).append(layer)
    reads, assigns = of_variable["readvalue"], of_variable["assign"]
    for id, layers in (*reads.items(), *assigns.items()):
        for layer in layers[1:]:
            what = f'"{layers[0].name}" is a {layer.type} of the variable "{id}", too'
            _report_variable(evidence, layer, what, "use a variable of its own")
    unset = [layers[0] for id, layers in reads.items() if id not in assigns]
    unread = [layers[0] for id, layers in assigns.items() if id not in reads]
    for read, assign in zip(unset, unread):  # one misspelt name gives one finding
        what = f'it sets the variable "{_variable(assign)}", but ReadValue "{read.name}" reads "{_variable(read)}"'
        _report_variable(evidence, assign, what, "write the same name at both")
    for read in unset[len(unread) :]:
        _report_variable(evidence, read, f'no Assign sets the variable "{_variable(read)}"', "add the Assign")
    for assign in unread[len(unset) :]:
        _report_variable(
            evidence, assign, f'no ReadValue reads the variable "{_variable(assign)}"', "add the ReadValue"
        )


def _variable(layer: Layer) -> str:
    return layer.attributes["variable_id"]


def _report_variable(evidence: Evidence, layer: Layer, what: str, help: str) -> None:
    node = evidence.model.source.children(layer.node, "data")[0]
    evidence.report("IR111", f'{layer.type} "{layer.name}": {what}', layer, node, "variable_id", help=help)


def _all_layers(model: Model) -> Iterator[Layer]:
    """Yield the layers of a model and of its bodies."""
    for layer in model.layers.values():
        yield layer
        for body in layer.bodies.values():
            yield from _all_layers(body)


def check_unused_layers(evidence: Evidence) -> None:
    """Report layers on which no Result and no variable depends (IR108): one finding at the last layer of each chain.

    Report nothing if reading found problems, because these may have cut off the layers.
    """
    model = evidence.model
    if model.is_fragment or not model.results or any(d.code.startswith(("IR0", "IR1")) for d in evidence.problems):
        return
    read = {key[0] for key in evidence.consumers}
    if all(id in read or _has_purpose(evidence, layer) for id, layer in model.layers.items()):
        return
    final = [id for id, layer in model.layers.items() if _has_purpose(evidence, layer)]
    unused = model.layers.keys() - _with_producers(model, final)
    for id in sorted(unused - read):
        layer, chain = model.layers[id], _with_producers(model, [id], unused)
        notes = (f"also unused: {counted(len(chain) - 1, 'layer')} before it",) if len(chain) > 1 else ()
        message = f'{layer.type} "{layer.name}": its outputs have no consumer'
        help = "add the missing edge or Result, or remove the layer"
        evidence.report("IR108", message, layer, layer.node, notes=notes, help=help)


def _with_producers(model: Model, ids: Iterable[int], among: Iterable[int] | None = None) -> set[int]:
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
