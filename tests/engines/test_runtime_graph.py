"""The runtime graph of an engine, as the protocol passes it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun import engines
from irrun.engines import Crash, Limits, Loaded, Refusal, RunNode, RunOutput, RuntimeGraph

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    x = b.parameter([2, 3], name="x")
    product = b.MatMul(x, b.constant(np.ones((3, 4), np.float32), name="w"), name="product")
    irrun.save_model(b.model({"y": b.ReLU(product, name="positive")}), tmp_path / "model.xml")
    return tmp_path / "model.xml"


def _graph(side: str, runs: int = 1) -> RuntimeGraph:
    with engines.open(side, Limits(120)) as engine:
        assert isinstance(engine.load(), Loaded)
        graph = engine.runtime({"x": X}, runs)
        assert isinstance(graph, RuntimeGraph)
        outputs = engine.infer({"x": X})  # the engine still runs the model
        assert isinstance(outputs, engines.Outputs)
    return graph


def test_the_nodes_of_openvino(ov: Any, model: Path) -> None:
    graph = _graph(f"openvino[precision=f32,threads=1]:{model}", 3)
    product = next(node for node in graph.nodes if node.name == "product")
    assert (product.type, product.layers, product.precision) == ("FullyConnected", ("product", "positive"), "f32")
    assert product.inputs[0] == ("x", 0)
    assert [(output.type, output.layout) for output in product.outputs] == [("f32", "ab")]
    assert len(product.microseconds) == graph.runs == 3
    assert [node.order for node in graph.nodes] == sorted(node.order for node in graph.nodes)
    assert graph.properties["INFERENCE_PRECISION_HINT"] == "f32"


def test_the_file_sets_properties(ov: Any, model: Path) -> None:
    text = model.read_text()
    option = '<runtime_options><KV_CACHE_PRECISION value="f16" /></runtime_options>'
    model.write_text(text.replace("</net>", f"<rt_info>{option}</rt_info></net>"))
    assert _graph(f"openvino:{model}").properties["KV_CACHE_PRECISION"] == "f16"
    assert _graph(f"openvino[KV_CACHE_PRECISION=u8]:{model}").properties["KV_CACHE_PRECISION"] == "u8"


def test_the_state_begins_anew_in_each_run(ov: Any, tmp_path: Path) -> None:
    """A state that grew from run to run would not fit the declared shape."""
    o = ov.opset13
    x = o.parameter([1, 2], np.float32, name="x")
    past = o.read_value(o.broadcast(o.constant(np.float32(0)), np.array([1, 2])), "v")
    total = o.add(past, x, name="total")
    ov.save_model(ov.Model([o.result(total)], [o.assign(total, "v")], [x]), tmp_path / "state.xml")
    with engines.open(f"openvino:{tmp_path / 'state.xml'}", Limits(120)) as engine:
        assert isinstance(engine.load(), Loaded)
        assert isinstance(engine.runtime({0: np.ones((1, 2), np.float32)}, 2), RuntimeGraph)


@pytest.mark.parametrize("kind", ["evaluate", "exact"])
def test_engines_without_one_refuse(request: pytest.FixtureRequest, model: Path, kind: str) -> None:
    if kind == "evaluate":
        request.getfixturevalue("ov")
    with engines.open(f"{kind}:{model}", Limits(120)) as engine:
        assert isinstance(engine.load(), Loaded)
        refusal = engine.runtime({"x": X})
        assert isinstance(refusal, Refusal)
        assert refusal.reason == "unavailable"
        assert "shows no runtime graph" in refusal.message


def test_a_recording_has_none(tmp_path: Path) -> None:
    np.savez(tmp_path / "y.npz", y=X)
    with engines.open(str(tmp_path / "y.npz")) as engine:
        assert isinstance(engine.runtime({}), Refusal)
        assert isinstance(engine.save(tmp_path / "y.xml"), Refusal)


_HARNESS = """
import json, sys
for line in sys.stdin:
    cmd = json.loads(line)["cmd"]
    answer = {}
    if cmd == "start":
        answer = {"name": "mine", "version": 1}
    elif cmd == "load":
        answer = {"inputs": [], "outputs": []}
    elif cmd == "runtime":
        answer = NODES
    print(json.dumps({"ok": answer}), flush=True)
"""
_NODE = {
    "name": "n", "type": "Add", "layers": ["a", "b"], "inputs": [["x", 1]], "order": 2, "precision": "f16",
    "outputs": [{"type": "f32", "layout": "ab"}], "primitive": "jit", "microseconds": [1, 4, 2],
}  # fmt: skip


def _answer(folder: Path, nodes: str) -> RuntimeGraph | engines.Failure:
    (folder / "mine.py").write_text(_HARNESS.replace("NODES", nodes))
    engine = engines.ChildEngine([sys.executable, str(folder / "mine.py")], path="m.xml", limits=Limits(60))
    try:
        assert isinstance(engine.load(), Loaded)
        assert engine.save(folder / "saved.xml") == Refusal("mine saves no model", "unavailable")
        return engine.runtime({}, 3)
    finally:
        engine.close()


def test_a_harness_of_another_engine(tmp_path: Path) -> None:
    graph = _answer(tmp_path, repr({"nodes": [_NODE, {**_NODE, "name": "first", "order": 1}]}))
    assert isinstance(graph, RuntimeGraph)
    assert [node.name for node in graph.nodes] == ["first", "n"]
    node = graph.nodes[1]
    expected = RunNode("n", "Add", ("a", "b"), (("x", 1),), (RunOutput("f32", "ab"),), "f16", "jit", 2, (1, 4, 2))
    assert node == expected
    assert node.time == 2
    assert node.record() == _NODE


def test_a_harness_that_does_not_know_the_request(tmp_path: Path) -> None:
    refusal = _answer(tmp_path, "{}")
    assert isinstance(refusal, Refusal)
    assert refusal.message == "mine shows no runtime graph"


def test_a_wrong_answer(tmp_path: Path) -> None:
    for nodes in ("{'nodes': [{}]}", "{'nodes': 1}", "{'nodes': [], 'properties': 3}"):
        crash = _answer(tmp_path, nodes)
        assert isinstance(crash, Crash)
        assert "its answer to runtime is wrong" in crash.cause
