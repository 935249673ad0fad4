"""The model as the file declares it: layers, ports and edges.

This module depends on no operation, no execution and no XML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from irrun.base.source import Source
from irrun.base.text import counted, printable
from irrun.diagnostics import FeedError, diagnostic
from irrun.model.signatures import Tensor, signature, signature_lines, signature_table
from irrun.model.weights import Weights
from irrun.types import Dim, ElementType, PartialShape

if TYPE_CHECKING:
    import networkx as nx

# Layers, ports and edges are never changed after they are made. Their classes are not declared frozen because creating
# a frozen instance takes four times as long.

__all__ = [
    "VERSIONS", "Edge", "Layer", "MapEntry", "Model", "Port", "Shape", "Shapes", "is_constant",
    "no_such_input",
]  # fmt: skip

Shape = str | PartialShape | Sequence[Dim | int | str | None]
Shapes = Mapping[str, Shape] | Mapping[int, Shape] | Mapping[str | int, Shape]
"""Shapes by the name or position of an input: ``[1, 3, 224, 224]``, ``"?,3,64..512"``, or ``"..."`` for any rank."""

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


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        return f"<Model {self.name}: {counted(len(self.layers), 'layer')}, {signature(self.inputs, self.outputs)}>"

    def __str__(self) -> str:
        """Return the inputs, the outputs, and the number of layers of each type, in lines."""
        lines = [f"{self.name}  IR v{self.version}, {self.source.path}"]
        lines += signature_lines(self.inputs, self.outputs)
        counts = Counter(layer.type for layer in self.layers.values()).most_common()
        lines.append(f"  {counted(len(self.layers), 'layer')}: {', '.join(f'{n} {type}' for type, n in counts)}")
        return "\n".join(map(printable, lines))

    def _repr_html_(self) -> str:
        return signature_table(f"{self.name}: {counted(len(self.layers), 'layer')}", self.inputs, self.outputs)

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of the model, as the file declares them."""
        return tuple(
            Tensor(
                parameter.name,
                self.input_names(parameter),
                ElementType.parse(parameter.attributes.get("element_type", "")),
                PartialShape.parse(parameter.attributes.get("shape", "...")),
            )
            for parameter in self.parameters
        )

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs of the model, as the ports that feed its Results declare them."""
        tensors: list[Tensor] = []
        for result in self.results:
            fed = self.fed_by(result, 0) if result.inputs else None
            type, shape = (fed[1].type, fed[1].shape) if fed else (None, None)
            tensors.append(Tensor(self.result_name(result), self.result_names(result), type, shape))
        return tuple(tensors)

    def reshape(self, shapes: Shapes | Shape) -> Model:
        """Return a copy of the model whose inputs have other shapes, as ``openvino.Model.reshape`` makes it.

        ``shapes`` are by name or position of an input: ``{"data": [1, 3, 224, 224], "ids": "?,1..512"}``; for a model
        with one input, its shape alone. Inputs that are not named keep their shapes. The ports of the copy declare no
        dims: inference determines them, and ``irrun.check`` reports a layer that cannot take them. Raises FeedError
        (IR601) if there is no such input or a shape cannot be parsed.
        """
        if not isinstance(shapes, Mapping):
            if len(self.parameters) != 1:
                message = f"the model has {counted(len(self.parameters), 'input')}, and one shape is passed"
                raise FeedError(
                    diagnostic("IR601", message, file=self.source.path, help="pass a dict of shapes by name")
                )
            shapes = {0: shapes}
        wanted: dict[int, str] = {}
        for key, shape in shapes.items():
            parameter = self.parameters[self.known_input(key)]
            text = _shape_text(shape)
            if text is None or PartialShape.parse(text) is None:
                help = "write a shape as [1,3,224,224]: ? is an unknown dim, 1..8 an interval, and ... an unknown rank"
                given = shape if isinstance(shape, str) or text is None else text
                message = f'input "{parameter.name}" cannot have the shape "{given}"'
                raise FeedError(
                    diagnostic(
                        "IR601", message, source=self.source, node=parameter.node, layer=parameter.name, help=help
                    )
                )
            wanted[parameter.id] = text
        return _undeclared(self, wanted)

    def known_input(self, key: str | int) -> int:
        """Return the position of the input with a name or position. Raises FeedError (IR601) if there is none."""
        position = self.input_position(str(key))
        if position is None:
            raise no_such_input(self, key)
        return position

    def input_position(self, name: str) -> int | None:
        """Return the position of the input with this name, or None if there is none.

        If no input has the name and ``name`` is a number, the number itself is the position.
        """
        for number, parameter in enumerate(self.parameters):
            if name in self.input_names(parameter):
                return number
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else -1
        return number if 0 <= number < len(self.parameters) else None

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
    def readers(self) -> Mapping[tuple[int, int], Sequence[tuple[int, int]]]:
        """The inputs that each output feeds, as ``feeds`` backwards: layer ids with the positions of their inputs.

        They are in the order of ``feeds``. An output that feeds no input is missing.
        """
        readers: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for id, feeds in self.feeds.items():
            for position, feed in enumerate(feeds):
                if feed is not None:
                    readers.setdefault(feed, []).append((id, position))
        return readers

    @cached_property
    def consumers(self) -> Mapping[int, Sequence[int]]:
        """The layers that read any output of each layer, each once, in the order of ``feeds``.

        A layer that nothing reads is missing.
        """
        consumers: dict[int, dict[int, None]] = {}
        for id, feeds in self.feeds.items():
            for feed in feeds:
                if feed is not None:
                    consumers.setdefault(feed[0], {})[id] = None
        return {id: tuple(readers) for id, readers in consumers.items()}

    def before(self, ends: Iterable[int]) -> set[int]:
        """Return the ids of the layers on which ``ends`` depend, and these."""
        waiting = list(ends)
        found = set(waiting)
        while waiting:
            for feed in self.feeds[waiting.pop()]:
                if feed is not None and feed[0] not in found:
                    found.add(feed[0])
                    waiting.append(feed[0])
        return found

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The layer ids in topological order.

        A layer comes directly after the last of its producers where possible, and otherwise in the order of the file.
        Layers on a cycle, and layers that depend on a cycle, are left out.
        """
        waiting = {id: len({feed[0] for feed in feeds if feed}) for id, feeds in self.feeds.items()}
        ready = [id for id in reversed(list(self.layers)) if waiting[id] == 0]
        order: list[int] = []
        while ready:
            id = ready.pop()
            order.append(id)
            for consumer in reversed(self.consumers.get(id, ())):
                waiting[consumer] -= 1
                if waiting[consumer] == 0:
                    ready.append(consumer)
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


def no_such_input(model: Model, key: object) -> FeedError:
    """Return the error (IR601) for an input name or position that the model does not have."""
    names = ", ".join(f'"{p.name}"' for p in model.parameters) or "none"
    message = f"the model has no input {key!r}"
    return FeedError(diagnostic("IR601", message, file=model.source.path, help=f"its inputs are {names}"))


def _shape_text(shape: Shape) -> str | None:
    """Return a shape as the text of an attribute, or None for what is no shape."""
    if isinstance(shape, str):
        text = shape.strip()
        return text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if isinstance(shape, PartialShape) and shape.dims is None:
        return "..."
    try:
        return ",".join("?" if dim is None else str(dim) for dim in shape)
    except TypeError:
        return None


def _undeclared(model: Model, wanted: Mapping[int, str]) -> Model:
    """Return the model without the dims that its ports declare, bodies included.

    ``wanted`` holds new ``shape`` attributes by layer id. Known contents of these layers are dropped.
    """

    def ports(declared: Sequence[Port]) -> tuple[Port, ...]:
        return tuple(replace(port, shape=None) for port in declared)

    layers = {
        id: replace(
            layer,
            attributes={**layer.attributes, "shape": wanted[id]} if id in wanted else layer.attributes,
            inputs=ports(layer.inputs),
            outputs=ports(layer.outputs),
            bodies={tag: _undeclared(body, _open_dims(body)) for tag, body in layer.bodies.items()},
        )
        for id, layer in model.layers.items()
    }
    contents = {id: stated for id, stated in model.contents.items() if id not in wanted}
    return replace(model, layers=layers, contents=contents)


def _open_dims(body: Model) -> dict[int, str]:
    """Return shapes of the ranks that the Parameters of a body declare, whose dims are unknown, by layer id."""
    shapes: dict[int, str] = {}
    for parameter in body.parameters:
        shape = PartialShape.parse(parameter.attributes.get("shape", "..."))
        if shape is not None and shape.dims:
            shapes[parameter.id] = ",".join("?" for _ in shape.dims)
    return shapes


def is_constant(layer: Layer) -> bool:
    """Return whether ``layer`` is a Const, which has its values in the ``.bin``."""
    return layer.type.lower() in ("const", "constant")
