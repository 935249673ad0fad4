"""Graphs of internal operations: all types come in turn, and none for an engine."""

from __future__ import annotations

from irrun.fuzz.judging import judge
from irrun.growing import Grower
from irrun.growing.internal import LAYERS
from irrun.opdef import all_ops


def test_every_type_comes_in_turn() -> None:
    grower = Grower(1)
    graphs = [grower.grow(number) for number in range(0, 20 * len(LAYERS), 20)]
    types = [graph.nodes[-1].cls.type for graph in graphs if graph.nodes[-1].cls is not None]
    assert types == [*LAYERS]
    assert {*types} == {cls.type for cls in all_ops() if cls.__module__.startswith("irrun.extensions.internal.")}
    assert [judge(graph) for graph in graphs] == [None] * len(LAYERS)


def test_an_engine_gets_none() -> None:
    grower = Grower(1, for_engine=True)
    assert not {*LAYERS} & {node.cls.type for n in (0, 20, 40) for node in grower.grow(n).nodes if node.cls is not None}
