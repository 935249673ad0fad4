"""irrun edit."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun import build as b
from places import SAMPLES

CONVNET = SAMPLES / "convnet.xml"


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OpenVINO, unless a test asks for it."""
    if "ov" not in request.fixturenames:
        monkeypatch.setattr("irrun.cli.edit.find_spec", lambda name: None)


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
    result = call("edit", CONVNET, "--merge", "b.xml", "--connect", "out=scores", "--keep-outputs", "-o", "new.xml")
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
        (["--merge", "missing.xml", "-o", "new.xml"], 2, "IR000"),
    ],
)
def test_refusals_write_nothing(call, tmp_path, arguments, status, said):
    result = call("edit", CONVNET, *arguments)
    assert result.exit_code == status
    assert re.search(said, result.stderr, re.DOTALL)
    assert not (tmp_path / "new.xml").exists()


def test_an_engine_that_lacks_an_operation_of_the_original(call, ov):
    """OpenVINO 2026.4 has no Atan2: its outputs of the result are compared with those of irrun."""
    y, x = (b.parameter([2, 3], name=name) for name in "yx")
    irrun.save_model(b.model({"angle": b.Atan2(y, x)}), "a.xml")
    result = call("edit", "a.xml", "--opset", "16", "-o", "older.xml")
    assert result.exit_code == 0, result.output
    assert "also in OpenVINO" in result.stderr.replace("\n", " ")


def test_a_layer_that_an_older_operation_set_cannot_say(call, tmp_path):
    x = b.parameter([1, 2, 5], name="x")
    pool = b.MaxPool(x, opset=8, strides=[1], pads_begin=[0], pads_end=[0], kernel=[2], dilations=[2], name="pool")
    irrun.save_model(b.model({"y": pool[0]}), "pool.xml")
    result = call("edit", "pool.xml", "--opset", "7", "-o", "new.xml")
    assert result.exit_code == 1
    assert 'MaxPool-8 "pool" has dilations="2", which MaxPool-1 cannot say' in result.stderr.replace("\n", " ")
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


def _cached(folder: Path) -> None:
    """Write a model like a language model with a cache: its mask is as long as all inputs so far."""
    x, mask = b.parameter([1, -1], name="x"), b.parameter([1, -1], name="mask")
    start = b.constant(np.zeros((1, 0), np.float32))
    past = b.ReadValue(start, variable_id="past", variable_type="f32", variable_shape="1,?", name="read")
    whole = b.Concat(past, x, axis=1, name="whole")
    stored = b.Assign(whole, variable_id="past", name="assign")
    y = b.Multiply(whole, mask, name="masked")
    irrun.save_model(b.model({"y": y}, sinks=[stored]), folder / "cached.xml")


def test_a_stateful_model_starts_anew_on_each_input(call, tmp_path):
    """The state of the first input made the second one unfit, and every such edit was refused."""
    _cached(tmp_path)
    inputs = ("-i", "x=[[1,2,3]]", "-i", "mask=[[1,1,1]]")
    result = call("edit", "cached.xml", "--rename-layer", "whole=all", *inputs, "-o", "b.xml")
    assert result.exit_code == 0, result.output
    assert "equal to the original on the inputs" in result.stderr
    result = call("edit", "cached.xml", "--rename-layer", "whole=all", "-o", "c.xml")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("inside", [False, True])
def test_random_numbers_are_no_difference(call, tmp_path, inside):
    """Without a seed, they differ in every run: that is no fault of the edit."""
    x = b.parameter([4], name="x")

    def drawn() -> b.Node:
        return b.RandomUniform(np.array([4]), np.float32(0), np.float32(1), output_type="f32", name="noise")

    def body(i: b.Output, total: b.Output) -> tuple[bool, b.Node]:
        return True, b.Add(total, drawn())

    noise = b.Loop(2, True, x, body=body, name="loop") if inside else drawn()
    model = b.model({"y": b.Add(x, noise, name="sum"), "z": b.Abs(x, name="abs")})
    irrun.save_model(model, tmp_path / "a.xml")
    result = call("edit", "a.xml", "--rename-layer", "abs=size", "-o", "b.xml")
    assert result.exit_code == 1
    name = 'Loop "loop"' if inside else 'RandomUniform "noise"'
    assert f'output "y" cannot be verified, because {name} has no seed' in result.stderr
    assert "bug in irrun" not in result.stderr
    assert call("edit", "a.xml", "--rename-layer", "abs=size", "-o", "b.xml", "--no-verify").exit_code == 0


def test_simplifying(call, tmp_path):
    """Two Transposes with equal constants, of 16 bytes, cancel; a Convert to the same type has no effect."""
    turned = b.Transpose(b.Transpose(b.Abs(b.parameter([2, 3], name="x")), [1, 0]), [1, 0])
    irrun.save_model(b.model({"y": b.ReLU(b.Convert(turned, destination_type="f32"))}), tmp_path / "a.xml")
    result = call("edit", "a.xml", "--simplify", "-o", "b.xml")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[:5] == [
        "removed",
        "  step                   layers  bytes",
        "  equal constants             1      0",
        "  layers that cancel          3     16",
        "  layers without effect       1      0",
    ]
    result = call("edit", "a.xml", "--simplify", "-o", "c.xml", "--format", "json")
    assert json.loads(result.stdout)["simplified"] == [
        {"step": "equal constants", "layers": 1, "bytes": 0},
        {"step": "layers that cancel", "layers": 3, "bytes": 16},
        {"step": "layers without effect", "layers": 1, "bytes": 0},
    ]
    assert [layer.type for layer in irrun.read_model("b.xml").layers.values()] == ["Parameter", "Abs", "ReLU", "Result"]


def test_the_result_is_run_in_openvino(call, tmp_path, ov):
    """OpenVINO reads ShapeOf only with the attribute output_type, which has a default in the specification."""
    x = b.parameter([2, 3], name="x")
    irrun.save_model(b.model({"y": b.ShapeOf(x, output_type="i64", name="shape")}), tmp_path / "a.xml")
    result = call("edit", "a.xml", "--rename-layer", "shape=size", "-o", "b.xml")
    assert result.exit_code == 0, result.output
    assert re.search(r"equal to the original on 2 random inputs, also in OpenVINO \d{4}\S+ CPU f32$", result.stderr)
    text = Path("a.xml").read_text()
    Path("a.xml").write_text(text.replace(' output_type="i64"', ""))
    result = call("edit", "a.xml", "--rename-layer", "shape=size", "-o", "c.xml")
    assert result.stderr.endswith("equal to the original on 2 random inputs\n"), "OpenVINO refuses the original"
    result = call("edit", "a.xml", "--rename-layer", "shape=size", "--verify-on", "openvino[python=no]", "-o", "d.xml")
    assert (result.exit_code, "IR702" in result.stderr, Path("d.xml").exists()) == (2, True, False)


def test_a_result_that_differs_in_an_engine(call, tmp_path, ov, monkeypatch):
    x = b.parameter([2], name="x")
    irrun.save_model(b.model({"y": b.ReLU(x, name="r")}), tmp_path / "a.xml")
    monkeypatch.setattr("irrun.cli.edit.require_equal", lambda *_, **__: None)
    wrong = b.model({"y": b.Abs(x, name="r")})
    monkeypatch.setattr("irrun.cli.edit.rename_layer", lambda *_: wrong)
    result = call("edit", "a.xml", "--rename-layer", "r=s", "-o", "b.xml")
    assert result.exit_code == 1
    assert re.search(r'output "y" differs from that of the original in OpenVINO', result.stderr)
    assert not Path("b.xml").exists()


@pytest.mark.parametrize(
    ("options", "version", "newest"),
    [
        (["--target", "openvino==2023.0"], 11, 10),
        (["--target", "openvino==2022.3.0", "--ir-version", "10"], 10, 10),
        (["--target", "openvino==2022.1"], 11, 6),
        (["--target", "openvino==2023.2"], 11, 12),
        (["--target", "openvino>=2022.2,<2024", "--target", "openvino==2026.2"], 11, 9),
        (["--opset", "7"], 11, 6),
        (["--opset", "newest"], 11, 13),
    ],
)
def test_targets(call, tmp_path, options, version, newest):
    """Attention came in 2023.3, GroupNormalization in 2023.1, IsFinite in 2022.3, SoftSign in 2022.2, MVN-6 in 2021.3."""
    x = b.parameter([2, 4, 3], name="x")
    y = b.GroupNormalization(b.SoftSign(x), *np.ones((2, 4), np.float32), num_groups=2, epsilon=1e-3)
    y = b.Select(b.IsFinite(b.SoftPlus(y)), y, x)
    y = b.ScaledDotProductAttention(y, y, y, causal=False)
    irrun.save_model(b.model({"y": y}), tmp_path / "a.xml")
    result = call("edit", "a.xml", *options, "-o", "b.xml")
    assert result.exit_code == 0, result.output
    assert "equal to the original on 2 random inputs" in result.stderr
    model = irrun.read_model("b.xml")
    assert model.version == version
    assert max(int(str(layer.version)[5:]) for layer in model.layers.values()) == newest


@pytest.mark.parametrize(
    ("target", "said"), [("npu", "npu names no release"), ("openvino==2019.3", "names no measured release")]
)
def test_targets_that_name_no_release(call, target, said):
    result = call("edit", CONVNET, "--target", target, "-o", "b.xml")
    assert (result.exit_code, said in result.stderr) == (2, True)


def _frozen(folder: Path) -> None:
    x = b.parameter([1, 4], name="x")
    table = np.arange(16, dtype=np.float32).reshape(1, 16)
    positions = b.Slice(table, [0], [4], [1], [1], name="positions")
    heads = b.Reshape(b.Add(x, positions, name="sum"), [1, 2, 2], special_zero=False, name="heads")
    irrun.save_model(b.model({"y": b.ReLU(heads, name="r")}), folder / "a.xml")


def test_constants_that_repeat_a_dim(call, tmp_path):
    _frozen(tmp_path)
    result = call("edit", "a.xml", "--shape", "x=[1,?]", "--rename-output", "y=z", "-o", "b.xml")
    assert result.exit_code == 0, result.output
    assert re.findall(r"replaced: .* (holds \d+ in element \d+: .*)", result.stderr) == [
        'holds 4 in element 0: dim 1 of input "x"',
        'holds 2 in element 1: dim 1 of input "x" times 1/2',
    ]
    assert "; equal to the original at its shapes; equal to the original on 2 random inputs\n" in result.stderr
    data = np.ones((1, 6), np.float32)
    assert irrun.run("b.xml", data)["z"].tolist() == [[[1, 2], [3, 4], [5, 6]]]
    result = call("edit", "a.xml", "--shape", "x=[1,8]", "-o", "c.xml", "--format", "json")
    record = json.loads(result.stdout)["reshaped"]
    assert (record["proof"], len(record["replaced"])) == ("run in its new shapes", 2)
    assert irrun.run("c.xml", np.ones((1, 8), np.float32))[0].shape == (1, 4, 2)


def test_another_batch(call, tmp_path, ov):
    _frozen(tmp_path)
    result = call("edit", "a.xml", "--batch", "3", "-o", "b.xml")
    assert result.exit_code == 0, result.output
    assert re.search(r"equal to the original on each of 3 samples, and as irrun in OpenVINO", result.stderr)
    assert irrun.run("b.xml", np.ones((3, 4), np.float32))[0].shape == (3, 2, 2)
    result = call("edit", "a.xml", "--batch", "?", "-o", "c.xml")
    assert "equal to the original at its shapes and equal to the original on each of 2 samples" in result.stderr
    assert irrun.run("c.xml", np.ones((5, 4), np.float32))[0].shape == (5, 2, 2)
    for batch in ("0", "x", "-1"):
        result = call("edit", "a.xml", "--batch", batch, "-o", "d.xml")
        assert (result.exit_code, f"{batch} is no batch" in result.stderr) == (2, True)


def test_shapes_that_no_constant_mends(call, tmp_path):
    irrun.save_model(b.model({"y": b.Add(b.parameter([4], name="x"), np.ones(4, np.float32))}), tmp_path / "a.xml")
    result = call("edit", "a.xml", "--shape", "x=[6]", "-o", "b.xml")
    assert (result.exit_code, "IR403" in result.stderr, Path("b.xml").exists()) == (1, True, False)


def test_storage(call, tmp_path):
    """36,480 bytes of weights become half as many, and outputs may differ by 0.4 % of the largest."""
    result = call("edit", CONVNET, "--storage", "f16", "-o", "b.xml")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "b.bin").stat().st_size < 18_500
    image = np.load(CONVNET.parent / "image.npy")
    one, other = irrun.run(CONVNET, image)[0], irrun.run("b.xml", image)[0]
    assert 0 < np.abs(one - other).max() < 0.004
    result = call("edit", "b.xml", "--storage", "f32", "-o", "c.xml")
    np.testing.assert_array_equal(
        irrun.compile("c.xml", exact=True)(image)[0], irrun.compile("b.xml", exact=True)(image)[0]
    )
    result = call("edit", CONVNET, "--storage", "i8", "-o", "d.xml")
    assert (result.exit_code, "'i8' is not one of" in result.stderr) == (2, True)


def test_a_storage_that_changes_too_much(call, tmp_path):
    """The weights cancel: the sum of 4096 and -4096 with 0.3 is 0.3, and in bf16 0."""
    weights = np.array([4096.3, -4096] * 8, np.float32)
    x = b.parameter([16], name="x")
    irrun.save_model(
        b.model({"y": b.ReduceSum(b.Add(x, b.constant(weights)), [0], keep_dims=False)}), tmp_path / "a.xml"
    )
    result = call("edit", "a.xml", "--storage", "bf16", "-i", "x=zeros", "-o", "b.xml")
    assert (result.exit_code, Path("b.xml").exists()) == (1, False)
    assert 'output "y" differs from that of the original' in result.stderr


def test_a_type_that_a_target_refuses(call, tmp_path):
    """OpenVINO 2023.1 has no floats of 8 bits."""
    y = b.Convert(b.parameter([2], "f8e4m3", name="x"), destination_type="f32")
    irrun.save_model(b.model({"y": y}), tmp_path / "a.xml")
    result = call("edit", "a.xml", "--target", "openvino==2023.1", "-o", "b.xml")
    assert (result.exit_code, 'IR902 type-refused]: Parameter "x"' in result.stderr) == (1, True)
    assert not Path("b.xml").exists()
    assert call("edit", "a.xml", "--target", "openvino==2026.2", "-o", "b.xml").exit_code == 0
