"""XML -> Model. The parser is locked down: no DOCTYPE, no entities, no network, bounded nesting and size."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers import expat

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  (no stubs)

from irrun.diagnostics import Diagnostic, ReadError, diagnostic
from irrun.model import Edge, Layer, MapEntry, Model, Port
from irrun.source import Source, Span
from irrun.types import INF, Dim, ElementType, PartialShape
from irrun.weights import Weights

__all__ = ["Parsed", "Reader", "parse", "read_bytes", "tree"]

VERSIONS: Final = (10, 11)


@dataclass(slots=True)
class Parsed:
    """A model, and what is wrong with the file as a file."""

    model: Model
    problems: list[Diagnostic]


def read_bytes(path: Path) -> bytes:
    """The bytes of a file. Raises ReadError (IR000)."""
    try:
        return path.read_bytes()
    except OSError as error:
        why = "is a folder" if path.is_dir() else (error.strerror or str(error)).lower()
        raise ReadError(
            Diagnostic("IR000", "error", f"cannot read {path}: {why}", file=str(path), help="check the path")
        ) from None


def parse(source: Source, weights: Weights | None = None) -> Parsed:
    """Read an IR document. Raises ReadError where there is no model in it (IR001 to IR006)."""
    root = tree(source)
    if root.tag.lower() != "net":
        raise ReadError(_at_root(source, "IR003", f"the root element is <{root.tag}>, not <net>"))
    _check_version(source, root)
    reader = Reader(source, weights)
    model = reader.model(root, 0)
    return Parsed(model, reader.problems)


def _at_root(source: Source, code: str, message: str, help: str | None = None) -> Diagnostic:
    return diagnostic(code, message, source=source, node=0, help=help)


def _check_version(source: Source, root: etree._Element) -> None:
    text = root.get("version")
    if text is None or not text.isascii() or not text.isdigit():
        what = "has no version" if text is None else f'has the version "{text}"'
        raise ReadError(_at_root(source, "IR004", f"<net> {what}; irrun reads IR versions 10 and 11"))
    version = int(text)
    if version not in VERSIONS:
        help = (
            "convert the original model again with a current OpenVINO (openvino.convert_model, then save_model)"
            if version < 10
            else "update irrun, or save the model again with an OpenVINO that writes version 11"
        )
        message = f"this is IR version {version}; irrun reads versions 10 and 11"
        raise ReadError(diagnostic("IR004", message, source=source, node=0, attribute="version", help=help))


# ---------------------------------------------------------------------------------------------
# well-formedness


def tree(source: Source, *, comments: bool = False) -> etree._Element:
    """The root element of a well-formed document without DOCTYPE. Raises ReadError."""
    if not source.data.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise ReadError(
            Diagnostic("IR001", "error", "the file is empty", file=source.path, source=source, span=Span(1, 1, 2))
        )
    _refuse_doctype(source)
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=not comments,
        remove_pis=True,
        collect_ids=False,
    )
    try:
        return etree.fromstring(source.data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ReadError(_why_not_xml(source, str(error))) from None


class _Stop(Exception):  # noqa: N818
    pass


def _refuse_doctype(source: Source) -> None:
    parser = expat.ParserCreate()
    found: list[tuple[int, int]] = []

    def doctype(*_: object) -> None:
        found.append((parser.CurrentLineNumber, parser.CurrentColumnNumber))
        raise _Stop

    def stop(*_: object) -> None:
        raise _Stop

    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = stop
    try:
        for start in range(0, len(source.data), 1 << 16):  # the root element is mostly in the first block
            parser.Parse(source.data[start : start + (1 << 16)], False)
    except (_Stop, expat.ExpatError, ValueError, LookupError):
        pass  # what is not well-formed is told by the real parser
    if found:
        line, column = found[0][0] + source.first_line - 1, found[0][1]
        raise ReadError(
            Diagnostic(
                "IR002", "error", "the file has a DOCTYPE, which irrun refuses",
                file=source.path, source=source, span=Span(line, column + 1, column + 10),
                help="remove the declaration; OpenVINO IR never needs one",
            )
        )  # fmt: skip


def _why_not_xml(source: Source, said: str) -> Diagnostic:
    """The exact place and a plain reason, from expat; libxml2's line numbers stop at 65,535."""
    parser = expat.ParserCreate()
    opened: list[tuple[str, int, int]] = []

    def start(tag: str, _: dict[str, str]) -> None:
        opened.append((tag, parser.CurrentLineNumber, parser.CurrentColumnNumber))

    def end(_: str) -> None:
        opened.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = None
    first = source.first_line - 1

    def found(code: str, message: str, line: int, column: int, help: str | None = None, width: int = 1) -> Diagnostic:
        span = Span(first + line, column + 1, column + 1 + width)
        return Diagnostic(code, "error", message, file=source.path, span=span, source=source, help=help)

    try:
        parser.Parse(source.data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        line, column = error.lineno, error.offset
        if error.code in (_MISMATCH, _NO_ELEMENTS, _UNCLOSED) and opened:
            tag, at_line, at_column = opened[-1]
            text = source.line(first + at_line)[at_column:]
            typo = re.match(rf"(<{tag}(?:\s[^<>]*)?>)([^<>]*?)\s*/\s*{tag}\s*>", text)
            if typo:
                right = f"{typo[1]}{typo[2].strip()}</{tag}>"
                return found(
                    "IR001", f"<{tag}> is not closed: {typo[0]!r} lacks a <", at_line, at_column,
                    f"write {right}", len(typo[0]),
                )  # fmt: skip
            if error.code != _MISMATCH:
                message = f"the file ends inside <{tag}>, opened at line {first + at_line}"
                return found("IR001", message, line, column, "the file is cut short; write or copy it again")
            message = f"the closing tag does not match <{tag}>, opened at line {first + at_line}"
            return found("IR001", message, line, column, f"close it with </{tag}>")
        if error.code in (_BAD_TOKEN, _UNKNOWN_ENCODING, _WRONG_ENCODING) and _undecodable(source.data):
            return found("IR006", f"the bytes are not valid text: {reason}", line, column, "save the file as UTF-8")
        if error.code == _NO_ELEMENTS:
            return found("IR001", "the file holds no element at all", line, column, "give the model's .xml file")
        return found("IR001", f"not well-formed XML: {reason}", line, column)
    except ValueError as error:
        return found("IR006", f"the encoding cannot be read: {error}", 1, 0, "save the file as UTF-8")
    if "encod" in said.lower():
        return found("IR006", f"the bytes are not valid text: {said}", 1, 0, "save the file as UTF-8")
    return found("IR005", f"refused by the parser: {said}", 1, 0)


_codes = expat.errors.codes
_MISMATCH: Final = _codes[expat.errors.XML_ERROR_TAG_MISMATCH]
_UNCLOSED: Final = _codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN]
_NO_ELEMENTS: Final = _codes[expat.errors.XML_ERROR_NO_ELEMENTS]
_BAD_TOKEN: Final = _codes[expat.errors.XML_ERROR_INVALID_TOKEN]
_UNKNOWN_ENCODING: Final = _codes[expat.errors.XML_ERROR_UNKNOWN_ENCODING]
_WRONG_ENCODING: Final = _codes[expat.errors.XML_ERROR_INCORRECT_ENCODING]


def _undecodable(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return b"encoding=" in data[:200]


# ---------------------------------------------------------------------------------------------
# elements -> Model


_BODIES: Final = ("body", "then_body", "else_body")
_MAPS: Final = ("port_map", "then_port_map", "else_port_map")


@dataclass(slots=True)
class Reader:
    """Walks the tree in document order; each method takes an element's ordinal and gives the next one's."""

    source: Source
    weights: Weights | None
    problems: list[Diagnostic] = field(default_factory=list)
    shapes: dict[tuple[str | None, ...], PartialShape | None] = field(default_factory=dict)
    types: dict[str, ElementType | None] = field(default_factory=dict)

    def report(self, code: str, message: str, node: int, attribute: str | None = None, **more: object) -> None:
        self.problems.append(diagnostic(code, message, source=self.source, node=node, attribute=attribute, **more))

    def integer(self, element: etree._Element, node: int, attribute: str, what: str) -> int | None:
        text = element.get(attribute)
        if text is None:
            self.report("IR007", f"{what} has no {attribute}", node)
            return None
        try:
            return int(text)
        except ValueError:
            self.report("IR007", f'{what} has {attribute}="{text}", which is no integer', node, attribute)
            return None

    def model(self, root: etree._Element, node: int) -> Model:
        layers: dict[int, Layer] = {}
        edges: list[Edge] = []
        next_node = node + 1
        seen_layers = False
        for child in root:
            tag = child.tag.lower()
            if tag == "layers":
                seen_layers = True
                next_node = self.layers(child, next_node, layers)
            elif tag == "edges":
                next_node = self.edges(child, next_node, edges)
            else:
                next_node += _size(child)
        if not seen_layers:
            raise ReadError(diagnostic("IR003", f"<{root.tag}> has no <layers>", source=self.source, node=node))
        feeds = self.connect(layers, edges)
        version = int(root.get("version") or VERSIONS[-1])
        model = Model(root.get("name") or "", version, layers, tuple(edges), feeds, self.source, self.weights)
        if cycle := model.cycle():
            names = " -> ".join(f'"{layer.name}"' for layer in (*cycle, cycle[0]))
            self.report("IR106", f"layers feed each other in a circle: {names}", cycle[0].node, layer=cycle[0].name)
        return model

    def layers(self, element: etree._Element, node: int, layers: dict[int, Layer]) -> int:
        next_node = node + 1
        for child in element:
            if child.tag.lower() == "layer":
                at = next_node
                layer, next_node = self.layer(child, at)
                if layer is None:
                    continue
                if layer.id in layers:
                    other = layers[layer.id].name
                    message = f'layer "{layer.name}" has the id {layer.id}, which layer "{other}" has already'
                    self.report("IR101", message, at, "id", layer=layer.name)
                    continue
                layers[layer.id] = layer
            else:
                next_node += _size(child)
        return next_node

    def layer(self, element: etree._Element, node: int) -> tuple[Layer | None, int]:
        attributes: Mapping[str, str] = {}
        inputs: tuple[Port, ...] = ()
        outputs: tuple[Port, ...] = ()
        bodies: dict[str, Model] = {}
        maps: dict[str, tuple[etree._Element, int]] = {}
        back_edges: tuple[tuple[int, int], ...] = ()
        name = element.get("name") or ""
        next_node = node + 1
        for child in element:
            tag = child.tag.lower()
            if tag == "input":
                inputs, next_node = self.ports(child, next_node, name)
            elif tag == "output":
                outputs, next_node = self.ports(child, next_node, name)
            elif tag == "data":
                attributes = dict(child.attrib)
                next_node += _size(child)
            elif tag in _BODIES:
                bodies[tag] = self.model(child, next_node)
                next_node += _size(child)
            elif tag in _MAPS:
                maps[tag] = child, next_node
                next_node += _size(child)
            elif tag == "back_edges":
                back_edges = self.back_edges(child, next_node)
                next_node += _size(child)
            else:
                next_node += _size(child)
        id = self.integer(element, node, "id", f'layer "{name}"')
        type = element.get("type")
        if type is None:
            self.report("IR007", f'layer "{name}" has no type', node, layer=name)
        if id is None or type is None:
            return None, next_node
        seen: set[int] = set()
        for port in (*inputs, *outputs):
            if port.id in seen:
                message = f'{type} "{name}" has two ports with the id {port.id}'
                self.report("IR102", message, port.node, "id", layer=name, port=port.id)
            seen.add(port.id)
        names = element.get("output_names")
        layer = Layer(
            id, name, type, element.get("version"), attributes, inputs, outputs, node, bodies,
            {tag: self.port_map(tag, *place, inputs, outputs) for tag, place in maps.items()}, back_edges,
            _names(names) if names else (),
        )  # fmt: skip
        return layer, next_node

    def port_map(
        self, tag: str, element: etree._Element, node: int, inputs: tuple[Port, ...], outputs: tuple[Port, ...]
    ) -> tuple[MapEntry, ...]:
        entries: list[MapEntry] = []
        for at, entry in enumerate(element, node + 1):
            kind = entry.tag.lower()
            external = self.integer(entry, at, "external_port_id", f"an entry of <{tag}>")
            internal = self.integer(entry, at, "internal_layer_id", f"an entry of <{tag}>")
            if external is None or internal is None:
                continue
            ports = inputs if kind == "input" else outputs
            # If counts its outputs, Loop and TensorIterator name them by port id
            by_id = {p.id: i for i, p in enumerate(ports)} if tag == "port_map" or kind == "input" else {}
            position = by_id.get(external, external) if by_id else external
            if position >= len(ports):
                self.report("IR103", f"<{tag}> names {kind} port {external}, which does not exist", at)
                continue
            slicing = {
                name: number
                for name in ("axis", "start", "end", "stride", "part_size")
                if entry.get(name) is not None
                and (number := self.integer(entry, at, name, f"an entry of <{tag}>")) is not None
            }
            purpose = entry.get("purpose") or ""
            entries.append(MapEntry(kind, None if external < 0 else position, internal, purpose=purpose, **slicing))
        return tuple(entries)

    def back_edges(self, element: etree._Element, node: int) -> tuple[tuple[int, int], ...]:
        found: list[tuple[int, int]] = []
        for at, edge in enumerate(element, node + 1):
            start = self.integer(edge, at, "from-layer", "a back edge")
            end = self.integer(edge, at, "to-layer", "a back edge")
            if start is not None and end is not None:
                found.append((start, end))
        return tuple(found)

    def ports(self, element: etree._Element, node: int, layer: str) -> tuple[tuple[Port, ...], int]:
        ports: list[Port] = []
        next_node = node + 1
        for child in element:
            if child.tag.lower() != "port":
                next_node += _size(child)
                continue
            at = next_node
            next_node += 1
            dims: list[str | None] = []
            for dim in child:
                tag = dim.tag
                if tag == "dim" or tag.lower() == "dim":
                    dims.append(dim.text)
                    next_node += 1 + (_size(dim) - 1 if len(dim) else 0)
                else:
                    next_node += _size(dim)
            id = self.integer(child, at, "id", f'a port of layer "{layer}"')
            if id is None:
                continue
            names = child.get("names")
            precision = child.get("precision")
            ports.append(
                Port(
                    id,
                    self.precision(precision, at, layer, id) if precision else None,
                    self.shape(dims, child, at, layer, id) if dims else None,
                    _names(names) if names else (),
                    at,
                )
            )
        return tuple(ports), next_node

    def precision(self, text: str, node: int, layer: str, port: int) -> ElementType | None:
        if text in self.types:
            return self.types[text]
        found = ElementType.parse(text)
        if found is None:
            message = f'precision "{text}" of port {port} of "{layer}" is no element type'
            self.report("IR305", message, node, "precision", layer=layer, port=port, help="such as FP32, I64, BOOL")
        else:
            self.types[text] = found
        return found

    def shape(
        self, texts: list[str | None], element: etree._Element, node: int, layer: str, port: int
    ) -> PartialShape | None:
        key = tuple(texts)
        if key in self.shapes:
            return self.shapes[key]
        dims: list[Dim] = []
        for axis, text in enumerate(texts):
            dim = _port_dim(text)
            if dim is None:
                at = self.source.children(node, "dim")[axis]
                message = f'dim {axis} of port {port} of "{layer}" is "{(text or "").strip()}", which is no dim'
                self.report("IR404", message, at, layer=layer, port=port, help="write a number, or -1 if unknown")
                dim = Dim.unknown()
            dims.append(dim)
        shape = PartialShape(tuple(dims))
        if all(_port_dim(text) is not None for text in texts):
            self.shapes[key] = shape
        return shape

    def edges(self, element: etree._Element, node: int, edges: list[Edge]) -> int:
        next_node = node + 1
        for child in element:
            if child.tag.lower() == "edge":
                get = child.get
                try:
                    edge = Edge(
                        int(get("from-layer", "")), int(get("from-port", "")),
                        int(get("to-layer", "")), int(get("to-port", "")), next_node,
                    )  # fmt: skip
                    edges.append(edge)
                except ValueError:
                    for name in ("from-layer", "from-port", "to-layer", "to-port"):
                        self.integer(child, next_node, name, "an edge")
            next_node += _size(child) if len(child) else 1
        return next_node

    def connect(self, layers: Mapping[int, Layer], edges: list[Edge]) -> dict[int, tuple[tuple[int, int] | None, ...]]:
        """Resolve the edges to positions, and report those that lead nowhere."""
        outputs = {(l.id, p.id): i for l in layers.values() for i, p in enumerate(l.outputs)}
        inputs = {(l.id, p.id): i for l in layers.values() for i, p in enumerate(l.inputs)}
        feeds: dict[int, list[tuple[int, int] | None]] = {l.id: [None] * len(l.inputs) for l in layers.values()}
        fed: dict[tuple[int, int], Edge] = {}
        broken: set[int] = set()  # layers whose inputs an edge in error may have been meant for
        for edge in edges:
            start = outputs.get((edge.from_layer, edge.from_port))
            end = inputs.get((edge.to_layer, edge.to_port))
            if start is None:
                self.dangling(edge, layers, "from", inputs)
                broken.add(edge.to_layer)
                continue
            if end is None:
                self.dangling(edge, layers, "to", outputs)
                broken.add(edge.to_layer)
                continue
            key = (edge.to_layer, end)
            layer = layers[edge.to_layer]
            if key in fed:
                message = f'input port {edge.to_port} of {layer.type} "{layer.name}" is fed by two edges'
                self.report("IR105", message, edge.node, layer=layer.name, port=edge.to_port)
                continue
            fed[key] = edge
            feeds[edge.to_layer][end] = (edge.from_layer, start)
        for layer in layers.values():
            for port, feed in zip(layer.inputs, feeds[layer.id]):
                if feed is None and layer.id not in broken:
                    message = f'no edge leads to input port {port.id} of {layer.type} "{layer.name}"'
                    self.report("IR104", message, port.node, layer=layer.name, port=port.id)
        return {id: tuple(row) for id, row in feeds.items()}

    def dangling(
        self, edge: Edge, layers: Mapping[int, Layer], end: str, others: Mapping[tuple[int, int], int]
    ) -> None:
        id, port = (edge.from_layer, edge.from_port) if end == "from" else (edge.to_layer, edge.to_port)
        layer = layers.get(id)
        if layer is None:
            message, attribute = f"an edge leads {end} layer {id}, which does not exist", f"{end}-layer"
        else:
            wrong = "an output" if end == "to" else "an input"
            why = f"which is {wrong}" if (id, port) in others else "which does not exist"
            message = f'an edge leads {end} port {port} of {layer.type} "{layer.name}", {why}'
            attribute = f"{end}-port"
        self.report("IR103", message, edge.node, attribute, layer=layer.name if layer else None)


def _size(element: etree._Element) -> int:
    """How many elements a subtree has."""
    return 1 if not len(element) else sum(1 for _ in element.iter("*"))


def _port_dim(text: str | None) -> Dim | None:
    text = (text or "").strip()
    if text in ("-1", "?"):
        return Dim.unknown()
    if text.isascii() and text.isdigit() and int(text) < INF:
        return Dim(int(text))
    return None


def _names(text: str) -> tuple[str, ...]:
    r"""Tensor names separated by commas; a comma within a name is written ``\,``."""
    return tuple(name.replace("\\,", ",") for name in re.split(r"(?<!\\),", text))
