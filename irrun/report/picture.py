"""Draw the graph of a model as an SVG picture, without a browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final
from xml.sax.saxutils import escape

from irrun.api import PathLike, as_model
from irrun.base.text import printable
from irrun.model import Model
from irrun.report.entries import Entries
from irrun.report.layering import Box, laid_out
from irrun.report.tree import Tree

__all__ = ["MOST_NODES", "picture"]

MOST_NODES: Final = 200
"""The most nodes of a picture that shows every layer. A larger model is drawn with groups of layers as nodes."""
_GROUPED: Final = 60
"""The most nodes of a picture with groups: as many as fit on a page or two."""
_NODE_HEIGHT_PIXELS: Final = 42.0
_CHAR_WIDTH_PIXELS: Final = 6.6
"""The width of a letter in pixels. The picture does not know the font of the reader, so this is a wide one's."""
_MAX_LABEL_CHARS: Final = 34
_COLOURS: Final = 7
_STYLE: Final = """
  svg { background: #f7f7f5; color-scheme: light dark; }
  text { font: 10.5px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: #5f646d; }
  .type { font-size: 12px; font-weight: 600; fill: #1c1e21; }
  .shape { font: 10px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; text-anchor: middle; }
  .halo { stroke: #f7f7f5; stroke-width: 4px; stroke-linejoin: round; }
  .card { fill: #ffffff; stroke: #dcdcd6; }
  .edge { fill: none; stroke: #a9adb4; stroke-width: 1.3; }
  .dashed { stroke-dasharray: 5 4; }
  .tip { fill: #a9adb4; }
  .c0 { fill: #3b6fd4; } .c1 { fill: #c2582e; } .c2 { fill: #2f8a57; } .c3 { fill: #9050b8; }
  .c4 { fill: #b08a00; } .c5 { fill: #1b8a9c; } .c6 { fill: #c03d78; } .c7 { fill: #6b7280; }
  @media (prefers-color-scheme: dark) {
    svg { background: #16181d; }
    text { fill: #a0a6b2; }
    .type { fill: #e6e7ea; }
    .halo { stroke: #16181d; }
    .card { fill: #1e2128; stroke: #383d48; }
    .edge { stroke: #5b626f; }
    .tip { fill: #5b626f; }
    .c0 { fill: #7aa2f7; } .c1 { fill: #e8915f; } .c2 { fill: #6fc493; } .c3 { fill: #c193e6; }
    .c4 { fill: #dcc04e; } .c5 { fill: #5cc6d6; } .c6 { fill: #ec82b0; } .c7 { fill: #9aa3b2; }
  }
"""


def picture(model: Model | PathLike) -> str:
    """Return an SVG picture of a model: its layers, and the declared shapes of the values between them.

    Constants are left out, and so are the layers computed from them alone. If more than ``MOST_NODES`` nodes are left,
    groups of layers are nodes: see ``irrun.report.tree``.
    """
    entries = Entries(as_model(model))
    return _Picture(entries, Tree(entries)).svg()


class _Picture:
    def __init__(self, entries: Entries, tree: Tree) -> None:
        self.entries, self.tree = entries, tree
        every = set(range(len(entries), len(entries) + len(tree.groups)))
        opened = every if len(list(tree.visible(every))) <= MOST_NODES else tree.opened(_GROUPED)
        self.nodes = list(tree.visible(opened))
        self.shown = self._representatives(opened)
        self.links: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
        for begin, end, kind in entries.links():
            first, last = self.shown[begin], self.shown[end]
            hidden = entries.hidden[begin] or entries.hidden[end]
            if first != last and not hidden:
                self.links.setdefault((first, last), []).append((begin, end, kind))
        plain = ("parameter", "result")
        types = Counter(
            e.layer.type for e in entries if not entries.hidden[e.number] and e.layer.type.lower() not in plain
        )
        self.colours = {type: number for number, (type, _) in enumerate(types.most_common(_COLOURS))}

    def _representatives(self, opened: set[int]) -> list[int]:
        """Return for each layer the node that shows it: itself, or the outermost closed group that holds it."""
        parents, shown = self.tree.parents, list(range(len(self.entries)))
        for number in shown:
            node, parent = number, parents[number]
            while parent >= 0:
                node, parent = (parent if parent not in opened else node), parents[parent]
            shown[number] = node
        return shown

    def _rank(self, node: int) -> float:
        """Return where a node comes in the order of the run: the first of its layers, bodies within their loop."""
        while node >= len(self.entries):
            group = self.tree.groups[node - len(self.entries)]
            node = group.owner if group.owner >= 0 else group.members[0]
        entry, rank, width = self.entries[node], 0.0, 1.0
        chain = [entry]
        while self.entries.scopes[chain[-1].scope].owner >= 0:
            chain.append(self.entries[self.entries.scopes[chain[-1].scope].owner])
        for one in reversed(chain):
            rank += width * self.entries.ranks[one.number]
            width /= len(self.entries) + 1
        return rank

    def _texts(self, node: int) -> tuple[str, str]:
        if node >= len(self.entries):
            group = self.tree.groups[node - len(self.entries)]
            return printable(group.label), self.tree.summary(node)
        layer = self.entries[node].layer
        return printable(layer.type), printable(layer.name)

    def svg(self) -> str:
        texts = {node: tuple(map(_shortened, self._texts(node))) for node in self.nodes}
        sizes = {
            node: (
                max(86.0, max(len(type) * (_CHAR_WIDTH_PIXELS + 0.8), len(name) * _CHAR_WIDTH_PIXELS * 0.9) + 28),
                _NODE_HEIGHT_PIXELS,
            )
            for node, (type, name) in texts.items()
        }
        layout = laid_out(sizes, list(self.links), self._rank)
        title = escape(printable(self.entries.scopes[0].model.name or "model"))
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{layout.width:.0f}" height="{layout.height:.0f}" '
            f'viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" role="img">',
            f"<title>{title}</title>",
            f"<style>{_STYLE}</style>",
            '<marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
            'markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0,0.8L8,4L0,7.2z"/></marker>',
        ]
        for ends, points in layout.edges.items():
            lines += self._edge(ends, points)
        for node, box in layout.boxes.items():
            lines += self._node(node, box, *texts[node])
        return "\n".join([*lines, "</svg>", ""])

    def _edge(self, ends: tuple[int, int], places: Sequence[tuple[float, float]]) -> Iterator[str]:
        path = f"M{places[0][0]:.1f},{places[0][1]:.1f}"
        for (x, y), (to_x, to_y) in pairwise(places):
            middle = (y + to_y) / 2
            path += f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}"
        links = self.links[ends]
        dashed = " dashed" if all(kind != "data" for _, _, kind in links) else ""
        yield f'<path class="edge{dashed}" d="{path}" marker-end="url(#tip)"/>'
        if len(links) == 1 and (shape := self._shape(*links[0][:2])):
            (x, y), (to_x, to_y) = places[0], places[1]
            place = f'x="{(x + to_x) / 2:.1f}" y="{(y + to_y) / 2 + 3:.1f}"'
            yield f'<text class="shape halo" {place}>{shape}</text><text class="shape" {place}>{shape}</text>'

    def _shape(self, begin: int, end: int) -> str:
        """Return the declared shape of the value that a layer reads from another one."""
        outputs = self.entries[begin].layer.outputs
        position = next((feed[1] for feed in self.entries.feeds(self.entries[end]) if feed and feed[0] == begin), 0)
        shape = outputs[position].shape if position < len(outputs) else None
        return "" if shape is None else escape(str(shape))

    def _node(self, node: int, box: Box, type: str, name: str) -> Iterator[str]:
        left, top = box.x - box.width / 2, box.y - box.height / 2
        is_layer = node < len(self.entries)
        is_end = is_layer and self.entries[node].layer.type.lower() in ("parameter", "result")
        place = f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{box.height / 2 if is_end else 8:g}"'
        full = printable(self.entries[node].name) if is_layer else self.tree.summary(node, 20)
        yield f"<g><title>{escape(full)}</title>"
        if not is_layer:
            yield f'<rect class="card" x="{left + 4:.1f}" y="{top + 4:.1f}" {place}/>'
        yield f'<rect class="card" x="{left:.1f}" y="{top:.1f}" {place}/>'
        if is_layer and not is_end:
            colour = self.colours.get(self.entries[node].layer.type, _COLOURS)
            corner = f"a6.5 7.5 0 0 0 -6.5 7.5v{box.height - 16:g}a6.5 7.5 0 0 0 6.5 7.5h1z"
            yield f'<path class="c{colour}" d="M{left + 6.5:.1f},{top + 0.5:.1f}h-1{corner}"/>'
        yield f'<text class="type" x="{left + 15:.1f}" y="{top + 17.5:.1f}">{escape(type)}</text>'
        yield f'<text x="{left + 15:.1f}" y="{top + 32:.1f}">{escape(name)}</text></g>'


def _shortened(text: str) -> str:
    half = _MAX_LABEL_CHARS // 2
    return text if len(text) <= _MAX_LABEL_CHARS else f"{text[: half - 1]}…{text[-half:]}"
