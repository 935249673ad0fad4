"""The names of inner values: those of layers, with the path through the bodies that contain them."""

from __future__ import annotations

from collections.abc import Iterator

from irrun.model import Layer, Model, is_constant

__all__ = ["computing_layers"]


def computing_layers(model: Model, prefix: str = "") -> Iterator[tuple[str, Model, Layer]]:
    """Yield the layers that compute values, in the order of a run: the name in a ``Place``, the model, and the layer.

    The model is the body that contains the layer, or ``model`` itself. The layers of a body come before its loop.
    """
    for id in model.order:
        layer, name = model.layers[id], prefix + model.unique_names[id]
        for body in layer.bodies.values():
            yield from computing_layers(body, f"{name}/")
        if not is_constant(layer) and layer.type.lower() not in ("parameter", "result"):
            yield name, model, layer
