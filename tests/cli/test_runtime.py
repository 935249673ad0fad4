"""irrun runtime: the graph that OpenVINO runs, beside the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

import fused_patterns
import irrun
from irrun import build as b
from places import ROOT, SAMPLES

CONVNET = SAMPLES / "convnet.xml"
SCHEMA = json.loads((ROOT / "irrun/cli/schemas/runtime.json").read_text("utf-8"))
F32 = ("--against", "openvino[precision=f32,threads=1]")


def _save(model: irrun.Model) -> Path:
    irrun.save_model(model, "model.xml")
    return Path("model.xml")


def test_text(ov: Any, call: Any) -> None:
    result = call("runtime", CONVNET, *F32, "--runs", 3)
    assert (result.exit_code, result.stderr) == (0, "")
    title, *rest = result.stdout.splitlines()
    assert title.startswith("OpenVINO ")
    assert title.endswith(f" CPU f32, {CONVNET}")
    assert "  INFERENCE_PRECISION_HINT=f32" in rest
    assert any(line.startswith("19 layers run as ") and line.endswith("(median of 3 runs)") for line in rest)
    assert "  19 layers in the file: 6 constants, 2 inputs and outputs, 11 named in a node" in rest
    assert "  11 layers in the nodes: 11 in f32" in rest
    relu = next(line.split() for line in rest if line.split()[:2] == ["block1/relu", "ReLU"])
    assert relu[2:5] == ["Convolution", "block1/conv", "f32"]


def test_json(ov: Any, call: Any) -> None:
    result = call("runtime", CONVNET, *F32, "--format", "json", "--runs", 2)
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    jsonschema.validate(record, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert record["properties"]["INFERENCE_PRECISION_HINT"] == "f32"
    (convolution,) = [node for node in record["nodes"] if node["name"] == "block1/conv"]
    assert convolution["layers"] == ["block1/conv", "block1/add", "block1/relu"]
    assert len(convolution["microseconds"]) == 2
    (relu,) = [layer for layer in record["layers"] if layer["name"] == "block1/relu"]
    assert (relu["state"], relu["nodes"], relu["precisions"]) == ("named", ["block1/conv"], ["f32"])
    assert sum(node["share"] for node in record["nodes"]) in (0, 1) or record["microseconds"] > 0


def test_why_a_pattern_was_not_fused(ov: Any, call: Any) -> None:
    result = call("runtime", _save(fused_patterns.layer_norm(axes=(1,))), *F32, "--runs", 1)
    lines = result.stdout.splitlines()
    begin = lines.index("patterns")
    line = next(n for n, text in enumerate(Path("model.xml").read_text().splitlines(), 1) if 'name="scaled"' in text)
    assert lines[begin + 1 : begin + 5] == [
        "  LayerNorm: 0 of 1 run as an MVN node",
        f'    not fused: "scaled", line {line}',
        "      needed: the axes are all but the first one or two, of at most five",
        "      but the axes are [1] of 3",
    ]


def test_patterns_that_are_alike_are_listed_once(ov: Any, call: Any) -> None:
    x = b.parameter([1, 4], "f32", name="x")
    y: Any = x
    for number in range(3):
        erf = b.Erf(b.Divide(y, np.float32(2), name=f"by{number}"), name=f"erf{number}")
        product = b.Multiply(y, b.Add(erf, np.float32(1)), name=f"product{number}")
        y = b.Multiply(product, np.float32(0.5), name=f"gelu{number}")
    path = _save(b.model({"y": y}))
    short = call("runtime", path, *F32, "--runs", 1).stdout
    assert "  Gelu: 0 of 3 run as one operation\n" in short
    assert "      and 2 alike; list them with --all\n" in short
    assert call("runtime", path, *F32, "--runs", 1, "--all").stdout.count("    not fused: ") == 3


def test_long_models_list_the_costliest_layers(ov: Any, call: Any) -> None:
    x = b.parameter([1, 4], "f32", name="x")
    y: Any = x
    for number in range(70):
        y = b.Elu(y, name=f"elu{number}", alpha=1.0)
    path = _save(b.model({"y": y}))
    assert "  and 12 more; list them with --all\n" in call("runtime", path, *F32, "--runs", 1).stdout
    assert "elu69" in call("runtime", path, *F32, "--runs", 1, "--all").stdout


def test_a_side_without_a_runtime_graph(call: Any) -> None:
    result = call("runtime", CONVNET, "--against", "exact")
    assert result.exit_code == 2
    assert "error[IR701 bad-side]: exact shows no runtime graph" in result.stderr
    assert "pass a side whose engine shows one: openvino" in result.stderr


def test_a_model_that_openvino_refuses(ov: Any, call: Any) -> None:
    text = CONVNET.read_text().replace('type="SoftMax"', 'type="HardMax"')
    Path("model.xml").write_text(text)
    result = call("runtime", "model.xml", "-w", CONVNET.with_suffix(".bin"), *F32)
    assert result.exit_code == 2
    assert "error[IR704 nothing-in-common]: OpenVINO " in result.stderr
    assert "shows no runtime graph: " in result.stderr


def test_unreadable_files(call: Any) -> None:
    result = call("runtime", "nothing.xml")
    assert result.exit_code == 2
    assert "nothing.xml" in result.stderr


def test_inputs(ov: Any, call: Any) -> None:
    """A dynamic input has the shape of the array that is passed."""
    x = b.parameter(["?", 4], "f32", name="x")
    path = _save(b.model({"y": b.MatMul(x, np.ones((4, 4), np.float32), name="product")}))
    result = call("runtime", path, *F32, "--runs", 1, "-i", "x=ones:[3,4]", "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert "product" in [node["name"] for node in json.loads(result.stdout)["nodes"]]
