"""A stand-alone model of some of the layers of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import networkx as nx

from irrun.diagnostics import ModelError, diagnostic
from irrun.inference.bind import bind_all
from irrun.inference.propagate import Values, declared, propagate
from irrun.ir.parse import parse
from irrun.ir.write import is_constant, to_xml
from irrun.lookup import find_layers, no_such_layer
from irrun.model import Edge, Layer, Model, Port
from irrun.opdef import Value
from irrun.source import Source
from irrun.types import ELEMENT_TYPES, PartialShape

__all__ = ["extract"]


def extract(model: Model, begin: str | Sequence[str] = (), end: str | Sequence[str] = ()) -> Model:
    """The layers on all ways from the layers ``begin`` to the layers ``end``, both included, as a model.

    Names or globs of layers; by default from the inputs and to the outputs. What comes from outside and is not
    constant becomes a Parameter, called as the layer that gave it; each output of ``end`` gets a Result. The model
    shares the weights of the other: ``save_model(…, compact=True)`` writes its own part only. Raises ModelError
    where a layer does not exist or no way leads between them.
    """
    last = _named(model, end)
    kept = _between(model, _named(model, begin), last)
    ends = [id for ids in last for id in ids if id in kept]
    constant = _constants(model)
    values = _infer(model)
    needed = [feed for id in _sorted(model, kept) for feed in model.feeds[id] if feed and feed[0] not in kept]
    for producer, _ in needed:
        if producer in constant:
            kept |= {producer, *nx.ancestors(model.graph, producer)}
    cuts = dict.fromkeys(feed for feed in needed if feed[0] not in kept)
    return _assemble(model, kept, list(cuts), ends, values)


def _named(model: Model, given: str | Sequence[str]) -> list[list[int]]:
    """The layers that each name or glob means."""
    found: list[list[int]] = []
    for pattern in (given,) if isinstance(given, str) else given:
        layers = find_layers(model, pattern)
        if not layers:
            raise ModelError(no_such_layer(model, pattern))
        found.append([layer.id for layer in layers])
    return found


def _between(model: Model, begin: Sequence[list[int]], end: Sequence[list[int]]) -> set[int]:
    """The layers on the ways from ``begin`` to ``end``. Raises ModelError where a name means none that lies on one."""
    graph = model.graph
    sources = [id for ids in begin for id in ids] or [id for id, layer in model.layers.items() if not layer.inputs]
    sinks = [id for ids in end for id in ids] or [id for id in model.layers if not graph.out_degree(id)]
    after = set(sources).union(*(nx.descendants(graph, id) for id in sources))
    before = set(sinks).union(*(nx.ancestors(graph, id) for id in sinks))
    for groups, reached, said, where in (
        (begin, before, "leads to", "ends"),
        (end, after, "follows from", "begins"),
    ):
        for ids in groups:
            if reached.isdisjoint(ids):
                layer = model.layers[ids[0]]
                message = f'{layer.type} "{layer.name}" {said} no layer where the part {where}'
                raise ModelError(diagnostic("IR606", message, source=model.source, node=layer.node, layer=layer.name))
    kept = after & before
    held = {model.layers[id].attributes.get("variable_id") for id in kept if model.layers[id].type == "ReadValue"}
    return kept | {
        id
        for id, layer in model.layers.items()
        if layer.type == "Assign" and layer.attributes.get("variable_id") in held and graph.pred[id].keys() <= kept
    }


def _constants(model: Model) -> set[int]:
    """The layers that depend on nothing but constants."""
    found: set[int] = set()
    for id in model.order:
        feeds = model.feeds[id]
        if is_constant(model.layers[id]) or (feeds and all(f is not None and f[0] in found for f in feeds)):
            found.add(id)
    return found


def _sorted(model: Model, ids: Iterable[int]) -> list[int]:
    position = {id: number for number, id in enumerate(model.layers)}
    return sorted(ids, key=position.__getitem__)


def _infer(model: Model) -> Values:
    """What is known of every output, and what is declared where nothing can be inferred."""

    def settle(layer: Layer, found: tuple[Value, ...] | Exception) -> Sequence[Value]:
        said = declared(layer)
        if isinstance(found, Exception) or len(found) != len(said):
            return said
        return [_best(value, claim) for value, claim in zip(found, said)]

    values: Values = {}
    propagate(model, {layer.id: op for layer, op, _ in bind_all(model)}, settle, values, {})
    return values


def _best(value: Value, claim: Value) -> Value:
    element_type = claim.type if value.type.kind == "dynamic" else value.type
    # a port without a dim is a scalar or says nothing
    shape = value.shape.meet(claim.shape) if claim.shape.dims else value.shape
    return Value(element_type, shape or value.shape, value.data if shape else None)


def _assemble(
    model: Model, kept: set[int], cuts: Sequence[tuple[int, int]], ends: Sequence[int], values: Values
) -> Model:
    layers: dict[int, Layer] = {}
    edges = [e for e in model.edges if e.from_layer in kept and e.to_layer in kept]
    fresh = max(model.layers) + 1
    place: dict[tuple[int, int], int] = {}
    for cut in cuts:
        producer = model.layers[cut[0]]
        place[cut] = fresh
        layers[fresh] = _parameter(fresh, model.output_name(*cut), producer.outputs[cut[1]], values.get(cut))
        fresh += 1
    for id in _sorted(model, kept):
        layers[id] = model.layers[id]
        for port, feed in zip(model.layers[id].inputs, model.feeds[id]):
            if feed in place:
                edges.append(Edge(place[feed], 0, id, port.id, -1))
    read = {feed for feeds in model.feeds.values() for feed in feeds}
    for id in dict.fromkeys(ends):
        ports = list(enumerate(model.layers[id].outputs))
        for position, port in [p for p in ports if (id, p[0]) in read] or ports:  # not what nobody reads
            name = f"{model.output_name(id, position)}/result"
            layers[fresh] = Layer(
                fresh, name, "Result", "opset1", {}, (replace(port, id=0, names=(), node=-1),), (), -1,
                output_names=port.names[:1] or (model.output_name(id, position),),
            )  # fmt: skip
            edges.append(Edge(id, port.id, fresh, 0, -1))
            fresh += 1
    cut = replace(model, layers=layers, edges=tuple(edges))
    parsed = parse(Source(f"part of {model.source.path}", to_xml(cut)), model.weights)
    if errors := [p for p in parsed.problems if p.severity == "error"]:
        raise ModelError(errors)
    return parsed.model


def _parameter(id: int, name: str, port: Port, value: Value | None) -> Layer:
    element_type = (value and value.type) or port.type or ELEMENT_TYPES["dynamic"]
    shape = value.shape if value else port.shape or PartialShape(None)
    text = "..." if shape.dims is None else ",".join(map(str, shape))
    attributes = {"shape": text, "element_type": element_type.name}
    return Layer(id, name, "Parameter", "opset1", attributes, (), (replace(port, id=0, node=-1),), -1)
