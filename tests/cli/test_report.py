"""irrun report, and irrun show --graph."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nets import Net
from places import SAMPLES

TWO = ("FP32", "2")


def net(*names: str) -> Net:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    for name in names:
        x = net.add("ReLU", [x], [TWO], name=name)
    net.result(x, name="y")
    return net


def test_it_writes_a_page(call, tmp_path):
    net("relu").save(tmp_path)
    done = call("report", "net.xml")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("wrote report.html: 3 layers; 0 errors, 0 warnings; ")
    assert "ms per run" in done.stderr
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.xml", "report.html"]


def test_json(call, tmp_path):
    net("relu").save(tmp_path)
    done = call("report", "net.xml", "--format", "json", "-i", "x=[-1,2]")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["version"], document["run"]["state"]) == (0, 1, "done")
    assert document["run"]["inputs"] == [{"name": "x", "layer": 0, "type": "f32", "shape": "[2]", "from": "as given"}]
    assert not (tmp_path / "report.html").exists()


def test_a_model_with_errors_has_a_page_and_status_1(call, tmp_path):
    done = call("report", SAMPLES / "wrong_dim.xml", "--no-run", "-o", "a.html")
    assert (done.exit_code, done.stderr) == (1, "wrote a.html: 4 layers; 1 error, 0 warnings\n")
    assert "dim 3 is 48" in (tmp_path / "a.html").read_text("utf-8")


def test_a_run_that_fails_is_told(call, tmp_path):
    odd = net("a")
    odd.layers[1] = odd.layers[1].replace("ReLU", "Nonsense")
    odd.save(tmp_path)
    done = call("report", "net.xml")
    assert done.exit_code == 3
    assert "the model does not run" in done.stderr.splitlines()[0]
    assert "error[IR201" in done.stderr


def test_a_comparison_that_differs_has_status_1(call, tmp_path):
    arguments = ("report", SAMPLES / "wrong_scale.xml", "-i", "a=ones:[1,3,4]", "-i", "b=[[0],[1],[2]]", "--no-run")
    done = call(*arguments, "--compare", SAMPLES / "elementwise.xml")
    assert (done.exit_code, done.stderr.strip().rpartition("; ")[2]) == (1, "comparison: differ")
    done = call(*arguments, "--compare", SAMPLES / "elementwise.xml", "--rtol", "1", "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)["comparison"]["verdict"]) == (0, "agree")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.xml"], "cannot read missing.xml"),
        (["net.xml", "-o", "no/such/folder.html"], "there is no folder"),
        (["net.xml", "-o", "net.xml"], "net.xml is the model"),
        (["net.xml", "-o", "."], "it is a folder or a device"),
        (["net.xml", "--rtol", "1"], "add --compare, or leave them out"),
        (["net.xml", "-i", "z=1"], 'the model has no input "z"'),
        (["net.xml", "--compare", "nothing:net.xml"], "there is no engine 'nothing'"),
        (["net.xml", "--compare", "exact", "-w", "net.bin"], "leave -w out"),
        (["page.md"], "is a page with examples"),
        (["broken.xml"], "error[IR001"),
    ],
)
def test_bad_usage(arguments, said, call, tmp_path):
    net("relu").save(tmp_path)
    (tmp_path / "net.bin").write_bytes(b"")
    (tmp_path / "broken.xml").write_text("<net")
    (tmp_path / "page.md").write_text(
        '```xml\n<layer id="0" type="ReLU"><input><port id="0"><dim>2</dim></port></input></layer>\n```\n'
    )
    done = call("report", *arguments)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "report.html").exists()


def texts(path: Path) -> list[str]:
    """The texts of a picture, which must be well-formed XML."""
    return [e.text or "" for e in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture(call, tmp_path):
    net("a/relu", "<b>&\x85").save(tmp_path)
    done = call("show", "net.xml", "--graph", "graph.svg")
    assert done.exit_code == 0
    expected = ["Parameter", "x", "ReLU", "a/relu", "ReLU", "<b>&\\x85", "Result", "y"]
    assert sorted(text for text in texts(tmp_path / "graph.svg") if text != "[2]") == sorted(expected)


@pytest.mark.parametrize("count", [198, 1000])
def test_a_picture_of_a_large_model_has_groups(count, call, tmp_path):
    net(*(f"node_{number}" for number in range(count))).save(tmp_path)
    assert call("show", "net.xml", "--graph", "graph.svg").exit_code == 0
    types = texts(tmp_path / "graph.svg")
    assert types.count("ReLU") == 198 if count == 198 else types.count("ReLU") < 60
    assert any("…" in text for text in types) == (count == 1000)


def test_a_picture_needs_one_model(call, tmp_path):
    page = '<layer id="0" type="ReLU"><input><port id="0"><dim>2</dim></port></input><output><port id="1"><dim>2</dim></port></output></layer>'
    (tmp_path / "page.md").write_text(f"```xml\n{page}\n```\n\n```xml\n{page}\n```\n")
    done = call("show", "page.md", "--graph", "graph.svg")
    assert (done.exit_code, "holds 2 examples" in done.stderr) == (2, True)
    net("a").save(tmp_path)
    done = call("show", "net.xml", "--graph", "net.xml")
    assert (done.exit_code, "is the model" in done.stderr) == (2, True)


def test_errors_to_expect_need_no_engine(call, tmp_path):
    net("relu").save(tmp_path)
    done = call("report", "net.xml", "--no-run", "--expect", "openvino[precision=bf16]")
    assert (done.exit_code, done.stderr.count("; expect an error of 0.00")) == (0, 1)
    assert done.stderr.endswith(" in bf16\n")
    done = call("report", "net.xml", "--runtime", "exact")
    assert done.exit_code == 2
    assert "exact shows no runtime graph" in done.stderr
