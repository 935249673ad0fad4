"""A version of a document that was read and checked as a whole, and the search for its layers and edges by position."""

from __future__ import annotations

import codecs
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

from irrun.api import open_weights
from irrun.base.source import Source, encoding_of
from irrun.checking.checker import examine
from irrun.inference.trace import Trace
from irrun.ir.parse import parse
from irrun.model import Edge, Layer, Port
from irrun.server.findings import MOST_FINDINGS, placed

__all__ = ["Place", "Snapshot", "is_ir"]

_ROOT: Final = re.compile(rb"\s*+(?:<\?.*?\?>\s*+|<!--.*?-->\s*+)*+<net[\s>]", re.DOTALL)
"""The beginning of an IR: its root element is ``<net>``, perhaps after a declaration and comments."""
_HEAD: Final = 1 << 16
"""The bytes in which the root element of a document begins."""


def is_ir(text: bytes | bytearray) -> bool:
    """Return whether a document is an IR, or becomes one while it is written: its root element is ``<net>``."""
    return _ROOT.match(bytes(text[:_HEAD])) is not None


@dataclass(frozen=True, slots=True)
class Place:
    """What a position of a file means: a layer in a model or body, or an edge, and the element there.

    ``port`` is the port of the layer that holds the position.
    """

    trace: Trace
    layer: Layer | None
    port: Port | None
    edge: Edge | None
    node: int


class Snapshot:
    """A document as it was when it was checked. All offsets are bytes of its text in UTF-8.

    ``findings`` are at most ``MOST_FINDINGS``.
    """

    def __init__(self, path: str, text: bytes) -> None:
        """Read and check a document. Raises ReadError if it holds no model."""
        data = text if encoding_of(text) == "utf-8" else codecs.BOM_UTF8 + text  # the editor has decoded it
        parsed = parse(Source(path, data), open_weights(Path(path), None))
        self.model = parsed.model
        self.source = parsed.model.source
        report, self.trace = examine(parsed)
        self.findings = list(placed(islice(report, MOST_FINDINGS), self.source))
        self.layers: dict[int, tuple[Trace, Layer]] = {}
        """The layers of the model and of all bodies, by the ordinal of their element."""
        self.edges: dict[int, tuple[Trace, Edge]] = {}
        for trace in self.trace.all():
            self.layers |= {layer.node: (trace, layer) for layer in trace.model.layers.values()}
            self.edges |= {edge.node: (trace, edge) for edge in trace.model.edges}
        self.tops = array("l", (self.source.offset(layer.node) for layer in self.model.layers.values()))
        """The offsets of the layers of the model, in the order of the file."""

    @cached_property
    def top_layers(self) -> list[Layer]:
        """The layers of the model, in the order of ``tops``."""
        return list(self.model.layers.values())

    @cached_property
    def edges_to(self) -> dict[int, list[Edge]]:
        """The edges of the model that lead to each layer, by its id."""
        edges: dict[int, list[Edge]] = {}
        for edge in self.model.edges:
            edges.setdefault(edge.to_layer, []).append(edge)
        return edges

    @cached_property
    def edge_offsets(self) -> array[int]:
        """The offsets of the edges of the model, in the order of the file."""
        return array("l", (self.source.offset(edge.node) for edge in self.model.edges))

    def prepare(self) -> None:
        """Compute what requests need and what takes long, so that no request has to wait for it."""
        for owner, name in (
            (self, "top_layers"), (self, "edges_to"), (self, "edge_offsets"), (self.model, "readers"),
            (self.model, "consumers"), (self.model, "unique_names"),
        ):  # fmt: skip
            getattr(owner, name)

    def release(self) -> None:
        """Free what refers back to the snapshot: a collection of garbage would stop all requests for a second."""
        self.trace.forget()
        self.layers.clear()
        self.edges.clear()

    def tops_within(self, start: int, end: int) -> range:
        """Return the positions in ``tops`` of the layers between which bytes ``start`` to ``end`` (exclusive) lie.

        The range is empty before the first layer. A byte after a layer and before the next one counts to the layer.
        """
        first = bisect_right(self.tops, start) - 1
        return range(first, max(bisect_left(self.tops, end), first + 1)) if first >= 0 else range(0)

    def at(self, offset: int) -> Place | None:
        """Return what a byte of the document means; None outside layers and edges."""
        nodes = self.source.at(offset)
        for node in nodes:
            if node in self.edges:
                trace, edge = self.edges[node]
                return Place(trace, None, None, edge, nodes[0])
            if node in self.layers:
                trace, layer = self.layers[node]
                ports = [port for port in (*layer.inputs, *layer.outputs) if port.node in nodes]
                return Place(trace, layer, ports[0] if ports else None, None, nodes[0])
        return None

    def named(self, prefix: str) -> Iterator[tuple[Trace, Layer]]:
        """Yield the layers, also of bodies, whose name begins with ``prefix``, in upper or lower case."""
        lower = prefix.lower()
        return (item for item in self.layers.values() if item[1].name.lower().startswith(lower))
