"""Count the layers that a finding affects, and build the fix that corrects their declarations as well."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from irrun.base.edits import Edits, Fix
from irrun.base.text import counted
from irrun.checking.faults.evidence import Consequence, Evidence, Key
from irrun.checking.faults.suggest import declarable, declare_value, fix
from irrun.inference.layer import infer
from irrun.inference.propagate import needed, site
from irrun.model import Layer
from irrun.opdef import Value

__all__ = ["count_consequences"]

_MAX_INFERRED_LAYERS: Final = 20_000
"""The most layers inferred again to count consequences, over all findings of a model. It bounds the time of a check."""

Changes = dict[Key, Value | None]
"""The new value of each output that would change; None where it cannot be computed."""


def count_consequences(evidence: Evidence) -> None:
    """Add to each finding in ``consequences`` the number of later layers that it affects.

    Add a fix that also corrects the declarations of these layers. It is the alternative to the fix of an attribute.
    """
    if evidence.model.is_fragment:  # its layer feeds only the Results that reading has added
        return
    if not evidence.consequences:
        return
    rank = {id: number for number, id in enumerate(evidence.model.order)}
    steps_left = _MAX_INFERRED_LAYERS
    for consequence in evidence.consequences:
        changes, steps = _changes_after(evidence, consequence, rank, steps_left)
        steps_left -= steps
        if steps_left <= 0:
            return
        affected = {id for id, _ in changes}
        affected |= {layer.id for key in changes for layer, _ in evidence.consumers.get(key, ())}
        count = sum(id != consequence.layer.id and _is_changed(evidence, id, changes) for id in affected)
        finding = evidence.findings[consequence.finding]
        if count:
            finding = replace(finding, notes=(*finding.notes, f"also affects {counted(count, 'layer')} after it"))
        if consequence.outputs:
            declaring = _declare_changes(evidence, consequence, changes, count)
            finding = replace(finding, fix=replace(finding.fix, otherwise=declaring) if finding.fix else declaring)
        evidence.findings[consequence.finding] = finding


def _is_changed(evidence: Evidence, id: int, changes: Changes) -> bool:
    """Return whether ``changes`` holds an output of the layer, or the layer has no outputs."""
    outputs = evidence.model.layers[id].outputs
    return not outputs or any((id, position) in changes for position in range(len(outputs)))


def _declare_changes(evidence: Evidence, consequence: Consequence, changes: Changes, count: int) -> Fix | None:
    """Return the fix that declares the values in ``changes``, or None where one of them cannot be declared.

    The fix is not safe where an attribute may be wrong instead of the declarations, or where the inferred values follow
    from a contested input. ``count`` is the number of affected layers.
    """
    source, layer = evidence.model.source, consequence.layer
    edits: Edits = ()
    for (id, position), value in changes.items():
        if value is None or value.rank is None:
            return None
        shape = declarable(value.shape)
        consumers = evidence.consumers.get((id, position), ())
        for port in (evidence.model.layers[id].outputs[position], *(l.inputs[p] for l, p in consumers)):
            written = declare_value(source, port, value.type, shape)
            if written is None:
                return None
            edits += written
    code = evidence.findings[consequence.finding].code
    is_safe = code != "IR402" and not layer.attributes and not evidence.is_guess(layer)
    later = f" here and in {counted(count, 'layer')} after it" if count else ""
    return fix(f"declare the inferred values{later}", edits, is_safe=is_safe)


def _changes_after(
    evidence: Evidence, consequence: Consequence, rank: dict[int, int], most: int
) -> tuple[Changes, int]:
    """Return what would change if the layer produced the outputs of ``consequence``, and the number of layers inferred.

    The changes include the outputs of the layer itself. If ``consequence`` has no outputs, none of these can be
    computed. ``rank`` is the position of each layer in topological order. At most ``most`` layers are inferred.
    """
    layer = consequence.layer
    changes: Changes = dict(consequence.outputs)
    if not changes:
        changes = {(layer.id, position): None for position in range(len(layer.outputs))}
    waiting: list[tuple[int, int]] = []
    seen: set[int] = set()

    def spread(key: Key) -> None:
        for consumer, _ in evidence.consumers.get(key, ()):
            if consumer.id not in seen and consumer.id in rank:
                seen.add(consumer.id)
                heapq.heappush(waiting, (rank[consumer.id], consumer.id))

    for key in changes:
        spread(key)
    steps = 0
    while waiting and steps < most:
        steps += 1
        consumer = evidence.model.layers[heapq.heappop(waiting)[1]]
        outputs = _infer_with(evidence, consumer, changes)
        changed = {
            (consumer.id, position): value
            for position, value in enumerate(outputs)
            if value is None or not _is_same(value, evidence.values[consumer.id, position])
        }
        changes.update(changed)
        for key in changed:
            spread(key)
    return changes, steps


def _infer_with(evidence: Evidence, layer: Layer, changes: Changes) -> Sequence[Value | None]:
    """Infer a layer whose inputs have the values in ``changes``; an output that cannot be computed is None."""
    op, feeds = evidence.ops[layer.id], evidence.model.feeds[layer.id]
    nothing = [None] * len(layer.outputs)
    if op is None or any(feed in changes and changes[feed] is None for feed in feeds if feed):
        return nothing
    inputs = [None if feed is None else changes.get(feed) or evidence.values.get(feed) for feed in feeds]
    try:
        outputs = infer(op, site(layer), inputs, needed(op, evidence.model, layer))
    except Exception:  # refused or failed: the layer has no outputs
        return nothing
    return outputs[: len(layer.outputs)]


def _is_same(a: Value, b: Value) -> bool:
    return a.type is b.type and a.shape == b.shape
