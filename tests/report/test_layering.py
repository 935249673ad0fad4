"""The layout of pictures: layers, order and places."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from irrun.report.layering import laid_out

SIZE = (100.0, 40.0)


def boxes(edges: list[tuple[int, int]], count: int) -> dict[int, tuple[float, float]]:
    layout = laid_out(dict.fromkeys(range(count), SIZE), edges, float)
    return {node: (box.x, box.y) for node, box in layout.boxes.items()}


def test_a_chain_is_a_straight_line() -> None:
    places = boxes([(0, 1), (1, 2), (2, 3)], 4)
    assert len({x for x, _ in places.values()}) == 1
    assert [y for _, y in places.values()] == sorted(y for _, y in places.values())


def test_a_producer_is_above_its_consumers() -> None:
    """Also one that only a late layer reads: it stands directly above this layer."""
    places = boxes([(0, 1), (1, 2), (2, 4), (3, 4)], 5)
    assert places[0][1] < places[3][1] == places[2][1] < places[4][1]


def test_nodes_do_not_overlap() -> None:
    rng = np.random.default_rng(0)
    edges = sorted({(int(a), int(b)) for a, b in rng.integers(0, 60, (150, 2)) if a < b})
    layout = laid_out({n: (float(rng.integers(80, 200)), 40.0) for n in range(60)}, edges, float)
    for one, first in layout.boxes.items():
        assert first.width / 2 <= first.x <= layout.width - first.width / 2
        assert first.y + first.height / 2 <= layout.height
        for other, second in layout.boxes.items():
            if one < other:
                apart_x = abs(first.x - second.x) >= (first.width + second.width) / 2
                assert apart_x or abs(first.y - second.y) >= (first.height + second.height) / 2
    for (a, b), points in layout.edges.items():
        assert points[0][0] == pytest.approx(layout.boxes[a].x)
        assert points[-1][0] == pytest.approx(layout.boxes[b].x)


def test_edges_that_could_be_crossed_are_not() -> None:
    """Two chains, side by side, whose nodes come in another order on each layer."""
    places = boxes([(0, 3), (1, 2), (2, 5), (3, 4)], 6)
    assert (places[0][0] < places[1][0]) == (places[3][0] < places[2][0]) == (places[4][0] < places[5][0])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("turned", [False, True], ids=["from-the-root", "to-the-root"])
def test_the_edges_of_a_tree_do_not_cross(turned: bool, seed: int) -> None:
    """Two edges between the same layers cross if their upper ends and their lower ends come in different orders."""
    rng = np.random.default_rng(seed)
    edges = [(int(rng.integers(max(0, node - 9), node)), node) for node in range(1, 30)]
    layout = laid_out(dict.fromkeys(range(30), SIZE), [(29 - b, 29 - a) if turned else (a, b) for a, b in edges], float)
    lines = [part for points in layout.edges.values() for part in pairwise(points)]
    for (a, top), (b, bottom) in lines:
        for (c, other_top), (d, other_bottom) in lines:
            if (top, bottom) == (other_top, other_bottom):
                assert (a - c) * (b - d) >= -1e-6


def test_cycles_are_drawn() -> None:
    """The edge to an earlier node leads upwards."""
    layout = laid_out(dict.fromkeys(range(3), SIZE), [(0, 1), (1, 2), (2, 0), (1, 1)], float)
    assert layout.edges[2, 0][0][1] > layout.edges[2, 0][-1][1]


def test_nothing() -> None:
    assert laid_out({}, [], float).boxes == {}
