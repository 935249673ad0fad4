"""Add what is inferred to the graph of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irrun.inference.bind import bind_all
from irrun.inference.propagate import declared
from irrun.inference.settled import settled
from irrun.model import Model

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["annotate"]


def annotate(model: Model, graph: nx.MultiDiGraph) -> None:
    """Add the attributes ``operation``, ``types`` and ``shapes`` to nodes, and ``type`` and ``shape`` to edges.

    ``Model.graph`` describes them. Layers on a cycle are not inferred: they have what they declare.
    """
    values = settled(model)
    for layer, op, _ in bind_all(model):
        claims = declared(layer)
        outputs = [values.get((layer.id, i), claim) for i, claim in enumerate(claims)]
        graph.nodes[layer.id].update(
            operation=op, types=tuple(value.type for value in outputs), shapes=tuple(value.shape for value in outputs)
        )
    positions = {(id, port.id): i for id, layer in model.layers.items() for i, port in enumerate(layer.outputs)}
    for start, _, edge in graph.edges(data=True):
        position = positions.get((start, edge["from_port"]))  # None: the edge begins at no output
        node = graph.nodes[start]
        edge["type"] = None if position is None else node["types"][position]
        edge["shape"] = None if position is None else node["shapes"][position]
