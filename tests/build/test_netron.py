"""Netron opens what irrun writes: layers, attributes, types and shapes, read by Netron's own module in Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from places import ROOT

netron = pytest.importorskip("netron", reason="Netron, of the extra `test`, is not installed")

pytestmark = pytest.mark.processes


def _opened(*files: Path) -> dict[str, Any]:
    """Return the graph that Netron shows of each file, by the name of the file."""
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed")
    script, folder = ROOT / "tests" / "help" / "netron.mjs", Path(netron.__file__).parent
    done = subprocess.run(
        ["node", str(script), str(folder), *map(str, files)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_a_model_that_irrun_builds(tmp_path: Path) -> None:
    """Booleans, lists, a weight, a scalar, a dynamic dim, and a layer with a body."""
    x = b.parameter([-1, 3], name="x")
    weight = b.constant(np.zeros((5, 3), np.float16), name="w")
    product = b.MatMul(x, b.Convert(weight, destination_type="f32", name="wide"), transpose_b=True, name="product")
    pooled = b.ReduceSum(product, b.constant(np.int64(1)), keep_dims=True, name="total")
    loop = b.Loop(3, True, pooled, body=lambda i, a: (True, b.Tanh(a, name="inner")), name="loop")
    irrun.save_model(b.model({"y": loop}, name="built"), tmp_path / "built.xml")
    graph = _opened(tmp_path / "built.xml")["built.xml"]
    assert graph["name"] == "built"
    assert graph["inputs"] == [["x", "float32[-1,3]"]]
    nodes = {node["name"]: node for node in graph["nodes"]}
    assert nodes["wide"]["inputs"] == ["float16[5,3]"]
    assert nodes["product"]["attributes"] == {"transpose_b": "true"}
    assert nodes["product"]["outputs"] == ["float32[-1,5]"]
    assert nodes["total"]["attributes"] == {"keep_dims": "true"}
    assert nodes["total"]["outputs"] == ["float32[-1,1]"]
    assert nodes["loop"]["type"] == "Loop"


def test_models_that_irrun_reads_and_writes(tmp_path: Path) -> None:
    files = sorted((ROOT / "samples").glob("*.xml"))
    for file in files:
        irrun.save_model(irrun.read_model(file), tmp_path / file.name)
    graphs = _opened(*(tmp_path / file.name for file in files))
    for file in files:
        layers = irrun.read_model(file).layers.values()
        shown = {layer.name: layer for layer in layers if layer.type not in ("Const", "Parameter")}
        nodes = {node["name"]: node for node in graphs[file.name]["nodes"]}
        assert shown.keys() <= nodes.keys()
        for name, layer in shown.items():
            assert {key.lower() for key in layer.attributes} == {key.lower() for key in nodes[name]["attributes"]}
            assert len(nodes[name]["outputs"]) == len(layer.outputs)
