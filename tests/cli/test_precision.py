"""irrun precision: the verdict, the ranked layers, the files that it writes, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from click.testing import Result

import irrun
from irrun import build as b
from places import SAMPLES

SWIGLU, CONVNET, IMAGE = SAMPLES / "swiglu.xml", SAMPLES / "convnet.xml", SAMPLES / "image.npy"
ONES = ("-i", "x=ones:[1,8]")


def _error(result: Result) -> str:
    assert result.exit_code == 2, result.output
    return result.stderr


def _line(path: Path, name: str) -> int:
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if f'name="{name}" type' in line)


def test_the_layer_that_overflows_is_named(call):
    result = call("precision", SWIGLU, *ONES)
    assert result.exit_code == 1
    assert result.stdout.startswith('overflow: Multiply "product" is the first layer that overflows in f16, 1 sample\n')
    assert f"--> {SWIGLU}:{_line(SWIGLU, 'product')}\n" in result.stdout
    product = irrun.compile(SWIGLU)({"x": np.ones((1, 8), np.float32)}, taps="product").taps["product"]
    over, at = int((np.abs(product) >= 65520).sum()), int(np.abs(product).argmax())
    assert f'"product": {over} of 16 elements overflow, the greatest is 2.809e+05 at [0,{at}]' in result.stdout
    assert "keep 2 layers in full precision to restore the tolerances; none of them can be left out" in result.stdout
    assert f'Multiply "product", line {_line(SWIGLU, "product")}\n' in result.stdout


def test_a_model_within_its_tolerances(call):
    result = call("precision", CONVNET, "-i", f"image={IMAGE}", "--to", "int8-per-channel")
    assert result.exit_code == 0
    assert result.stdout.startswith("agree: the outputs in int8-per-channel are within their tolerances, 1 sample\n")
    assert "3 layers of 3 lose" in result.stdout
    assert "overflows" not in result.stdout


def test_tolerances_and_files(call):
    result = call(
        "precision", CONVNET, "-i", f"image={IMAGE}", "--to", "int8", "--rtol", 1e-5, "--atol", 1e-6,
        "--kept", "keep.json", "--ignored-scope", "scope.json", "--top", "1",
    )  # fmt: skip
    assert result.exit_code == 1
    assert result.stdout.startswith("differ: the outputs in int8 are outside their tolerances, 1 sample\n")
    names = ["block1/conv", "block2/conv", "logits"]
    assert json.loads(Path("keep.json").read_text()) == names
    assert json.loads(Path("scope.json").read_text()) == {"names": names}
    assert "and 2 more\n" in result.stdout
    assert "and 2 more; --kept writes all of them" in result.stdout


def test_json(call):
    record = json.loads(call("precision", SWIGLU, *ONES, "--format", "json").stdout)
    assert (record["verdict"], record["precision"], record["overflowing"]) == ("overflow", "f16", ["product"])
    assert record["keep"]["layers"] == ["product", "down"]
    first = record["layers"][0]
    assert (first["layer"], first["effect"], first["infinite"], first["exact"]) == ("product", None, True, True)
    assert json.loads(call("precision", SWIGLU, *ONES, "--no-search", "--format", "json").stdout)["keep"] is None


def test_estimates_are_marked(call):
    result = call("precision", SWIGLU, "-i", "x=zeros:[1,8]", "-i", "x=ones:[1,8]", "--measure", "2", "--no-search")
    assert result.exit_code == 1
    assert "at [0,5] of sample 2" in result.stdout
    assert "~ estimated; raise --measure to measure more layers" in result.stdout
    assert result.stdout.count(" ~") == 4  # three layers, and the note


INT4 = SAMPLES / "next_token_int4.xml", "--twin", SAMPLES / "next_token.xml", "-i", "ids=arange:[1,32]", "--text"


def test_a_compressed_model_is_examined_beside_its_twin(call):
    """samples/make.py says which layer int4 destroys."""
    result = call("precision", *INT4, "--ignored-scope", "scope.json")
    assert result.exit_code == 1
    assert result.stdout.startswith("differ: the outputs of the compressed model have other greedy tokens, 1 sample\n")
    assert f"weights, compared with {SAMPLES / 'next_token.xml'}\n" in result.stdout
    assert "f32                                       1         equal  embeddings\n" in result.stdout
    assert "keep 1 layer in full precision to restore the text; none of them can be left out" in result.stdout
    assert f'MatMul "up", line {_line(SAMPLES / "next_token.xml", "up")}\n' in result.stdout
    assert json.loads(Path("scope.json").read_text()) == {"names": ["up"]}
    tokens = [
        irrun.compile(SAMPLES / f"{name}.xml")({"ids": np.arange(32)[None]})["out"].argmax(-1)[0]
        for name in ("next_token", "next_token_int4")
    ]
    first = int(np.flatnonzero(tokens[0] != tokens[1])[0])
    strict = call("precision", *INT4, "--rtol", "0", "--atol", "0", "--no-search")
    assert f"{(tokens[0] != tokens[1]).sum()} of 32, first at [0,{first}]" in strict.stdout


def test_int4_is_simulated(call):
    result = call("precision", INT4[2], *INT4[3:], "--to", "int4", "--group-size", "16")
    assert result.exit_code == 1
    assert "outputs in int4\n" in result.stdout
    assert f'MatMul "up", line {_line(INT4[2], "up")}\n' in result.stdout


def test_quantizers_are_listed_by_the_share_that_saturates(call, tmp_path):
    def build(ranges):
        x = b.parameter([4], name="x")
        for number, limit in enumerate(ranges):
            low, high = b.constant(np.float32(-limit)), b.constant(np.float32(limit))
            y = b.FakeQuantize(x, low, high, low, high, levels=256, name=f"fq{number}") if limit else x
            x = b.Multiply(y, np.float32(1), name=f"scale{number}")
        return b.model({"y": x})

    for name, ranges in (("float", (0, 0)), ("int8", (4, 2))):
        irrun.save_model(build(ranges), tmp_path / f"{name}.xml")
    result = call("precision", "int8.xml", "--twin", "float.xml", "-i", "x=[1,2,3,4]")
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("  fq")]
    assert [(row[0], *row[3:5], row[-1]) for row in rows] == [
        ("fq1", "256", "50.00%", "scale1"), ("fq0", "256", "-", "scale0"),
    ]  # fmt: skip


def test_what_the_weights_do_not_explain_is_said(call, tmp_path):
    x = b.parameter([4], name="x")
    for name, scale in (("float", 2), ("other", 3)):
        y = b.Multiply(x, np.arange(1, 5, dtype=np.float32), name="weigh")
        y = b.Add(y, y, name="twice") if scale == 2 else b.Subtract(y, y, name="twice")
        irrun.save_model(b.model({"y": y}), tmp_path / f"{name}.xml")
    result = call("precision", "other.xml", "--twin", "float.xml", "-i", "x=ones")
    assert result.exit_code == 1
    assert "the outputs have an error of 1 that neither weights nor quantizers explain" in result.stdout
    assert "keep" not in result.stdout


def test_names_are_printable(call, tmp_path):
    x = b.parameter([1], name="x")
    irrun.save_model(
        b.model({"y": b.Multiply(x, np.array([7e4], np.float32), name="a\x9b31m\u202eb")}), tmp_path / "m.xml"
    )
    result = call("precision", tmp_path / "m.xml", "-i", "x=[9.1]", "--rtol", "0", "--atol", "0")
    assert result.exit_code == 1
    assert "\x9b" not in result.stdout
    assert "\u202e" not in result.stdout
    assert "a\\x9b31m" in result.stdout


def test_bad_usage(call, tmp_path):
    assert "is not one of 'f16', 'bf16'" in _error(call("precision", SWIGLU, "--to", "f8"))
    assert "integers accumulate exactly" in _error(call("precision", SWIGLU, "--to", "int8", "--accumulator", "same"))
    assert "--group-size is for --to int4" in _error(call("precision", SWIGLU, "--group-size", 32))
    assert "leave out --to" in _error(call("precision", *INT4, "--to", "bf16"))
    assert "--no-search finds no layers" in _error(call("precision", SWIGLU, "--no-search", "--kept", "k.json"))
    assert "there is no folder" in _error(call("precision", SWIGLU, "--kept", "none/k.json"))
    assert "it is a folder" in _error(call("precision", SWIGLU, "--ignored-scope", tmp_path))
    assert "is the model" in _error(call("precision", SWIGLU, "--kept", SWIGLU))
    assert "IR000" in _error(call("precision", "none.xml"))
    assert "no input" in _error(call("precision", SWIGLU, "-i", "z=ones"))


def test_errors_to_expect(call):
    """A value that is rounded to bf16 is wrong by about a third of the roundoff 2**-8, and each layer adds to that."""
    result = call("precision", CONVNET, "-i", f"image={IMAGE}", "--to", "bf16", "--no-search", "--format", "json")
    record = json.loads(result.stdout)
    (output,) = record["expected"]
    assert 2**-11 < output["error"] < 2**-5
    assert output["allowed"] > output["error"]
    first = next(layer for layer in record["layers"] if layer["layer"] == "block1/conv")
    assert first["error"] / 2 < first["expected"] < output["error"] * 8
    lines = call("precision", CONVNET, "-i", f"image={IMAGE}", "--to", "bf16", "--no-search").stdout.splitlines()
    assert f"{output['error']:.3g}" in lines[lines.index("outputs in bf16") + 2].split()
