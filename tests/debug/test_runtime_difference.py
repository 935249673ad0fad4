"""Differences of two runtime graphs that are written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import irrun
from irrun import build as b
from irrun.debug.runtime import Runtime, RuntimeDifference, beside, difference
from irrun.debug.runtime.difference import Timing
from irrun.engines import RunNode, RunOutput, RuntimeGraph


def _node(
    name: str, layers: str, *inputs: str, type: str = "Eltwise", precision: str = "f32", primitive: str = "jit",
    layout: str = "ab", times: tuple[float, ...] = (1.0, 1.0, 1.0), order: int = 1,
) -> RunNode:  # fmt: skip
    producers = tuple((producer, 0) for producer in inputs)
    names = tuple(layers.split(",")) if layers else ()
    return RunNode(name, type, names, producers, (RunOutput(precision, layout),), precision, primitive, order, times)


X = _node("x", "x", type="Input", times=(), order=0)


def _model(folder: Path, name: str = "model.xml", *, last: str = "t") -> irrun.Model:
    x = b.parameter([2, 3], name="x")
    middle = b.Sigmoid(b.Exp(x, name="e"), name="s")
    irrun.save_model(b.model({"y": b.Tanh(middle, name=last)}), folder / name)
    return irrun.read_model(folder / name)


def _graph(model: irrun.Model, *nodes: RunNode, **properties: str) -> Runtime:
    return beside(model, RuntimeGraph(nodes, 3, properties), "side", "engine")


def _changes(found: RuntimeDifference) -> dict[tuple[str, ...], list[tuple[str, str, str, str]]]:
    return {
        tuple(pair.any.name for pair in part.layers): [(c.kind, c.layer, c.a, c.b) for c in part.changes]
        for part in found.parts
    }


def test_equal_graphs(tmp_path: Path) -> None:
    model = _model(tmp_path)
    nodes = (X, _node("e", "e,s", "x"), _node("t", "t", "e", order=2))
    found = difference(_graph(model, *nodes), _graph(model, *nodes))
    assert found.same
    assert _changes(found) == {("e", "s"): [], ("t",): []}
    assert found.summary["parts"] == 2


def test_whether_a_node_names_a_layer_makes_no_difference(tmp_path: Path) -> None:
    model = _model(tmp_path)
    a = _graph(model, X, _node("s", "e,s", "x"), _node("t", "t", "s", order=2))
    again = _graph(model, X, _node("s", "s", "x"), _node("t", "t", "s", order=2))
    assert again.by_name["e"].state == "inside"
    assert difference(a, again).same


def test_layers_that_are_no_longer_fused_are_one_part(tmp_path: Path) -> None:
    """e and s run in one node of a, s and t in one of b: no smaller set has nodes of its own on both sides."""
    model = _model(tmp_path)
    a = _graph(model, X, _node("e", "e,s", "x"), _node("t", "t", "e", order=2))
    again = _graph(model, X, _node("e", "e", "x", type="Math"), _node("t", "s,t", "e", order=2))
    found = difference(a, again)
    nodes = ("nodes", "", "Eltwise(e, s) + Eltwise(t)", "Math(e) + Eltwise(s, t)")
    assert _changes(found) == {("e", "s", "t"): [nodes]}
    single = _graph(model, X, _node("e", "e,s,t", "x"))
    assert [part.fused for part in difference(a, single).changed] == [1]
    assert difference(single, a).summary["more_nodes"] == 1


def test_precision_kernel_and_layout(tmp_path: Path) -> None:
    model = _model(tmp_path)
    a = _graph(model, X, _node("e", "e,s", "x"), _node("t", "t", "e", order=2))
    other = _node("e", "e,s", "x", precision="bf16", primitive="jit_bf16", layout="ba")
    found = difference(a, _graph(model, X, other, _node("t", "t", "e", order=2)))
    assert _changes(found) == {
        ("e", "s"): [
            ("precision", "", "f32", "bf16"),
            ("primitive", "", "jit", "jit_bf16"),
            ("layout", "", "ab", "ba"),
        ],
        ("t",): [],
    }


def test_inserted_nodes_are_counted_by_their_changes(tmp_path: Path) -> None:
    model = _model(tmp_path)
    a = _graph(model, X, _node("e", "e,s", "x"), _node("t", "t", "e", order=2))
    reorder = _node("r", "", "e", type="Reorder", precision="bf16", layout="ba", times=(4.0, 4.0, 4.0), order=2)
    (row,) = difference(a, _graph(model, X, a.graph.nodes[1], reorder, _node("t", "t", "r", order=3))).inserted
    assert (row.type, row.changes, len(row.a)) == ("Reorder", "f32 ab → bf16 ba", 0)
    assert [(item.source, item.target) for item in row.b] == [("e", "t")]
    assert row.timing == Timing(0, 4, 0)


def test_times_have_a_noise(tmp_path: Path) -> None:
    """The runs of two nodes are added before their median; the interquartile ranges of both sides are the noise."""
    model = _model(tmp_path)
    a = _graph(model, X, _node("e", "e,s", "x", times=(10, 12, 20)), _node("t", "t", "e", times=(1, 1, 1), order=2))
    again = _graph(model, X, _node("e", "e,s", "x", times=(30, 40, 32)), _node("t", "t", "e", times=(2, 2, 2), order=2))
    found = difference(a, again)
    low, high = (np.subtract(*np.percentile(times, [75, 25])) for times in ((10, 12, 20), (30, 40, 32)))
    assert [part.timing for part in found.parts] == [Timing(12, 32, low + high), Timing(1, 2, 0)]
    assert found.timing.a == np.median([11, 13, 21])
    assert [part.timing.is_clear for part in found.parts] == [True, False]
    assert (found.summary["slower"], found.summary["faster"]) == (1, 0)
    assert found.same


def test_a_layer_that_one_side_folds(tmp_path: Path) -> None:
    weights = b.Convert(b.constant(np.ones((2, 3), np.float16), name="w"), destination_type="f32", name="wide")
    irrun.save_model(b.model({"y": b.Add(b.parameter([2, 3], name="x"), weights, name="sum")}), tmp_path / "model.xml")
    model = irrun.read_model(tmp_path / "model.xml")
    a = _graph(model, X, _node("sum", "sum", "x", order=2))
    again = _graph(model, X, _node("wide", "wide", type="Convert"), _node("sum", "sum", "x", "wide", order=2))
    changes = _changes(difference(a, again))
    assert [change for part in changes.values() for change in part if change[0] == "state"] == [
        ("state", "wide", "decompression", "named")
    ]


def test_graphs_of_two_files(tmp_path: Path) -> None:
    """The layers are paired although one has another name."""
    one, two = _model(tmp_path), _model(tmp_path, "other.xml", last="u")
    found = difference(
        _graph(one, X, _node("e", "e,s", "x"), _node("t", "t", "e", order=2)),
        _graph(two, X, _node("e", "e,s", "x"), _node("u", "u", "e", precision="bf16", order=2)),
    )
    assert _changes(found) == {("e", "s"): [], ("t",): [("precision", "", "f32", "bf16")]}


def test_properties_that_differ(tmp_path: Path) -> None:
    model = _model(tmp_path)
    a, again = _graph(model, X, HINT="f32", SAME="1"), _graph(model, X, SAME="1", MODE="ACCURACY")
    assert difference(a, again).properties == {"HINT": ("f32", None), "MODE": (None, "ACCURACY")}
