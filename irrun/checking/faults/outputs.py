"""Compare the outputs of a layer with their declaration, and report a layer that cannot be inferred.

Where the declared and the inferred output differ, the consumers read the one that they agree with, so that the layers
behind them are not reported as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeGuard

import numpy as np

from irrun.base.edits import set_attribute
from irrun.checking.faults.constants import constant_fits_only, corrected_size, record_constant
from irrun.checking.faults.evidence import Consequence, Evidence, Key
from irrun.checking.faults.suggest import (
    declarable,
    declare_dims,
    declare_type,
    fix,
    items,
    write_attribute,
    wrong_dim,
)
from irrun.checking.faults.votes import choose_believed, leads_to_declared, outputs_without_inference
from irrun.checking.origins import history
from irrun.diagnostics import Diagnostic, Refused
from irrun.inference.layer import input_name
from irrun.inference.propagate import needed, refusal, site, to_blame, wrong_output_count
from irrun.model import Layer, Port, is_constant
from irrun.opdef import Op, Value
from irrun.types import ElementType, PartialShape

__all__ = ["settle", "shape_to_declare"]


def settle(evidence: Evidence, layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
    """Check one layer and return the outputs that its consumers read: the inferred or the declared ones.

    ``inferred`` holds the inferred outputs, or the exception that inference raised. It is ignored if irrun does not
    know the operation.
    """
    model, op = evidence.model, evidence.ops[layer.id]
    if op is None or None in model.feeds[layer.id] or layer.id in evidence.broken_bodies:  # reported elsewhere
        return outputs_without_inference(evidence, layer)
    if isinstance(inferred, Exception):
        _report_failure(evidence, layer, inferred)
        return outputs_without_inference(evidence, layer)
    if len(inferred) != len(layer.outputs):
        if layer.outputs or not model.is_fragment:
            evidence.report("IR206", wrong_output_count(layer, op, len(inferred)), layer, layer.node)
        missing = outputs_without_inference(evidence, layer, len(inferred))
        return (*inferred, *missing)[: len(layer.outputs)]
    if is_constant(layer) and model.weights is not None:
        record_constant(evidence, layer, inferred[0])
    outputs = [_settle_output(evidence, layer, position, value) for position, value in enumerate(inferred)]
    _report_doubts(evidence, layer, op)
    return outputs


def _report_doubts(evidence: Evidence, layer: Layer, op: Op) -> None:
    """Report what the operation accepts but doubts in a layer, unless an output is already reported as wrong."""
    if type(op).doubts is Op.doubts or any((layer.id, i) in evidence.misdeclared for i in range(len(layer.outputs))):
        return
    inputs = [None if feed is None else evidence.values.get(feed) for feed in evidence.model.feeds[layer.id]]
    for doubt in op.doubts(site(layer), *inputs, **needed(op, evidence.model, layer)):
        evidence.add(_with_correction(evidence, layer, refusal(evidence.model, layer, op, doubt)))


def _with_correction(evidence: Evidence, layer: Layer, finding: Diagnostic) -> Diagnostic:
    """Return a finding about the bytes of a constant at the wrong attribute, with a fix, where it is known."""
    if finding.code not in ("IR502", "IR503", "IR508") or not is_constant(layer) or not layer.outputs:
        return finding
    correction = corrected_size(evidence.model, layer)
    if correction is None:
        return finding
    name, text = correction
    source = evidence.model.source
    node = source.children(layer.node, "data")[0]
    help = f'write {name}="{text}"'
    return replace(
        finding, span=source.span(node, name), help=help, fix=fix(help, set_attribute(source, node, name, text))
    )


def shape_to_declare(evidence: Evidence, key: Key, value: Value) -> PartialShape:
    """Return the shape that an output should declare.

    That is the shape that all its consumers declare if the inferred shape allows it, otherwise the inferred shape.
    """
    claims = [layer.inputs[position].shape for layer, position in evidence.consumers.get(key, ())]
    claim = claims[0] if claims else None
    if claim is not None and all(c == claim for c in claims) and value.shape.meet(claim) is not None:
        return claim
    return declarable(value.shape)


# ---------------------------------------------------------------------------------------------
# layers that cannot be inferred


def _report_failure(evidence: Evidence, layer: Layer, error: Exception) -> None:
    """Report a layer that breaks a rule, or whose shape rule has a bug (IR603).

    If the bytes of a constant do not fit, report the wrong attribute, with a fix, where it is known.
    """
    model, op = evidence.model, evidence.ops[layer.id]
    if not isinstance(error, Refused):
        message = f'{layer.type} "{layer.name}": irrun failed to infer it: {error!r}'
        evidence.report("IR603", message, layer, layer.node, help=to_blame(op))
        return
    notes = (*_describe_inputs(evidence, layer), *history(layer, evidence.trace.blamed(layer.id)))
    finding = _with_correction(evidence, layer, refusal(model, layer, op, error, notes=notes))
    evidence.consequences.append(Consequence(evidence.add(finding), layer, {}))


# ---------------------------------------------------------------------------------------------
# the inferred output against the declared one


def _settle_output(evidence: Evidence, layer: Layer, position: int, value: Value) -> Value:
    """Compare one output with its declaration, and return the value that its consumers read."""
    key, port = (layer.id, position), layer.outputs[position]
    evidence.inferred[key] = value
    agreed = evidence.agreed.get(value)
    if agreed is not None and agreed[0] is port.type and agreed[1] is port.shape and layer.inputs:
        return value
    is_other_type = port.type is not None and value.type.kind != "dynamic" and port.type is not value.type
    is_other_shape = port.shape is not None and value.shape.meet(port.shape) is None
    if not is_other_type and not is_other_shape:
        evidence.agreed[value] = (port.type, port.shape)
        return value if layer.inputs else _settle_source(evidence, layer, position, value)
    evidence.misdeclared.add(key)
    claim = Value(port.type or value.type, port.shape or value.shape)
    is_proved = is_constant(layer) and constant_fits_only(layer, value, claim)
    settled = value if is_proved else choose_believed(evidence, key, value, claim)
    finding = -1
    if is_other_type:
        finding = _report_type(evidence, layer, position, value, settled is claim)
    if is_other_shape:
        finding = _report_dims(evidence, layer, position, value, settled is claim)
    if settled is claim:
        evidence.consequences.append(Consequence(finding, layer, {key: value}))
    return settled


def _settle_source(evidence: Evidence, layer: Layer, position: int, value: Value) -> Value:
    """Compare the output of a layer without inputs with its consumers, and return the value that they read.

    Nothing else can show that the shape of a Parameter or Const is wrong, because the layer itself defines it.
    """
    key, port = (layer.id, position), layer.outputs[position]
    consumers = evidence.consumers.get(key, ())
    claims = [claim for l, p in consumers if (claim := l.inputs[p].shape) is not None]
    source = evidence.model.source
    title = f'{layer.type} "{layer.name}" output {port.id}'
    if _is_narrower(port.shape, value.shape) and port.shape in claims and "shape" in layer.attributes:
        message = f"{title}: the port and its consumers declare {port.shape}, but the attribute shape is {value.shape}"
        node = source.children(layer.node, "data")[0]
        fix = write_attribute(source, layer, node, "shape", port.shape)
        help = f'write shape="{items(port.shape)}", or declare {declarable(value.shape)} at the ports'
        evidence.report("IR405", message, layer, node, "shape", port=port.id, help=help, fix=fix)
        return value
    if claims and all(claim is port.shape for claim in claims):
        return value
    if claims and all(claim == claims[0] for claim in claims) and value.shape.meet(claims[0]) is None:
        expected = Value(value.type, claims[0])
        is_proved = is_constant(layer) and constant_fits_only(layer, value, expected)
        votes = {
            (leads_to_declared(evidence, *consumer, expected), leads_to_declared(evidence, *consumer, value))
            for consumer in consumers
        }
        if not is_proved and (True, False) in votes and (False, True) not in votes:
            evidence.misdeclared.add(key)
            message = f"{title}: dims are {value.shape}, but its consumers expect {expected.shape}"
            node, help = wrong_dim(source, port, expected.shape), f"declare {expected.shape}"
            finding = evidence.report("IR402", message, layer, node, port=port.id, help=help)
            evidence.consequences.append(Consequence(finding, layer, {key: value}))
            return expected
    shape = declarable(value.shape)
    if port.shape not in (None, shape, *claims) and shape.rank == port.shape.rank:
        evidence.misdeclared.add(key)
        message = f"{title}: dims are {port.shape}, inferred {value.shape}"
        node, help = wrong_dim(source, port, shape), f"declare {shape}"
        fix = declare_dims(source, port, shape)
        evidence.report("IR405", message, layer, node, port=port.id, help=help, fix=fix)
    return value


def _is_narrower(declared: PartialShape | None, shape: PartialShape) -> TypeGuard[PartialShape]:
    """Return whether a port declares a number for a dim that ``shape`` leaves open."""
    if declared is None or declared.dims is None or shape.rank not in (None, declared.rank):
        return False
    if shape.dims is None:
        return any(dim.is_static for dim in declared.dims)
    return any(a.is_static and not b.is_static for a, b in zip(declared, shape))


def _report_type(evidence: Evidence, layer: Layer, position: int, value: Value, is_claim_believed: bool) -> int:
    """Report an output port whose precision differs from the inferred type (IR303); return the id of the finding."""
    port = layer.outputs[position]
    assert port.type is not None
    declared, inferred = port.type.port_name, value.type.port_name
    message = f'{layer.type} "{layer.name}" output {port.id}: precision is {declared}, inferred {inferred}'
    name = _cause(evidence, layer, value.type) if is_claim_believed else None
    if name is not None:
        return _report_attribute(evidence, "IR303", message, layer, port, name, port.type)
    help = f'declare precision="{inferred}"'
    notes = (*_describe_inputs(evidence, layer), *evidence.contest((layer.id, position)))
    is_safe = _is_safe(evidence, layer, position)
    fix = None if is_claim_believed else declare_type(evidence.model.source, port, value.type, is_safe=is_safe)
    return evidence.report(
        "IR303", message, layer, port.node, "precision", port=port.id, notes=notes, help=help, fix=fix
    )


def _report_dims(evidence: Evidence, layer: Layer, position: int, value: Value, is_claim_believed: bool) -> int:
    """Report an output port whose dims differ from the inferred shape (IR401), with the origin of the inferred dims.

    Return the id of the finding.
    """
    key, port = (layer.id, position), layer.outputs[position]
    shape = port.shape
    assert shape is not None
    title = f'{layer.type} "{layer.name}" output {port.id}'
    right = shape_to_declare(evidence, key, value)
    wrong: list[int] = []
    if shape.rank != value.rank:
        message = f"{title}: rank is {shape.rank} {shape}, inferred {value.rank} {value.shape}"
        wanted = str(value.shape)
    else:
        wrong = [i for i, (a, b) in enumerate(zip(shape, value.shape)) if a.meet(b) is None]
        dims = ", ".join(f"dim {i} is {shape[i]}, inferred {value.shape[i]}" for i in wrong)
        message = f"{title}: {dims}"
        wanted = ", ".join(str(value.shape[i]) for i in wrong)
        right = PartialShape(tuple(right[i] if i in wrong else dim for i, dim in enumerate(shape)))
    op = evidence.ops[layer.id]
    gives = f"{op.type}-{op.since} gives {value.shape}" if op else ""
    evidence.values[key] = value  # the trace reads it
    places = [p for p in evidence.trace.places(*key) if p.index in wrong and not p.is_element]
    origins = history(layer, {f"dim {p.index}": p for p in places})
    notes = (gives, *_describe_inputs(evidence, layer), *origins, *evidence.contest(key))
    name = _cause(evidence, layer, value.shape) if is_claim_believed else None
    if name is not None:
        return _report_attribute(evidence, "IR401", message, layer, port, name, shape, notes)
    help = f"declare {wanted}" + (f", or correct the input or attribute that leads to {wanted}" if layer.inputs else "")
    source, is_safe = evidence.model.source, _is_safe(evidence, layer, position)
    fix = None if is_claim_believed else declare_dims(source, port, right, is_safe=is_safe)
    node = wrong_dim(source, port, right)
    return evidence.report("IR401", message, layer, node, port=port.id, notes=notes, help=help, fix=fix)


def _report_attribute(
    evidence: Evidence,
    code: str,
    message: str,
    layer: Layer,
    port: Port,
    name: str,
    right: ElementType | PartialShape,
    notes: tuple[str, ...] = (),
) -> int:
    """Report the attribute ``name`` that contradicts an output port and its consumers; return the id of the finding.

    The fix sets the attribute to ``right``. It is not safe, because it changes what the model computes.
    """
    source = evidence.model.source
    node = next(iter(source.children(layer.node, "data")), layer.node)
    text = right.name if isinstance(right, ElementType) else items(right)
    help = f'write {name}="{text}", which the output port and its consumers declare'
    fix = write_attribute(source, layer, node, name, right)
    return evidence.report(code, message, layer, node, name, port=port.id, help=help, fix=fix, notes=notes)


def _cause(evidence: Evidence, layer: Layer, inferred: ElementType | PartialShape) -> str | None:
    """Return the attribute whose value equals the inferred type or shape, as the file spells it, or None."""
    op = evidence.ops[layer.id]
    for name, attribute in op.attributes.items() if op else ():
        if type(getattr(op, name)) is type(inferred) and getattr(op, name) == inferred:
            spellings = (attribute.name, *attribute.aliases)
            return next((s for s in spellings if s in layer.attributes), attribute.name)
    return None


def _is_safe(evidence: Evidence, layer: Layer, position: int) -> bool:
    """Return whether the inferred value of an output is certain enough for a safe fix."""
    return (layer.id, position) not in evidence.contested and not evidence.is_guess(layer)


# ---------------------------------------------------------------------------------------------
# notes


def _describe_inputs(evidence: Evidence, layer: Layer) -> tuple[str, ...]:
    """Return one line of text per connected input: its name, its shape or contents, and its producer."""
    op, model = evidence.ops[layer.id], evidence.model
    rows: list[tuple[str, str, str]] = []
    for position, feed in enumerate(model.feeds[layer.id]):
        if feed is None:
            continue
        producer = model.layers[feed[0]]
        value = evidence.values.get(feed)
        name = input_name(op, position) if op else f"input {position}"
        line = model.source.span(producer.node).line
        rows.append((name, _described(value) if value else "", f'line {line}, {producer.type} "{producer.name}"'))
    if not rows:
        return ()
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return tuple(f"{a:<{widths[0]}} {b:<{widths[1]}}  {c}" for a, b, c in rows)


_MAX_SHOWN_ELEMENTS: Final = 8
"""The most elements of an input whose contents a note shows instead of the shape."""


def _described(value: Value) -> str:
    """Return the shape, as ``[4]``, or the contents if they are few known integers, as ``= [1,16,50,50]``."""
    if value.data is not None and value.data.size <= _MAX_SHOWN_ELEMENTS and value.type.is_integer:
        return f"= {_numbers(value.data)}"
    return str(value.shape)


def _numbers(data: np.ndarray) -> str:
    if data.ndim == 0:
        return str(data.item())
    return "[" + ",".join(str(n) for n in data.ravel().tolist()) + "]"
