"""Check the variables of a model: each has one ReadValue and one Assign."""

from __future__ import annotations

from collections.abc import Iterator

from irrun.checking.faults.evidence import Evidence
from irrun.model import Layer, Model

__all__ = ["check_variables"]


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
