"""The first answer after an edit of a large model: check the layers that were edited, and the layers that read them.

These layers are copied into a small document of their own. Parameters with the values that are known take the place of
their producers, and Results that of further consumers. The small document is checked like any other, and its findings
are those of the places that were copied. Their notes are left out, because they would name the Parameters.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from irrun.base.source import Source, Span
from irrun.checking.checker import examine
from irrun.diagnostics import Diagnostic, ReadError
from irrun.ir.parse import Parsed, parse
from irrun.model import Edge, Layer, Model, Port
from irrun.opdef import Value
from irrun.server.buffer import Buffer, Changes
from irrun.server.findings import Finding, moved_remedies, placed
from irrun.server.snapshot import Snapshot

__all__ = ["Answer", "recheck"]

_MOST_CONSUMERS: Final = 64
"""The most consumers that are checked with the edited layers. A constant may feed thousands of layers."""
_MOST_LAYERS: Final = 256
"""The most layers that one edit may touch. More take longer than a person waits: the whole file is checked at once."""
_MOST_CONTENTS: Final = 64
"""The most elements of a producer that the small document keeps: a shape, axes or pads."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Findings of the edited part of a text, and the parts of the snapshot whose findings they replace."""

    findings: list[Finding]
    replaced: list[tuple[int, int]]
    is_readable: bool = True
    """Whether the edited part is well-formed."""


class _Piece(NamedTuple):
    """Bytes ``begin`` to ``end`` of the small document, and the bytes of the text that they mean.

    A piece that is ``copied`` means each of its bytes, any other piece the bytes ``at`` to ``at_end`` as a whole.
    """

    begin: int
    end: int
    at: int
    at_end: int
    copied: bool
    is_shown: bool


class _Excerpt(Source):
    """A small document whose diagnostics have their positions in the text from which it was copied."""

    def __init__(self, path: str, data: bytes, pieces: list[_Piece], text: Buffer) -> None:
        super().__init__(path, data)
        self._pieces, self._text = pieces, text
        self._begins = [piece.begin for piece in pieces]

    def _piece(self, offset: int) -> _Piece | None:
        number = bisect_right(self._begins, offset) - 1
        piece = self._pieces[number] if number >= 0 else None
        return piece if piece is not None and offset <= piece.end else None

    def where(self, offset: int) -> int | None:
        """Return the byte of the text that a byte of this document was copied from, or None."""
        piece = self._piece(offset)
        return piece.at + offset - piece.begin if piece is not None and piece.copied else None

    def stretch(self, line: int, column: int, end: int) -> Span:
        start, stop = self.byte(line, column), self.byte(line, end)
        piece = self._piece(start)
        if piece is None or not piece.is_shown:
            return _NOWHERE
        first, last = piece.at, piece.at_end
        if piece.copied:
            first, last = piece.at + start - piece.begin, piece.at + stop - piece.begin
        number, left = self._text.place(first)
        right = self._text.place(last)
        return Span(number, left, right[1] if right[0] == number else len(self._text.line(number)) + 1)

    def line(self, number: int) -> str:
        return self._text.line(number)


_NOWHERE: Final = Span(1, 1, 1)
"""The position of diagnostics in a part of a small document that is not copied."""


class _Writer:
    """Writes a small document piece by piece."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.pieces: list[_Piece] = []

    def copy(self, text: Buffer, start: int, end: int) -> None:
        """Write bytes of the text."""
        self._write(bytes(text.data[start:end]), start, end, True, True)

    def stand_in(self, xml: str, start: int, end: int, *, is_shown: bool = False) -> None:
        """Write XML that stands for bytes of the text."""
        self._write(xml.encode(), start, end, False, is_shown)

    def _write(self, data: bytes, start: int, end: int, copied: bool, is_shown: bool) -> None:
        begin = len(self.data)
        self.data += data
        self.pieces.append(_Piece(begin, len(self.data), start, end, copied, is_shown))
        self.data += b"\n"

    def plain(self, xml: str) -> None:
        self.data += xml.encode()


@dataclass(frozen=True, slots=True)
class _Region:
    """Whole layers, or whole edges, that hold an edit: their bytes in the snapshot and in the text."""

    old_start: int
    old_end: int
    start: int
    end: int
    are_edges: bool


def recheck(snapshot: Snapshot, text: Buffer, changes: Changes) -> Answer | None:
    """Check what edits since a snapshot touch; None if that is more than some layers or edges."""
    regions = _regions(snapshot, changes)
    if regions is None:
        return None
    layers: list[Layer] = []
    edges: list[tuple[Edge, int, int]] = []
    for region in regions:
        read = _read(region, snapshot, text)
        if isinstance(read, ReadError):
            return Answer([*_shown(read.diagnostics, text)], [(region.old_start, region.old_end)], False)
        if not region.are_edges:
            layers += read.layers.values()
        else:
            shift = region.start - len(_prefix(region))
            source = read.source
            edges += [(e, source.offset(e.node) + shift, source.end(e.node) + shift) for e in read.edges]
    return _Neighbourhood(snapshot, text, changes, regions, layers, edges).answer()


def _regions(snapshot: Snapshot, changes: Changes) -> list[_Region] | None:
    """Return the layers and edges that were edited; None if anything else was, or too much."""
    regions: dict[tuple[int, int], _Region] = {}
    source, tops = snapshot.source, snapshot.tops
    if not tops or not snapshot.model.edges:
        return None
    first_edge, edges_end = snapshot.edge_offsets[0], source.end(snapshot.model.edges[-1].node)
    layers_end = source.utf8.rfind(b"</", 0, source.end(source.parent(snapshot.top_layers[0].node)))
    for part in changes.parts:
        begin, stop = part.old_start, part.old_end
        if stop <= tops[0] or begin >= edges_end or layers_end <= begin <= stop <= first_edge:
            continue  # neither a layer nor an edge
        if begin >= first_edge:
            offsets, end = snapshot.edge_offsets, edges_end
            first = bisect_right(offsets, begin) - 1
            last = max(bisect_left(offsets, stop), first + 1)
        else:
            offsets, end = tops, layers_end
            within = snapshot.tops_within(begin, stop)
            first, last = within.start, within.stop
        stop = offsets[last] if last < len(offsets) else end
        if first < 0 or last - first > _MOST_LAYERS or part.old_end > stop or first == last:
            return None
        before, after = changes.new(offsets[first] - 1), changes.new(stop)
        if before is None or after is None:
            return None
        region = _Region(offsets[first], stop, before + 1, after, offsets is not tops)
        regions[region.old_start, region.old_end] = region
    ordered = [regions[key] for key in sorted(regions)]
    overlap = any(a.old_end > b.old_start for a, b in pairwise(ordered))
    return None if overlap else ordered


def _prefix(region: _Region) -> bytes:
    parts = (b"<layers/><edges>") if region.are_edges else b"<layers>"
    return b'<net name="" version="11">' + parts


def _read(region: _Region, snapshot: Snapshot, text: Buffer) -> Model | ReadError:
    """Return the layers or edges of a region as a model of nothing else, or the error of a region without them."""
    before = _prefix(region)
    after = b"</edges></net>" if region.are_edges else b"</layers></net>"
    data = before + bytes(text.data[region.start : region.end]) + after
    piece = _Piece(len(before), len(data) - len(after), region.start, region.end, True, True)
    source = _Excerpt(snapshot.source.path, data, [piece], text)
    source.first_line = text.place(region.start)[0]
    try:
        return parse(source).model
    except ReadError as error:
        return error


def _shown(diagnostics: Iterable[Diagnostic], text: Buffer) -> Iterator[Finding]:
    """Yield the findings that are in the text."""
    for finding in placed((d for d in diagnostics if d.span is not None and d.span != _NOWHERE), text):
        source = finding.diagnostic.source
        assert isinstance(source, _Excerpt)
        own = replace(finding.diagnostic, notes=())
        yield replace(finding, diagnostic=own, remedies=moved_remedies(finding.remedies, source.where))


class _Neighbourhood:
    """The edited layers, the layers that read them, and stand-ins for the rest."""

    def __init__(
        self,
        snapshot: Snapshot,
        text: Buffer,
        changes: Changes,
        regions: list[_Region],
        layers: list[Layer],
        edges: list[tuple[Edge, int, int]],
    ) -> None:
        self.snapshot, self.text, self.changes, self.regions = snapshot, text, changes, regions
        self.model = snapshot.model
        self.edited = {layer.id: layer for layer in layers}
        self.edges = edges
        self.gone = {
            snapshot.top_layers[number].id
            for region in regions
            if not region.are_edges
            for number in snapshot.tops_within(region.old_start, region.old_end)
        }
        ends = {edge.to_layer for edge, *_ in edges}
        for region in regions:
            if region.are_edges:  # a layer whose edge was edited may have lost its last consumer
                at = (bisect_left(snapshot.edge_offsets, offset) for offset in (region.old_start, region.old_end))
                ends |= {id for edge in self.model.edges[slice(*at)] for id in (edge.from_layer, edge.to_layer)}
        self.gone -= self.edited.keys()
        touched = {*self.edited, *self.gone, *ends}
        consumers = [id for edited in sorted(touched) for id in self.model.consumers.get(edited, ())]
        chosen = dict.fromkeys([*sorted(ends), *consumers[:_MOST_CONSUMERS]])
        self.copied = [self.model.layers[id] for id in chosen if id not in touched - ends and id in self.model.layers]
        """The layers that are copied as they are: the ends of edited edges, and the consumers of edited layers."""
        self.checked = self.edited | {layer.id: layer for layer in self.copied}
        self.next_id = max(self.model.layers, default=0) + 1
        self.producers: dict[int, Layer] = {}
        """The layers that Parameters stand for, by id."""
        self.contents: dict[int, tuple[np.ndarray, int]] = {}

    def answer(self) -> Answer:
        writer, replaced = _Writer(), [(region.old_start, region.old_end) for region in self.regions]
        writer.plain('<net name="excerpt" version="11"><layers>\n')
        for region in self.regions:
            if not region.are_edges:
                writer.copy(self.text, region.start, region.end)
        source = self.snapshot.source
        for layer in self.copied:
            old = source.offset(layer.node), source.end(layer.node)
            new = self._new(*old)
            if new is not None:
                writer.copy(self.text, *new)
                replaced.append(old)
        edges = self._edges(replaced)
        starts = self._producers(writer, edges)
        results = self._results(writer, edges)
        writer.plain("</layers><edges>\n")
        for edge, start, end in edges:
            begin = starts.get((edge.from_layer, edge.from_port))
            if begin is None:
                writer.copy(self.text, start, end)
            else:
                writer.stand_in(_edge(*begin, edge.to_layer, edge.to_port), start, end, is_shown=True)
        writer.plain("".join(_edge(*result) for result in results) + "</edges></net>")
        excerpt = _Excerpt(source.path, bytes(writer.data), writer.pieces, self.text)
        try:
            parsed = parse(excerpt, self.model.weights)
        except ReadError:  # the parts are well-formed, but not together: a comment that is not closed
            return Answer([], [], False)
        known = replace(parsed.model, contents=self.contents)
        report, _ = examine(Parsed(known, parsed.problems))
        return Answer(list(_shown(map(self._renamed, report), self.text)), replaced)

    def _renamed(self, diagnostic: Diagnostic) -> Diagnostic:
        """Return a diagnostic whose message names the producers in place of the Parameters that stand for them."""
        message = diagnostic.message
        for layer in self.producers.values():
            message = message.replace(f'Parameter "{layer.name}"', f'{layer.type} "{layer.name}"')
        return replace(diagnostic, message=message)

    def _new(self, start: int, end: int) -> tuple[int, int] | None:
        """Return where bytes of the snapshot are now, or None if they were edited."""
        new = self.changes.new(start), self.changes.new(end - 1)
        if new[0] is None or new[1] is None or new[1] + 1 - new[0] != end - start:
            return None
        return new[0], new[1] + 1

    def _edges(self, replaced: list[tuple[int, int]]) -> list[tuple[Edge, int, int]]:
        """Return the edges that lead to checked layers, with their bytes in the text."""
        edges = list(self.edges)
        source = self.snapshot.source
        edited = [region for region in self.regions if region.are_edges]
        for id in self.checked:
            for edge in self.snapshot.edges_to.get(id, ()):
                old = source.offset(edge.node), source.end(edge.node)
                new = self._new(*old)
                if new is not None and not any(r.old_start <= old[0] < r.old_end for r in edited):
                    edges.append((edge, *new))
                    replaced.append(old)
        return edges

    def _producers(
        self, writer: _Writer, edges: Iterable[tuple[Edge, int, int]]
    ) -> dict[tuple[int, int], tuple[int, int]]:
        """Write a Parameter for each output that a checked layer reads from a layer that is not checked.

        Return the layer and port of the Parameter for the layer and port of the output, where they differ: a Parameter
        has one output, so that only the first output of a layer can keep its ids.
        """
        others: dict[tuple[int, int], tuple[int, int]] = {}
        written: dict[int, int] = {}
        for edge, *_ in edges:
            key = edge.from_layer, edge.from_port
            layer = self.model.layers.get(edge.from_layer)
            if layer is None or layer.id in self.checked or layer.id in self.gone:
                continue
            if key in others or written.get(layer.id) == edge.from_port:
                continue
            position = next((i for i, port in enumerate(layer.outputs) if port.id == edge.from_port), None)
            if position is None:
                continue
            value = self.snapshot.trace.values.get((layer.id, position))
            id, port = key
            if written.setdefault(id, port) != port:
                id, self.next_id = self.next_id, self.next_id + 1
                others[key] = id, port
            self.producers[layer.id] = layer
            start = self.changes.new(self.snapshot.source.offset(layer.node)) or 0
            writer.stand_in(_parameter(id, port, layer.name, layer.outputs[position], value), start, start)
            data = value.exact if value is not None and value.type.is_integer else None
            if value is not None and data is not None and data.size <= _MOST_CONTENTS:
                self.contents[id] = data.astype(value.type.dtype), 0
        return others

    def _results(self, writer: _Writer, edges: Iterable[tuple[Edge, int, int]]) -> list[tuple[int, int, int, int]]:
        """Write a Result for each output of a checked layer that other layers read, and return the edges to them."""
        results: list[tuple[int, int, int, int]] = []
        for id, layer in self.checked.items():
            for position, port in enumerate(layer.outputs):
                readers = [r for r in self.model.readers.get((id, position), ()) if r[0] not in self.checked]
                if readers:
                    reader, at = readers[0]
                    declared = self.model.layers[reader].inputs[at]
                    writer.stand_in(_result(self.next_id, declared), 0, 0)
                    results.append((id, port.id, self.next_id, 0))
                    self.next_id += 1
        return results


def _edge(from_layer: int, from_port: int, to_layer: int, to_port: int) -> str:
    return f'<edge from-layer="{from_layer}" from-port="{from_port}" to-layer="{to_layer}" to-port="{to_port}"/>'


def _parameter(id: int, port: int, name: str, declared: Port, value: Value | None) -> str:
    shape = "..." if value is None else str(value.shape).removeprefix("[").removesuffix("]")
    type = "dynamic" if value is None else str(value.type)
    return (
        f'<layer id="{id}" name="{escape(name)}" type="Parameter" version="opset1">'
        f'<data shape="{shape}" element_type="{type}"/><output>{_port(port, declared)}</output></layer>'
    )


def _result(id: int, declared: Port) -> str:
    port = _port(0, declared)
    return f'<layer id="{id}" name="result {id}" type="Result" version="opset1"><input>{port}</input></layer>'


def _port(id: int, declared: Port) -> str:
    known = declared.shape.dims if declared.shape else None
    dims = "".join(f"<dim>{-1 if dim.value is None else dim.value}</dim>" for dim in known or ())
    type = f' precision="{declared.type.port_name}"' if declared.type else ""
    return f'<port id="{id}"{type}>{dims}</port>'
