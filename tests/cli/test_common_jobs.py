"""The common jobs in one line: a picture, the likeliest classes, another shape, a result in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import irrun
import irrun.build as b
from irrun.extensions.tokenizers._packages import package
from places import SAMPLES


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def echo(shape: str, path: str = "m.xml", type: str = "f32") -> str:
    irrun.save_model(b.model([b.ReLU(b.parameter(shape, type, name="x"), name="y")]), path)
    return path


def output(call: Any, *arguments: str) -> np.ndarray:
    done = call("run", *arguments, "-o", "out.npy")
    assert done.exit_code == 0, done.stderr
    return np.load("out.npy")


# ---------------------------------------------------------------------------------------------
# pictures

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
MEAN, SCALE = np.array([10, 20, 30], np.float32), np.array([2, 4, 8], np.float32)


def test_a_picture_is_an_argument(call: Any) -> None:
    Image.fromarray(PIXELS).save("p.png")
    assert np.array_equal(output(call, echo("1,3,4,6"), "p.png")[0], PIXELS.transpose(2, 0, 1))


def test_mean_scale_order_and_layout(call: Any) -> None:
    Image.fromarray(PIXELS).save("p.png")
    expected = np.maximum((PIXELS[:, :, ::-1].astype(np.float32) - MEAN) / SCALE, 0)
    options = ("p.png", "--bgr", "--mean", "10,20,30", "--scale", "[2,4,8]")
    assert np.array_equal(output(call, echo("1,4,6,3"), *options)[0], expected)
    assert np.array_equal(output(call, echo("?,?,?,?"), *options, "--layout", "NHWC")[0], expected)
    planes = output(call, echo("?,?,?,?"), *options, "--layout", "NCHW")[0]
    assert np.array_equal(planes, expected.transpose(2, 0, 1))


def test_the_result_says_how_a_picture_was_read(call: Any) -> None:
    Image.fromarray(PIXELS).save("p.png")
    done = call("run", echo("1,3,8,8"), "p.png", "--mean", "128", "--resize", "pad", "--format", "json")
    (read,) = json.loads(done.stdout)["inputs"]
    assert read["from"] == "p.png: RGB, 6x4 padded to 8x8 (bilinear), NCHW, (0..255 - 128) / 1"


@pytest.mark.parametrize(("how", "edge"), [("stretch", 200), ("crop", 200), ("pad", 0)])
def test_resizing(how: str, edge: int, call: Any) -> None:
    """A wide picture in a square: black edges above and below only with ``pad``."""
    Image.fromarray(np.full((2, 8, 3), 200, np.uint8)).save("p.png")
    array = output(call, echo("1,3,8,8"), "p.png", "--resize", how)
    assert (array[0, 0, 0, 0], array[0, 0, 4, 4]) == (edge, 200)


def test_pictures_of_a_batch(call: Any) -> None:
    Image.fromarray(PIXELS).save("p.png")
    echo("1,3,2,2")
    done = call("batch", "m.xml", "p.png", "-o", "outs", "--shape", "x=[1,3,4,6]", "--scale", "2", "-j", "1")
    assert done.exit_code == 0, done.stderr
    assert np.array_equal(np.load("outs/p.png.npy")[0], PIXELS.transpose(2, 0, 1) / np.float32(2))
    again = call("batch", "m.xml", "p.png", "-o", "outs", "--shape", "x=[1,3,4,6]", "-j", "1")
    assert "holds results of other options for pictures" in again.stderr


def test_a_picture_for_integers_has_no_mean(call: Any) -> None:
    Image.fromarray(PIXELS).save("p.png")
    assert "leave them out" in call("run", echo("1,3,4,6", type="u8"), "p.png", "--mean", "1").stderr


@pytest.mark.parametrize("text", ["x.npy", "x.npz", "[[1, -2]]", "x=x.npy"])
def test_the_only_input_needs_no_name(text: str, call: Any) -> None:
    np.save("x.npy", np.array([[1, -2]], np.float32))
    np.savez("x.npz", np.array([[1, -2]], np.float32))
    assert output(call, echo("1,2"), text).tolist() == [[1, 0]]


def test_inputs_by_name_are_arguments(call: Any) -> None:
    x, y = b.parameter([1], "f32", name="x"), b.parameter([1], "f32", name="y")
    irrun.save_model(b.model([b.Subtract(x, y)]), "m.xml")
    assert output(call, "m.xml", "y=[3]", "x=[5]").tolist() == [2]


def test_without_pillow(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    done = call("run", echo("1,3,4,6"), "p.png")
    assert 'install it: pip install ".[image]"' in done.stderr
    assert "bug in irrun" not in done.stderr


def test_without_the_packages_of_tokenizers(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    package.cache_clear()
    ids = b.parameter([1, 2], "i32", name="ids")
    irrun.save_model(b.model(b.SentencepieceDetokenizer(np.zeros(4, np.uint8), ids)[0]), "m.xml")
    done = call("run", "m.xml")
    package.cache_clear()
    assert 'install it: pip install ".[tokenizers]"' in done.stderr
    assert "bug in irrun" not in done.stderr


# ---------------------------------------------------------------------------------------------
# classes


def classes(call: Any, *arguments: str) -> list[Any]:
    done = call("run", *arguments, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)["classes"]


def test_the_likeliest_classes(call: Any) -> None:
    Path("names.txt").write_text("ant\nbee\ncat\n")
    (scores,) = classes(call, echo("1,3"), "[[1, 3, 2]]", "--top", "2", "--labels", "names.txt")
    chances = np.exp([1, 3, 2]) / np.exp([1, 3, 2]).sum()
    assert [row["class"] for row in scores["classes"]] == [1, 2]
    assert [row["label"] for row in scores["classes"]] == ["bee", "cat"]
    assert np.allclose([row["probability"] for row in scores["classes"]], chances[[1, 2]], rtol=1e-12)


def test_a_distribution_is_shown_as_it_is(call: Any) -> None:
    done = call("run", echo("1,2,1,1"), "[[[[0.25]],[[0.75]]]]", "--top", "1")
    assert done.stdout.endswith('classes of "y"\n  class  score  probability\n      1   0.75       75.00%\n')


def test_each_row_of_a_batch_and_labels_in_json(call: Any) -> None:
    Path("names.json").write_text('{"0": ["n0", "ant"], "1": ["n1", "bee"]}')
    rows = classes(call, echo("2,2"), "[[5, 1], [0, 9]]", "--labels", "names.json")
    assert [(row["row"], row["classes"][0]["label"]) for row in rows] == [(0, "ant"), (1, "bee")]


# ---------------------------------------------------------------------------------------------
# another shape


def test_run_at_another_shape(call: Any) -> None:
    assert output(call, echo("1,2"), "[[1, 2, 3]]", "--shape", "x=[1,3]").tolist() == [[1, 2, 3]]
    assert output(call, echo("1,2"), "-i", "x=zeros", "--shape", "x=[4,5]").shape == (4, 5)


def test_report_and_why_at_another_shape(call: Any) -> None:
    done = call("report", echo("1,2"), "--shape", "x=[1,7]", "--format", "json", "--runs", "1")
    assert done.exit_code == 0, done.stderr
    assert "[1,7]" in done.stdout
    assert 'ReLU "y" output 1: [1,7]' in call("why", "m.xml", "--shape", "x=[1,7]").stdout


def test_edit_writes_the_shapes(call: Any) -> None:
    done = call("edit", str(SAMPLES / "convnet.xml"), "--shape", "image=[2,1,28,28]", "-o", "out.xml")
    assert done.exit_code == 0, done.stderr
    model = irrun.read_model("out.xml")
    declared = {layer.name: layer.outputs[0].shape for layer in model.layers.values() if layer.outputs}
    assert {str(declared[name]) for name in ("logits", "probabilities")} == {"[2,10]"}
    assert call("check", "out.xml").exit_code == 0
    image = np.random.default_rng(0).random((2, 1, 28, 28), np.float32)
    single = [irrun.run(SAMPLES / "convnet.xml", {"image": row[None]})[0] for row in image]
    assert np.allclose(irrun.run("out.xml", {"image": image})[0], np.concatenate(single), rtol=1e-5)


def test_edit_refuses_a_shape_that_does_not_fit(call: Any) -> None:
    done = call("edit", str(SAMPLES / "convnet.xml"), "--shape", "image=[1,1,4,4]", "--no-verify", "-o", "out.xml")
    assert (done.exit_code, Path("out.xml").exists()) == (1, False)
    assert "gives 784 rows" in done.stderr


# ---------------------------------------------------------------------------------------------
# a result in a file


@pytest.mark.parametrize(
    "line",
    ["check m.xml", "show m.xml", "why m.xml", "diff m.xml m.xml", "op ReLU", "explain IR401"],
)
def test_a_result_in_a_file_is_what_would_be_printed(line: str, call: Any) -> None:
    echo("1,2")
    for form in ("json", "text"):
        printed = call(*line.split(), "--format", form)
        written = call(*line.split(), "--format", form, "-o", "result")
        assert (written.exit_code, written.stdout) == (printed.exit_code, "")
        assert Path("result").read_text("utf-8") == printed.stdout
    assert json.loads(call(*line.split(), "--format", "json").stdout)["version"] == 1


def test_an_error_is_in_the_file_as_well(call: Any) -> None:
    Path("result.json").write_text("old")
    done = call("show", "nothing.xml", "--format", "json", "-o", "result.json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert json.loads(Path("result.json").read_text())["error"]["status"] == 2


def test_the_result_of_a_run_in_a_file(call: Any) -> None:
    done = call("run", echo("1,2"), "[[1, 2]]", "--format", "json", "--output-file", "result.json", "-o", "y.npy")
    assert (done.exit_code, done.stdout) == (0, "")
    assert json.loads(Path("result.json").read_text())["outputs"][0]["max"] == 2
    assert np.load("y.npy").tolist() == [[1, 2]]


def test_many_bad_inputs_are_counted(call: Any) -> None:
    Path("inputs").mkdir()
    for number in range(30):
        np.savez(f"inputs/{number}.npz", other=np.zeros(1), more=np.zeros(1))
    done = call("batch", echo("1,2"), "inputs", "-o", "outs", "-j", "1")
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 22
    assert "only counted" in done.stderr
