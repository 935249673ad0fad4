"""Handle ports whose precision or dims cannot be parsed: reading reports them, and the inferred values fix them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from irrun.checking.faults.evidence import Evidence
from irrun.checking.faults.outputs import due
from irrun.checking.faults.suggest import declare_dims, declare_type
from irrun.model import Layer, Port
from irrun.source import Span

__all__ = ["UnparsablePort", "fix_unparsable", "unparsable_ports"]


class UnparsablePort(NamedTuple):
    """A port that cannot be parsed: its problem (by position), its layer, and its position among inputs or outputs."""

    problem: int
    layer: Layer
    position: int
    is_input: bool


def unparsable_ports(evidence: Evidence) -> list[UnparsablePort]:
    """Return the ports whose precision or dims cannot be parsed, and record their nodes in ``unparsable``."""
    broken = [
        number
        for number, problem in enumerate(evidence.problems)
        if problem.code in ("IR305", "IR404", "IR407") and problem.port is not None
    ]
    layers: dict[str | None, list[Layer]] = {}
    for layer in evidence.model.layers.values() if broken else ():
        layers.setdefault(layer.name, []).append(layer)
    unparsable = [
        UnparsablePort(number, layer, position, is_input)
        for number in broken
        for layer in layers.get(evidence.problems[number].layer, ())
        for is_input, ports in ((True, layer.inputs), (False, layer.outputs))
        for position, port in enumerate(ports)
        if port.id == evidence.problems[number].port
        and evidence.problems[number].span in _spans(evidence, port, evidence.problems[number].code)
    ]
    evidence.unparsable.update(_port(broken_port).node for broken_port in unparsable)
    return unparsable


def fix_unparsable(evidence: Evidence, ports: Sequence[UnparsablePort]) -> None:
    """Add to the problem of each port the fix that declares the inferred type or shape, where it is known."""
    source = evidence.model.source
    for unparsable in ports:
        number, layer, position, is_input = unparsable
        key = evidence.model.feeds[layer.id][position] if is_input else (layer.id, position)
        value = evidence.values.get(key) if key else None
        if key is None or value is None:
            continue
        port, fix = _port(unparsable), None
        if evidence.problems[number].code != "IR305":
            fix = declare_dims(source, port, due(evidence, key, value))
        elif value.type.kind != "dynamic":
            fix = declare_type(source, port, value.type)
        if fix is not None:
            evidence.problem_fixes[number] = fix


def _port(unparsable: UnparsablePort) -> Port:
    ports = unparsable.layer.inputs if unparsable.is_input else unparsable.layer.outputs
    return ports[unparsable.position]


def _spans(evidence: Evidence, port: Port, code: str) -> list[Span]:
    """Return the places at which reading can report ``code`` (IR305, IR404 or IR407) for a port."""
    source = evidence.model.source
    if code == "IR305":
        return [source.span(port.node, "precision")]
    return [source.span(node) for node in source.children(port.node, "dim")]
