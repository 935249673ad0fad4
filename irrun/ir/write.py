"""Write a model as XML and ``.bin`` files that OpenVINO reads.

Elements and attributes of the original file that irrun does not use are kept.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  (no stubs)

from irrun.diagnostics import BuildError, ModelError, Refused, diagnostic
from irrun.files import NewFile, replace_pair
from irrun.inference.bind import bind
from irrun.inference.propagate import refusal, weights_missing
from irrun.ir.reader import KNOWN_CHILDREN
from irrun.model import VERSIONS, Layer, MapEntry, Model, Port, is_constant
from irrun.types import Dim, ElementType

__all__ = ["save_model", "to_xml"]


def save_model(
    model: Model,
    xml: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    *,
    compact: bool = False,
) -> None:
    """Write a model to the file ``xml``, and its weights to ``weights``, by default the ``.bin`` file beside it.

    Each file is written completely or not at all, and nobody opens the new ``.bin`` with an old ``.xml``: between the
    two renames, there is no ``.xml``. Elements that irrun does not use (``rt_info``, ``meta_data`` …) are
    kept from the file that the model was read from. The weights are copied unchanged; ``compact`` leaves out the bytes
    to which no constant of the model refers. Raises ModelError if the weights are missing (IR501) or, with ``compact``,
    a constant lies outside of them (IR502), BuildError (IR609) if both files are the same, and WriteError (IR011) if
    a file cannot be written.
    """
    if model.weights is None and model.constants:
        raise ModelError(weights_missing(model))
    target = Path(xml).resolve()
    beside = target.with_suffix(".bin") if weights is None else Path(weights).resolve()
    if beside == target:
        message, help = f"{target} cannot hold both the model and its weights", "name another file for the weights"
        raise BuildError(diagnostic("IR609", message, file=str(target), help=help))
    data = np.empty(0, np.uint8) if model.weights is None else model.weights.data
    parts = _parts(model) if compact else [_Part(0, len(data), 0)]
    text = to_xml(model, (lambda offset: _moved(parts, offset)) if compact else None)
    with ExitStack() as stack:
        new_weights, new_model = (stack.enter_context(NewFile(path)) for path in (beside, target))
        for part in parts:
            new_weights.file.seek(part.to)
            for start in range(part.start, part.stop, _BLOCK):
                new_weights.file.write(data[start : min(start + _BLOCK, part.stop)].data)
        new_model.file.write(text)
        replace_pair(new_weights, new_model)


_BLOCK: Final = 1 << 24
"""The bytes of weights that are written at a time: they are memory-mapped and may be larger than the memory."""


# ---------------------------------------------------------------------------------------------
# weights


@dataclass(slots=True)
class _Part:
    """Bytes ``start`` to ``stop`` (excluded) of a .bin, which are copied to offset ``to`` of another .bin."""

    start: int
    stop: int
    to: int


_ALIGNMENT: Final = 64
"""The offsets of parts in a compact .bin are multiples of this many bytes, so that mapped tensors are aligned."""


def _parts(model: Model) -> list[_Part]:
    """Return the parts of the .bin to which constants refer. Ranges that overlap or touch are one part."""
    parts: list[_Part] = []
    for start, size in sorted(_ranges(model)):
        if parts and start <= parts[-1].stop:
            parts[-1].stop = max(parts[-1].stop, start + size)
        else:
            parts.append(_Part(start, start + size, 0))
    end = 0
    for part in parts:
        part.to = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = part.to + part.stop - part.start
    return parts


def _ranges(model: Model) -> Iterator[tuple[int, int]]:
    """Yield the offset and size of each constant, bodies included. Raises ModelError if one is not in the .bin."""
    for layer in model.layers.values():
        if is_constant(layer):
            yield _range(model, layer)
        for body in layer.bodies.values():
            yield from _ranges(body)


def _range(model: Model, layer: Layer) -> tuple[int, int]:
    """Return the offset and size of a constant. Raises ModelError if they are malformed or reach outside the .bin."""
    op, problems = bind(model, layer)
    if op is None or model.weights is None:
        raise ModelError([p for p in problems if p.severity == "error"] or weights_missing(model))
    attributes: Any = op
    try:
        model.weights.bytes_at(attributes.offset, attributes.size)
    except Refused as refused:
        raise ModelError(refusal(model, layer, op, refused)) from None
    return attributes.offset, attributes.size


def _moved(parts: Sequence[_Part], offset: int) -> int:
    """Return the new offset of a byte of the old .bin. The ``parts`` ascend and do not touch."""
    part = parts[bisect.bisect_right(parts, offset, key=lambda part: part.start) - 1]
    return part.to + offset - part.start


# ---------------------------------------------------------------------------------------------
# XML


def to_xml(model: Model, moved: Callable[[int], int] | None = None) -> bytes:
    """Return the XML of a model in UTF-8. ``moved`` maps the offset of a constant to its offset in a new .bin."""
    return _Writer(model, moved).document()


Original = Any
"""The lxml element that a part of the model was read from, or None."""


@dataclass
class _Writer:
    """Writes the XML of one model, line by line."""

    model: Model
    moved: Callable[[int], int] | None = None
    originals: list[Original] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def document(self) -> bytes:
        model = self.model
        root: Original = None
        if not model.is_fragment and model.source.data:
            parser = etree.XMLParser(
                encoding="utf-8", resolve_entities="internal", no_network=True, load_dtd=False,
                remove_comments=True, remove_pis=True,
                recover=True,  # the document was read without namespaces, so that a prefix may be unbound
            )  # fmt: skip
            root = etree.fromstring(model.source.utf8, parser)
            self.originals = list(root.iter("*"))
        self.lines.append('<?xml version="1.0"?>')
        version = model.version if model.version in VERSIONS else VERSIONS[-1]
        self.net("net", model, {"name": model.name, "version": str(version)}, root, 0)
        return "\n".join([*self.lines, ""]).encode()

    def original(self, node: int, tag: str) -> Original:
        """Return the original element with ordinal ``node`` if it has this tag, otherwise None."""
        original = self.originals[node] if 0 <= node < len(self.originals) else None
        return original if original is not None and original.tag.lower() == tag else None

    def net(self, tag: str, net: Model, attributes: Mapping[str, str], original: Original, depth: int) -> None:
        self.open(tag, _merged(attributes, original), depth)
        self.open("layers", {}, depth + 1)
        for layer in net.layers.values():
            self.layer(layer, depth + 2)
        self.close("layers", depth + 1)
        self.open("edges", {}, depth + 1)
        for e in net.edges:
            ends = (e.from_layer, e.from_port, e.to_layer, e.to_port)
            self.empty("edge", dict(zip(_ENDS, map(str, ends))), depth + 2)
        self.close("edges", depth + 1)
        self.others("net", original, depth + 1)
        self.close(tag, depth)

    def layer(self, layer: Layer, depth: int) -> None:
        original = self.original(layer.node, "layer")
        attributes = {
            "id": str(layer.id), "name": layer.name, "type": layer.type, "version": layer.version,
            "output_names": _names(layer.output_names),
        }  # fmt: skip
        self.open("layer", _merged(attributes, original), depth)
        if layer.attributes:
            data = dict(layer.attributes)
            if self.moved and is_constant(layer):
                data["offset"] = str(self.moved(int(data["offset"])))
            self.empty("data", data, depth + 1)
        self.others("layer", original, depth + 1)
        for tag, ports in (("input", layer.inputs), ("output", layer.outputs)):
            if ports:
                self.open(tag, {}, depth + 1)
                for port in ports:
                    self.port(port, depth + 2)
                self.close(tag, depth + 1)
        for tag, entries in layer.maps.items():
            self.open(tag, {}, depth + 1)
            for entry in entries:
                self.empty(entry.kind, _entry(layer, entry), depth + 2)
            self.close(tag, depth + 1)
        if layer.back_edges:
            self.open("back_edges", {}, depth + 1)
            for start, end in layer.back_edges:
                self.empty("edge", {"from-layer": str(start), "to-layer": str(end)}, depth + 2)
            self.close("back_edges", depth + 1)
        for tag, body in layer.bodies.items():
            inside = None if original is None else next((c for c in original if c.tag.lower() == tag), None)
            self.net(tag, body, {"name": body.name} if body.name else {}, inside, depth + 1)
        self.close("layer", depth)

    def port(self, port: Port, depth: int) -> None:
        original = self.original(port.node, "port")
        text = None if original is None else original.get("precision")
        is_same = ElementType.parse(text or "dynamic") is port.type
        precision = text if is_same else port.type and port.type.port_name
        attributes = {"id": str(port.id), "precision": precision, "names": _names(port.names)}
        self.open("port", _merged(attributes, original), depth)
        for dim in (port.shape and port.shape.dims) or ():
            self.lines.append(f"{_TABS[depth + 1]}<dim>{_dim(dim)}</dim>")
        self.others("port", original, depth + 1)
        self.close("port", depth)

    def others(self, place: str, original: Original, depth: int) -> None:
        """Write the children of an original element that irrun does not read, unchanged."""
        for child in () if original is None else original:
            if child.tag.lower() not in KNOWN_CHILDREN[place]:
                text = etree.tostring(child, encoding="unicode", with_tail=False)
                self.lines.append(_TABS[depth] + text)

    # -- tags -----------------------------------------------------------------------------------

    def open(self, tag: str, attributes: Mapping[str, str], depth: int) -> None:
        self.lines.append(f"{_TABS[depth]}<{tag}{_attributes(attributes)}>")

    def close(self, tag: str, depth: int) -> None:
        """Write an end tag, or turn the start tag into an empty tag if it is the last line."""
        if self.lines[-1].startswith(f"{_TABS[depth]}<{tag}") and self.lines[-1].endswith(">"):  # no children
            self.lines[-1] = f"{self.lines[-1].removesuffix('>')} />"
        else:
            self.lines.append(f"{_TABS[depth]}</{tag}>")

    def empty(self, tag: str, attributes: Mapping[str, str], depth: int) -> None:
        self.lines.append(f"{_TABS[depth]}<{tag}{_attributes(attributes)} />")


_ENDS: Final = ("from-layer", "from-port", "to-layer", "to-port")
_TABS: Final = ["\t" * depth for depth in range(260)]


def _merged(attributes: Mapping[str, str | None], original: Original) -> dict[str, str]:
    """Return the attributes of the original element with ``attributes`` set, in the order of the original.

    An attribute with the value None is removed.
    """
    before: dict[str, str | None] = {} if original is None else dict(original.attrib)
    both = {**before, **attributes}.items()
    return {name: text for name, text in both if text is not None and not name.startswith("{")}


def _attributes(attributes: Mapping[str, str]) -> str:
    return "".join([f' {name}="{text.translate(_ESCAPED)}"' for name, text in attributes.items()])


_ESCAPED: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def _names(names: Sequence[str]) -> str | None:
    return ",".join(name.replace(",", "\\,") for name in names) or None


def _dim(dim: Dim) -> str:
    return "-1" if dim.value is None else str(dim.value)


def _entry(layer: Layer, entry: MapEntry) -> dict[str, str]:
    """Return the attributes of an entry of a port map."""
    ports = layer.inputs if entry.kind == "input" else layer.outputs
    external = -1 if entry.external is None else ports[entry.external].id
    attributes = {"external_port_id": str(external), "internal_layer_id": str(entry.internal)}
    if entry.axis is not None:
        slicing = (entry.axis, entry.start, entry.end, entry.stride, entry.part_size)
        attributes |= dict(zip(("axis", "start", "end", "stride", "part_size"), map(str, slicing)))
    if entry.purpose:
        attributes["purpose"] = entry.purpose
    return attributes
