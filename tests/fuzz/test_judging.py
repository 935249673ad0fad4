"""What the fuzzer allows to differ, and which graphs show nothing."""

from __future__ import annotations

import numpy as np
import pytest

from irrun.fuzz import Invalid, judge, judging
from irrun.growing import Graph, Node, Ref
from irrun.opdef import find


def test_a_float_that_was_narrow_has_its_rounding() -> None:
    """A converted f32 differs by the rounding of f32, also where its inputs move nothing."""
    nodes = [Node("parameter", type="f32", shape=(2,), data=np.array([5, 6], np.float32))]
    for type, attributes in ("Clamp", {"min": "-2", "max": "2"}), ("Exp", {}), ("Convert", {"destination_type": "f64"}):
        nodes.append(Node("layer", find(type)[1], attributes, [Ref(len(nodes) - 1)]))
    graph = Graph(1, nodes, [Ref(3)], [{}])
    (expected,) = judging._Reference(judging.Inputs(graph), graph.model(), 2, narrow=False).calls()
    (allowed,) = expected.allowed
    assert allowed is not None
    assert (allowed > 1e-6).all()


def test_constants_beyond_the_memory_show_nothing() -> None:
    """A graph that is too large when it is compiled does not end the campaign."""
    nodes = [Node("constant", type="i64", shape=(1,), data=np.array([n])) for n in (1, 1 << 27)]
    nodes.append(Node("layer", find("Tile")[1], {}, [Ref(0), Ref(1)]))
    with pytest.raises(Invalid, match="IR604"):
        judge(Graph(1, nodes, [Ref(2)], [{}]))


def test_a_squeezed_dim_that_is_not_one_is_no_finding() -> None:
    """An open dim that Squeeze names may stay: the inferred shape that a run is held against assumes nothing."""
    nodes = [
        Node("parameter", type="f32", shape=(2, 3), data=np.ones((2, 3), np.float32)),
        Node("constant", type="i64", shape=(1,), data=np.array([0])),
        Node("layer", find("Squeeze")[1], {}, [Ref(0), Ref(1)]),
    ]
    assert judge(Graph(1, nodes, [Ref(2)], [{}], {0: frozenset({0})})) is None
