"""irrun diff."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import irrun
from irrun import build as b
from nets import Net


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
