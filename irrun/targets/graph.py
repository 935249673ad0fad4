"""On which layers of a model a layer depends: inputs of the model, variables, and constants of few bits."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from irrun.model import Layer, Model

__all__ = ["behind", "compressed", "fed_by_inputs", "follower", "reached", "reads_its_variable"]

_USUAL_BITS: Final = 8
"""The fewest bits of an element type that each release converts. Weights may have fewer."""


def reads_its_variable(model: Model, assign: Layer) -> bool:
    """Return whether an Assign depends on a ReadValue of its variable."""
    before = [model.layers[id] for id in model.before([assign.id])]
    ids = {layer.attributes.get("variable_id") for layer in before if layer.type.lower() == "readvalue"}
    return assign.attributes.get("variable_id") in ids


def reached(model: Model) -> list[Layer]:
    """Return the layers on which a Result or Assign depends, and all Parameters: OpenVINO creates no other."""
    ends = [id for id, layer in model.layers.items() if layer.type.lower() in ("result", "assign", "parameter")]
    before = model.before(ends)
    return [layer for id, layer in model.layers.items() if id in before]


def fed_by_inputs(model: Model) -> set[int]:
    """Return the ids of the layers that depend on a Parameter or a variable. OpenVINO folds the others."""
    inputs = [id for id, layer in model.layers.items() if layer.type.lower() in ("parameter", "readvalue")]
    return behind(model, inputs).union(inputs)


def behind(model: Model, starts: Iterable[int]) -> set[int]:
    """Return the ids of the layers that depend on others."""
    waiting = list(starts)
    reached: set[int] = set()
    while waiting:
        for id in model.consumers.get(waiting.pop(), ()):
            if id not in reached:
                reached.add(id)
                waiting.append(id)
    return reached


def compressed(model: Model, fed: Container[int]) -> dict[int, frozenset[str]]:
    """Return the types of fewer than 8 bits from which constants are converted, for the layers that depend on none.

    A type has the words ``with zero points`` too if a constant of such a type is subtracted. ``fed`` are the layers
    that depend on inputs of the model.
    """
    found: dict[int, frozenset[str]] = {}
    for id in model.order:
        layer, feeds = model.layers[id], [feed[0] for feed in model.feeds[id] if feed is not None]
        if id in fed:
            continue
        types = {type for feed in feeds for type in found.get(feed, ())}
        if layer.type == "Convert" and feeds and model.layers[feeds[0]].type == "Const":
            port = next(iter(model.layers[feeds[0]].outputs), None)
            if port is not None and port.type is not None and port.type.bits < _USUAL_BITS:
                types.add(port.type.name)
        if layer.type == "Subtract" and all(found.get(feed) for feed in feeds):
            types.update([f"{type} with zero points" for type in types])
        found[id] = frozenset(types)
    return found


def follower(model: Model, id: int) -> str:
    """Return the type of the only layer that reads a layer, behind the bias that an Add adds; empty if several do."""
    for _ in range(2):
        readers = model.consumers.get(id, ())
        if len(readers) != 1:
            return ""
        id = readers[0]
        if model.layers[id].type != "Add":
            break
    return model.layers[id].type
