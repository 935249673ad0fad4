"""Assemble the nodes of a graph into a model: ids, names, ports, edges, and the bytes of constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from irrun.base.source import Source
from irrun.build._errors import bad_call
from irrun.build._nodes import Graph, Node, Output
from irrun.build._text import shape_text
from irrun.model import VERSIONS, Edge, Layer, Model, Port
from irrun.model.weights import pack
from irrun.opdef import Value

__all__ = ["Blob", "assemble"]


class Blob:
    """A .bin that grows in memory. Equal bytes are stored once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._offsets: dict[bytes, int] = {}

    def add(self, raw: bytes) -> int:
        """Store bytes and return their offset, a multiple of 64."""
        if raw not in self._offsets:
            self.data += bytes(-len(self.data) % 64)
            self._offsets[raw] = len(self.data)
            self.data += raw
        return self._offsets[raw]


def assemble(graph: Graph, blob: Blob, source: Source, names: Sequence[str] | None = None) -> Model:
    """Return a graph as a model, and add its constants to ``blob``.

    ``names`` are the names of the results; None if they have none. Raises BuildError if two layers have the same name.
    """
    taken = _chosen_names(graph.nodes)
    tensor_names: dict[tuple[int, int], str] = {}
    for name, result in zip(names or (), graph.results):
        tensor_names.setdefault((id(result.node), result.index), name)
    layers: dict[int, Layer] = {}
    edges: list[Edge] = []
    feeds: dict[int, tuple[tuple[int, int] | None, ...]] = {}
    for number, node in enumerate(graph.nodes):
        own = node.layer.name or _unused(f"{node.layer.type.lower()}_{number}", taken)
        ports = _output_ports(node, tensor_names)
        bodies = {tag: assemble(body, blob, source) for tag, body in node.bodies.items()}
        layer = replace(node.layer, id=number, name=own, inputs=_input_ports(node.inputs), outputs=ports, bodies=bodies)
        layers[number] = layer if node.data is None else _with_contents(layer, node.data, node.values[0], blob)
        feeds[number] = _feeds(graph, node.inputs)
        edges += _edges(graph, number, node.inputs)
    for position, result in enumerate(graph.results):
        number = graph.result(position)
        own = _unused(f"{names[position]}/result" if names else f"result_{position}", taken)
        output_names = (names[position],) if names else ()
        ports = _input_ports([result])
        layers[number] = Layer(number, own, "Result", "opset1", {}, ports, (), -1, output_names=output_names)
        feeds[number] = _feeds(graph, [result])
        edges += _edges(graph, number, [result])
    return Model("", VERSIONS[-1], layers, tuple(edges), feeds, source)


def _chosen_names(nodes: Sequence[Node]) -> set[str]:
    """Return the names that the caller chose for layers. Raises BuildError if two layers have the same name."""
    names: set[str] = set()
    for node in nodes:
        name = node.layer.name
        if name in names:
            raise bad_call(f'two layers have the name "{name}"; rename one of them')
        if name:
            names.add(name)
    return names


def _unused(name: str, taken: set[str]) -> str:
    """Return a name that is not ``taken``, with underscores appended if necessary, and add it to ``taken``."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _input_ports(inputs: Sequence[Output]) -> tuple[Port, ...]:
    """Return the input ports of a layer. Their ids begin at 0."""
    return tuple(_port(position, output.value) for position, output in enumerate(inputs))


def _output_ports(node: Node, tensor_names: dict[tuple[int, int], str]) -> tuple[Port, ...]:
    """Return the output ports of a layer. Their ids follow those of its input ports.

    The tensor names of a port are its name in ``tensor_names`` (by the ``id()`` of the node and the position of the
    output) and, if the layer has only this output, the name of the layer.
    """
    ports: list[Port] = []
    for position, value in enumerate(node.values):
        names = (tensor_names.get((id(node), position)), node.layer.name if len(node) == 1 else None)
        ports.append(_port(len(node.inputs) + position, value, tuple(dict.fromkeys(n for n in names if n))))
    return tuple(ports)


def _port(id: int, value: Value, names: tuple[str, ...] = ()) -> Port:
    return Port(id, value.type, value.shape if value.shape.dims else None, names, -1)


def _feeds(graph: Graph, inputs: Sequence[Output]) -> tuple[tuple[int, int], ...]:
    """Return the outputs that feed a layer, each as the id of its producer and its position among the outputs."""
    return tuple((graph.ids[id(output.node)], output.index) for output in inputs)


def _edges(graph: Graph, number: int, inputs: Sequence[Output]) -> Iterator[Edge]:
    """Yield the edges that lead to the layer with the id ``number``."""
    for position, output in enumerate(inputs):
        yield Edge(graph.ids[id(output.node)], len(output.node.inputs) + output.index, number, position, -1)


def _with_contents(layer: Layer, data: np.ndarray, value: Value, blob: Blob) -> Layer:
    """Add the contents of a constant to ``blob``, and return its layer with the attributes that locate them."""
    raw = pack(data, value.type)
    attributes = {
        "element_type": value.type.name,
        "shape": shape_text(value.shape),
        "offset": str(blob.add(raw)),
        "size": str(len(raw)),
    }
    return replace(layer, attributes=attributes)
