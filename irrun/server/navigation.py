"""Answer questions about a position of a document: what it means, where its edges lead, and where its name occurs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from irrun.base.edits import set_attribute
from irrun.base.source import Source
from irrun.base.text import printable
from irrun.checking.origins import Explanation
from irrun.checking.questions import Asked
from irrun.inference.trace import Trace
from irrun.model import Layer
from irrun.opdef import Op
from irrun.server.document import Document, Range
from irrun.server.snapshot import Place

__all__ = [
    "Symbol", "definitions", "document_symbols", "folds", "hover", "layers_named", "named", "references", "renamed",
    "weights_at",
]  # fmt: skip

_MOST_STEPS: Final = 12
"""The most steps of the origin of a dim that a hover shows: they fill a window of an editor."""
_FAR: Final = 200
"""The most layers that a step of the origin skips, so that a hover in a long chain of layers takes no second."""
_MOST_SYMBOLS: Final = 5000
"""The most layers that the outline of a document lists. Beyond them, it shows the prefixes of their names."""


class Symbol(NamedTuple):
    """A layer, or the layers whose names have one prefix: a name, what it is, its bytes in the text, and its parts."""

    name: str
    detail: str
    range: Range
    children: tuple[Symbol, ...] = ()


# ---------------------------------------------------------------------------------------------
# what a position means


def hover(document: Document, position: tuple[int, int]) -> str | None:
    """Return the operation, the inferred shapes and their origin at a position, in Markdown; None outside layers."""
    place = document.at(position)
    if place is None:
        return None
    asked = _asked(place)
    if asked is None:
        return None
    layer = asked.layer
    op = asked.trace.ops.get(layer.id)
    lines = [f"**{_title(layer, op)}** `{printable(layer.name)}`"]
    if op is not None and (summary := inspect.cleandoc(type(op).__doc__ or "").split("\n\n")[0]):
        lines.append(summary.replace("``", "`"))
    if attribute := _attribute_at(document, position, op):
        lines.append(attribute)
    if asked.outputs:
        origin = str(Explanation(asked, most=_MOST_STEPS, far=_FAR))
        origin = origin.replace(f"  {asked.trace.model.source.path}:", "  line ")
        lines.append(f"```text\n{origin.rstrip()}\n```")
    return "\n\n".join(lines)


def _title(layer: Layer, op: Op | None) -> str:
    return f"{op.type}-{op.since}" if op is not None else f"{printable(layer.type)} (no operation that irrun knows)"


def _attribute_at(document: Document, position: tuple[int, int], op: Op | None) -> str | None:
    """Return what an operation declares of the attribute of ``<data>`` at a position, in Markdown."""
    line = document.text.line(position[0] + 1)
    if op is None or "<data" not in line:
        return None
    for match in re.finditer(r"""([^\s=<>"'/]+)\s*=\s*(?:"[^"]*"|'[^']*')""", line):
        if match.start() <= position[1] <= match.end():
            for attribute in op.attributes.values():
                if match[1] in (attribute.name, *attribute.aliases):
                    return f"`{attribute.name}`: {attribute.expects}"
    return None


def _asked(place: Place) -> Asked | None:
    """Return the outputs that a place means: those of a layer, that of a port or edge, or one dim of a port."""
    trace = place.trace
    source = trace.model.source
    if place.edge is not None:
        layer = trace.model.layers.get(place.edge.from_layer)
        position = _output(layer, place.edge.from_port) if layer else None
        return Asked(trace, layer, (position,)) if layer is not None and position is not None else None
    layer, port = place.layer, place.port
    if layer is None:
        return None
    if port is None and layer.outputs:
        return Asked(trace, layer, tuple(range(len(layer.outputs))))
    if port is None:
        port = layer.inputs[0] if layer.inputs else None
    if port is None:
        return Asked(trace, layer, ())
    dims = source.children(port.node, "dim")
    axis = dims.index(place.node) if place.node in dims else None
    if port in layer.outputs:
        return Asked(trace, layer, (layer.outputs.index(port),), axis)
    feed = trace.model.feeds[layer.id][layer.inputs.index(port)]
    return None if feed is None else Asked(trace, trace.model.layers[feed[0]], (feed[1],), axis)


def _output(layer: Layer, id: int) -> int | None:
    return next((position for position, port in enumerate(layer.outputs) if port.id == id), None)


# ---------------------------------------------------------------------------------------------
# edges


def definitions(document: Document, position: tuple[int, int]) -> list[Range]:
    """Return where a position leads to, against the direction of the edges.

    The end of an edge at the position leads to its port, an input to the output that feeds it, an output to itself,
    and a layer to the outputs that feed it.
    """
    place = document.at(position)
    if place is None:
        return []
    model = place.trace.model
    if place.edge is not None:
        edge = place.edge
        is_end = _is_end(document, position)
        layer = model.layers.get(edge.to_layer if is_end else edge.from_layer)
        ports = () if layer is None else layer.inputs if is_end else layer.outputs
        wanted = edge.to_port if is_end else edge.from_port
        nodes = [port.node for port in ports if port.id == wanted] or ([layer.node] if layer is not None else [])
    elif place.layer is not None and place.port is not None and place.port in place.layer.outputs:
        nodes = [place.port.node]
    elif place.layer is not None:
        feeds = model.feeds[place.layer.id]
        if place.port is not None:
            feeds = (feeds[place.layer.inputs.index(place.port)],)
        nodes = [model.layers[feed[0]].outputs[feed[1]].node for feed in feeds if feed is not None]
    else:
        nodes = []
    return _ranges(document, nodes)


def weights_at(document: Document, position: tuple[int, int]) -> str | None:
    """Return the path of the ``.bin`` if a position is in a Const whose values are there; None elsewhere."""
    place = document.at(position)
    if place is None or place.layer is None or place.layer.type != "Const" or document.snapshot is None:
        return None
    weights = document.snapshot.model.weights
    return str(weights.path) if weights is not None and weights.path is not None else None


def references(document: Document, position: tuple[int, int]) -> list[Range]:
    """Return the edges and inputs that an output feeds: that of a port or an edge, or every output of a layer."""
    place = document.at(position)
    asked = _asked(place) if place is not None else None
    if asked is None:
        return []
    model = asked.trace.model
    keys = [(asked.layer.id, output) for output in asked.outputs]
    inputs = [model.layers[id].inputs[at].node for key in keys for id, at in model.readers.get(key, ())]
    begin = {(asked.layer.id, asked.layer.outputs[output].id) for output in asked.outputs}
    edges = [edge.node for edge in model.edges if (edge.from_layer, edge.from_port) in begin]
    return _ranges(document, sorted({*inputs, *edges}))


def _is_end(document: Document, position: tuple[int, int]) -> bool:
    """Return whether a position in an edge is in its attributes to-layer and to-port."""
    offset, text = document.text.offset(*position), document.text.data
    start = text.rfind(b"<", 0, offset + 1)
    names = re.finditer(rb"\b(from|to)-(?:layer|port)\b", text[start : text.find(b">", offset)])
    begun = [name[1] for name in names if start + name.start() <= offset]
    return bool(begun) and begun[-1] == b"to"


def _ranges(document: Document, nodes: list[int]) -> list[Range]:
    found = [document.element(node) for node in nodes]
    return [range for range in found if range is not None]


# ---------------------------------------------------------------------------------------------
# names


def named(document: Document, position: tuple[int, int]) -> tuple[Layer, Range] | None:
    """Return the layer at a position with the place of its name, if the name may be changed; None elsewhere."""
    place = document.at(position)
    edit = _name_edit(document, place, "") if place is not None else None
    return None if place is None or place.layer is None or edit is None else (place.layer, edit[0])


def renamed(document: Document, position: tuple[int, int], name: str) -> tuple[Range, str]:
    """Return the edit that gives the layer at a position another name.

    Raises ValueError if there is no layer, or if it cannot have this name.
    """
    place = document.at(position)
    edit = _name_edit(document, place, name) if place is not None else None
    if place is None or edit is None:
        raise ValueError("there is no layer here that can be renamed: put the cursor on a <layer>")
    if not name or not name.isprintable():
        raise ValueError("a layer needs a name of printable characters")
    if any(other.name == name for other in place.trace.model.layers.values() if other is not place.layer):
        raise ValueError(f'another layer is named "{name}": choose a name that no layer has')
    return edit


def _name_edit(document: Document, place: Place, name: str) -> tuple[Range, str] | None:
    """Return the edit that gives a layer another name; None if its tag has no name, or was edited."""
    bytes_of_tag = document.tag(place.layer.node) if place.layer is not None else None
    if bytes_of_tag is None:
        return None
    start, end = bytes_of_tag
    tag = bytes(document.text.data[start:end]).removesuffix(b">").removesuffix(b"/") + b"/>"
    edits = set_attribute(Source("", tag), 0, "name", name)
    return (document.range(start + edits[0].start, start + edits[0].end), edits[0].text) if edits else None


def document_symbols(document: Document) -> list[Symbol]:
    """Return the layers of the model in a tree by the parts of their names between slashes.

    A tree of more than about ``_MOST_SYMBOLS`` symbols loses its deepest parts, then the last layers.
    """
    snapshot = document.snapshot
    if snapshot is None:
        return []
    layers = [(layer.name.split("/"), layer) for layer in snapshot.top_layers]
    return _grouped(document, snapshot.trace, layers, 0, _MOST_SYMBOLS)


def _grouped(
    document: Document, trace: Trace, layers: list[tuple[list[str], Layer]], depth: int, most: int
) -> list[Symbol]:
    groups: dict[str, list[tuple[list[str], Layer]]] = {}
    for parts, layer in layers:
        groups.setdefault(parts[min(depth, len(parts) - 1)], []).append((parts, layer))
    share = most // max(len(groups), 1)
    symbols: list[Symbol] = []
    for name, members in islice(groups.items(), most):
        first, last = (document.element(layer.node, whole=True) for layer in (members[0][1], members[-1][1]))
        if first is None or last is None:
            continue
        if len(members) == 1:
            layer = members[0][1]
            rest = "/".join(members[0][0][depth:]) or layer.name
            symbols.append(Symbol(rest or f"#{layer.id}", f"{layer.type}  {_shapes(trace, layer)}", first))
            continue
        is_deeper = any(len(parts) > depth + 1 for parts, _ in members)
        inner = _grouped(document, trace, members, depth + 1, share) if is_deeper and share > 1 else []
        symbols.append(Symbol(name or "/", f"{len(members)} layers", (first[0], max(first[1], last[1])), tuple(inner)))
    return symbols


def _shapes(trace: Trace, layer: Layer) -> str:
    values = [trace.values.get((layer.id, position)) for position in range(len(layer.outputs))]
    return " ".join(str(value.shape) for value in values if value is not None)


def layers_named(document: Document, prefix: str) -> Iterator[tuple[str, str, Range]]:
    """Yield the name, the type and the place of each layer whose name begins with ``prefix``."""
    for _, layer in document.snapshot.named(prefix) if document.snapshot is not None else ():
        if (range := document.element(layer.node)) is not None:
            yield layer.name, layer.type, range


def folds(document: Document, most: int) -> list[tuple[int, int]]:
    """Return the first and last line of up to ``most`` elements to fold: ``<rt_info>``, then bodies, then layers."""
    snapshot = document.snapshot
    if snapshot is None:
        return []
    found: list[tuple[int, int]] = []
    source = snapshot.source
    for tag in ("layers", "edges", "rt_info", "body", "then_body", "else_body", "layer"):
        for node in source.tagged(tag):
            if len(found) == most:
                return found
            start = document.changes.new(source.offset(node))
            end = document.changes.new(source.end(node) - 1)
            if start is not None and end is not None:
                first, last = document.text.position(start)[0], document.text.position(end)[0]
                if last > first:
                    found.append((first, last))
    return found
