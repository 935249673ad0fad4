"""irrun diff."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import fused_patterns
import irrun
from irrun import build as b
from nets import Net
from places import ROOT


def model(folder: Path, name: str, *, value: float = 1.0, kind: str = "Abs", extra: bool = False) -> Path:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    total = net.add(
        "Add", [x, net.const("f32", "2", struct.pack("<2f", 1, value), name="c")], [("FP32", "2")], name="a"
    )
    last = net.add(kind, [total], [("FP32", "2")], name="f")
    if extra:
        last = net.add("Sigmoid", [last], [("FP32", "2")], name="extra")
    net.result(last, name="y")
    return net.save(folder, name)


def line(path: Path, name: str) -> int:
    """Return the line on which a layer begins."""
    return next(n for n, text in enumerate(path.read_text().splitlines(), 1) if f'name="{name}" type=' in text)


def test_equal_models(call, tmp_path):
    model(tmp_path, "a")
    model(tmp_path, "b")
    result = call("diff", "a.xml", "b.xml")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "no differences\n", "")


def test_text(call, tmp_path):
    one = model(tmp_path, "a")
    other = model(tmp_path, "b", value=3.0, kind="Exp", extra=True)
    result = call("diff", "a.xml", "b.xml")
    assert result.exit_code == 1
    assert result.stderr == ""
    assert result.stdout == (
        '1 constant differs: largest error 2 absolute, 2 relative, least SNR -3.0 dB in "c"\n'
        "2 layers changed: 1 Abs, 1 Result\n"
        "1 layer only in b.xml: 1 Sigmoid\n\n"
        f'~ Const "c"  a.xml:{line(one, "c")}, b.xml:{line(other, "c")}\n'
        "    weights  1 of 2 elements (50 %) differ, max abs 2 at [1], max rel 2, SNR -3.0 dB\n\n"
        f'~ Abs "f"  a.xml:{line(one, "f")}, b.xml:{line(other, "f")}\n'
        "    type  Abs → Exp\n\n"
        f'+ Sigmoid "extra"  b.xml:{line(other, "extra")}\n\n'
        f'~ Result "y"  a.xml:{line(one, "y")}, b.xml:{line(other, "y")}\n'
        "    input 0 reads  f → extra\n"
    )


def test_json(call, tmp_path):
    one = model(tmp_path, "a")
    model(tmp_path, "b", kind="Exp")
    result = call("diff", "a.xml", "b.xml", "--format", "json")
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert (record["version"], record["same"], record["a"], record["b"]) == (1, False, "a.xml", "b.xml")
    (layer,) = record["layers"]
    assert layer["status"] == "changed"
    assert layer["a"] == {"name": "f", "type": "Abs", "inside": "", "file": "a.xml", "line": line(one, "f")}
    assert layer["changes"] == [{"kind": "type", "what": "", "a": "Abs", "b": "Exp"}]


def test_a_missing_bin(call, tmp_path):
    model(tmp_path, "a")
    model(tmp_path, "b").with_suffix(".bin").unlink()
    result = call("diff", "a.xml", "b.xml")
    assert result.exit_code == 0
    assert result.stdout == "b.xml has no .bin; the values of 1 constant were not compared\nno other differences\n"
    (tmp_path / "other.bin").write_bytes(struct.pack("<2f", 1, 1))
    assert call("diff", "a.xml", "b.xml", "--weights-b", "other.bin").stdout == "no differences\n"


def test_errors_have_another_status_than_differences(call, tmp_path):
    model(tmp_path, "a")
    (tmp_path / "cyclic.xml").write_text((tmp_path / "a.xml").read_text().replace('from-layer="0"', 'from-layer="3"'))
    (tmp_path / "page.md").write_text("# Nothing here\n")
    for other, code in (("missing.xml", "IR000"), ("cyclic.xml", "IR1"), ("page.md", "IR003")):
        result = call("diff", "a.xml", other)
        assert (result.exit_code, result.stdout) == (2, "")
        assert code in result.stderr
    model(tmp_path, "short").with_suffix(".bin").write_bytes(b"\0")
    result = call("diff", "a.xml", "short.xml")
    assert result.exit_code == 2
    assert "IR502" in result.stderr


def test_names_are_printable(call, tmp_path):
    path = model(tmp_path, "b")
    path.write_text(path.read_text().replace('name="f"', 'name="f&#9;\u202e"'))
    model(tmp_path, "a")
    assert "f → f\\t\\u202e" in call("diff", "a.xml", "b.xml").stdout


def test_layers_that_follow_are_counted(call, tmp_path):
    """A batch that has changed is one difference, also where it reaches a body and what a loop computes."""
    for size in (2, 3):
        x = b.parameter([size, 4], name="x")
        loop = b.Loop(3, True, b.ReLU(x, name="first"), body=lambda i, a: (True, b.Tanh(a, name="inner")), name="loop")
        irrun.save_model(b.model({"y": b.Sigmoid(loop, name="last")}), tmp_path / f"{size}.xml")
    result = call("diff", "2.xml", "3.xml")
    assert result.exit_code == 1
    assert [line for line in result.stdout.splitlines() if line[:1] in "~+-" and line] == [
        '~ Parameter "x"  2.xml:4, 3.xml:4'
    ]
    assert "1 layer changed: 1 Parameter" in result.stdout
    record = json.loads(call("diff", "2.xml", "3.xml", "--format", "json").stdout)
    follow = [layer for layer in record["layers"] if layer["follows"]]
    assert f"{len(follow)} more layers follow from these" in result.stdout
    names = {layer["a"]["name"] for layer in follow}
    assert {"first", "loop", "inner", "last"} <= names
    listed = call("diff", "2.xml", "3.xml", "--all").stdout
    assert all(f'"{name}"' in listed for name in names)


SCHEMA = json.loads((ROOT / "irrun/cli/schemas/diff.json").read_text("utf-8"))


def _layer_norm(path: Path, *axes: int) -> None:
    irrun.save_model(fused_patterns.layer_norm(axes=axes), path)


def test_graphs_of_engines(ov: Any, call: Any, tmp_path: Path) -> None:
    """MVN computes a LayerNorm along the last axis, and does not along another."""
    _layer_norm(tmp_path / "last.xml", -1)
    _layer_norm(tmp_path / "inner.xml", 1)
    engine = "openvino[precision=f32,threads=1]"
    result = call("diff", f"{engine}:last.xml", f"{engine}:inner.xml", "--runs", 3)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"a  {engine}:last.xml  (OpenVINO ")
    assert any(line.startswith("time: ") and line.endswith(", medians of 3 runs") for line in lines)
    number = line(tmp_path / "last.xml", "scaled")
    begin = lines.index("patterns")
    assert lines[begin + 1 :] == [
        f'  LayerNorm "scaled", line {number}: fused → not fused',
        "      needed: the axes are all but the first one or two, of at most five; but the axes are [1] of 3",
    ]
    (nodes,) = [line for line in lines if line.split()[:1] == ["nodes"]]
    assert nodes.split()[1].startswith("MVN(")
    record = json.loads(call("diff", f"{engine}:last.xml", f"{engine}:inner.xml", "--format", "json").stdout)
    jsonschema.validate(record, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert (record["same"], record["runs"], record["fusions"][0]["b"]["fused"]) == (False, [11, 11], False)


def test_the_graph_of_another_setting(ov: Any, call: Any, tmp_path: Path) -> None:
    _layer_norm(tmp_path / "net.xml", -1)
    sides = (
        "openvino[threads=1,precision=f32]:net.xml",
        "openvino[threads=1,precision=f32,PERFORMANCE_HINT=THROUGHPUT]",
    )
    result = call("diff", *sides, "--runs", 1)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "the same nodes, precisions, kernels and layouts" in result.stdout.splitlines()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.xml", "b.xml", "--runs", "2"], "--runs is for engines, and nothing runs; write openvino:MODEL.xml"),
        (["openvino:a.xml", "openvino", "--rt-info"], "--rt-info compares files; pass two files, or leave it out"),
        (["openvino:a.xml", "b.xml"], "irrun shows no runtime graph"),
        (["openvino", "openvino"], "write openvino:MODEL.xml"),
        (["openvino:missing.xml", "openvino"], "missing.xml"),
    ],
)
def test_mistakes_with_engines(arguments: list[str], said: str, ov: Any, call: Any, tmp_path: Path) -> None:
    model(tmp_path, "a")
    model(tmp_path, "b")
    result = call("diff", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
