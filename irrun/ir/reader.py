"""Build a Model from the elements of an IR document, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from irrun.base.source import Source
from irrun.inference.graph import annotate
from irrun.ir.bodies import back_edges, port_map, report_gaps
from irrun.ir.drafts import LayerDraft, NetDraft, Problems
from irrun.ir.edges import connect, report_cycle, report_port_twice, report_shared_ids
from irrun.ir.ports import PortReader
from irrun.ir.safe_xml import MOST_DEEP, Elements
from irrun.ir.texts import parse_integer, tensor_names
from irrun.model import VERSIONS, Edge, Layer, Model, Port
from irrun.model.weights import Weights
from irrun.types import PartialShape

__all__ = ["KNOWN_CHILDREN", "Reader"]

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
        self.problems = Problems(source)
        self.comments: list[tuple[int, str]] = []
        """Comments within ports: the ordinal of the port element, and the text of the comment."""
        self._elements: Elements
        self._node = -1
        """The ordinal of the element that began last."""
        self._skipped = 0
        """How many elements are open that are skipped; the outermost of them lies in the element ``_open[-1]``."""
        self._open = [_DOCUMENT]
        self._children = _DOCUMENT.children
        self._nets: list[NetDraft] = []
        self._layers: list[LayerDraft] = []
        self._ports = PortReader(self.problems)

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
            self._ports.dims[-1] += text

    def comment(self, text: str) -> None:
        if self._open[-1] in (_PORT, _DIM):
            self.comments.append((self._ports.node, text))
            self._ports.content = b""

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
            self.problems.report("IR003", f"the root element is <{tag}>, not <net>", self._node)
        self._skip()

    def _bound(self) -> None:
        """Refuse the document (IR005) if its elements are nested too deeply."""
        if len(self._open) + self._skipped > MOST_DEEP:
            self._elements.refuse("IR005", f"more than {MOST_DEEP} nested elements")

    def _skip(self) -> None:
        """Skip an element and everything inside it."""
        self._skipped += 1
        self._children = {}

    def _close(self) -> _Kind:
        """Leave an element and return its kind."""
        kind = self._open.pop()
        self._children = self._open[-1].children
        return kind

    # -- net ------------------------------------------------------------------------------------

    def _open_net(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._bound()
        version = self._nets[-1].version if self._nets else 0  # 0 for the body of a bare layer
        if tag.lower() == "net":
            if "xmlns" in attributes:
                name = f"{{{attributes['xmlns']}}}{tag}"  # the usual notation for a tag in a namespace
                self.problems.report("IR003", f"the root element is <{name}>, not <net>", self._node)
                self._close()
                self._skip()
                return
            declared = self._version(attributes)
            if declared is None:  # its elements may have another meaning, so skip them
                self._close()
                self._skip()
                return
            version = declared
        elif self._layers:
            self._is_first_in_layer(tag)
        self._nets.append(NetDraft(tag.lower(), attributes.get("name") or "", version, self._node))

    def _version(self, attributes: Mapping[str, str]) -> int | None:
        """Return the IR version of a ``<net>``; report it (IR004) and return None if irrun does not read it."""
        text = attributes.get("version")
        if text is None or not text.isascii() or not text.isdigit() or len(text) > 6:
            what = "has no version" if text is None else f'has the version "{text}"'
            self.problems.report("IR004", f"<net> {what}; irrun reads IR versions 10 and 11", self._node)
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
        self.problems.report("IR004", message, self._node, "version", help=help)
        return None

    def _open_layers(self, tag: str, _attributes: Mapping[str, str]) -> None:
        net = self._nets[-1]
        self._is_first(tag, net.parts, f"<{net.tag}>")

    def _open_edges(self, tag: str, _attributes: Mapping[str, str]) -> None:
        net = self._nets[-1]
        self._is_first(tag, net.parts, f"<{net.tag}>")

    def _is_first(self, tag: str, parts: set[str], what: str, layer: str | None = None) -> bool:
        """Return whether an element is the first with its tag in its parent; report any other (IR009).

        ``parts`` are the tags of the parent so far, and ``what`` is the parent in the message.
        """
        tag = tag.lower()
        if tag not in parts:
            parts.add(tag)
            return True
        self.problems.report(
            "IR009", f"{what} has a second <{tag}>", self._node, layer=layer, help="remove one of the two"
        )
        return False

    def _is_first_in_layer(self, tag: str) -> bool:
        layer = self._layers[-1]
        return self._is_first(tag, layer.parts, f'layer "{layer.name}"', layer.name)

    def _close_net(self) -> None:
        net = self._nets.pop()
        if "layers" not in net.parts:
            self.problems.report("IR003", f"<{net.tag}> has no <layers>", net.node)
            return
        report_shared_ids(net, self.problems)
        feeds = connect(net, self.problems)
        model = Model(
            net.name, net.version, net.layers, tuple(net.edges), feeds, self.source, self.weights, annotate=annotate
        )  # fmt: skip
        report_cycle(model, self.problems)
        if self._layers:
            self._layers[-1].bodies[net.tag] = model
        else:
            self.model = model

    # -- layer ----------------------------------------------------------------------------------

    def _open_layer(self, _tag: str, attributes: Mapping[str, str]) -> None:
        self._layers.append(LayerDraft(attributes, attributes.get("name") or "", self._node))

    def _open_data(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._is_first_in_layer(tag):  # OpenVINO takes the first, too
            self._layers[-1].attributes = attributes

    def _open_input(self, tag: str, _attributes: Mapping[str, str]) -> None:
        self._is_first_in_layer(tag)

    def _open_output(self, tag: str, _attributes: Mapping[str, str]) -> None:
        self._is_first_in_layer(tag)

    def _open_back_edges(self, tag: str, _attributes: Mapping[str, str]) -> None:
        self._is_first_in_layer(tag)

    def _open_port_map(self, tag: str, _attributes: Mapping[str, str]) -> None:
        self._is_first_in_layer(tag)
        self._layers[-1].maps[tag.lower()] = []

    def _open_entry(self, tag: str, attributes: Mapping[str, str]) -> None:
        next(reversed(self._layers[-1].maps.values())).append((tag.lower(), attributes, self._node))

    def _open_back_edge(self, _tag: str, attributes: Mapping[str, str]) -> None:
        start = self.problems.integer(attributes, "from-layer", "a back edge", self._node)
        end = self.problems.integer(attributes, "to-layer", "a back edge", self._node)
        if start is not None and end is not None:
            self._layers[-1].back_edges.append((start, end, self._node))

    def _close_layer(self) -> None:
        draft = self._layers.pop()
        problems, net = self.problems, self._nets[-1] if self._nets else None
        name, type = draft.name, draft.tag.get("type")
        id = 0 if net is None else problems.integer(draft.tag, "id", f'layer "{name}"', draft.node, name)
        if type is None:
            problems.report("IR007", f'layer "{name}" has no type', draft.node, layer=name)
        if id is None or type is None:
            if net is not None:
                net.doubtful = True
            return
        if net is not None:
            self._report_incomplete(draft, type)
        if net is not None:
            self._unique_ports(type, name, draft.inputs)
            self._unique_ports(type, name, draft.outputs)
        maps = {tag: port_map(tag, entries, draft, problems) for tag, entries in draft.maps.items()}
        layer = Layer(
            id, name, type, draft.tag.get("version"), draft.attributes, tuple(draft.inputs), tuple(draft.outputs),
            draft.node, draft.bodies, maps, back_edges(draft, problems), tensor_names(draft.tag.get("output_names")),
        )  # fmt: skip
        for tag in draft.bodies:
            report_gaps(layer, tag, draft, problems)
        if net is None:
            self.layer = layer
        elif id in net.layers:
            message = f'layer "{name}" has the id {id}, which layer "{net.layers[id].name}" already has'
            problems.report("IR101", message, draft.node, "id", layer=name, help="give each layer its own id")
            net.doubtful = True
        else:
            net.layers[id] = layer

    def _report_incomplete(self, layer: LayerDraft, type: str) -> None:
        """Report a layer without a version or a name (IR010). An example in a page need not have them."""
        for attribute, example in (("version", "opset1"), ("name", "layer1")):
            if attribute not in layer.tag and any(net.tag == "net" for net in self._nets):
                message = f'{type} "{layer.name}" has no {attribute}'
                help = f'write {attribute}="…", such as {example}'
                self.problems.report("IR010", message, layer.node, layer=layer.name, help=help)

    def _unique_ports(self, type: str, name: str, ports: list[Port]) -> None:
        """Report inputs of a layer, or outputs of a layer, that share an id (IR102)."""
        if len({port.id for port in ports}) == len(ports):
            return
        seen: set[int] = set()
        for port in ports:
            if port.id in seen:
                report_port_twice(type, name, port, self.problems)
                self._nets[-1].doubtful = True
            seen.add(port.id)

    # -- port -----------------------------------------------------------------------------------

    def _open_port(self, _tag: str, attributes: Mapping[str, str]) -> None:
        known = self._ports.open(attributes, self._node, self._elements.content())
        if known is None:
            self._elements.text(True)
            return
        shape, elements = known
        self._elements.pass_over()
        self._close()
        self._add_port(shape)
        self._node += elements

    def _open_dim(self, _tag: str, _attributes: Mapping[str, str]) -> None:
        self._ports.open_dim(self._node)

    def _close_port(self) -> None:
        self._elements.text(False)
        self._add_port(None)
        if self._ports.content and self._elements.is_at_end():
            self._ports.remember(self._node)

    def _add_port(self, shape: PartialShape | None) -> None:
        """Add the port that ends here to its layer, with the shape of its ``<dim>`` elements or else ``shape``."""
        layer = self._layers[-1]
        ports = layer.inputs if self._open[-1] is _INPUT else layer.outputs
        ports.append(self._ports.port(layer, self._nets[-1] if self._nets else None, shape))

    # -- edge -----------------------------------------------------------------------------------

    def _open_edge(self, _tag: str, attributes: Mapping[str, str]) -> None:
        ends = [parse_integer(attributes.get(name, "")) for name in _ENDS]
        if None in ends:
            self._nets[-1].doubtful = True
            for name in _ENDS:
                self.problems.integer(attributes, name, "an edge", self._node)
            return
        self._nets[-1].edges.append(Edge(*ends, self._node))  # type: ignore[arg-type]


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
