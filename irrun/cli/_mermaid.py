"""Draw layers that differ, with their neighbours, as a Mermaid flowchart, which GitHub and GitLab render."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from irrun.base.text import printable
from irrun.cli._names import shortened
from irrun.debug.difference import LayerDifference, Matching
from irrun.model import Layer, Model, is_constant

__all__ = ["flowchart"]

_MAX_NODES: Final = 40
"""The most nodes of a picture that a reader takes in."""
_MAX_NEIGHBOURS: Final = 4
"""The most producers, and the most consumers, that are drawn of a layer."""
_MAX_EDGES: Final = 120
"""Mermaid itself refuses more than 500."""
_NAME_CHARS: Final = 36
_STYLES: Final = {
    "changed": "fill:#fff1c2,stroke:#9a6700,color:#1f2328",
    "added": "fill:#d1f5d8,stroke:#1a7f37,color:#1f2328",
    "removed": "fill:#ffdcd9,stroke:#cf222e,color:#1f2328",
}
_ARROWS: Final = {"ab": "-->", "a": "-. removed .->", "b": "== added ==>"}
"""The arrows of edges between layers of both models, by the models that have the edge."""


class _Node(NamedTuple):
    """A layer of both models, or of one of them: then the other id is None."""

    matching: Matching
    a: int | None
    b: int | None


def flowchart(layers: Sequence[LayerDifference], differing: Sequence[LayerDifference]) -> list[str]:
    """Return the lines of a fenced block with a flowchart of the first of the layers, and a line that explains it.

    Unchanged constants are left out. A layer that does not fit in with its neighbours ends the picture. ``differing``
    are all layers that differ: a neighbour that is one of them has its colour.
    """
    picture = _Picture(differing)
    drawn = 0
    for layer in layers:
        if not picture.add(layer):
            break
        drawn += 1
    edges = picture.edges()
    parts = ["yellow: changed, green: added, red: removed"]
    if drawn < len(layers):
        parts.append(f"the first {drawn} of {len(layers)} layers")
    if picture.is_cut:
        parts.append(f"at most {_MAX_NEIGHBOURS} producers and {_MAX_NEIGHBOURS} consumers of each")
    if len(edges) > _MAX_EDGES:
        parts.append(f"{_MAX_EDGES} of {len(edges)} edges")
    return [
        "```mermaid",
        "flowchart TD",
        *picture.lines(),
        *edges[:_MAX_EDGES],
        *(f"classDef {status} {style}" for status, style in _STYLES.items()),
        "```",
        "",
        f"The picture shows layers that differ, with their neighbours ({'; '.join(parts)}).",
    ]


class _Side:
    """One of the two models of a matching. The layers of a weight are one node: whichever of them differs."""

    def __init__(self, matching: Matching, side: Literal["a", "b"]) -> None:
        self.model: Model = getattr(matching, side)
        self._matching, self._side = matching, side
        weights = (matching.weights_a if side == "a" else matching.weights_b).values()
        self._outputs = {part: weight.output for weight in weights for part in weight.layers}
        self._parts = self._outputs.keys() | {other for weight in weights for other in weight.others}

    def node(self, id: int) -> _Node:
        """Return the node of a layer: the layer with its counterpart in the other model."""
        if self._side == "a":
            return _Node(self._matching, id, self._matching.to_b.get(id))
        return _Node(self._matching, self._matching.to_a.get(id), id)

    def producers(self, id: int) -> list[int]:
        """Return the layers that feed a layer, without constants and weights."""
        return [feed[0] for feed in self.model.feeds[id] if feed is not None and self._is_drawn(feed[0])]

    def consumers(self, id: int) -> list[int]:
        """Return the layers that read a layer, or the weight that it is part of."""
        return [id for id in self.model.consumers.get(self._outputs.get(id, id), ()) if self._is_drawn(id)]

    def _is_drawn(self, id: int) -> bool:
        return id not in self._parts and not is_constant(self.model.layers[id])

    def edges(self, drawn: Container[_Node]) -> Iterator[tuple[_Node, _Node]]:
        """Yield the edges between nodes of the picture."""
        nodes = {id: node for id in self.model.layers if (node := self.node(id)) in drawn}
        shown = {self._outputs.get(id, id): node for id, node in nodes.items()}
        for id, node in nodes.items():
            for feed in self.model.feeds[id]:
                if feed is not None and feed[0] in shown and shown[feed[0]] != node:
                    yield shown[feed[0]], node


class _Picture:
    """The nodes of a picture, in the order of their lines."""

    def __init__(self, differing: Iterable[LayerDifference]) -> None:
        self.nodes: dict[_Node, None] = {}
        self._statuses = {_node(layer): layer.status for layer in differing}
        self.is_cut = False
        self._sides: dict[Matching, tuple[_Side, _Side]] = {}
        self._inside: dict[Matching, str] = {}

    def add(self, layer: LayerDifference) -> bool:
        """Add a layer and its neighbours, and return True; or return False if they are too many."""
        place = layer.a or layer.b
        assert place is not None
        own = _node(layer)
        sides = self._neighbours(own)
        neighbours = [node for side in sides for node in side[:_MAX_NEIGHBOURS]]
        if len({own, *neighbours, *self.nodes}) > _MAX_NODES:
            return False
        self.is_cut |= any(len(side) > _MAX_NEIGHBOURS for side in sides)
        self._inside.setdefault(layer.matching, place.inside)
        self.nodes |= dict.fromkeys((own, *neighbours))
        return True

    def _neighbours(self, node: _Node) -> tuple[list[_Node], list[_Node]]:
        """Return the producers and the consumers of a layer, in both models."""
        matching = node.matching
        sides = self._sides.setdefault(matching, (_Side(matching, "a"), _Side(matching, "b")))
        own = [(side, id) for side, id in zip(sides, (node.a, node.b)) if id is not None]
        before = [side.node(other) for side, id in own for other in side.producers(id)]
        after = [side.node(other) for side, id in own for other in side.consumers(id)]
        return list(dict.fromkeys(before)), list(dict.fromkeys(after))

    def lines(self) -> Iterator[str]:
        """Yield the lines of the nodes, those of a body in a box of its own."""
        names = shortened([printable(_layers(node)[-1].name) for node in self.nodes], _NAME_CHARS)
        boxes: dict[Matching, list[str]] = {}
        for number, (node, name) in enumerate(zip(self.nodes, names)):
            types = dict.fromkeys(printable(layer.type) for layer in _layers(node))
            label = f"{_text(' → '.join(types))}<br/>{_text(name)}"
            status = f":::{self._statuses[node]}" if node in self._statuses else ""
            boxes.setdefault(node.matching, []).append(f'n{number}["{label}"]{status}')
        for number, (matching, lines) in enumerate(boxes.items()):
            inside = _text(printable(self._inside[matching]))
            yield from [f'subgraph body{number}["{inside}"]', *lines, "end"] if inside else lines

    def edges(self) -> list[str]:
        """Return the lines of the edges between the nodes."""
        models: dict[tuple[_Node, _Node], str] = {}
        for sides in self._sides.values():
            for side, name in zip(sides, "ab"):
                for edge in dict.fromkeys(side.edges(self.nodes)):
                    models[edge] = models.get(edge, "") + name
        numbers = {node: number for number, node in enumerate(self.nodes)}
        lines: list[str] = []
        for (begin, end), name in models.items():
            are_in_both = None not in (*begin, *end)
            lines.append(f"n{numbers[begin]} {_ARROWS[name] if are_in_both else '-->'} n{numbers[end]}")
        return lines


def _node(layer: LayerDifference) -> _Node:
    return _Node(layer.matching, layer.a and layer.a.id, layer.b and layer.b.id)


def _layers(node: _Node) -> list[Layer]:
    """Return the layer of a node in the models that have it."""
    models = ((node.matching.a, node.a), (node.matching.b, node.b))
    return [model.layers[id] for model, id in models if id is not None]


def _text(text: str) -> str:
    """Return a text from a file as the text of a node, so that nothing in it is Mermaid, Markdown or HTML."""
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])|[^\w /→…]", lambda match: f"#{ord(match[0])};", text)
