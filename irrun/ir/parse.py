"""Build a Model from the XML of an IR document, in one pass over its elements."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from irrun.diagnostics import Diagnostic, ReadError, diagnostic
from irrun.ir.safe_xml import MOST_DEEP, Elements, read_xml
from irrun.model import VERSIONS, Edge, Layer, MapEntry, Model, Port
from irrun.source import Source
from irrun.types import INF, Dim, ElementType, PartialShape
from irrun.weights import Weights

__all__ = ["KNOWN_CHILDREN", "Parsed", "Reader", "no_garbage", "parse", "read_bytes"]


@dataclass(slots=True)
class Parsed:
    """A model, and the problems that were found while its file was read."""

    model: Model
    problems: list[Diagnostic]


def read_bytes(path: Path) -> bytes:
    """Return the contents of a file. Raises ReadError (IR000) if it cannot be read."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        why = "it is a folder" if isinstance(error, OSError) and path.is_dir() else why
        raise ReadError(
            Diagnostic("IR000", "error", f"cannot read {path}: {why}", file=str(path), help="check the path")
        ) from None


@contextmanager
def no_garbage() -> Iterator[None]:
    """Pause the garbage collector inside a ``with`` block.

    A large model creates many objects, and collecting garbage among them would take a third of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def parse(source: Source, weights: Weights | None = None) -> Parsed:
    """Read an IR document, and return its model with all problems that leave it readable.

    Raises ReadError (IR001 to IR006) if the document holds no model.
    """
    with no_garbage():
        reader = read_xml(source, Reader(source, weights))
    if reader.model is None:
        raise ReadError(reader.problems())
    return Parsed(reader.model, reader.problems())


# The kinds of elements that irrun reads: for each kind, the kind of each child by its tag. All other elements (rt_info,
# meta_data, statistics …) are skipped.
KNOWN_CHILDREN: Final[dict[str, dict[str, str]]] = {
    "document": {"net": "net", "layer": "layer"},
    "net": {"layers": "layers", "edges": "edges"},
    "layers": {"layer": "layer"},
    "layer": {
        "data": "data", "input": "input", "output": "output", "back_edges": "back_edges",
        "port_map": "port_map", "then_port_map": "port_map", "else_port_map": "port_map",
        "body": "net", "then_body": "net", "else_body": "net",
    },
    "input": {"port": "port"},
    "output": {"port": "port"},
    "port": {"dim": "dim"},
    "port_map": {"input": "entry", "output": "entry"},
    "back_edges": {"edge": "back_edge"},
    "edges": {"edge": "edge"},
    "data": {}, "dim": {}, "entry": {}, "back_edge": {}, "edge": {},
}  # fmt: skip


@dataclass(slots=True)
class _Net:
    """A ``<net>`` or a body while it is being read."""

    tag: str
    name: str
    version: int
    node: int
    layers: dict[int, Layer] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    has_layers: bool = False
    doubtful: bool = False
    """Whether layers, ports or edges could not be identified.

    Problems of the edges are then not reported, because they would only follow from that.
    """


@dataclass(slots=True)
class _Layer:
    """A layer while it is being read."""

    tag: Mapping[str, str]
    name: str
    node: int
    attributes: Mapping[str, str] = field(default_factory=dict)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    bodies: dict[str, Model] = field(default_factory=dict)
    maps: dict[str, list[tuple[str, Mapping[str, str], int]]] = field(default_factory=dict)
    back_edges: list[tuple[int, int, int]] = field(default_factory=list)


class Reader:
    """Builds a Model from the elements of a document. It is a target of ``read_xml``.

    After reading, ``model`` holds the model of a ``<net>``, and ``layer`` the layer of a document whose root element
    is a ``<layer>``. The other one is None.
    """

    def __init__(self, source: Source, weights: Weights | None = None) -> None:
        self.source = source
        self.weights = weights
        self.model: Model | None = None
        self.layer: Layer | None = None
        self.comments: list[tuple[int, str]] = []
        """Comments within ports: the ordinal of the port element, and the text of the comment."""
        self._elements: Elements
        self._node = -1
        self._skipped = 0
        self._open = [_DOCUMENT]
        self._children = _DOCUMENT.children
        self._nets: list[_Net] = []
        self._layers: list[_Layer] = []
        self._port: tuple[Mapping[str, str], int, bytes] = ({}, 0, b"")
        self._dims: list[str] = []
        self._dim_nodes: list[int] = []
        self._late: list[tuple[str, str, int, str | None, dict[str, Any]]] = []
        self._contents: dict[bytes, tuple[PartialShape | None, int]] = {}
        self._shapes: dict[tuple[str, ...], PartialShape] = {}
        self._types: dict[str, ElementType] = {}

    # -- the target interface -------------------------------------------------------------------

    def begin(self, elements: Elements) -> None:
        self._elements = elements

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._node += 1
        kind = self._children.get(tag)
        if kind is None:
            self._odd(tag, attributes)
            return
        self._open.append(kind)
        self._children = kind.children
        if kind.start is not None:
            kind.start(self, tag, attributes)

    def end(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
            if not self._skipped:
                self._children = self._open[-1].children
            return
        kind = self._close()
        if kind.end is not None:
            kind.end(self)

    def data(self, text: str) -> None:
        if self._open[-1] is _DIM and not self._skipped:
            self._dims[-1] += text

    def comment(self, text: str) -> None:
        if self._open[-1] in (_PORT, _DIM):
            self.comments.append((self._port[1], text))
            self._port = (*self._port[:2], b"")

    def _odd(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Start an element whose tag irrun does not read here, and skip it.

        If the tag is known in lower case, read the element instead: some files write tags with capitals.
        """
        self._bound()
        if not self._skipped and tag.lower() in self._children:
            self._node -= 1
            self.start(tag.lower(), attributes)
            return
        if self._open[-1] is _DOCUMENT and not self._skipped:
            self.report("IR003", f"the root element is <{tag}>, not <net>", self._node)
        self._skip()

    def _bound(self) -> None:
        """Refuse the document (IR005) if its elements are nested too deeply."""
        if len(self._open) + self._skipped > MOST_DEEP:
            self._elements.refuse("IR005", f"more than {MOST_DEEP} elements stand within each other")

    def _skip(self) -> None:
        """Skip an element and everything inside it."""
        self._skipped += 1
        self._children = {}

    def _close(self) -> _Kind:
        """Leave an element and return its kind."""
        kind = self._open.pop()
        self._children = self._open[-1].children
        return kind

    # -- reporting ------------------------------------------------------------------------------

    def report(self, code: str, message: str, node: int, attribute: str | None = None, **more: Any) -> None:
        """Record a problem at an element or at one of its attributes."""
        self._late.append((code, message, node, attribute, more))

    def problems(self) -> list[Diagnostic]:
        """Return the recorded problems as diagnostics.

        Their lines and columns are looked up only here, after reading, because only a well-formed document has them.
        """
        return [
            diagnostic(code, message, source=self.source, node=node, attribute=attribute, **more)
            for code, message, node, attribute, more in self._late
        ]

    def _integer(
        self, attributes: Mapping[str, str], name: str, what: str, node: int | None = None, layer: str | None = None
    ) -> int | None:
        """Return an attribute as an integer; report it (IR007) and return None if it is missing or no integer.

        ``what`` names the element in the message.
        """
        node = self._node if node is None else node
        text = attributes.get(name)
        if text is None:
            self.report("IR007", f"{what} has no {name}", node, layer=layer)
            return None
        number = _int(text)
        if number is None:
            self.report("IR007", f'{what} has {name}="{text}", which is no integer', node, name, layer=layer)
        return number

    # -- net ------------------------------------------------------------------------------------

    def _open_net(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._bound()
        version = self._nets[-1].version if self._nets else 0  # 0 for the body of a bare layer
        if tag.lower() == "net":
            if "xmlns" in attributes:
                name = f"{{{attributes['xmlns']}}}{tag}"  # the usual notation for a tag in a namespace
                self.report("IR003", f"the root element is <{name}>, not <net>", self._node)
                self._close()
                self._skip()
                return
            found = self._version(attributes)
            if found is None:  # its elements may have another meaning, so skip them
                self._close()
                self._skip()
                return
            version = found
        self._nets.append(_Net(tag.lower(), attributes.get("name") or "", version, self._node))

    def _version(self, attributes: Mapping[str, str]) -> int | None:
        """Return the IR version of a ``<net>``; report it (IR004) and return None if irrun does not read it."""
        text = attributes.get("version")
        if text is None or not text.isascii() or not text.isdigit() or len(text) > 6:
            what = "has no version" if text is None else f'has the version "{text}"'
            self.report("IR004", f"<net> {what}; irrun reads IR versions 10 and 11", self._node)
            return None
        version = int(text)
        if version in VERSIONS:
            return version
        help = (
            "convert the original model again with a current OpenVINO (openvino.convert_model, then save_model)"
            if version < VERSIONS[0]
            else "update irrun, or save the model again with an OpenVINO that writes version 11"
        )
        message = f"this is IR version {version}; irrun reads versions 10 and 11"
        self.report("IR004", message, self._node, "version", help=help)
        return None

    def _open_layers(self, _tag: str, _attributes: Mapping[str, str]) -> None:
        self._nets[-1].has_layers = True

    def _close_net(self) -> None:
        net = self._nets.pop()
        if not net.has_layers:
            self.report("IR003", f"<{net.tag}> has no <layers>", net.node)
            return
        feeds = self._connect(net)
        model = Model(net.name, net.version, net.layers, tuple(net.edges), feeds, self.source, self.weights)
        cycle = model.cycle()
        if cycle:
            names = [f'"{layer.name}"' for layer in cycle]
            names = names if len(names) < 8 else [*names[:6], "…", names[-1]]
            message = f"layers feed each other in a circle: {' -> '.join((*names, names[0]))}"
            help = "one of these edges is wrong; what is computed over and over stands in a Loop or TensorIterator"
            self.report("IR106", message, cycle[0].node, layer=cycle[0].name, help=help)
        if self._layers:
            self._layers[-1].bodies[net.tag] = model
        else:
            self.model = model

    # -- layer ----------------------------------------------------------------------------------

    def _open_layer(self, _tag: str, attributes: Mapping[str, str]) -> None:
        self._layers.append(_Layer(attributes, attributes.get("name") or "", self._node))

    def _open_data(self, _tag: str, attributes: Mapping[str, str]) -> None:
        self._layers[-1].attributes = attributes

    def _open_port_map(self, tag: str, _attributes: Mapping[str, str]) -> None:
        self._layers[-1].maps[tag.lower()] = []

    def _open_entry(self, tag: str, attributes: Mapping[str, str]) -> None:
        next(reversed(self._layers[-1].maps.values())).append((tag.lower(), attributes, self._node))

    def _close_layer(self) -> None:
        made = self._layers.pop()
        bare = not self._nets
        name, type = made.name, made.tag.get("type")
        id = 0 if bare else self._integer(made.tag, "id", f'layer "{name}"', made.node, name)
        if type is None:
            self.report("IR007", f'layer "{name}" has no type', made.node, layer=name)
        if id is None or type is None:
            if not bare:
                self._nets[-1].doubtful = True
            return
        if not bare:
            self._unique_ports(type, name, made.inputs + made.outputs)
        maps = {tag: self._port_map(tag, entries, made) for tag, entries in made.maps.items()}
        back_edges = tuple(
            [
                (start, end)
                for start, end, node in made.back_edges
                if self._body_layer(made, "body", start, "Result", node, "from-layer")
                and self._body_layer(made, "body", end, "Parameter", node, "to-layer")
            ]
        )
        layer = Layer(
            id, name, type, made.tag.get("version"), made.attributes, tuple(made.inputs), tuple(made.outputs),
            made.node, made.bodies, maps, back_edges, _names(made.tag.get("output_names")),
        )  # fmt: skip
        for tag in made.bodies:
            self._complete(layer, tag, made)
        if bare:
            self.layer = layer
            return
        layers = self._nets[-1].layers
        if id in layers:
            message = f'layer "{name}" has the id {id}, which layer "{layers[id].name}" has already'
            self.report("IR101", message, made.node, "id", layer=name)
            self._nets[-1].doubtful = True
            return
        layers[id] = layer

    def _complete(self, layer: Layer, tag: str, made: _Layer) -> None:
        """Report gaps in a port map (IR104): a Parameter that no entry feeds, or an output that no entry produces."""
        map_tag = tag.replace("body", "port_map")
        entries = layer.maps.get(map_tag, ())
        if len(entries) < len(made.maps.get(map_tag, ())):
            return  # the missing entries are invalid and already reported
        counts = tag == "body"  # a Loop may write its iteration count into a Parameter
        fed = {
            entry.internal
            for entry in entries
            if entry.kind == "input"
            and (entry.external is not None or (counts and entry.purpose == "current_iteration"))
        }
        given = {entry.external for entry in entries if entry.kind == "output"}
        for parameter in made.bodies[tag].parameters:
            if parameter.id not in fed:
                message = f'no entry of <{map_tag}> of "{layer.name}" feeds "{parameter.name}" of its <{tag}>'
                self.report("IR104", message, parameter.node, layer=parameter.name)
        for position, port in enumerate(layer.outputs):
            if position not in given:
                message = f'no entry of <{map_tag}> gives output port {port.id} of "{layer.name}"'
                self.report("IR104", message, port.node, layer=layer.name, port=port.id)

    def _unique_ports(self, type: str, name: str, ports: list[Port]) -> None:
        """Report ports of a layer that share an id (IR102)."""
        if len({port.id for port in ports}) == len(ports):
            return
        seen: set[int] = set()
        for port in ports:
            if port.id in seen:
                message = f'{type} "{name}" has two ports with the id {port.id}'
                self.report("IR102", message, port.node, "id", layer=name, port=port.id)
                self._nets[-1].doubtful = True
            seen.add(port.id)

    # -- port -----------------------------------------------------------------------------------

    def _open_port(self, _tag: str, attributes: Mapping[str, str]) -> None:
        content = self._elements.content()
        self._port = (attributes, self._node, content)
        self._dims, self._dim_nodes = [], []
        known = self._contents.get(content)
        if known is None:
            self._elements.text(True)
            return
        shape, elements = known
        self._elements.pass_over()
        self._close()
        self._add_port(shape)
        self._node += elements

    def _close_port(self) -> None:
        self._elements.text(False)
        self._add_port(None)
        _, node, content = self._port
        dims = tuple(self._dims)
        if content and self._elements.is_at_end() and (not dims or dims in self._shapes):
            self._contents[content] = (self._shapes.get(dims), self._node - node)

    def _open_dim(self, _tag: str, _attributes: Mapping[str, str]) -> None:
        self._dims.append("")
        self._dim_nodes.append(self._node)

    def _add_port(self, shape: PartialShape | None) -> None:
        """Add the port that ends here to its layer, with the shape of its ``<dim>`` elements or else ``shape``."""
        attributes, node, _ = self._port
        layer = self._layers[-1]
        ports = layer.inputs if self._open[-1] is _INPUT else layer.outputs
        text = attributes.get("id")
        if text is None and not self._nets:
            id = -1  # a bare layer's ports are numbered by position
        elif text is not None and text.isdecimal() and len(text) < 10:
            id = int(text)
        else:
            found = self._integer(attributes, "id", f'a port of layer "{layer.name}"', node, layer.name)
            if found is None and self._nets:
                self._nets[-1].doubtful = True
            id = -2 - len(layer.inputs) - len(layer.outputs) if found is None else found
        precision, names = attributes.get("precision"), attributes.get("names")
        type = self._types.get(precision) if precision else None
        if precision and type is None:
            type = self._precision(precision, node, layer.name, id)
        if self._dims:
            shape = self._shape(layer.name, id)
        ports.append(Port(id, type, shape, _names(names) if names else (), node))

    def _precision(self, text: str, node: int, layer: str, port: int) -> ElementType | None:
        """Return the element type of a port; report it (IR305) and return None if it is unknown."""
        element_type = ElementType.parse(text)
        if element_type is not None:
            self._types[text] = element_type
        else:
            message = f'precision "{text}" of port {port} of "{layer}" is no element type'
            self.report("IR305", message, node, "precision", layer=layer, port=port, help="such as FP32, I64, BOOL")
        return element_type

    def _shape(self, layer: str, port: int) -> PartialShape:
        """Return the shape of the dims just read. Report each invalid dim (IR404) and take it as unknown."""
        key = tuple(self._dims)
        shape = self._shapes.get(key)
        if shape is not None:
            return shape
        dims = [_port_dim(text) for text in key]
        for axis, (dim, node) in enumerate(zip(dims, self._dim_nodes)):
            if dim is None:
                message = f'dim {axis} of port {port} of "{layer}" is "{key[axis].strip()}", which is not a dim'
                self.report("IR404", message, node, layer=layer, port=port, help="write a number, or -1 if unknown")
        shape = PartialShape(tuple(dim or Dim.unknown() for dim in dims))
        if None not in dims:
            self._shapes[key] = shape
        return shape

    def _port_map(
        self, tag: str, entries: list[tuple[str, Mapping[str, str], int]], layer: _Layer
    ) -> tuple[MapEntry, ...]:
        """Return the valid entries of a port map, and report the others (IR007, IR103)."""
        found: list[MapEntry] = []
        inputs, outputs, body = layer.inputs, layer.outputs, tag.replace("port_map", "body")
        by_id = {"input": {p.id: i for i, p in enumerate(inputs)}, "output": {p.id: i for i, p in enumerate(outputs)}}
        named = {attributes.get("external_port_id") for kind, attributes, _ in entries if kind == "output"} - {"-1"}
        if not named <= {str(id) for id in by_id["output"]}:
            by_id["output"] = {}  # files of 2021 number the outputs of If from 0 instead of using port ids
        what = f'an entry of <{tag}> of "{layer.name}"'
        for kind, attributes, node in entries:
            external = self._integer(attributes, "external_port_id", what, node, layer.name)
            internal = self._integer(attributes, "internal_layer_id", what, node, layer.name)
            if external is None or internal is None:
                continue
            wanted = "Parameter" if kind == "input" else "Result"
            if not self._body_layer(layer, body, internal, wanted, node, "internal_layer_id"):
                continue
            ports = inputs if kind == "input" else outputs
            position = external
            if external in by_id[kind]:
                position = by_id[kind][external]
            if position >= len(ports):
                message = f'<{tag}> names {kind} port {external} of "{layer.name}", which does not exist'
                self.report("IR103", message, node, "external_port_id", layer=layer.name)
                continue
            slicing = {
                name: number
                for name in ("axis", "start", "end", "stride", "part_size")
                if name in attributes and (number := self._integer(attributes, name, what, node)) is not None
            }
            purpose = attributes.get("purpose") or ""
            found.append(MapEntry(kind, None if external < 0 else position, internal, purpose=purpose, **slicing))
        return tuple(found)

    def _open_back_edge(self, _tag: str, attributes: Mapping[str, str]) -> None:
        start = self._integer(attributes, "from-layer", "a back edge")
        end = self._integer(attributes, "to-layer", "a back edge")
        if start is not None and end is not None:
            self._layers[-1].back_edges.append((start, end, self._node))

    def _body_layer(self, layer: _Layer, tag: str, id: int, wanted: str, node: int, attribute: str) -> bool:
        """Return whether layer ``id`` of a body has the type ``wanted``, and report it (IR103) if not.

        Return True if the layer has no such body: that problem is not reported here.
        """
        body = layer.bodies.get(tag)
        found = body.layers.get(id) if body else None
        if body is None or (found is not None and found.type.lower() == wanted.lower()):
            return True
        is_what = f'is the {found.type} "{found.name}"' if found else "does not exist"
        message = f'layer {id} of the <{tag}> of "{layer.name}" should be a {wanted}, but {is_what}'
        self.report("IR103", message, node, attribute, layer=layer.name)
        return False

    # -- edges ----------------------------------------------------------------------------------

    def _open_edge(self, _tag: str, attributes: Mapping[str, str]) -> None:
        ends = [_int(attributes.get(name, "")) for name in _ENDS]
        if None in ends:
            self._nets[-1].doubtful = True
            for name in _ENDS:
                self._integer(attributes, name, "an edge")
            return
        self._nets[-1].edges.append(Edge(*ends, self._node))  # type: ignore[arg-type]

    def _connect(self, net: _Net) -> dict[int, tuple[tuple[int, int] | None, ...]]:
        """Resolve the edges: return for each layer id which output feeds each input, as ``Model.feeds``.

        Report edges that lead nowhere (IR103), inputs with two edges (IR105), and inputs with none (IR104).
        """
        layers = net.layers
        outputs = {(l.id, p.id): i for l in layers.values() for i, p in enumerate(l.outputs)}
        inputs = {(l.id, p.id): i for l in layers.values() for i, p in enumerate(l.inputs)}
        feeds: dict[int, list[tuple[int, int] | None]] = {l.id: [None] * len(l.inputs) for l in layers.values()}
        broken: set[int] = set()  # layers with an input that an invalid edge may be meant for
        lost = 0  # number of invalid edges that may belong to any layer
        for edge in net.edges:
            start = outputs.get((edge.from_layer, edge.from_port))
            end = inputs.get((edge.to_layer, edge.to_port))
            if start is None or end is None:
                end, others = ("from", inputs) if start is None else ("to", outputs)
                if not net.doubtful:
                    self._dangling(edge, layers, end, others)
                broken.add(edge.to_layer)
                lost += edge.to_layer not in layers
                continue
            row = feeds[edge.to_layer]
            if row[end] is not None:
                layer = layers[edge.to_layer]
                message = f'input port {edge.to_port} of {layer.type} "{layer.name}" is fed by two edges'
                if not net.doubtful:
                    self.report("IR105", message, edge.node, layer=layer.name, port=edge.to_port)
                lost += 1
                continue
            row[end] = (edge.from_layer, start)
        unfed = [
            (layers[id], port)
            for id, row in feeds.items()
            if None in row and id not in broken
            for port, feed in zip(layers[id].inputs, row)
            if feed is None
        ]
        if len(unfed) > lost and not net.doubtful:
            for layer, port in unfed:
                message = f'no edge leads to input port {port.id} of {layer.type} "{layer.name}"'
                help = "add the edge, or remove the port"
                self.report("IR104", message, port.node, layer=layer.name, port=port.id, help=help)
        return {id: tuple(row) for id, row in feeds.items()}

    def _dangling(
        self, edge: Edge, layers: Mapping[int, Layer], end: str, others: Mapping[tuple[int, int], int]
    ) -> None:
        """Report an edge whose ``end`` (``from`` or ``to``) does not exist or is a port of the wrong kind (IR103).

        ``others`` holds the ports of the wrong kind: inputs for ``from``, outputs for ``to``.
        """
        id, port = (edge.from_layer, edge.from_port) if end == "from" else (edge.to_layer, edge.to_port)
        layer = layers.get(id)
        if layer is None:
            message, attribute = f"an edge leads {end} layer {id}, which does not exist", f"{end}-layer"
            help = None
        else:
            wrong = "an output" if end == "to" else "an input"
            why = f"which is {wrong}" if (id, port) in others else "which does not exist"
            message = f'an edge leads {end} port {port} of {layer.type} "{layer.name}", {why}'
            attribute = f"{end}-port"
            known = ", ".join(str(p.id) for p in (layer.outputs if end == "from" else layer.inputs)) or "none"
            help = f"its {'output' if end == 'from' else 'input'} ports are {known}"
        self.report("IR103", message, edge.node, attribute, layer=layer.name if layer else None, help=help)


@dataclass(slots=True, eq=False)
class _Kind:
    """A kind of element: its possible children by tag, and the methods of Reader for its start and its end."""

    children: dict[str, _Kind] = field(default_factory=dict)
    start: Callable[[Reader, str, Mapping[str, str]], None] | None = None
    end: Callable[[Reader], None] | None = None


def _kinds() -> dict[str, _Kind]:
    """Return the kinds of ``KNOWN_CHILDREN`` by name, with the methods ``_open_KIND`` and ``_close_KIND`` of Reader."""
    kinds = {name: _Kind() for name in KNOWN_CHILDREN}
    for name, children in KNOWN_CHILDREN.items():
        kinds[name].children = {tag: kinds[child] for tag, child in children.items()}
        kinds[name].start = getattr(Reader, f"_open_{name}", None)
        kinds[name].end = getattr(Reader, f"_close_{name}", None)
    return kinds


_KINDS: Final = _kinds()
_DOCUMENT, _INPUT, _PORT, _DIM = (_KINDS[name] for name in ("document", "input", "port", "dim"))
_ENDS: Final = ("from-layer", "from-port", "to-layer", "to-port")
_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")


def _int(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) < 19:  # the usual case, without the regular expression
        return int(text)
    return int(text) if _INTEGER.fullmatch(text) else None


def _port_dim(text: str) -> Dim | None:
    """Return the dim that the text of a ``<dim>`` means; None if it is invalid."""
    text = text.strip()
    if text in ("-1", "?"):
        return Dim.unknown()
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) < INF:
        return Dim(int(text))
    return None


def _names(text: str | None) -> tuple[str, ...]:
    r"""Return the tensor names in a text that separates them by commas. A comma within a name is written ``\,``."""
    if not text:
        return ()
    if "," not in text:
        return (text,)
    return tuple(name.replace("\\,", ",") for name in re.split(r"(?<!\\),", text))
