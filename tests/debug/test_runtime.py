"""The runtime graph beside the file: where each layer runs, and why a pattern was not fused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import fused_patterns as patterns
import irrun
import lowered_networks
import small_networks
from irrun import build as b
from irrun.debug.runtime import Runtime, beside, runtime
from irrun.diagnostics import EngineError
from irrun.engines import RunNode, RunOutput, RuntimeGraph

SIDE: Final = "openvino[precision=f32,threads=1]"


def _run(model: irrun.Model, folder: Path, side: str = SIDE) -> Runtime:
    irrun.save_model(model, folder / "model.xml")
    return runtime(folder / "model.xml", side, runs=1)


def _where(result: Runtime) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    return {layer.name: (layer.state, tuple(node.type for node in layer.nodes)) for layer in result.layers}


# ---------------------------------------------------------------------------------------------
# where layers run, in graphs that are written by hand


def _node(name: str, type: str, layers: str, *inputs: str, order: int, precision: str = "f32") -> RunNode:
    producers = tuple((producer, 0) for producer in inputs)
    names = tuple(layers.split(",")) if layers else ()
    return RunNode(name, type, names, producers, (RunOutput(precision, "ab"),), precision, "jit", order, (1.0,))


def _beside(model: irrun.Model, folder: Path, *nodes: RunNode) -> Runtime:
    irrun.save_model(model, folder / "model.xml")
    return beside(irrun.read_model(folder / "model.xml"), RuntimeGraph(nodes, 1), "side", "engine")


def test_layers_without_a_node_of_their_name(tmp_path: Path) -> None:
    """A layer that no node is named after runs in the node of its consumers, and in what the engine has invented."""
    x = b.parameter([2, 3], name="x")
    first = b.Exp(x, name="first")
    again = b.Reshape(first, np.array([2, 3]), special_zero=False, name="again")
    second = b.Sigmoid(again, name="second")
    weights = b.Convert(b.constant(np.ones((2, 3), np.float16), name="w"), destination_type="f32", name="wide")
    total = b.Add(second, weights, name="total")
    two = b.Add(b.constant(np.array([1], np.int64)), b.constant(np.array([1], np.int64)), name="two")
    y = b.Unsqueeze(total, two, name="unsqueezed")
    result = _beside(
        b.model({"y": y}),
        tmp_path,
        _node("x", "Input", "x", order=0),
        _node("Exp_7", "Eltwise", "Exp_7", "x", order=1, precision="bf16"),
        _node("r", "Reorder", "", "Exp_7", order=2),
        _node("total", "Eltwise", "total", "r", order=3),
        _node("unsqueezed", "Reshape", "unsqueezed", "total", order=4),
    )
    assert _where(result) == {
        "x": ("named", ("Input",)),
        "first": ("inside", ("Eltwise", "Eltwise")),
        "again": ("removed", ()),
        "second": ("inside", ("Eltwise", "Eltwise")),
        "wide": ("decompression", ("Eltwise", "Eltwise")),
        "total": ("named", ("Eltwise",)),
        "two": ("folded", ()),
        "unsqueezed": ("named", ("Reshape",)),
        "y/result": ("inside", ("Reshape",)),
    }
    assert result.by_name["first"].precisions == ("bf16", "f32")
    (reorder,) = [item for item in result.inserted if item.node.type == "Reorder"]
    assert (reorder.source, reorder.target, reorder.changes) == ("Exp_7", "total", "bf16 ab → f32 ab")
    assert not reorder.before_run


def test_a_layer_that_several_nodes_compute(tmp_path: Path) -> None:
    x = b.parameter([2, 3], name="x")
    shared = b.Exp(x, name="shared")
    model = b.model({"a": b.Sigmoid(shared, name="a"), "b": b.Tanh(shared, name="b")})
    result = _beside(
        model, tmp_path, _node("x", "Input", "x", order=0), _node("a", "One", "a", "x", order=1),
        _node("b", "Two", "b", "x", order=2),
    )  # fmt: skip
    assert _where(result)["shared"] == ("inside", ("One", "Two"))


def test_names_with_commas(tmp_path: Path) -> None:
    """The engine joins the names of layers with commas, which names may contain."""
    x = b.parameter([2, 3], name="x")
    model = b.model({"y": b.Tanh(b.Exp(x, name="a,b"), name="c")})
    result = _beside(model, tmp_path, _node("x", "Input", "x", order=0), _node("n", "Eltwise", "a,b,c", "x", order=1))
    assert _where(result)["a,b"] == _where(result)["c"] == ("named", ("Eltwise",))


def test_a_node_that_lists_no_layers(tmp_path: Path) -> None:
    """OpenVINO names the node that writes a variable after the Assign, and lists no layers."""
    held = b.ReadValue(np.zeros((2, 3), np.float32), variable_id="v", variable_type="f32", variable_shape=[2, 3])
    total = b.Add(held, b.parameter([2, 3], name="x"), name="total")
    result = _beside(
        b.model({"y": total}, sinks=[b.Assign(total, variable_id="v", name="kept")]), tmp_path,
        _node("x", "Input", "x", order=0), _node("total", "Eltwise", "total", "x", order=1),
        _node("kept", "MemoryOutput", "", "total", order=2),
    )  # fmt: skip
    assert _where(result)["kept"] == ("named", ("MemoryOutput",))
    assert result.inserted == ()


def test_what_is_constant_runs_before(tmp_path: Path) -> None:
    x = b.parameter([2, 3], name="x")
    model = b.model({"y": b.Add(x, b.constant(np.ones((2, 3), np.float32), name="w"), name="y0")})
    result = _beside(
        model, tmp_path, _node("x", "Input", "x", order=0), _node("w", "Const", "w", order=1),
        _node("r", "Reorder", "", "w", order=2), _node("y0", "Eltwise", "y0", "x", "r", order=3),
    )  # fmt: skip
    assert [(item.node.name, item.before_run) for item in result.inserted] == [("r", True)]


def test_shares_of_the_time(tmp_path: Path) -> None:
    x = b.parameter([2, 3], name="x")
    nodes = [
        RunNode(name, "Input" if name == "x" else "Eltwise", (name,), (), (), "f32", "jit", order, times)
        for order, (name, times) in enumerate({"x": (), "e": (5.0, 1.0, 3.0), "t": (1.0, 1.0, 9.0)}.items())
    ]
    result = _beside(b.model({"y": b.Tanh(b.Exp(x, name="e"), name="t")}), tmp_path, *nodes)
    assert [result.share(node) for node in nodes] == [0, 0.75, 0.25]
    assert result.microseconds == 4
    assert [node.name for node in result.executed] == ["e", "t"]


# ---------------------------------------------------------------------------------------------
# OpenVINO's graphs


def _networks() -> dict[str, Callable[[Any], irrun.Model]]:
    made = (
        lowered_networks.gated_mlp, lowered_networks.transformer, lowered_networks.resnet, lowered_networks.unet,
    )  # fmt: skip
    return {make.__name__: lambda ov, make=make: make(lowered_networks.Net()) for make in made}


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("name", _networks())
def test_each_layer_of_small_networks_has_a_place(ov: Any, tmp_path: Path, name: str, precision: str) -> None:
    result = _run(_networks()[name](ov), tmp_path, f"openvino[precision={precision},threads=1]")
    _require_places(result)
    if precision == "f32":
        assert set(result.summary["precisions"]) == {"f32"}


@pytest.mark.parametrize("make", small_networks.NETWORKS, ids=lambda make: make.__name__)
def test_each_layer_of_networks_that_openvino_wrote_has_a_place(
    ov: Any, tmp_path: Path, make: Callable[[Any], Any]
) -> None:
    ov.save_model(make(ov), tmp_path / "model.xml")
    _require_places(runtime(tmp_path / "model.xml", SIDE, runs=1))


def _require_places(result: Runtime) -> None:
    """Require that each layer that a run computes is in a node, and that each node with layers has one of the file."""
    for layer in result.layers:
        if layer.state in ("named", "inside") and layer.layer.type != "Result":
            assert layer.nodes, layer.name
    known = {node.name for layer in result.layers for node in layer.nodes}
    invented = {item.node.name for item in result.inserted}
    assert {node.name for node in result.executed} <= known | invented
    added = [item for item in result.added if item.node.type != "Reorder"]
    assert [item.node.name for item in added if item.node.name not in known] == []
    _require_sums(result)


def _require_sums(result: Runtime) -> None:
    """Require that the numbers of the summary add up, to what is counted in the file and in the graph."""
    summary, layers = result.summary, result.model.layers.values()
    assert summary["layers"] == len(layers)
    assert summary["constants"] == sum(layer.type == "Const" for layer in layers)
    assert summary["ports"] == sum(layer.type in ("Parameter", "Result") for layer in layers)
    assert summary["constants"] + summary["ports"] + sum(summary["states"].values()) == summary["layers"]
    assert sum(summary["precisions"].values()) == summary["computed"]
    assert summary["of_layers"] + sum(summary["inserted"].values()) == summary["nodes"]
    idle = sum(node.type in ("Input", "Output", "Const") for node in result.graph.nodes)
    before = [item for item in result.inserted if item.before_run]
    assert 0 <= len(result.graph.nodes) - summary["nodes"] - idle - len(before) <= summary["states"].get("folded", 0)


def test_a_network_in_int8(ov: Any, tmp_path: Path) -> None:
    result = _run(patterns.int8(), tmp_path, "openvino[threads=1]")
    _require_places(result)
    if not any(fusion.fused for fusion in result.fusions):
        pytest.skip("this processor computes no convolutions in int8")
    assert result.by_name["conv"].precisions[-1] in ("u8", "i8")


BROKEN: Final[Mapping[str, tuple[Callable[[], irrun.Model], str, str, str]]] = {
    "mean of another": (lambda: patterns.layer_norm(of="other"), "LayerNorm", "the mean is of the value", '"other"'),
    "cube": (lambda: patterns.layer_norm(exponent=3), "LayerNorm", "the exponent of the square is 2", "is 3"),
    "two axes": (lambda: patterns.layer_norm(variance_axes=(1,)), "LayerNorm", "both means", "[2] and [1]"),
    "inner axis": (lambda: patterns.layer_norm(axes=(1,)), "LayerNorm", "the axes are all but", "[1] of 3"),
    "square of another": (lambda: patterns.rms(of="other"), "RMSNorm", "the square is of the value", '"other"'),
    "cubes": (lambda: patterns.rms(exponent=3), "RMSNorm", "the exponent of the square is 2", "is 3"),
    "middle axis": (lambda: patterns.rms(axes=(1,)), "RMSNorm", "the mean is along the last axis", "[1] of 3"),
    "epsilons": (
        lambda: patterns.rms(eps=np.linspace(1e-5, 1, 8).reshape(1, 8, 1)),
        "RMSNorm",
        "epsilon is one number",
        "several numbers",
    ),
    "no half": (lambda: patterns.gelu(half=0.4), "Gelu", "a factor is 0.5", "0.4"),
    "other root": (lambda: patterns.gelu(root=1.5), "Gelu", "the root of 2", "1.5"),
    "two is added": (lambda: patterns.gelu(one=2), "Gelu", "1 is added", "2 is added"),
    "erf of another": (lambda: patterns.gelu(of="other"), "Gelu", "erf is of the value that is", '"other"'),
    "not negated": (lambda: patterns.rope(sign=1), "rotary embedding", "is negated", "its factor is 1"),
    "halves of another": (lambda: patterns.rope(of="other"), "rotary embedding", "the halves are of", '"other"'),
    "other axis": (lambda: patterns.attention(axis=1), "attention", "SoftMax is along", "1 of 4"),
    "read again": (lambda: patterns.attention(is_read=True), "attention", "only the second product", '"again"'),
    "wide codes": (lambda: patterns.compressed(type=np.int16), "compressed weights", "8 bits or less", "i16"),
    "weights read again": (lambda: patterns.compressed(is_read=True), "compressed weights", "only products", '"again"'),
    "levels": (lambda: patterns.int8(levels=65536), "quantized product", "at most 256 levels", "65536"),
    "channels": (lambda: patterns.int8(per_channel=True), "quantized product", "one range", "for each channel"),
    "asymmetric": (lambda: patterns.int8(weight_levels=256), "quantized product", "0 is the middle level", "127.5"),
}
"""A model with one broken condition, the pattern, and words of the condition and of what the file has instead."""
WHOLE: Final = {
    "LayerNorm": patterns.layer_norm, "RMSNorm": patterns.rms, "Gelu": patterns.gelu,
    "rotary embedding": patterns.rope, "attention": patterns.attention, "compressed weights": patterns.compressed,
    "quantized product": patterns.int8,
}  # fmt: skip
"""The model of each pattern, in which nothing is broken."""
NEEDS_INSTRUCTIONS: Final = ("RMSNorm", "attention", "compressed weights", "quantized product")
"""The patterns that OpenVINO fuses on processors with certain instructions only."""


@pytest.mark.parametrize("pattern", WHOLE)
def test_a_whole_pattern_is_fused(ov: Any, tmp_path: Path, pattern: str) -> None:
    (fusion,) = _run(WHOLE[pattern](), tmp_path, "openvino[INFERENCE_PRECISION_HINT=f32,threads=1]").fusions
    assert fusion.pattern == pattern
    assert fusion.condition == ""
    if not fusion.fused and pattern in NEEDS_INSTRUCTIONS:
        pytest.skip("this processor does not fuse the pattern")
    assert fusion.fused


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_pattern_is_explained_by_its_condition(ov: Any, tmp_path: Path, broken: str) -> None:
    make, pattern, condition, found = BROKEN[broken]
    (fusion,) = _run(make(), tmp_path, "openvino[INFERENCE_PRECISION_HINT=f32,threads=1]").fusions
    assert (fusion.pattern, fusion.fused) == (pattern, False)
    assert condition in fusion.condition
    assert found in fusion.found


def test_an_operation_that_the_plugin_takes_apart(ov: Any, tmp_path: Path) -> None:
    """MVN with other axes than the last ones is computed by single operations."""
    x = b.parameter([2, 8, 16], name="x")
    y = b.MVN(x, np.array([1]), normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt", name="norm")
    result = _run(b.model({"y": y}), tmp_path)
    (fusion,) = result.fusions
    assert (fusion.fused, fusion.layer, fusion.found) == (False, "norm", "the axes are [1] of 3")
    assert len(result.by_name["norm"].nodes) > 2
    _require_places(result)


# ---------------------------------------------------------------------------------------------
# errors


def test_an_engine_without_a_runtime_graph(tmp_path: Path) -> None:
    irrun.save_model(patterns.gelu(), tmp_path / "model.xml")
    with pytest.raises(EngineError, match="IR701") as caught:
        runtime(tmp_path / "model.xml", "exact")
    assert "exact shows no runtime graph" in str(caught.value)


def test_an_interpreter_without_the_engine(tmp_path: Path) -> None:
    irrun.save_model(patterns.gelu(), tmp_path / "model.xml")
    with pytest.raises(EngineError, match="IR702"):
        runtime(tmp_path / "model.xml", f"openvino[python={tmp_path / 'none'}]")


def test_a_model_that_the_engine_refuses(ov: Any, tmp_path: Path) -> None:
    irrun.save_model(patterns.gelu(), tmp_path / "model.xml")
    path = tmp_path / "model.xml"
    path.write_text(path.read_text().replace('type="Erf"', 'type="Arf"'))
    with pytest.raises(EngineError, match="IR704") as caught:
        runtime(path, SIDE)
    (found,) = caught.value.diagnostics
    assert "shows no runtime graph: " in found.message
    assert found.notes
    assert all(line.strip() and "\n" not in line for line in (found.message, *found.notes))


def test_a_layer_that_irrun_does_not_know(tmp_path: Path) -> None:
    """The graph is shown all the same."""
    x = b.parameter([2, 3], name="x")
    irrun.save_model(b.model({"y": b.Tanh(b.Exp(x, name="e"), name="t")}), tmp_path / "model.xml")
    path = tmp_path / "model.xml"
    path.write_text(path.read_text().replace('type="Exp"', 'type="Unheard"'))
    nodes = (_node("x", "Input", "x", order=0), _node("t", "Eltwise", "t", "x", order=1))
    result = beside(irrun.read_model(path), RuntimeGraph(nodes, 1), "side", "engine")
    assert _where(result)["e"] == ("inside", ("Eltwise",))
