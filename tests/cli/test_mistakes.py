"""Mistakes that newcomers make: each message says what to write instead."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import irrun
from irrun import build as b
from places import ROOT, SAMPLES

MISTAKES = {
    "run two.xml -i ids=[[1, 2]]": "2]] is no file; put quotes around a SPEC with blanks: -i 'x=[[1, 2]]'",
    "run two.xml -i file.npy": 'for one input, but the model has 2 inputs: "a", "b"; write "a=file.npy"',
    "run two.xml file.npy": 'for one input, but the model has 2 inputs: "a", "b"; write "a=file.npy"',
    "run one.xml missing.npy": "cannot be read from missing.npy: no such file or directory",
    "run one.xml nothing": "is neither a file nor JSON",
    "run one.xml two.xml": "there are 2 models; pass one, or run all with --random",
    "run two.xml [[1, 2]]": "[[1, is no file; put quotes around a SPEC with blanks",
    "run two.xml --top 3": "no output holds scores of classes, [N] or [1,N]: the shapes are [1,3,4]",
    "run one.xml --labels names.txt": '--labels holds 2 names, but "out" has 10 classes',
    "run one.xml --labels nothing.txt": "cannot read nothing.txt: no such file or directory",
    "run one.xml -i image=p.png --mean 1,2": "takes pictures of 1 channels, but --mean has 2 numbers",
    "run one.xml --mean a": "a is no list of numbers; write it as 123.7,116.3,103.5",
    "run one.xml --scale 0": "it cannot be 0",
    "run one.xml --device GPU": "irrun runs on the CPU; openvino[device=GPU]:MODEL.xml is a side of `irrun compare`",
    "compare one.xml one.xml --shape x=1": "No such option '--shape'; write the model at the shape first, with `irrun edit",
    "report one.xml --compare two.xml --shape x=1": "--compare takes the file as it is; write it at the shape first",
    "run one.xml --shape x=1": "the model has no input 'x'",
    "run one.xml --shape image=[1,1,4,4]": "a [1,16] gives 16 columns, b [10,784] gives 784 rows",
    "check one.xml --output x.sarif": "No such option '--output'; the result is written with -o FILE",
    "check one.xml -o one.xml": "one.xml is the model; choose another file",
    "check one.xml -o nowhere/x.json": "create it first",
    "check one.xml --watch -o x.json": "--watch cannot be combined with --output-file",
    "report one.xml --output-file x.json": "the page is written with -o FILE.html; --output-file is for --format json",
    "check one.xml --summary --statistics": "--summary cannot be combined with --statistics",
    "compare exact openvino": "write exact:MODEL.xml",
    "check rellu.xml": "did you mean ReLU?",
    "check custom.xml": "register a custom operation with @irrun.op (--plugin FILE.py)",
    "check binary.xml": "pass the .xml file of the model; or is it encrypted, or a compiled blob (export_model)?",
    "run https://example.com/model.xml": "cannot read https://example.com/model.xml: irrun reads local files",
    "run one.xml -i image=random:[1,1,30,30]": "--shape NAME=SHAPE (Model.reshape) gives the input another shape",
    "run one.xml --max-memory 1KB": "raise --max-memory (max_memory=), or pass smaller inputs",
    "show one.xml --layer conv": 'did you mean "block1/conv" or "block2/conv"?',
    "why one.xml conv9": 'did you mean "block1/conv" or "block2/conv"?',
    "report one.xml -o report.pdf": "report.pdf ends in .pdf, but a page of HTML is written; write report.html",
    "show one.xml --graph g.png": "g.png ends in .png, but a picture in SVG is written; write g.svg",
    "batch one.xml file.npy -o o.txt": "o.txt ends in .txt, but a folder is written; write o,",
    "bisect one.xml one.xml -o r.json": "r.json ends in .json, but a folder is written; write r, or > r.json",
    "precision one.xml --to fp16": "'int4', 'int4-asymmetric'; did you mean 'f16'?",
    "completion": "Missing argument",
    "completion bsh": "did you mean 'bash'?",
    "version": "write irrun --version",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, sample in (("one", "convnet"), ("two", "elementwise"), ("rellu", "convnet"), ("custom", "convnet")):
        for ending in (".xml", ".bin"):
            shutil.copy(SAMPLES / f"{sample}{ending}", tmp_path / f"{name}{ending}")
    for name, type in (("rellu", "Rellu"), ("custom", "MyOwnThing")):
        text = (tmp_path / f"{name}.xml").read_text()
        (tmp_path / f"{name}.xml").write_text(text.replace('type="ReLU"', f'type="{type}"', 1))
    shutil.copy(SAMPLES / "image.npy", tmp_path / "file.npy")
    (tmp_path / "names.txt").write_text("a\nb\n")
    Image.new("L", (5, 5)).save(tmp_path / "p.png")
    (tmp_path / "binary.xml").write_bytes(bytes(range(1, 256)) * 8)
    return tmp_path


@pytest.mark.parametrize("line", MISTAKES)
def test_the_message_says_what_to_write(line: str, folder: Path, call: Any) -> None:
    before = {path.name for path in folder.iterdir()}
    done = call(*line.split(" "))
    assert done.exit_code != 0
    text = " ".join((done.stdout + done.stderr).split())
    assert MISTAKES[line] in text
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "line",
    [
        "run",
        "report -o r.html",
        "precision",
        "compare exact",
        "bisect exact -o found",
        "edit --fold -o e.xml",
        "export -o e.onnx",
    ],
)
def test_the_shape_that_irrun_has_chosen_is_named(line: str, tmp_path: Path, call: Any, monkeypatch: Any) -> None:
    """The model refuses the smallest shape: three elements make no two rows."""
    if line.startswith("export"):
        pytest.importorskip("onnxruntime", reason="exported models are run by onnxruntime, of the extra `onnx`")
    monkeypatch.chdir(tmp_path)
    rows = b.Reshape(b.parameter([None, 3], "f32", name="x"), [2, -1], special_zero=False)
    irrun.save_model(b.model(b.Relu(rows)), "open.xml")
    command, *rest = line.split(" ")
    refused = call(command, "open.xml", *rest)
    assert refused.exit_code != 0
    note = 'note: input "x" has the dynamic shape [?,3], for which irrun chose [1,3]; choose other dims with -i'
    assert refused.stderr.count(note) == 1
    assert "note: input" not in call(command, "open.xml", *rest, "-i", "x=random:[2,3]").stderr


def test_a_file_alone_is_the_only_input(folder: Path, call: Any) -> None:
    done = call("run", "one.xml", "-i", "file.npy", "--format", "json")
    assert done.exit_code == 0
    assert done.stdout == call("run", "one.xml", "-i", "image=file.npy", "--format", "json").stdout


def test_help_and_version(call: Any) -> None:
    assert call("help").stdout == call("--help").stdout
    assert call("help", "why").stdout == call("why", "--help").stdout
    assert call("-V").stdout == call("--version").stdout


@pytest.mark.parametrize(
    ("arguments", "said"), [((), "usage: python -m irrun.compat"), (("no.py",), "no script no.py")]
)
def test_the_stand_in_without_a_script(arguments: tuple[str, ...], said: str) -> None:
    command = [sys.executable, "-m", "irrun.compat.openvino", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
