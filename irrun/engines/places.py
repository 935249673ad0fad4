"""The names of inner values: those of layers, with the path through the bodies that contain them."""

from __future__ import annotations

from collections.abc import Iterator

from irrun.model import Layer, Model, is_constant

__all__ = ["body_inputs", "computing_layers"]


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


def body_inputs(model: Model, prefix: str = "") -> Iterator[tuple[str, Layer, Layer, int]]:
    """Yield the inputs of bodies that a layer reads: the name in a ``Place``, the Parameter, its reader, the position.

    An input has several readers, of which this gives the first in the order of a run, and the position of its input.
    """
    for id in model.order:
        for body in model.layers[id].bodies.values():
            inside = f"{prefix}{model.unique_names[id]}/"
            yield from body_inputs(body, inside)
            seen: set[int] = set()
            for reader in body.order:
                for position, feed in enumerate(body.feeds[reader]):
                    parameter = None if feed is None else body.layers[feed[0]]
                    is_read = body.layers[reader].type.lower() != "result"
                    if parameter and is_read and parameter.type.lower() == "parameter" and parameter.id not in seen:
                        seen.add(parameter.id)
                        yield inside + body.unique_names[parameter.id], parameter, body.layers[reader], position
