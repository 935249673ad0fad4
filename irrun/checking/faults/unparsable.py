"""Handle ports whose precision or dims cannot be parsed: reading reports them, and the inferred values fix them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

from irrun.base.edits import Fix
from irrun.base.source import Span
from irrun.checking.faults.evidence import Evidence
from irrun.checking.faults.outputs import shape_to_declare
from irrun.checking.faults.suggest import declare_dims, declare_type
from irrun.model import Layer, Port

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
    spans = cache(partial(_spans, evidence))  # a port may have many wrong dims
    unparsable = [
        UnparsablePort(number, layer, position, is_input)
        for number in broken
        for layer in layers.get(evidence.problems[number].layer, ())
        for is_input, ports in ((True, layer.inputs), (False, layer.outputs))
        for position, port in enumerate(ports)
        if port.id == evidence.problems[number].port
        and evidence.problems[number].span in spans(port.node, evidence.problems[number].code)
    ]
    evidence.unparsable.update(_port(broken_port).node for broken_port in unparsable)
    return unparsable


def fix_unparsable(evidence: Evidence, ports: Sequence[UnparsablePort]) -> None:
    """Add to the problem of each port the fix that declares the inferred type or shape, where it is known."""
    fixes: dict[tuple[int, str], Fix | None] = {}  # by node and code: all wrong dims of a port share one fix
    for unparsable in ports:
        code, port = evidence.problems[unparsable.problem].code, _port(unparsable)
        if (port.node, code) not in fixes:
            fixes[port.node, code] = _fix(evidence, unparsable, code)
        if (fix := fixes[port.node, code]) is not None:
            evidence.problem_fixes[unparsable.problem] = fix


def _fix(evidence: Evidence, unparsable: UnparsablePort, code: str) -> Fix | None:
    """Return the fix that declares the inferred type (IR305) or shape (else) of a port; None if it is not known."""
    source, layer, port = evidence.model.source, unparsable.layer, _port(unparsable)
    position = unparsable.position
    key = evidence.model.feeds[layer.id][position] if unparsable.is_input else (layer.id, position)
    value = evidence.values.get(key) if key else None
    if key is None or value is None:
        return None
    if code != "IR305":
        return declare_dims(source, port, shape_to_declare(evidence, key, value))
    return None if value.type.kind == "dynamic" else declare_type(source, port, value.type)


def _port(unparsable: UnparsablePort) -> Port:
    ports = unparsable.layer.inputs if unparsable.is_input else unparsable.layer.outputs
    return ports[unparsable.position]


def _spans(evidence: Evidence, node: int, code: str) -> set[Span]:
    """Return the places at which reading can report ``code`` (IR305, IR404 or IR407) for the port ``node``."""
    source = evidence.model.source
    if code == "IR305":
        return {source.span(node, "precision")}
    return {source.span(dim) for dim in source.children(node, "dim")}
