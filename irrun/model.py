"""A model as the file tells it: layers, ports and edges. Knows no operation, no execution, no XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from irrun.source import Source
from irrun.types import ElementType, PartialShape
from irrun.weights import Weights

if TYPE_CHECKING:
    import networkx as nx

# Layers, ports and edges are never changed, but not frozen either: it would take four times as long to make one.

__all__ = ["VERSIONS", "Edge", "Layer", "MapEntry", "Model", "Port", "is_constant"]

VERSIONS: Final = (10, 11)
"""The versions of the IR that irrun reads."""


@dataclass(slots=True, unsafe_hash=True)
class Port:
    """A port as declared: ``type`` is None without ``precision``, ``shape`` None where no dim tells it.

    (A port without ``<dim>`` is a scalar or of unknown rank; the file does not say which.)
    ``node`` is the element's ordinal in the source.
    """

    id: int
    type: ElementType | None
    shape: PartialShape | None
    names: tuple[str, ...]
    node: int


@dataclass(frozen=True, slots=True)
class MapEntry:
    """How a port of If, Loop or TensorIterator and a layer of its body belong together.

    ``external`` is a position among the layer's inputs or outputs, None for what stays inside (-1 in the
    file); ``internal`` the id of a Parameter or Result of the body. With an ``axis`` the tensor is cut
    into, or put together from, slices of ``part_size``.
    """

    kind: str
    """``input`` or ``output``."""
    external: int | None
    internal: int
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1
    purpose: str = ""
    """``current_iteration`` or ``execution_condition`` of a Loop."""


@dataclass(slots=True, unsafe_hash=True)
class Layer:
    """A layer as declared; ``attributes`` are the texts of ``<data>``.

    ``bodies`` are the sub-models of If, Loop and TensorIterator (``body``, ``then_body``, ``else_body``),
    ``maps`` the entries of ``port_map``, ``then_port_map`` and ``else_port_map``, ``back_edges`` pairs of a
    Result and the Parameter that it feeds in the next iteration.
    """

    id: int
    name: str
    type: str
    version: str | None
    attributes: Mapping[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    node: int
    bodies: Mapping[str, Model] = field(default_factory=dict)
    maps: Mapping[str, tuple[MapEntry, ...]] = field(default_factory=dict)
    back_edges: tuple[tuple[int, int], ...] = ()
    output_names: tuple[str, ...] = ()


@dataclass(slots=True, unsafe_hash=True)
class Edge:
    """From an output port to an input port, by ids."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    node: int


@dataclass(frozen=True, eq=False)
class Model:
    """An IR model.

    ``layers`` are in file order, by id. ``feeds[id]`` tells for each input of a layer, in order, which
    output feeds it: (layer id, position among its outputs).
    """

    name: str
    version: int
    layers: Mapping[int, Layer]
    edges: tuple[Edge, ...]
    feeds: Mapping[int, tuple[tuple[int, int] | None, ...]]
    source: Source
    weights: Weights | None = None
    contents: Mapping[int, tuple[np.ndarray, int]] = field(default_factory=dict)
    """Of a fragment: what a comment says a Parameter holds, and the line that says it."""

    @property
    def is_fragment(self) -> bool:
        """Whether this is a bare ``<layer>`` as printed in documentation."""
        return self.version == 0

    @cached_property
    def parameters(self) -> tuple[Layer, ...]:
        """The inputs of the model, in file order."""
        return tuple(layer for layer in self.layers.values() if layer.type.lower() == "parameter")

    @cached_property
    def results(self) -> tuple[Layer, ...]:
        """The outputs of the model, in file order."""
        return tuple(layer for layer in self.layers.values() if layer.type.lower() == "result")

    @cached_property
    def constants(self) -> int:
        """How many layers have their values in the ``.bin``, those of bodies included."""
        own = sum(is_constant(layer) for layer in self.layers.values())
        return own + sum(body.constants for layer in self.layers.values() for body in layer.bodies.values())

    @cached_property
    def unique_names(self) -> Mapping[int, str]:
        """A name for every layer that no other layer has."""
        count = Counter(layer.name for layer in self.layers.values())
        return {id: l.name if l.name and count[l.name] == 1 else f"{l.name}#{id}" for id, l in self.layers.items()}

    def output_name(self, id: int, position: int) -> str:
        """How an output is called that a person names: as its layer, ``name:port`` from the second output on."""
        name = self.unique_names[id]
        return f"{name}:{self.layers[id].outputs[position].id}" if position else name

    @cached_property
    def graph(self) -> nx.MultiDiGraph:
        """The layers by id, one edge for each connection (``Multiply(x, x)`` has two).

        Node attribute ``layer``; edge attributes ``from_port`` and ``to_port``.
        """
        import networkx as nx  # a tenth of a second, which most runs can do without

        graph = nx.MultiDiGraph(name=self.name)
        graph.add_nodes_from((id, {"layer": layer}) for id, layer in self.layers.items())
        graph.add_edges_from(
            (e.from_layer, e.to_layer, {"from_port": e.from_port, "to_port": e.to_port})
            for e in self.edges
            if e.from_layer in self.layers and e.to_layer in self.layers
        )
        return graph

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Layer ids, each after those that feed it, otherwise in file order. Ids on a cycle are left out."""
        waiting = {id: len(feeds) - feeds.count(None) for id, feeds in self.feeds.items()}
        readers: dict[int, list[int]] = {}
        for id, feeds in self.feeds.items():
            for feed in feeds:
                if feed is not None:
                    readers.setdefault(feed[0], []).append(id)
        ready = [id for id in reversed(list(self.layers)) if waiting[id] == 0]
        order: list[int] = []
        while ready:
            id = ready.pop()
            order.append(id)
            for reader in reversed(readers.get(id, ())):
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    ready.append(reader)
        return tuple(order)

    def cycle(self) -> tuple[Layer, ...]:
        """The layers of one cycle, or nothing where the graph has none."""
        if len(self.order) == len(self.layers):
            return ()
        import networkx as nx

        left = self.graph.subgraph(self.layers.keys() - set(self.order))
        return tuple(self.layers[edge[0]] for edge in nx.find_cycle(left))

    def fed_by(self, layer: Layer, position: int) -> tuple[Layer, Port] | None:
        """The layer and output port that feed input ``position``."""
        feed = self.feeds[layer.id][position]
        return None if feed is None else (self.layers[feed[0]], self.layers[feed[0]].outputs[feed[1]])

    def result_name(self, result: Layer) -> str:
        """How an output is called: its ``output_names``, else the name of the port that feeds it."""
        fed = self.fed_by(result, 0) if result.inputs else None
        names = result.output_names or (fed[1].names if fed else ())
        return names[0] if names else result.name

    def result_names(self, result: Layer) -> tuple[str, ...]:
        """Every name that an output answers to."""
        fed = self.fed_by(result, 0) if result.inputs else None
        return tuple(dict.fromkeys((*result.output_names, *(fed[1].names if fed else ()), result.name)))

    def input_names(self, parameter: Layer) -> tuple[str, ...]:
        """Every name that an input answers to, its own first."""
        names = parameter.outputs[0].names if parameter.outputs else ()
        return tuple(dict.fromkeys((parameter.name, *names)))


def is_constant(layer: Layer) -> bool:
    """Whether a layer has its values in the ``.bin``."""
    return layer.type.lower() in ("const", "constant")
