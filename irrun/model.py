"""The model as the file declares it: layers, ports and edges.

This module depends on no operation, no execution and no XML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from irrun.source import Source
from irrun.types import ElementType, PartialShape
from irrun.weights import Weights

if TYPE_CHECKING:
    import networkx as nx

# Layers, ports and edges are never changed after they are made. Their classes are not declared frozen because creating
# a frozen instance takes four times as long.

__all__ = ["VERSIONS", "Edge", "Layer", "MapEntry", "Model", "Port", "is_constant"]

VERSIONS: Final = (10, 11)
"""The versions of the IR that irrun reads."""


@dataclass(slots=True, unsafe_hash=True)
class Port:
    """A port as the file declares it.

    ``type`` is None if the port has no ``precision``. ``shape`` is None if the port has no ``<dim>``: the tensor is
    then a scalar or has an unknown rank, and the file does not say which. ``names`` are the names of its tensor, and
    ``node`` is the ordinal of the element in the source.
    """

    id: int
    type: ElementType | None
    shape: PartialShape | None
    names: tuple[str, ...]
    node: int


@dataclass(frozen=True, slots=True)
class MapEntry:
    """The connection between a port of If, Loop or TensorIterator and a Parameter or Result of a body.

    ``external`` is the position of the port among the inputs or outputs of the layer. It is None (-1 in the file)
    if the Parameter or Result is not connected to a port. ``internal`` is the layer id of the Parameter or Result.
    With an ``axis``, an input is split into slices of ``part_size`` along that axis, one per iteration, and an output
    is concatenated from such slices. ``start``, ``end`` and ``stride`` say which part of the axis the slices cover.
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
    """The special role of an entry of a Loop: ``current_iteration``, ``execution_condition``, or empty."""


@dataclass(slots=True, unsafe_hash=True)
class Layer:
    """A layer as the file declares it.

    ``version`` names the operation set (``opset8``). ``attributes`` are the attributes of ``<data>`` as text, and
    ``node`` is the ordinal of the element in the source. ``output_names`` are the tensor names that a Result carries.

    The other fields are for If, Loop and TensorIterator. ``bodies`` are the sub-models (``body``, ``then_body``,
    ``else_body``) and ``maps`` their entries of ``port_map``, ``then_port_map`` and ``else_port_map``, all by the name
    of the element. A pair in ``back_edges`` holds the ids of a Result and of the Parameter that reads this Result in
    the next iteration.
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
    """An edge from an output port to an input port: layer ids and port ids as in the file."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    node: int


@dataclass(frozen=True, eq=False)
class Model:
    """An IR model as the file declares it. Inference and execution never change it.

    ``version`` is the IR version. ``layers`` maps ids to layers, in the order of the file. ``feeds[id]`` holds for
    each input of a layer, in order, the output that feeds the input: the id of the producer and the position among
    its outputs. It is None for an input that no edge feeds.
    """

    name: str
    version: int
    layers: Mapping[int, Layer]
    edges: tuple[Edge, ...]
    feeds: Mapping[int, tuple[tuple[int, int] | None, ...]]
    source: Source
    weights: Weights | None = None
    contents: Mapping[int, tuple[np.ndarray, int]] = field(default_factory=dict)
    """For a fragment: the contents of Parameters that comments state, by layer id, with the line of the comment."""
    annotate: Callable[[Model, nx.MultiDiGraph], None] | None = None
    """The function that adds what is inferred to ``graph``. The reader sets it, because this module infers nothing."""

    @property
    def is_fragment(self) -> bool:
        """Return whether the model was made from a single ``<layer>``, as printed in documentation."""
        return self.version == 0

    @cached_property
    def parameters(self) -> tuple[Layer, ...]:
        """The Parameter layers of the model, which are its inputs, in the order of the file."""
        return tuple(layer for layer in self.layers.values() if layer.type.lower() == "parameter")

    @cached_property
    def results(self) -> tuple[Layer, ...]:
        """The Result layers of the model, which are its outputs, in the order of the file."""
        return tuple(layer for layer in self.layers.values() if layer.type.lower() == "result")

    @cached_property
    def constants(self) -> int:
        """The number of constants in the model, including those of bodies."""
        own = sum(is_constant(layer) for layer in self.layers.values())
        return own + sum(body.constants for layer in self.layers.values() for body in layer.bodies.values())

    @cached_property
    def unique_names(self) -> Mapping[int, str]:
        """A unique name for each layer, by id: the name of the layer, or ``name#id`` if the name is empty or shared.

        If another layer is already named ``name#id``, the id is added once more: ``name#id#id``.
        """
        count = Counter(layer.name for layer in self.layers.values())
        names: dict[int, str] = {}
        for id, layer in self.layers.items():
            name = layer.name
            if not name or count[name] > 1:
                name = f"{name}#{id}"
                while name in count:
                    name = f"{name}#{id}"
            names[id] = name
        return names

    def output_name(self, id: int, position: int) -> str:
        """Return the name by which users refer to output ``position`` of layer ``id``.

        It is the unique name of the layer, followed by ``:`` and the id of the port for any output but the first.
        """
        name = self.unique_names[id]
        return f"{name}:{self.layers[id].outputs[position].id}" if position else name

    @cached_property
    def graph(self) -> nx.MultiDiGraph:
        """The model as a graph of networkx: a node for each layer id, and an edge for each edge of the model.

        A node has the attributes ``layer``, ``operation`` (the ``Op`` with its parsed attributes; None if it is unknown
        or its attributes are invalid), ``types`` and ``shapes`` (a tuple for its outputs). An edge has ``from_port``
        and ``to_port`` (port ids), and the ``type`` and ``shape`` of its tensor. Types and shapes are inferred, and
        those that the file declares where inference fails. The graph cannot be changed; ``copy`` returns one that can.
        """
        if self.annotate is not None:
            self.annotate(self, self.links)
        return self.links

    @cached_property
    def links(self) -> nx.MultiDiGraph:
        """``graph`` without what must be inferred: its nodes have only ``layer``, its edges only the ids of ports."""
        import networkx as nx  # imported here because the import takes 0.1 s and most runs do not need it

        graph = nx.MultiDiGraph(name=self.name)
        graph.add_nodes_from((id, {"layer": layer}) for id, layer in self.layers.items())
        graph.add_edges_from(
            (e.from_layer, e.to_layer, {"from_port": e.from_port, "to_port": e.to_port})
            for e in self.edges
            if e.from_layer in self.layers and e.to_layer in self.layers
        )
        return nx.freeze(graph)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The layer ids in topological order.

        A layer comes directly after the last of its producers where possible, and otherwise in the order of the file.
        Layers on a cycle, and layers that depend on a cycle, are left out.
        """
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
        """Return the layers of one cycle in the order of its edges, or an empty tuple if there is no cycle."""
        if len(self.order) == len(self.layers):
            return ()
        import networkx as nx

        left = self.links.subgraph(self.layers.keys() - set(self.order))
        return tuple(self.layers[edge[0]] for edge in nx.find_cycle(left))

    def fed_by(self, layer: Layer, position: int) -> tuple[Layer, Port] | None:
        """Return the producer of input ``position`` and its output port, or None if no edge feeds the input."""
        feed = self.feeds[layer.id][position]
        return None if feed is None else (self.layers[feed[0]], self.layers[feed[0]].outputs[feed[1]])

    def result_name(self, result: Layer) -> str:
        """Return the name of a model output.

        It is the first of the Result's ``output_names``, otherwise the first name of the port that feeds the Result,
        otherwise the name of the Result layer.
        """
        fed = self.fed_by(result, 0) if result.inputs else None
        names = result.output_names or (fed[1].names if fed else ())
        return names[0] if names else result.name

    def result_names(self, result: Layer) -> tuple[str, ...]:
        """Return all names by which a model output can be requested, the one of ``result_name`` first."""
        fed = self.fed_by(result, 0) if result.inputs else None
        return tuple(dict.fromkeys((*result.output_names, *(fed[1].names if fed else ()), result.name)))

    def input_names(self, parameter: Layer) -> tuple[str, ...]:
        """Return all names by which a model input can be passed: the layer's name first, then those of its port."""
        names = parameter.outputs[0].names if parameter.outputs else ()
        return tuple(dict.fromkeys((parameter.name, *names)))


def is_constant(layer: Layer) -> bool:
    """Return whether ``layer`` is a Const, which has its values in the ``.bin``."""
    return layer.type.lower() in ("const", "constant")
