"""Pair the layers of both forms of a model by the graphs alone: exporters name layers by numbers, anew in each file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from irrun.debug.difference import match
from irrun.model import Layer, Model, is_constant

__all__ = ["PAIRINGS", "root", "twins"]

_PASSING = ("Reshape", "Convert", "Unsqueeze", "Squeeze", "Transpose")


PAIRINGS: Final = ("contents", "places", "names")
"""What pairs layers. Contents of constants mislead if weights are exchanged, and names if exporters count them up."""


def twins(paged: Model, stateful: Model, by: str = "contents") -> Mapping[int, int]:
    """Return the id of the layer of the stateful model, by the id of its counterpart in the paged one.

    Layers are paired by types, attributes, producers and consumers, inputs and outputs also by their names. ``by`` is
    one of ``PAIRINGS``: weights, or the names of all layers, count as well. A pair is no proof: layers that these do
    not tell apart may be paired wrongly.
    """
    a, b = (paged, stateful) if by == "names" else (_nameless(paged), _nameless(stateful))
    return match(*(a, b) if by == "contents" else (replace(a, weights=None), replace(b, weights=None))).to_b


def _nameless(model: Model) -> Model:
    layers: dict[int, Layer] = {}
    for id, layer in model.layers.items():
        if layer.type not in ("Parameter", "Result"):
            outputs = tuple(replace(port, names=()) for port in layer.outputs)
            layer = replace(layer, name="", outputs=outputs)
        layers[id] = layer
    return replace(model, layers=layers)


def root(model: Model, feed: tuple[int, int] | None) -> Layer | None:
    """Return the Const that an output is, perhaps of another type or shape. None if it is no constant."""
    layer = None if feed is None else model.layers[feed[0]]
    while layer is not None and layer.type in _PASSING:
        feed = model.feeds[layer.id][0]
        layer = None if feed is None else model.layers[feed[0]]
    return layer if layer is not None and is_constant(layer) else None
