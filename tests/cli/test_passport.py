"""irrun passport."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from irrun.targets import RELEASES
from nets import Net


def _inverse(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2,2", name="x")
    net.result(net.add("Inverse", [x], [("FP32", "2,2")], name="inverse", opset="opset14", adjoint="false"))
    net.save(tmp_path)


def test_json(call: Any, tmp_path: Path) -> None:
    _inverse(tmp_path)
    record = json.loads(call("passport", "net.xml", "--format", "json").stdout)
    assert record["digest"] == {"xml": hashlib.sha256(Path("net.xml").read_bytes()).hexdigest(), "bin": None}
    assert (record["is_static"], record["variables"], record["types"], record["weight_bytes"]) == (True, [], ["f32"], 0)
    assert {"type": "Inverse", "version": "opset14", "count": 1, "since": "2024.0"} in record["operations"]
    loads = {row["release"]: row["loads"] for row in record["releases"]}
    assert list(loads) == list(RELEASES)
    assert not loads["2023.3"]
    assert loads["2024.6"]
    (number,) = record["releases"][0]["reasons"]
    assert record["reasons"][number]["layer"] == "inverse"
    assert record["tried"] == []


def test_text_and_markdown(call: Any, tmp_path: Path) -> None:
    _inverse(tmp_path)
    text = call("passport", "net.xml").stdout
    assert "shapes static" in [" ".join(line.split()) for line in text.splitlines()]
    assert "OpenVINO 2022.1 to 2023.3" in text
    assert 'cannot read Inverse from opset14 ("inverse", line ' in text
    markdown = call("passport", "net.xml", "--format", "markdown").stdout
    assert "| Inverse | opset14 | 1 | 2024.0 |" in markdown


@pytest.mark.parametrize("shape", ["-1,2", "..."])
def test_dynamic_shapes(shape: str, call: Any, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", shape, name="x")
    net.result(net.add("Abs", [x], [("FP32", shape)], name="y"))
    net.save(tmp_path)
    record = json.loads(call("passport", "net.xml", "--format", "json").stdout)
    assert (record["is_static"], record["memory"]) == (False, None)
    assert record["devices"][0]["device"] == "NPU"
    assert record["devices"][0]["limits"]


def test_try(call: Any, tmp_path: Path) -> None:
    _inverse(tmp_path)
    record = json.loads(call("passport", "net.xml", "--try", "exact", "--format", "json").stdout)
    assert [(row["loads"], row["runs"], row["message"]) for row in record["tried"]] == [(True, True, "")]


def test_a_missing_file(call: Any) -> None:
    assert call("passport", "nothing.xml").exit_code == 2
    assert "IR000" in call("passport", "nothing.xml").stderr


def test_lines_fit_a_terminal(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are wrapped, long names broken, and of many limits of a device the first is shown."""
    monkeypatch.setattr("irrun.cli._terminal._UNBOUNDED", 80)
    net = Net()
    x, z = (net.parameter("f32", "-1,2,2", name=name) for name in "xz")
    net.result(net.add("Abs", [z], [("FP32", "-1,2,2")], name="abs"))
    name = "/".join(["module"] * 14)
    net.result(net.add("Inverse", [x], [("FP32", "-1,2,2")], name=name, opset="opset14", adjoint="false"))
    net.save(tmp_path)
    lines = call("passport", "net.xml").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert name in "".join(line.strip() for line in lines)
    assert "models with static shapes only, and 1 more reason" in " ".join(line.strip() for line in lines)
