"""If: one of two bodies, chosen by a condition.  Spec: condition/if-8."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from irrun.model import MapEntry
from irrun.opdef import Body, Op, Site, Value, op, ports, variadic
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK, PartialShape

Bodies = Mapping[str, Body]
Maps = Mapping[str, tuple[MapEntry, ...]]


@op("If", since=8, spec="condition/if-8")
class If(Op):
    """Run ``then_body`` if ``cond`` is true, and ``else_body`` if it is false.

    C1  ``cond`` has one element.
    C2  Both bodies have the same element type for each output.
    """

    inputs = ports(cond="boolean", inputs=variadic("any", least=0))
    outputs = None
    needs = ("bodies", "maps")

    def infer(self, at: Site, cond: Value, *inputs: Value, bodies: Bodies, maps: Maps) -> tuple[Value, ...]:
        at.require(cond.shape.count().fits(1), "C1", f"cond is {cond.shape}, not a single element")
        known = cond.exact
        branches = ("then", "else") if known is None else ("then",) if known.item() else ("else",)
        results = [_outputs(branch, at.outputs, (cond, *inputs), bodies, maps) for branch in branches]
        if len(results) == 1:
            return tuple(v or _unknown() for v in results[0])
        return tuple(_either(at, position, a, b) for position, (a, b) in enumerate(zip(*results)))

    def run(self, cond: np.ndarray, *inputs: np.ndarray, bodies: Bodies, maps: Maps) -> tuple[Any, ...]:
        branch = "then" if cond.item() else "else"
        entries = maps[f"{branch}_port_map"]
        outputs = sum(entry.kind == "output" for entry in entries)
        return tuple(_outputs(branch, outputs, (cond, *inputs), bodies, maps))


def _outputs(branch: str, count: int, inputs: tuple[Any, ...], bodies: Bodies, maps: Maps) -> list[Any]:
    """Return the result of a branch for each of ``count`` outputs, or None for one that its port map does not name.

    ``inputs`` are those of the layer, ``cond`` first. For Values, the results are Values, for arrays, they are arrays.
    """
    entries = maps.get(f"{branch}_port_map", ())
    inside = {e.internal: inputs[e.external] for e in entries if e.kind == "input" and e.external is not None}
    results = bodies[f"{branch}_body"](inside)
    outputs: list[Any] = [None] * count
    for entry in entries:
        if entry.kind == "output" and entry.external is not None:
            outputs[entry.external] = results[entry.internal]
    return outputs


def _unknown() -> Value:
    """Return a Value of unknown type and rank."""
    return Value(ELEMENT_TYPES["dynamic"], UNKNOWN_RANK)


def _either(at: Site, position: int, a: Value | None, b: Value | None) -> Value:
    """Return what is known of an output that either branch may produce. Refuses different element types (C2)."""
    if a is None or b is None:
        return a or b or _unknown()
    at.require(a.type is b.type, "C2", f"output {position} is {a.type} in then_body, but {b.type} in else_body")
    if a.shape.dims is None or b.shape.dims is None or a.rank != b.rank:
        return Value(a.type, UNKNOWN_RANK)
    return Value(a.type, PartialShape(tuple(x.union(y) for x, y in zip(a.shape, b.shape))))
