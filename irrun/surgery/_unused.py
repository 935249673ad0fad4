"""Drop layers that no output depends on."""

from __future__ import annotations

from dataclasses import replace

from irrun.api import PathLike, as_model
from irrun.model import Edge, Layer, Model
from irrun.surgery._models import rebuilt

__all__ = ["drop_unused", "used"]


def drop_unused(model: Model | PathLike) -> Model:
    """Return the model without the layers on which no output and no variable depends, also inside bodies.

    Inputs stay, because callers pass them, and so do the Parameters of bodies.
    """
    model = as_model(model)
    return rebuilt(model, *_used(model))


def used(model: Model) -> set[int]:
    """Return the ids of the layers of a model, without its bodies, on which an output or a variable depends."""
    return model.before(
        id for id, layer in model.layers.items() if layer.type.lower() in ("parameter", "result", "assign")
    )


def _used(model: Model) -> tuple[dict[int, Layer], list[Edge]]:
    """Return the layers and edges of a model that are used."""
    found = used(model)
    layers = {id: _inside(layer) for id, layer in model.layers.items() if id in found}
    return layers, [e for e in model.edges if e.from_layer in found and e.to_layer in found]


def _inside(layer: Layer) -> Layer:
    """Return a layer whose bodies have no unused layers."""
    if not layer.bodies:
        return layer
    bodies: dict[str, Model] = {}
    for tag, body in layer.bodies.items():
        layers, edges = _used(body)
        bodies[tag] = replace(body, layers=layers, edges=tuple(edges))
    return replace(layer, bodies=bodies)
