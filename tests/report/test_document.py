"""What a report says: the document behind the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun.build as b
from fused_patterns import layer_norm
from irrun.diagnostics import EngineError, FeedError, ReadError
from irrun.ir.write import save_model
from irrun.report import collect
from irrun.report.page import embedded
from nets import Net
from places import SAMPLES
from reported_models import TWO, blocks, chain


def rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


def document(path: Path | Net, feeds: Any = None, folder: Path | None = None, **more: Any) -> dict[str, Any]:
    if isinstance(path, Net):
        assert folder is not None
        path = path.save(folder)
    return json.loads(json.dumps(collect(path, feeds, **more).record(), allow_nan=False))


def output_of(doc: dict[str, Any], name: str) -> tuple[int, dict[str, Any]]:
    """The row of the first output of a layer, with its number."""
    number = [row["name"] for row in rows(doc["layers"])].index(name)
    return next((n, row) for n, row in enumerate(rows(doc["outputs"])) if row["layer"] == number)


def statistics_of(doc: dict[str, Any], name: str) -> dict[str, Any]:
    place, _ = output_of(doc, name)
    return next(row for row in rows(doc["statistics"]) if row["output"] == place)


def test_layers_shapes_and_formulas() -> None:
    doc = document(SAMPLES / "convnet.xml")
    assert (doc["version"], doc["model"]["name"], len(doc["layers"]["rows"])) == (1, "convnet", 19)
    _, pool = output_of(doc, "block1/pool")
    assert (pool["declared"], pool["inferred"]) == (["f32", "[1,8,14,14]"], ["f32", "[1,8,14,14]"])
    formulas = [text for text, _ in doc["formulas"][pool["formula"]]]
    assert "dim 2 = floor((28 - 2) / 2) + 1 = 14" in formulas
    layer = next(row for row in rows(doc["layers"]) if row["name"] == "block1/pool")
    assert ["kernel", "2, 2"] in layer["attributes"]
    assert layer["line"] == 105
    assert layer["inputs"][0][0] == "data"


def test_statistics_are_those_of_numpy() -> None:
    a = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    doc = document(SAMPLES / "elementwise.xml", {"a": a, "b": np.zeros((3, 1), np.float32)})
    seen = statistics_of(doc, "a")
    assert (seen["type"], seen["shape"], seen["size"]) == ("f32", "[1,3,4]", 12)
    assert [seen[key] for key in ("min", "mean", "max", "zeros", "nan", "inf")] == [0, 5.5, 11, 1, 0, 0]
    assert seen["std"] == pytest.approx(np.std(a))
    assert (seen["low"], seen["high"]) == (0, 11)
    assert seen["counts"] == np.histogram(a, 8)[0].tolist()


def test_nan_and_infinities_are_counted_and_left_out(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "6", name="x")
    net.result(net.add("Abs", [x], [("FP32", "6")], name="abs"))
    doc = document(net, {"x": np.array([np.nan, np.inf, -np.inf, 0, -2, 0], np.float32)}, tmp_path)
    seen = statistics_of(doc, "abs")
    assert [seen[key] for key in ("nan", "inf", "zeros", "min", "max")] == [1, 2, 2, 0, 2]
    assert seen["counts"][0] == 2
    assert seen["counts"][-1] == 1
    assert sum(seen["counts"]) == 3


def test_a_value_without_a_range_has_no_histogram(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(net.add("Abs", [x], [TWO], name="abs"))
    for values in ([3, 3], [np.nan, np.nan], [3e38, -3e38]):
        seen = statistics_of(document(net, {"x": np.array(values, np.float32)}, tmp_path), "x")
        assert (seen["counts"] is None) == (values[0] != 3e38)


def test_strings(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("string", "2", name="x")
    net.result(x)
    doc = document(net, {"x": np.array(["a", "\udcff</script>"], object)}, tmp_path)
    assert statistics_of(doc, "x")["type"] == "string"
    assert statistics_of(doc, "x")["counts"] is None


def test_times_belong_to_layers() -> None:
    doc = document(SAMPLES / "convnet.xml", runs=2)
    names = [row["name"] for row in rows(doc["layers"])]
    timed = {names[number] for step in rows(doc["steps"]) for number in step["layers"]}
    assert {"block1/conv", "block1/relu", "logits", "probabilities"} <= timed
    assert all(step["seconds"] > 0 and step["calls"] == 1 for step in rows(doc["steps"]))
    divided = [step for step in rows(doc["steps"]) if len(step["layers"]) > 1]
    assert divided
    assert all(len(step["fractions"]) == len(step["layers"]) for step in divided)
    assert all(sum(step["fractions"]) == pytest.approx(1) for step in divided)
    assert all(step["fractions"] is None for step in rows(doc["steps"]) if len(step["layers"]) == 1)
    assert doc["run"]["runs"] == 2
    assert doc["run"]["inputs"][0]["from"] == "random, seed 0"


def test_findings_know_their_layer() -> None:
    doc = document(SAMPLES / "wrong_dim.xml")
    (finding,) = doc["findings"]
    assert (finding["code"], finding["line"]) == ("IR401", 39)
    assert rows(doc["layers"])[finding["layer"]]["name"] == "broadcast"


EXAMPLE = """\
<layer type="Broadcast" version="opset3">
  <data mode="numpy"/>
  <input>
    <port id="0"><dim>16</dim><dim>1</dim><dim>1</dim></port>
    <port id="1"><dim>4</dim> <!--The tensor contains 4 elements: [1, 16, 5, 5]--></port>
  </input>
  <output><port id="2"><dim>1</dim><dim>16</dim><dim>5</dim><dim>5</dim></port></output>
</layer>
"""


@pytest.mark.parametrize(
    ("feeds", "origins", "said", "size"),
    [
        (None, {}, ["random, seed 0", "from the comment at line 5"], 400),
        ({0: np.full((16, 1, 1), 2, np.float32)}, {}, ["as passed", "from the comment at line 5"], 400),
        ({"1": np.array([1, 16, 2, 2])}, {}, ["random, seed 0", "as passed"], 64),
        ({1: [1, 16, 2, 2]}, {1: "from x.npy"}, ["random, seed 0", "from x.npy"], 64),
    ],
    ids=["neither", "first", "second", "with-its-origin"],
)
def test_where_an_input_comes_from(
    feeds: Any, origins: dict[int, str], said: list[str], size: int, tmp_path: Path
) -> None:
    """What is passed counts more than a comment of the file, and a comment more than random numbers."""
    path = tmp_path / "example.xml"
    path.write_text(EXAMPLE)
    doc = document(path, feeds, origins=origins)
    assert [row["from"] for row in doc["run"]["inputs"]] == said
    assert {row["size"] for row in rows(doc["statistics"])} >= {size}


def test_a_comparison_gives_errors(tmp_path: Path) -> None:
    feeds = {"a": np.ones((1, 3, 4), np.float32), "b": np.array([[0], [1], [2]], np.float32)}
    doc = document(SAMPLES / "wrong_scale.xml", feeds, side=str(SAMPLES / "elementwise.xml"))
    comparison = doc["comparison"]
    assert comparison["verdict"] == "differ"
    assert rows(doc["layers"])[comparison["first"]]["name"] == "multiply"
    place, _ = output_of(doc, "multiply")
    error = next(row for row in rows(comparison["errors"]) if row["output"] == place)
    assert (error["agrees"], error["max_abs"], error["outside"]) == (False, 0.5, 0.25)  # as docs/compare.md shows it
    same = document(SAMPLES / "elementwise.xml", feeds, side="exact", run=False)
    assert same["comparison"]["verdict"] == "agree"
    assert same["run"]["state"] == "not asked for"


def test_a_model_that_does_not_run_is_reported(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(net.add("Nonsense", [x], [TWO], name="odd"))
    doc = document(net, folder=tmp_path)
    assert (doc["run"]["state"], doc["run"]["why"][0]["code"]) == ("failed", "IR201")
    assert doc["findings"][0]["code"] == "IR201"
    assert doc["statistics"]["rows"] == []


def test_without_weights(tmp_path: Path) -> None:
    path = blocks(1).save(tmp_path)
    path.with_suffix(".bin").unlink()
    assert document(path)["run"]["why"][0]["code"] == "IR501"


@pytest.mark.parametrize("text", ["", "<net", "<a/>", "<net version='9'><layers/></net>"])
def test_a_file_that_is_no_model_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    path.write_text(text)
    with pytest.raises(ReadError):
        collect(path)


def test_feeds_that_do_not_fit_are_refused() -> None:
    with pytest.raises(FeedError):
        collect(SAMPLES / "convnet.xml", {"nothing": np.zeros(1)})


BROKEN = {
    "cycle": ('from-layer="0" from-port="0" to-layer="1"', 'from-layer="1" from-port="1" to-layer="1"'),
    "no such layer": ('to-layer="1"', 'to-layer="77"'),
    "no edges": ("<edges>", "<edges/><edges>"),
    "same id": ('id="1"', 'id="0"'),
    "dim": ("<dim>2</dim>", "<dim>x</dim>"),
    "type": ('precision="FP32"', 'precision="FP99"'),
    "version": ('version="opset1"', 'version="opset99"'),
}


@pytest.mark.parametrize("name", BROKEN)
def test_models_with_errors_are_reported(name: str, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(chain(net, x, ["a", "b"]))
    path = tmp_path / "net.xml"
    old, new = BROKEN[name]
    assert old in net.text
    path.write_text(net.text.replace(old, new))
    report = collect(path)
    assert any(finding.severity == "error" for finding in report.findings) or name == "no edges"
    assert "</html>" in report.html()


def test_bodies_are_groups_with_their_edges(tmp_path: Path) -> None:
    """A Loop of three iterations that doubles its input: the body is a group, and edges lead through the port map."""
    x = b.parameter([2], "f32", name="x")
    loop = b.Loop(3, True, x, body=lambda i, a: (True, b.Multiply(a, [2.0], name="twice")), name="loop")
    path = tmp_path / "net.xml"
    save_model(b.model(loop), path)
    doc = document(path, {"x": np.array([1, -1], np.float32)})
    names = [row["name"] for row in rows(doc["layers"])]
    twice = statistics_of(doc, "loop/twice")
    assert (twice["calls"], twice["max"], twice["min"]) == (3, 8, -8)  # 1 * 2 * 2 * 2
    groups = rows(doc["groups"])
    owners = {group["kind"]: names[group["owner"]] for group in groups if group["owner"] >= 0}
    assert owners == {"layer": "loop", "body": "loop"}
    links = {(names[row["from"]], names[row["to"]], row["kind"]) for row in rows(doc["links"])}
    (inner,) = [end for begin, end, kind in links if begin == "x" and kind == "body"]
    assert inner.startswith("loop/")
    assert any(kind == "back" and end == inner for _, end, kind in links)


def test_json_in_a_page_holds_no_markup() -> None:
    hostile = "</script><img src=x onerror=alert(1)>&lt;\u2028\udcff\0"
    text = embedded({"name": hostile})
    assert not set("<>&\u2028") & set(text)
    assert text.isascii()
    assert json.loads(text) == {"name": hostile}


def test_the_graph_of_an_engine(ov: Any, tmp_path: Path) -> None:
    """The LayerNorm is along an inner axis, and no node is named after a ReLU that a Convolution computes."""
    save_model(layer_norm(axes=(1,)), tmp_path / "norm.xml")
    shown = document(tmp_path / "norm.xml", engine="openvino[precision=f32,threads=1]", run=False)["runtime"]
    (fusion,) = rows(shown["fusions"])
    assert (fusion["fused"], fusion["found"]) == (False, "the axes are [1] of 3")
    doc = document(SAMPLES / "convnet.xml", side="openvino[precision=f32,threads=1]", run=False)
    names = [row["name"] for row in rows(doc["layers"])]
    nodes = rows(doc["runtime"]["nodes"])
    relu = next(row for row in rows(doc["runtime"]["layers"]) if row["layer"] == names.index("block1/relu"))
    assert [(nodes[number]["name"], nodes[number]["precision"]) for number in relu["nodes"]] == [("block1/conv", "f32")]
    assert doc["expected"]["precision"] == "f32"


def test_errors_to_expect(tmp_path: Path) -> None:
    """A rounding to bf16 is wrong by at most 2**-8 of an element."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(net.add("Negative", [x], [TWO], name="negative"), name="y")
    doc = document(
        net, {"x": np.array([1.001, 3.001], np.float32)}, tmp_path, expected="openvino[precision=bf16]", run=False
    )
    place, _ = output_of(doc, "negative")
    assert doc["expected"]["precision"] == "bf16"
    errors = {row["output"]: row["error"] for row in rows(doc["expected"]["errors"])}
    assert 2**-12 < errors[place] < 2**-7
    (output,) = doc["expected"]["outputs"]
    assert (output["name"], output["error"]) == ("y", pytest.approx(errors[place]))
    assert doc["runtime"] is None


def test_an_engine_without_a_graph() -> None:
    with pytest.raises(EngineError, match="IR701"):
        collect(SAMPLES / "elementwise.xml", engine="exact")
