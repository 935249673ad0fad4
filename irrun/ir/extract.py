"""Cut a part out of a model, as a model of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from irrun.base.source import Source
from irrun.diagnostics import ModelError, diagnostic
from irrun.inference.propagate import Values
from irrun.inference.settled import settled
from irrun.ir.parse import parse
from irrun.ir.write import is_constant, to_xml
from irrun.model import Edge, Layer, Model, Port
from irrun.model.lookup import find_layers, no_such_layer
from irrun.opdef import Value, resolve
from irrun.types import ELEMENT_TYPES, PartialShape

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["constant_layers", "cut", "extract"]


def extract(model: Model, begin: str | Sequence[str] = (), end: str | Sequence[str] = ()) -> Model:
    """Return the part of a model that ``irrun.extract`` describes. Raises ModelError (IR606)."""
    last = _named(model, end)
    kept = _between(model, _named(model, begin), last)
    ends = dict.fromkeys(id for ids in last for id in ids if id in kept)
    outputs: list[tuple[int, int]] = []
    for id in ends:
        every = [(id, position) for position in range(len(model.layers[id].outputs))]
        outputs += [output for output in every if output in model.readers] or every
    return cut(model, kept, outputs)


def cut(
    model: Model, layers: Collection[int], outputs: Sequence[tuple[int, int]], values: Values | None = None
) -> Model:
    """Return a model of some layers, given by id, whose outputs are ``outputs``: ids of layers and positions.

    Constant values that enter are included with the layers that compute them. Any other value that enters becomes an
    input, named after the layer that produced it. The model shares the weights of ``model``. ``values`` are those of
    ``settled``, for a caller that cuts a model more than once.
    """
    kept, constants = set(layers), constant_layers(model)
    needed = [feed for id in _sorted(model, kept) for feed in model.feeds[id] if feed and feed[0] not in kept]
    kept |= _reached(model.links.reverse(copy=False), (producer for producer, _ in needed if producer in constants))
    inputs = dict.fromkeys(feed for feed in needed if feed[0] not in kept)
    return _assemble(model, kept, list(inputs), outputs, settled(model) if values is None else values)


def _named(model: Model, given: str | Sequence[str]) -> list[list[int]]:
    """Return, for each name or glob, the ids of its layers. Raises ModelError (IR606) if there are none."""
    ids: list[list[int]] = []
    for pattern in (given,) if isinstance(given, str) else given:
        layers = find_layers(model, pattern)
        if not layers:
            raise ModelError(no_such_layer(model, pattern))
        ids.append([layer.id for layer in layers])
    return ids


def _between(model: Model, begin: Sequence[list[int]], end: Sequence[list[int]]) -> set[int]:
    """Return the ids of the layers on the paths from ``begin`` to ``end``.

    An Assign is included if the layers that feed it and a ReadValue of its variable are. Raises ModelError (IR606) if
    no layer of one of the names lies on a path.
    """
    graph = model.links
    sources = [id for ids in begin for id in ids] or [id for id, layer in model.layers.items() if not layer.inputs]
    sinks = [id for ids in end for id in ids] or [id for id in model.layers if not graph.out_degree(id)]
    after, before = _reached(graph, sources), _reached(graph.reverse(copy=False), sinks)
    for groups, reached, direction, where in (
        (begin, before, "from", "to a layer where the part ends"),
        (end, after, "to", "from a layer where the part begins"),
    ):
        for ids in groups:
            if reached.isdisjoint(ids):
                layer = model.layers[ids[0]]
                message = f'no path leads {direction} {layer.type} "{layer.name}" {where}'
                raise ModelError(diagnostic("IR606", message, source=model.source, node=layer.node, layer=layer.name))
    kept = after & before
    variables = {model.layers[id].attributes.get("variable_id") for id in kept if model.layers[id].type == "ReadValue"}
    return kept | {
        id
        for id, layer in model.layers.items()
        if layer.type == "Assign" and layer.attributes.get("variable_id") in variables and graph.pred[id].keys() <= kept
    }


def _reached(graph: nx.MultiDiGraph, ids: Iterable[int]) -> set[int]:
    """Return the layers ``ids`` and all layers to which the edges of ``graph`` lead from them."""
    import networkx as nx  # imported here because the import takes 0.1 s

    return set().union(*nx.bfs_layers(graph, ids))


def constant_layers(model: Model) -> set[int]:
    """Return the ids of the layers that depend only on constants. Variables and random numbers are none."""
    constants: set[int] = set()
    for id in model.order:
        layer, feeds = model.layers[id], model.feeds[id]
        is_fed = feeds and all(feed is not None and feed[0] in constants for feed in feeds)
        if is_constant(layer) or (is_fed and _is_pure(layer)):
            constants.add(id)
    return constants


def _is_pure(layer: Layer) -> bool:
    """Return whether a layer, with its bodies, computes equal values from equal inputs in every run."""
    op = resolve(layer.type, None)
    inner = (own for body in layer.bodies.values() for own in body.layers.values())
    return (op is None or op.pure) and all(map(_is_pure, inner))


def _sorted(model: Model, ids: Iterable[int]) -> list[int]:
    """Return layer ids in file order."""
    position = {id: number for number, id in enumerate(model.layers)}
    return sorted(ids, key=position.__getitem__)


def _assemble(
    model: Model, kept: set[int], cuts: Sequence[tuple[int, int]], ends: Sequence[tuple[int, int]], values: Values
) -> Model:
    """Return a model of the layers ``kept``, with Parameters for the values ``cuts`` and Results for ``ends``."""
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
    for id, position in dict.fromkeys(ends):
        port, own = model.layers[id].outputs[position], model.output_name(id, position)
        layers[fresh] = Layer(
            fresh, f"{own}/result", "Result", "opset1", {}, (replace(port, id=0, names=(), node=-1),), (), -1,
            output_names=port.names[:1] or (own,),
        )  # fmt: skip
        edges.append(Edge(id, port.id, fresh, 0, -1))
        fresh += 1
    part = replace(model, layers=layers, edges=tuple(edges))
    parsed = parse(Source(f"part of {model.source.path}", to_xml(part)), model.weights)
    return parsed.runnable()


def _parameter(id: int, name: str, port: Port, value: Value | None) -> Layer:
    element_type = (value and value.type) or port.type or ELEMENT_TYPES["dynamic"]
    shape = value.shape if value else port.shape or PartialShape(None)
    text = "..." if shape.dims is None else ",".join(map(str, shape))
    attributes = {"shape": text, "element_type": element_type.name}
    return Layer(id, name, "Parameter", "opset1", attributes, (), (replace(port, id=0, node=-1),), -1)
