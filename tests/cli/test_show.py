"""irrun show."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import irrun
from irrun.cli import _terminal
from nets import Net
from places import SAMPLES
from served_decoders import BROKEN, decoder


def model() -> Net:
    net = Net()
    x = net.parameter("f32", "?,3,1..8", name="x", names="t,u")
    w = net.const("f16", "3,1", bytes(6))
    also_w = net.const("f16", "3,1", bytes(6), offset=0)  # the same bytes
    scalar = net.const("i64", "", bytes(8))
    net.add("Nonsense", [w, also_w, scalar], [("FP32", "")])
    net.result(net.add("Abs", [x], [("FP32", "-1,3,-1")], names="y", opset="opset16"))
    return net


def test_text(call, tmp_path):
    model().save(tmp_path)
    result = call("show", "net.xml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split() for line in result.stdout.splitlines() if line] == [
        ["net", "IR", "v11,", "net.xml"],
        ["inputs"],
        ["name", "type", "shape", "also", "called"],
        ["x", "f32", "[?,3,1..8]", "t,", "u"],
        ["outputs"],
        ["name", "type", "shape", "also", "called"],
        ["y", "f32", "[?,3,?]", "result6"],
        ["operations"],
        ["type", "version", "count"],
        ["Const", "opset1", "3"],
        ["Abs", "opset16", "1"],
        ["Nonsense", "opset1", "1"],
        ["Parameter", "opset1", "1"],
        ["Result", "opset1", "1"],
        ["in", "all", "7"],
        ["weights"],
        ["7", "parameters,", "14", "bytes", "(14", "bytes),", "net.bin"],
        ["stored", "as", "constants", "parameters", "size", "share"],
        ["i64", "1", "1", "8", "bytes", "57.1%"],
        ["f16", "2", "6", "6", "bytes", "42.9%"],
    ]


def test_json(call, tmp_path):
    path = model().save(tmp_path)
    facts = json.loads(call("show", path, "--format", "json").stdout)
    assert facts["inputs"] == [{"name": "x", "names": ["x", "t", "u"], "type": "f32", "shape": ["?", 3, "1..8"]}]
    assert facts["outputs"][0]["names"] == ["y", "result6"]
    assert facts["operations"][0] == {"type": "Const", "version": "opset1", "count": 3}
    assert (facts["layers"], facts["parameters"], facts["weight_bytes"]) == (7, 7, 14)
    assert facts["ir_version"] == 11


def test_the_weights_are_not_needed(call, tmp_path):
    path = model().save(tmp_path)
    path.with_suffix(".bin").unlink()
    result = call("show", path)
    assert result.exit_code == 0
    assert "7 parameters, 14 bytes (14 bytes), no .bin\n" in result.stdout


def test_a_model_with_faults_is_shown_nevertheless(call, tmp_path):
    path = model().save(tmp_path)
    path.write_text(path.read_text().replace('to-layer="6"', 'to-layer="66"'))
    result = call("show", path)
    assert result.exit_code == 1
    assert "Nonsense" in result.stdout
    assert "error[IR103" in result.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_no_model(form, call):
    Path("net.xml").write_text("<html/>")
    result = call("show", "net.xml", "--format", form)
    assert result.exit_code == 2
    assert form == "json" or result.stdout == ""
    assert "error[IR003" in result.stderr


def test_a_page_of_examples(call):
    Path("page.txt").write_text('<layer type="Abs"><input><port id="0"><dim>2</dim></port></input></layer>\n' * 2)
    result = call("show", "page.txt")
    assert [line for line in result.stdout.splitlines() if "page" in line] == ["page.txt:1  Abs", "page.txt:2  Abs"]
    assert len(json.loads(call("show", "page.txt", "--format", "json").stdout)["examples"]) == 2


def test_runtime_options(call):
    """A file may set properties for its own compilation."""
    text = (SAMPLES / "swiglu.xml").read_text()
    info = '<rt_info><runtime_options><KV_CACHE_PRECISION value="f16"/></runtime_options></rt_info></net>'
    Path("model.xml").write_text(text.replace("</net>", info))
    assert "\nruntime options of the file\n  KV_CACHE_PRECISION=f16\n" in call("show", "model.xml").stdout
    document = json.loads(call("show", "model.xml", "--format", "json").stdout)
    assert document["runtime_options"] == {"KV_CACHE_PRECISION": "f16"}


def test_whether_it_can_be_served(call: Any, tmp_path: Path) -> None:
    irrun.save_model(decoder(), tmp_path / "good.xml")
    irrun.save_model(decoder(**BROKEN["mask-elsewhere"][2]), tmp_path / "bad.xml")
    shown = call("show", tmp_path / "good.xml", "--servable")
    assert shown.exit_code == 0
    verdict = "verdict: a server can run the model; OpenVINO rewrites all 2 attentions to paged attention"
    assert shown.stdout.splitlines()[-1] == f"{verdict} (irrun paged compares the logits)"
    shown = call("show", tmp_path / "bad.xml", "--servable", "--layers")
    assert shown.exit_code == 1
    *_, verdict, help = shown.stdout.splitlines()
    assert verdict == "verdict: a server cannot run the model; 1 reason above"
    assert help == "  do: compute the value of the layer from input_ids or position_ids, or remove the layer"
    assert "it reads attention_mask, which the paged model does not have" in shown.stdout
    shown = call("show", tmp_path / "bad.xml", "--servable", "--format", "json")
    assert shown.exit_code == 1
    record = json.loads(shown.stdout)
    model = irrun.read_model(tmp_path / "bad.xml")
    obstacle = record["paged"]["obstacles"][0]
    layer = next(layer for layer in model.layers.values() if layer.name == obstacle["layer"])
    assert (record["paged"]["servable"], obstacle["condition"]) == (False, "readers")
    assert obstacle["help"] in help
    assert f'name="{layer.name}"' in (tmp_path / "bad.xml").read_text().splitlines()[obstacle["line"] - 1]


def test_a_model_in_paged_form(call: Any, ov: Any, tmp_path: Path) -> None:
    from openvino._offline_transformations import paged_attention_transformation

    irrun.save_model(decoder(), tmp_path / "model.xml")
    rewritten = ov.Core().read_model(tmp_path / "model.xml")
    paged_attention_transformation(rewritten)
    ov.save_model(rewritten, tmp_path / "paged.xml", compress_to_fp16=False)
    shown = call("show", tmp_path / "paged.xml", "--servable")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[-1] == "verdict: already in paged form: a server runs it as it is"


def test_what_is_no_decoder_is_not_told_to_become_one(call: Any) -> None:
    shown = call("show", SAMPLES / "convnet.xml", "--servable")
    assert shown.exit_code == 1
    *_, reason, _, verdict = shown.stdout.splitlines()
    assert reason.endswith("it has no variables and no attention over a cache: no language model that generates text")
    assert verdict == "verdict: a server cannot run the model; 1 reason above"


def test_the_verdict_is_wrapped(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    irrun.save_model(decoder(**BROKEN["no-attention"][2]), tmp_path / "model.xml")
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setattr(_terminal, "_UNBOUNDED", 80)
    shown = call("show", tmp_path / "model.xml", "--servable")
    text = re.sub("\x1b[^m]*m", "", shown.stdout)
    part = text[text.index("paged attention") :].splitlines()
    assert len(part) > 8
    assert max(map(len, part)) <= 80
