"""Connect the bodies of If, Loop and TensorIterator with their layer: port maps and back edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from irrun.ir.drafts import LayerDraft, Problems
from irrun.model import Layer, MapEntry

__all__ = ["CONDITION", "PURPOSES", "back_edges", "port_map", "report_gaps"]


CONDITION: Final = "execution_condition"
PURPOSES: Final = ("current_iteration", CONDITION)
"""The special roles of a Parameter or Result in the body of a Loop."""


def port_map(
    tag: str, entries: list[tuple[str, Mapping[str, str], int]], layer: LayerDraft, problems: Problems
) -> tuple[MapEntry, ...]:
    """Return the valid entries of a port map, and report the others (IR007, IR103)."""
    made: list[MapEntry] = []
    inputs, outputs, body = layer.inputs, layer.outputs, tag.replace("port_map", "body")
    by_id = {"input": {p.id: i for i, p in enumerate(inputs)}, "output": {p.id: i for i, p in enumerate(outputs)}}
    named = {attributes.get("external_port_id") for kind, attributes, _ in entries if kind == "output"} - {"-1"}
    if not named <= {str(id) for id in by_id["output"]}:
        by_id["output"] = {}  # files of 2021 number the outputs of If from 0 instead of using port ids
    what = f'an entry of <{tag}> of "{layer.name}"'
    for kind, attributes, node in entries:
        external = problems.integer(attributes, "external_port_id", what, node, layer.name)
        internal = problems.integer(attributes, "internal_layer_id", what, node, layer.name)
        if external is None or internal is None:
            continue
        wanted = "Parameter" if kind == "input" else "Result"
        if not _is_in_body(layer, body, internal, wanted, node, "internal_layer_id", problems):
            continue
        ports = inputs if kind == "input" else outputs
        position = by_id[kind].get(external, external)
        if position >= len(ports):
            message = f'<{tag}> names {kind} port {external} of "{layer.name}", which does not exist'
            problems.report("IR103", message, node, "external_port_id", layer=layer.name)
            continue
        slicing = {
            name: number
            for name in ("axis", "start", "end", "stride", "part_size")
            if name in attributes and (number := problems.integer(attributes, name, what, node)) is not None
        }
        purpose = attributes.get("purpose") or ""
        if purpose and purpose not in PURPOSES:
            message = f'an entry of <{tag}> of "{layer.name}" has purpose="{purpose}", which is unknown'
            help = f"write {' or '.join(PURPOSES)}, or remove the attribute"
            problems.report("IR203", message, node, "purpose", layer=layer.name, help=help)
        made.append(MapEntry(kind, None if external < 0 else position, internal, purpose=purpose, **slicing))
    return tuple(made)


def back_edges(layer: LayerDraft, problems: Problems) -> tuple[tuple[int, int], ...]:
    """Return the valid back edges of a layer as ids of a Result and a Parameter, and report the others (IR103)."""
    return tuple(
        [
            (start, end)
            for start, end, node in layer.back_edges
            if _is_in_body(layer, "body", start, "Result", node, "from-layer", problems)
            and _is_in_body(layer, "body", end, "Parameter", node, "to-layer", problems)
        ]
    )


def _is_in_body(
    layer: LayerDraft, tag: str, id: int, wanted: str, node: int, attribute: str, problems: Problems
) -> bool:
    """Return whether layer ``id`` of a body has the type ``wanted``, and report it (IR103) if not.

    Return True if the layer has no such body: that problem is not reported here.
    """
    body = layer.bodies.get(tag)
    inner = body.layers.get(id) if body else None
    if body is None or (inner is not None and inner.type.lower() == wanted.lower()):
        return True
    is_what = f'is the {inner.type} "{inner.name}"' if inner else "does not exist"
    message = f'layer {id} of the <{tag}> of "{layer.name}" should be a {wanted}, but {is_what}'
    problems.report("IR103", message, node, attribute, layer=layer.name)
    return False


def report_gaps(layer: Layer, tag: str, draft: LayerDraft, problems: Problems) -> None:
    """Report gaps in a port map: a Parameter that no entry feeds or an output that no entry produces (IR104).

    Report also a Loop without a condition (IR112). ``tag`` is the name of the element of the body.
    """
    map_tag = tag.replace("body", "port_map")
    entries = layer.maps.get(map_tag, ())
    if len(entries) < len(draft.maps.get(map_tag, ())):
        return  # the missing entries are invalid and already reported
    counts = tag == "body"  # a Loop may write its iteration count into a Parameter
    fed = {
        entry.internal
        for entry in entries
        if entry.kind == "input" and (entry.external is not None or (counts and entry.purpose == "current_iteration"))
    }
    produced = {entry.external for entry in entries if entry.kind == "output"}
    for parameter in draft.bodies[tag].parameters:
        if parameter.id not in fed:
            message = f'no entry of <{map_tag}> of "{layer.name}" feeds "{parameter.name}" of its <{tag}>'
            problems.report("IR104", message, parameter.node, layer=parameter.name, help="add the entry")
    if layer.type.lower() == "loop" and all(entry.purpose != CONDITION for entry in entries if entry.kind == "output"):
        message = f'Loop "{layer.name}": no output of <{map_tag}> has the purpose {CONDITION}'
        problems.report("IR112", message, layer.node, layer=layer.name, help="add the entry")
    for position, port in enumerate(layer.outputs):
        if position not in produced:
            message = f'no entry of <{map_tag}> produces output port {port.id} of "{layer.name}"'
            help = "add the entry, or remove the port"
            problems.report("IR104", message, port.node, layer=layer.name, port=port.id, help=help)
