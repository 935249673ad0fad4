"""--format model-explorer of compare, precision and run: figures of layers, keyed as irrun.explorer keys its nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b


def _save(path: Path, scale: float) -> None:
    x = b.parameter([2, 2], name="x")
    loop = b.Loop(3, True, x, body=lambda i, a: (True, b.Tanh(a, name="inner")), name="loop")
    total = b.Add(loop, b.constant(np.array([[scale, 1], [1, 1]], np.float32), name="c"), name="sum")
    irrun.save_model(b.model({"y": total}, name="net"), path)


@pytest.fixture
def models(tmp_path: Path) -> None:
    _save(tmp_path / "a.xml", 1.0)
    _save(tmp_path / "b.xml", 2.0)


def _values(result: Any) -> dict[str, dict[str, float]]:
    data = json.loads(result.stdout)
    return {graph: {node: item["value"] for node, item in own["results"].items()} for graph, own in data.items()}


def test_errors_of_a_comparison(call: Any, models: None) -> None:
    """The sum is 1 too large in one of four elements; x is 0, so that all elements of the reference are 1."""
    result = call("compare", "a.xml", "b.xml", "-i", "x=zeros", "--format", "model-explorer")
    assert result.exit_code == 1
    values = _values(result)
    assert values["net"]["sum"] == pytest.approx(0.5)  # sqrt(1/4) over 1
    assert values["net"]["loop"] == 0
    assert values["net/loop/body"]["inner"] == 0
    missing = call("compare", "a.xml", "b.xml", "--outputs-only", "--format", "model-explorer")
    assert missing.exit_code == 2
    assert "IR701" in missing.stderr


def test_effects_of_a_precision(call: Any, models: None) -> None:
    result = call("precision", "a.xml", "--format", "model-explorer")
    values = _values(result)
    assert 0 < values["net"]["sum"] < 0.01
    assert json.loads(result.stdout)["net"]["name"] == "effect of f16"


def test_times_of_a_run(call: Any, models: None) -> None:
    """The times of the layers are those of the steps: together the time of the run."""
    arguments = ("run", "a.xml", "--profile", "--runs", 3, "--format")
    values = _values(call(*arguments, "model-explorer"))
    assert values.keys() == {"net", "net/loop/body"}
    assert "inner" in values["net/loop/body"]
    assert {"loop", "sum"} <= values["net"].keys()
    assert all(value >= 0 for own in values.values() for value in own.values())
    assert 0 < sum(value for own in values.values() for value in own.values()) < 1e3
    refused = call("run", "a.xml", "--format", "model-explorer")
    assert refused.exit_code == 2
    assert "--format model-explorer shows times; add --profile" in refused.stderr


def test_a_file_of_node_data(call: Any, models: None, tmp_path: Path) -> None:
    call("precision", "a.xml", "--format", "model-explorer", "-o", "data.json")
    assert json.loads((tmp_path / "data.json").read_text())["net"]["results"]
