"""The graphs and the node data for Model Explorer: in the form of its JSON, and in its classes where it is installed."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

import irrun
from irrun import build as b
from irrun.api import load
from irrun.explorer import graphs, node_data
from nets import Net


def _pairs(**items: str) -> list[dict[str, str]]:
    return [{"key": key.replace("_value", "__value"), "value": value} for key, value in items.items()]


def _model(folder: Path) -> Path:
    """Save a model whose sum declares three columns too many."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    c = net.const("f32", "2", struct.pack("<2f", 1.5, -2), name="block.0/c")
    total = net.add("Add", [x, c], [("FP32", "5")], name="block.0/sum", names="total,same")
    net.result(total, name="y")
    return net.save(folder, "model")


def test_a_graph(tmp_path: Path) -> None:
    path = _model(tmp_path)
    lines = [n for n, text in enumerate(path.read_text().splitlines(), 1) if text.lstrip().startswith("<layer ")]
    name = irrun.read_model(path).name
    (graph,) = graphs(load(path).model)
    x, c, total, y = graph["nodes"]
    assert graph["id"] == name
    assert [(node["id"], node["label"], node["namespace"]) for node in graph["nodes"]] == [
        ("x", "Parameter", ""),
        ("block.0/c", "Const", "block/0"),
        ("block.0/sum", "Add", "block/0"),
        ("y", "Result", ""),
    ]
    own = {pair["key"]: pair["value"] for pair in c["attrs"]}
    assert own["__value"] == "[1.5, -2.0]"
    assert own["line"] == str(lines[1])
    assert total == {
        "id": "block.0/sum",
        "label": "Add",
        "namespace": "block/0",
        "subgraphIds": [],
        "attrs": _pairs(name="block.0/sum", version="opset1", line=str(lines[2])),
        "incomingEdges": [
            {"sourceNodeId": "x", "sourceNodeOutputId": "0", "targetNodeInputId": "0"},
            {"sourceNodeId": "block.0/c", "sourceNodeOutputId": "0", "targetNodeInputId": "1"},
        ],
        "outputsMetadata": [
            {
                "id": "0",
                "attrs": [
                    {"key": "tensor_shape", "value": "f32[2]"},
                    {"key": "declared", "value": "f32[5]"},
                    {"key": "tensor_name", "value": "total"},
                    {"key": "other names", "value": "same"},
                ],
            }
        ],
        "inputsMetadata": [
            {"id": "0", "attrs": [{"key": "__tensor_tag", "value": "a"}]},
            {"id": "1", "attrs": [{"key": "__tensor_tag", "value": "b"}]},
        ],
    }
    assert (x["incomingEdges"], y["outputsMetadata"]) == ([], [])


def test_without_weights_and_with_an_unknown_operation(tmp_path: Path) -> None:
    path = _model(tmp_path)
    path.with_suffix(".bin").unlink()
    path.write_text(path.read_text().replace('type="Add"', 'type="Sum"'))
    (graph,) = graphs(load(path).model)
    total = graph["nodes"][2]
    assert total["label"] == "Sum"
    assert total["inputsMetadata"][0]["attrs"] == _pairs(__tensor_tag="input 0")
    assert total["outputsMetadata"][0]["attrs"][0] == {"key": "tensor_shape", "value": "f32[5]"}
    assert not [pair for pair in graph["nodes"][1]["attrs"] if pair["key"] == "__value"]


def _loop() -> irrun.Model:
    x = b.parameter([2, 2], name="x")
    return b.model(
        {"y": b.Loop(3, True, x, body=lambda i, a: (True, b.Tanh(a, name="inner")), name="loop")}, name="net"
    )


def test_a_body_is_a_graph() -> None:
    outer, inner = graphs(_loop())
    (loop,) = (node for node in outer["nodes"] if node["id"] == "loop")
    assert (outer["id"], loop["subgraphIds"], inner["id"]) == ("net", ["net/loop/body"], "net/loop/body")
    (tanh,) = (node for node in inner["nodes"] if node["id"] == "inner")
    assert tanh["outputsMetadata"][0]["attrs"][0] == {"key": "tensor_shape", "value": "f32[2,2]"}
    ids = {node["id"] for node in inner["nodes"]}
    assert all(edge["sourceNodeId"] in ids for node in inner["nodes"] for edge in node["incomingEdges"])


def test_node_data() -> None:
    """Figures are keyed by graph and node. No JSON holds infinities, and names of no layer are left out."""
    data = node_data(_loop(), "error", {"x": 0.123456, "loop/inner": math.inf, "elsewhere": 1.0}, "errors")
    assert {graph: own["results"] for graph, own in data.items()} == {
        "net": {"x": {"value": 0.1235}},
        "net/loop/body": {"inner": {"value": 1e30}},
    }
    assert {own["name"] for own in data.values()} == {"error"}
    bounds = [item["value"] for item in data["net"]["thresholds"]]
    assert bounds == sorted(bounds)
    assert bounds[-1] == 1e30
    shares = node_data(_loop(), "ms", {"x": 1.0}, "shares")["net"]
    assert [item["stop"] for item in shares["gradient"]] == [0, 1]
    json.dumps(data, allow_nan=False)


# -- where Model Explorer is installed


@pytest.fixture
def explorer() -> Any:
    return pytest.importorskip("model_explorer", reason="Model Explorer, of the extra `explorer`, is not installed")


def test_the_adapter(explorer: Any, tmp_path: Path) -> None:
    """Model Explorer loads it by the name of the package, and converts a file."""
    from model_explorer.extension_manager import ExtensionManager  # pyright: ignore[reportMissingImports]

    manager = ExtensionManager(["irrun.explorer"])
    manager.load_extensions()
    (own,) = (item for item in manager.get_extensions_metadata() if item["id"] == "irrun")
    assert (own["type"], own["fileExts"]) == ("adapter", ["xml"])
    irrun.save_model(_loop(), tmp_path / "loop.xml")
    command = {"extensionId": "irrun", "cmdId": "convert", "modelPath": str(tmp_path / "loop.xml"), "settings": {}}
    converted = manager.run_cmd(command)["graphs"]
    expected = graphs(irrun.read_model(tmp_path / "loop.xml"))
    assert [graph["id"] for graph in converted] == ["net", "net/loop/body"]
    for graph, plain in zip(converted, expected, strict=True):
        for node, known in zip(graph["nodes"], plain["nodes"], strict=True):
            assert {key: node[key] for key in known} == known


@pytest.mark.parametrize("colours", ["errors", "shares"])
def test_node_data_has_the_fields_of_model_explorer(explorer: Any, colours: Any) -> None:
    builder = explorer.node_data_builder
    (data,) = node_data(_loop(), "title", {"x": 1.0, "loop": 2.0}, colours).values()
    assert data.keys() <= {field.name for field in fields(builder.GraphNodeData)}
    own = builder.GraphNodeData(
        {name: builder.NodeDataResult(**result) for name, result in data["results"].items()},
        data["name"],
        [builder.ThresholdItem(**item) for item in data.get("thresholds", [])],
        [builder.GradientItem(**item) for item in data.get("gradient", [])],
    )
    shown = json.loads(builder.ModelNodeData({"net": own}).to_json_string())["net"]
    assert {key: shown[key] for key in data} == data
    assert asdict(own)["results"].keys() == {"x", "loop"}
