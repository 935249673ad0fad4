"""irrun edit."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun import build as b
from places import SAMPLES

CONVNET = SAMPLES / "convnet.xml"


def test_names_and_inner_values(call, tmp_path):
    result = call(
        "edit", CONVNET, "--rename-input", "image=pixels", "--rename-output", "out=classes", "--rename-layer",
        "flatten=flat", "--expose", "block1/relu=inner", "--fold", "--drop-unused", "--opset", "8", "-o", "new.xml",
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "wrote new.xml: 20 layers; inputs pixels; outputs classes, inner; equal to the original on 2 random inputs\n"
    )
    image = np.load(CONVNET.parent / "image.npy")
    outputs = irrun.compile("new.xml", exact=True)({"pixels": image})
    before = irrun.compile(CONVNET, exact=True)(image)
    np.testing.assert_array_equal(outputs["classes"], before["out"])
    assert outputs["inner"].shape == (1, 8, 28, 28)
    assert not irrun.check("new.xml").diagnostics


def test_merging(call, tmp_path):
    x = b.parameter([1, 10], name="scores")
    irrun.save_model(b.model({"best": b.Multiply(x, 2.0)}), "b.xml")
    result = call("edit", CONVNET, "--merge", "b.xml", "--connect", "out=scores", "--keep", "-o", "new.xml")
    assert result.exit_code == 0, result.output
    outputs = irrun.run("new.xml", np.load(CONVNET.parent / "image.npy"))
    np.testing.assert_array_equal(outputs["best"], outputs["out"] * 2)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["-o", "new.xml"], 2, "no edit is named"),
        (["--fold", "-o", "new.bin"], 2, "does not end in .xml"),
        (["--fold"], 2, "Missing option '-o'"),
        (["--connect", "a=b", "-o", "new.xml"], 2, "add --merge"),
        (["--rename-layer", "flatten", "-o", "new.xml"], 2, "flatten is not OLD=NEW"),
        (["--rename-layer", "a=b", "--rename-layer", "a=c", "-o", "new.xml"], 2, "a is named twice"),
        (["--opset", "new", "-o", "new.xml"], 2, "is not an operation set"),
        (["--rename-layer", "flatte=x", "-o", "new.xml"], 2, "IR606"),
        (["--rename-layer", "flatten=logits", "-o", "new.xml"], 1, "IR608"),
        (["--opset", "7", "-o", "new.xml"], 1, 'IR608.*"block1/pool"'),
        (["--merge", "missing.xml", "-o", "new.xml"], 2, "IR000"),
    ],
)
def test_refusals_write_nothing(call, tmp_path, arguments, status, said):
    result = call("edit", CONVNET, *arguments)
    assert result.exit_code == status
    assert re.search(said, result.stderr, re.DOTALL)
    assert not (tmp_path / "new.xml").exists()


def test_the_model_is_not_replaced(call, tmp_path):
    shutil.copy(CONVNET, "a.xml")
    shutil.copy(CONVNET.with_suffix(".bin"), "a.bin")
    result = call("edit", "a.xml", "--fold", "-o", "a.xml")
    assert result.exit_code == 2
    assert "a.xml is the model; choose another file" in result.stderr


def test_a_page_is_no_model(call, tmp_path):
    Path("page.md").write_text('```xml\n<layer type="ReLU"><input><port id="0"/></input></layer>\n```\n')
    result = call("edit", "page.md", "--fold", "-o", "new.xml")
    assert result.exit_code == 2
    assert "page.md is a page with examples; pass an IR file" in result.stderr


def test_without_verification(call, tmp_path):
    """An index that is always out of range on random inputs: the original fails."""
    x = b.parameter([3], "i64", name="x")
    irrun.save_model(b.model({"y": b.Reshape(b.parameter([7], name="d"), x, special_zero=False)}), "a.xml")
    result = call("edit", "a.xml", "--rename-input", "x=shape", "-o", "new.xml")
    assert result.exit_code == 1
    assert "the original fails on these inputs" in result.stderr
    assert "--no-verify" in result.stderr
    result = call("edit", "a.xml", "--rename-input", "x=shape", "--no-verify", "-o", "new.xml")
    assert result.exit_code == 0
    assert result.stderr == "wrote new.xml: 4 layers; inputs shape, d; outputs y; not verified\n"


def test_a_layer_in_a_body(call, tmp_path):
    loop = b.Loop(3, True, b.parameter([2], name="x"), body=lambda i, a: (True, b.Tanh(a, name="inner")), name="loop")
    irrun.save_model(b.model({"y": b.ReLU(loop, name="y")}), tmp_path / "a.xml")
    assert call("edit", "a.xml", "--rename-layer", "loop/inner=bounded", "-o", "b.xml").exit_code == 0
    (found,) = [layer for layer in irrun.read_model(tmp_path / "b.xml").layers.values() if layer.bodies]
    (body,) = found.bodies.values()
    assert "bounded" in {layer.name for layer in body.layers.values()}
    result = call("edit", "a.xml", "--rename-layer", "loop/other=bounded", "-o", "c.xml")
    assert (result.exit_code, 'no layer is called "loop/other"' in result.stderr) == (2, True)


def test_inputs_on_which_the_result_is_verified(call, tmp_path):
    """Random numbers are no shape that the original can take: it is passed one."""
    x, shape = b.parameter([6], name="x"), b.parameter([2], "i64", name="shape")
    irrun.save_model(b.model({"y": b.Reshape(x, shape, special_zero=False, name="y")}), tmp_path / "a.xml")
    result = call("edit", "a.xml", "--rename-input", "x=data", "-o", "b.xml")
    assert result.exit_code == 1
    assert "the original fails on these inputs" in result.stderr
    assert not (tmp_path / "b.xml").exists()
    result = call("edit", "a.xml", "--rename-input", "x=data", "-i", "shape=[2,3]", "-o", "b.xml")
    assert result.exit_code == 0, result.output
    assert "equal to the original on the inputs" in result.stderr
