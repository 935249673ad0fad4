"""Compare both ends of each edge, and report the end that is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from irrun.checking.faults.evidence import Consumer, Evidence, Key
from irrun.checking.faults.suggest import declare_dims, declare_type, wrong_dim
from irrun.checking.faults.votes import elect, is_declaring, is_uniform
from irrun.model import Layer, Port
from irrun.types import PartialShape

__all__ = ["check_edges"]


def check_edges(evidence: Evidence) -> None:
    """Report each difference between an output port and the input ports that it feeds (IR304, IR402, IR405).

    An output whose declaration is already reported as wrong is left out.
    """
    for key, consumers in evidence.consumers.items():
        if is_uniform(evidence, key) or key in evidence.misdeclared:
            continue
        producer = evidence.model.layers[key[0]]
        output = producer.outputs[key[1]]
        if is_declaring(evidence, output):
            inputs = [(l, p) for l, p in consumers if is_declaring(evidence, l.inputs[p])]
            _check_output(evidence, key, inputs)


class _End:
    """One end of an edge: a layer, its port, and the name of the port in messages."""

    def __init__(self, layer: Layer, port: Port, kind: str) -> None:
        self.layer, self.port = layer, port
        self.name = f'{layer.type} "{layer.name}" {kind} {port.id}'


def _check_output(evidence: Evidence, key: Key, consumers: Sequence[Consumer]) -> None:
    """Report the output port if it lost the election, and otherwise each input port that differs from it."""
    producer = evidence.model.layers[key[0]]
    output = _End(producer, producer.outputs[key[1]], "output")
    type, shape = output.port.type, output.port.shape
    inputs = [_End(layer, layer.inputs[position], "input") for layer, position in consumers]
    retyped = [end for end in inputs if end.port.type and type and end.port.type is not type]
    reshaped = [end for end in inputs if end.port.shape is not shape and end.port.shape != shape]
    if not retyped and not reshaped:
        return
    elected = elect(evidence, key)
    if elected.type is not type and (right := [end for end in retyped if end.port.type is elected.type]):
        _report_type(evidence, key, output, right[0])
    else:
        for end in retyped:
            _report_type(evidence, key, end, output)
    if key in evidence.undecided:
        for end in reshaped:
            _report_undecided(evidence, output, end)
    elif elected.shape != shape and (right := [end for end in reshaped if end.port.shape == elected.shape]):
        _report_dims(evidence, key, output, right[0])
    else:
        for end in reshaped:
            _report_dims(evidence, key, end, output)


def _report_undecided(evidence: Evidence, output: _End, input: _End) -> None:
    """Report that the ends of an edge declare different dims (IR402). Without the .bin, either may be wrong.

    The finding marks the output. It has no advice and no fix, because half of them would be wrong.
    """
    source, shape = evidence.model.source, input.port.shape
    message = f"{output.name} declares {output.port.shape}, but {input.name} declares {shape}"
    node = output.port.node if shape is None else wrong_dim(source, output.port, shape)
    notes = tuple(f"{end.name}: line {source.line_of(end.port.node)}" for end in (output, input))
    reason = "without the .bin, irrun cannot tell which of the two is wrong"
    evidence.report("IR402", message, output.layer, node, port=output.port.id, notes=(*notes, reason))


def _report_type(evidence: Evidence, key: Key, wrong: _End, right: _End) -> None:
    """Report the wrong end of an edge whose ports declare different precisions (IR304). ``key`` is its output."""
    port, type = wrong.port, right.port.type
    assert port.type is not None
    assert type is not None
    message = f"{wrong.name}: precision is {port.type.port_name}, but {right.name} declares {type.port_name}"
    notes, help = evidence.contest(key), f'declare precision="{type.port_name}"'
    fix = declare_type(evidence.model.source, port, type, is_safe=key not in evidence.contested)
    evidence.report(
        "IR304", message, wrong.layer, port.node, "precision", port=port.id, notes=notes, help=help, fix=fix
    )


def _report_dims(evidence: Evidence, key: Key, wrong: _End, right: _End) -> None:
    """Report the wrong end of an edge whose ports declare different dims: IR402, or IR405 if both can be true.

    ``key`` is the output of the edge.
    """
    model, port, shape = evidence.model, wrong.port, right.port.shape
    is_loose = port.shape is None or shape is None or port.shape.meet(shape) is not None
    declares = "it declares no dims" if port.shape is None else f"dims are {port.shape}"
    message = f"{wrong.name}: {declares}, but {right.name} declares {'no dims' if shape is None else shape}"
    due = PartialShape(()) if shape is None else shape
    # without the values of constants, the choice of the wrong end may be a guess
    is_safe = key not in evidence.contested and (model.weights is not None or not model.constants)
    notes, help = evidence.contest(key), f"declare {due}"
    fix = declare_dims(model.source, port, due, is_safe=is_safe)
    code, node = "IR405" if is_loose else "IR402", wrong_dim(model.source, port, due)
    evidence.report(code, message, wrong.layer, node, port=port.id, notes=notes, help=help, fix=fix)
