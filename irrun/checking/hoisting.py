"""Move small constants out of bodies: an input of the layer with the body passes them in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from irrun.model import Edge, Layer, MapEntry, Model, Port, is_constant
from irrun.types import ElementType, PartialShape

__all__ = ["MOST_ELEMENTS", "Hoisted", "Place", "hoisted"]

Place = tuple[tuple[tuple[int, str], ...], int]
"""A layer in a body: the layers with bodies around it, each with the element of the body, and its id."""

MOST_ELEMENTS: Final = 16
"""The most elements of a constant that is moved: shapes, sizes and bounds have few."""


@dataclass(frozen=True, slots=True)
class Hoisted:
    """A model whose bodies read constants from outside, and the place that each of these had, by its new id."""

    model: Model
    places: Mapping[int, Place]


def hoisted(model: Model, chosen: Collection[Place] | None = None) -> Hoisted:
    """Return the model with small constants of integers, or those at ``chosen``, outside of all bodies.

    The id of the constant in the body becomes that of a Parameter. Other layers keep their ids.
    """
    return _hoisted(model, chosen, ())


def _hoisted(model: Model, chosen: Collection[Place] | None, path: tuple[tuple[int, str], ...]) -> Hoisted:
    layers, feeds, edges = dict(model.layers), dict(model.feeds), list(model.edges)
    places: dict[int, Place] = {}
    for id, layer in model.layers.items():
        for tag, body in layer.bodies.items():
            around = (*path, (id, tag))
            inner = _hoisted(body, chosen, around)
            inside = dict(inner.model.layers)
            for const in inner.model.layers.values():
                place = inner.places.get(const.id, (around, const.id))
                if not _is_small(const) or (chosen is not None and place not in chosen):
                    continue
                outside = max(layers) + 1
                places[outside] = place
                layers[outside] = replace(const, id=outside, name=f"{layer.name}/{const.name}", node=-1)
                feeds[outside] = ()
                inside[const.id] = _parameter(const)
                user = layers[id]
                port = Port(_NEW + outside, *_tensor(const), (), -1)
                tag_of_map = tag.replace("body", "port_map")
                entries = (*user.maps.get(tag_of_map, ()), MapEntry("input", len(user.inputs), const.id))
                layers[id] = replace(user, inputs=(*user.inputs, port), maps={**user.maps, tag_of_map: entries})
                feeds[id] = (*feeds[id], (outside, 0))
                edges.append(Edge(outside, const.outputs[0].id, id, port.id, -1))
            if len(inside) != len(body.layers) or any(inside[key] is not body.layers.get(key) for key in inside):
                inner_body = replace(inner.model, layers=inside)
                layers[id] = replace(layers[id], bodies={**layers[id].bodies, tag: inner_body})
    if not places:
        return Hoisted(model, places)
    for id, layer in layers.items():
        if layer.bodies and layer is not model.layers[id]:
            layers[id], edges = _numbered(layer, edges)
    return Hoisted(replace(model, layers=layers, feeds=feeds, edges=tuple(edges)), places)


_NEW: Final = 1 << 20
"""Above the ids of the ports of a file: new inputs have ids from here on until all ports are numbered anew."""


def _numbered(layer: Layer, edges: Sequence[Edge]) -> tuple[Layer, list[Edge]]:
    """Return a layer whose ports are numbered from 0, inputs first, and the edges: OpenVINO takes ids for positions."""
    count = len(layer.inputs)
    inputs = {port.id: at for at, port in enumerate(layer.inputs)}
    outputs = {port.id: count + at for at, port in enumerate(layer.outputs)}
    numbered = replace(
        layer,
        inputs=tuple(replace(port, id=inputs[port.id]) for port in layer.inputs),
        outputs=tuple(replace(port, id=outputs[port.id]) for port in layer.outputs),
    )
    moved = [e if e.to_layer != layer.id else replace(e, to_port=inputs[e.to_port]) for e in edges]
    return numbered, [e if e.from_layer != layer.id else replace(e, from_port=outputs[e.from_port]) for e in moved]


def _is_small(layer: Layer) -> bool:
    """Return whether a layer is a constant of a few integers of 32 or 64 bits."""
    if not is_constant(layer) or len(layer.outputs) != 1:
        return False
    type, shape = _tensor(layer)
    count = None if shape is None else shape.count().value
    return type is not None and type.is_integer and type.bits >= 32 and (count or 1) <= MOST_ELEMENTS


def _tensor(layer: Layer) -> tuple[ElementType | None, PartialShape | None]:
    return layer.outputs[0].type, layer.outputs[0].shape


def _parameter(const: Layer) -> Layer:
    """Return the Parameter that takes the place of a constant."""
    attributes = {"shape": const.attributes.get("shape", ""), "element_type": str(const.outputs[0].type)}
    return replace(const, type="Parameter", version="opset1", attributes=attributes, node=-1)
