"""Put a model in the place of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from irrun.model import Edge, Layer, Model, Port, is_constant

__all__ = ["spliced"]

_ALIGNMENT: Final = 64


def spliced(model: Model, parts: Mapping[int, Model], blob: bytearray) -> tuple[dict[int, Layer], list[Edge]]:
    """Return the layers and edges of a model or body with models in the places of layers, by the ids of these.

    The Parameters of such a model stand for the inputs that an edge feeds, and its Results for the outputs. The layer
    that computes its first output takes over the id, the name and the tensor names, so that an output of the whole
    model keeps its name. The weights are appended to ``blob``.
    """
    fresh = max(model.layers, default=0) + 1
    names = {layer.name for layer in model.layers.values()}
    layers: dict[int, Layer] = {}
    moved: dict[tuple[int, int], tuple[int, int]] = {}
    """The new place of each output of a replaced layer: layer id and port id."""
    inner: list[Edge] = []
    """Edges in the models, from their own layers."""
    entries: dict[tuple[int, int], list[tuple[int, int]]] = {}
    """The inputs that read an input of a replaced layer: layer ids and port ids."""
    for id, layer in model.layers.items():
        part = parts.get(id)
        if part is None:
            layers[id] = layer
            continue
        blob += bytes(-len(blob) % _ALIGNMENT)
        start = len(blob)
        blob += b"" if part.weights is None else part.weights.data.tobytes()
        results = [part.feeds[result.id][0] for result in part.results]
        ids: dict[int, int] = {}
        for own, inside in part.layers.items():
            if inside.type not in ("Parameter", "Result"):
                ids[own] = id if results[0] is not None and own == results[0][0] else fresh
                fresh += ids[own] == fresh
        for own, number in ids.items():
            layers[number] = _placed(part.layers[own], number, layer, start, names)
        for port, feed in zip(layer.outputs, results):
            assert feed is not None
            place = ids[feed[0]], part.layers[feed[0]].outputs[feed[1]].id
            moved[id, port.id] = place
            outputs = [_declared(own, port) if own.id == place[1] else own for own in layers[place[0]].outputs]
            layers[place[0]] = replace(layers[place[0]], outputs=tuple(outputs))
        fed = {e.to_port for e in model.edges if e.to_layer == id}
        ports = [port.id for port in layer.inputs if port.id in fed]
        inputs = {parameter.id: (id, port) for parameter, port in zip(part.parameters, ports, strict=True)}
        for edge in part.edges:
            if edge.from_layer in inputs and edge.to_layer in ids:
                entries.setdefault(inputs[edge.from_layer], []).append((ids[edge.to_layer], edge.to_port))
            elif edge.to_layer in ids:
                inner.append(Edge(ids[edge.from_layer], edge.from_port, ids[edge.to_layer], edge.to_port, -1))
    edges: list[Edge] = []
    for edge in model.edges:
        start = moved.get((edge.from_layer, edge.from_port), (edge.from_layer, edge.from_port))
        end = (edge.to_layer, edge.to_port)
        ends = entries.get(end, []) if edge.to_layer in parts else [end]
        edges += [Edge(*start, *end, edge.node) for end in ends]
    return layers, [*edges, *inner]


def _placed(inside: Layer, id: int, layer: Layer, start: int, names: set[str]) -> Layer:
    """Return a layer of a model that replaces ``layer``. Constants begin ``start`` bytes later."""
    attributes = dict(inside.attributes)
    if is_constant(inside):
        attributes["offset"] = str(int(attributes["offset"]) + start)
    inputs, outputs = (tuple(replace(port, node=-1) for port in ports) for ports in (inside.inputs, inside.outputs))
    if id == layer.id:
        name, node = layer.name, layer.node
        return replace(inside, id=id, name=name, attributes=attributes, node=node, inputs=inputs, outputs=outputs)
    name, number = f"{layer.name}/{inside.name}", 1
    while name in names:
        number += 1
        name = f"{layer.name}/{inside.name}_{number}"
    names.add(name)
    return replace(inside, id=id, name=name, attributes=attributes, node=-1, inputs=inputs, outputs=outputs)


def _declared(own: Port, port: Port) -> Port:
    """Return a port that declares what the port of the replaced layer has declared."""
    return replace(port, id=own.id)
