"""Lay out a graph in layers from top to bottom: the method of Sugiyama, for pictures that are drawn without a browser.

networkx sorts the nodes into layers. Long edges get a point in each layer between their ends. The order within a layer
follows the barycentres of neighbours, and the places are the nearest ones to these that keep their distances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import networkx as nx

__all__ = ["Box", "Layout", "laid_out"]

_SWEEPS: Final = 12
"""How often the order of all layers is improved, alternately from the top and from the bottom."""
_GAP: Final = 26.0
"""The least distance of two nodes of a layer, in pixels."""
_RANK: Final = 36.0
"""The distance of two layers, in pixels."""
_BEND: Final = 8.0
"""The weight of a point of an edge: edges are straight rather than nodes centred."""

Node = int | tuple[int, int, int]
"""A node of the graph, or the point of an edge in a layer: its ends and the number of the layer."""

Neighbours = dict[Node, tuple[list[Node], list[Node]]]
"""The neighbours of each node above and below."""


@dataclass(frozen=True, slots=True)
class Box:
    """The place of a node: its centre and size, in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The boxes of nodes, the points of edges from their first to their second node, and the size of the drawing."""

    boxes: Mapping[int, Box]
    edges: Mapping[tuple[int, int], Sequence[tuple[float, float]]]
    width: float
    height: float


def laid_out(
    sizes: Mapping[int, tuple[float, float]], edges: Sequence[tuple[int, int]], rank: Callable[[int], float]
) -> Layout:
    """Return the layout of a graph. ``sizes`` are the width and height of each node.

    ``rank`` orders the nodes: an edge to a node that comes earlier leads upwards.
    """
    downward = {(a, b) if (rank(a), a) < (rank(b), b) else (b, a) for a, b in edges if a != b}
    nodes: list[int] = sorted(sizes, key=lambda node: (rank(node), node))
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(sorted(downward))
    depths = _depths(graph)
    rows, neighbours = _rows(graph, depths)
    _order(rows, neighbours)
    widths = {node: sizes[node][0] if isinstance(node, int) else 0.0 for row in rows for node in row}
    places = _places(rows, neighbours, widths)
    tallest = max((height for _, height in sizes.values()), default=0.0)
    step = tallest + _RANK
    left = min((places[node] - widths[node] / 2 for node in places), default=0.0) - _GAP
    right = max((places[node] + widths[node] / 2 for node in places), default=0.0) + _GAP
    boxes = {
        node: Box(places[node] - left, _GAP + tallest / 2 + depths[node] * step, *size) for node, size in sizes.items()
    }
    lines: dict[tuple[int, int], Sequence[tuple[float, float]]] = {}
    for a, b in edges:
        first, last = ((a, b) if (a, b) in downward else (b, a)) if a != b else (a, a)
        points = [
            (places[first, last, depth] - left, _GAP + tallest / 2 + depth * step)
            for depth in range(depths[first] + 1, depths[last])
        ]
        ends = [(boxes[first].x, boxes[first].y + boxes[first].height / 2)]
        ends += [*points, (boxes[last].x, boxes[last].y - boxes[last].height / 2)]
        lines[a, b] = ends if (first, last) == (a, b) else ends[::-1]
    return Layout(boxes, lines, right - left, 2 * _GAP + len(rows) * step - _RANK)


def _depths(graph: nx.DiGraph) -> dict[int, int]:
    """Return the layer of each node: one below its lowest producer. Nodes without producers are above a consumer."""
    depths = {node: depth for depth, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}
    for node in graph:
        if not graph.in_degree(node) and graph.out_degree(node):
            depths[node] = min(depths[other] for other in graph.successors(node)) - 1
    return depths


def _rows(graph: nx.DiGraph, depths: Mapping[int, int]) -> tuple[list[list[Node]], Neighbours]:
    """Return the nodes and points of edges of each layer, and the neighbours above and below each of them."""
    rows: list[list[Node]] = [[] for _ in range(max(depths.values(), default=-1) + 1)]
    neighbours: Neighbours = {}

    def add(node: Node, depth: int) -> None:
        rows[depth].append(node)
        neighbours[node] = [], []

    for node in graph:
        add(node, depths[node])
    for first, last in graph.edges:
        previous: Node = first
        for depth in range(depths[first] + 1, depths[last] + 1):
            following: Node = last if depth == depths[last] else (first, last, depth)
            if following != last:
                add(following, depth)
            neighbours[previous][1].append(following)
            neighbours[following][0].append(previous)
            previous = following
    return rows, neighbours


def _order(rows: list[list[Node]], neighbours: Neighbours) -> None:
    """Sort each layer by the barycentres of the neighbours above and below, so that few edges cross.

    The order with the fewest crossings of all sweeps is kept.
    """
    best, fewest = [list(row) for row in rows], _crossings(rows, neighbours)
    for sweep in range(_SWEEPS):
        side = sweep % 2
        for row, other in zip(*((rows[1:], rows) if side == 0 else (rows[-2::-1], rows[::-1]))):
            place = {node: number for number, node in enumerate(other)}
            own = {node: float(number) for number, node in enumerate(row)}
            for node in row:
                near = [place[one] for one in neighbours[node][side] if one in place]
                if near:
                    own[node] = sum(near) / len(near)
            row.sort(key=own.__getitem__)
        crossings = _crossings(rows, neighbours)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    rows[:] = best


def _crossings(rows: Sequence[Sequence[Node]], neighbours: Neighbours) -> int:
    """Return how many pairs of edges between neighbouring layers cross."""
    crossings = 0
    for row, below in pairwise(rows):
        place = {node: number for number, node in enumerate(below)}
        ends = [place[other] for node in row for other in sorted(neighbours[node][1], key=place.__getitem__)]
        crossings += sum(a > b for number, b in enumerate(ends) for a in ends[:number])
    return crossings


def _places(
    rows: Sequence[Sequence[Node]],
    neighbours: Neighbours,
    widths: Mapping[Node, float],
) -> dict[Node, float]:
    """Return the x of each node and point: near the mean of its neighbours, with the least distance to its own row."""
    places: dict[Node, float] = {}
    for row in rows:
        places.update(zip(row, _spread(row, [0.0] * len(row), widths)))
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = []
            for node in row:
                above, below = neighbours[node]
                near = above + below if sweep >= _SWEEPS // 2 else (above, below)[sweep % 2]
                wanted.append(sum(places[one] for one in near) / len(near) if near else places[node])
            places.update(zip(row, _spread(row, wanted, widths)))
    return places


def _spread(row: Sequence[Node], wanted: Sequence[float], widths: Mapping[Node, float]) -> list[float]:
    """Return the places nearest to the ``wanted`` ones, by least squares, that keep the order and the distances.

    Without the distances, which are subtracted first, the places must only ascend: an isotonic regression, by pooling
    neighbours that violate the order.
    """
    offsets = [0.0]
    for left, right in pairwise(row):
        gap = _GAP if isinstance(left, int) and isinstance(right, int) else _GAP / 2
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + gap)
    pools: list[tuple[float, float, int]] = []  # the mean, the weight and the number of pooled nodes
    for node, x, offset in zip(row, wanted, offsets):
        mean, weight, count = x - offset, 1.0 if isinstance(node, int) else _BEND, 1
        while pools and pools[-1][0] > mean:
            other, more, number = pools.pop()
            mean, weight, count = (mean * weight + other * more) / (weight + more), weight + more, count + number
        pools.append((mean, weight, count))
    flat = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(flat, offsets)]
