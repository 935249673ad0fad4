"""Files that are no IR: recognised by their contents, whatever their names, and told what to do with."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irrun
from places import SAMPLES

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n"
PAGE = b"<!DOCTYPE html>\n<html><head><title>model.xml</title></head><body><p>Sign in</p></body></html>\n"


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros((1, 1, 28, 28), np.float32))
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, image=np.zeros(3))
    return file.getvalue()


def archive(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zip:
        for name in names:
            zip.writestr(name, b"x")
    return file.getvalue()


def tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.xml"))
    return file.getvalue()


def field(number: int, data: bytes) -> bytes:
    """Return a field of a protocol buffer with fewer than 128 bytes."""
    return bytes([number << 3 | 2, len(data)]) + data


def onnx_model() -> bytes:
    """Return a ModelProto: ir_version, producer_name, a graph of one node, and opset_import, as onnx.proto numbers them."""
    node = field(1, b"x") + field(2, b"y") + field(4, b"Relu")
    graph = field(1, node) + field(2, b"graph")
    return b"\x08\x0a" + field(2, b"test") + field(7, graph) + field(8, field(1, b"") + b"\x10\x12")


NODE = field(1, field(1, b"x") + field(2, b"Placeholder"))
WEIGHTS = np.random.default_rng(0).standard_normal(1000, np.float32).tobytes()

# name of the file, its contents, what irrun calls it, what to do
ROWS: dict[str, tuple[str, Callable[[], bytes], str, str]] = {
    "onnx": ("m.onnx", onnx_model, "is an ONNX model", "ovc m.onnx"),
    "onnx-renamed": ("m.xml", onnx_model, "is an ONNX model", "rename it to m.onnx, then ovc m.onnx"),
    "bin": ("m.bin", lambda: WEIGHTS, "is the weights of a model (.bin)", "pass the .xml file of the model"),
    "bin-renamed": ("m.xml", lambda: WEIGHTS, "is binary data", "a .bin holds the weights"),
    "bin-of-zeros": ("m.bin", lambda: bytes(64), "holds nothing but zero bytes", "pass the .xml file of the model"),
    "zeros": ("m.xml", lambda: bytes(64), "holds nothing but zero bytes", "copy or download the file again"),
    "npy": ("x.npy", npy, "is a NumPy array (.npy)", "-i NAME=x.npy"),
    "npy-renamed": ("x.xml", npy, "is a NumPy array (.npy)", "as an input"),
    "npz": ("x.npz", npz, "holds NumPy arrays (.npz)", "-i x.npz"),
    "tflite": ("m.tflite", lambda: b"\x1c\0\0\0TFL3" + bytes(64), "is a TensorFlow Lite model", "ovc m.tflite"),
    "tflite-renamed": ("m.xml", lambda: b"\x1c\0\0\0TFL3" + bytes(64), "is a TensorFlow Lite", "rename it to m.tflite"),
    "frozen-graph": ("m.pb", lambda: NODE + field(4, b"\x08\x01"), "is a frozen graph of TensorFlow", "ovc m.pb"),
    "saved-model": ("m.pb", lambda: b"\x08\x01" + field(2, NODE), "is the graph of a TensorFlow SavedModel", "ovc"),
    "keras": ("m.keras", lambda: archive("config.json", "model.weights.h5"), "is a Keras model", "SavedModel"),
    "hdf5": ("m.h5", lambda: b"\x89HDF\r\n\x1a\n" + bytes(64), "is an HDF5 file", "SavedModel"),
    "pytorch-zip": ("m.pt", lambda: archive("m/data.pkl", "m/data/0"), "is a PyTorch model", "convert_model"),
    "pytorch-exported": (
        "m.pt2", lambda: archive("serialized_exported_program.json"), "is a PyTorch exported program", "convert_model"),
    "pytorch-old": (
        "m.pth", lambda: pickle.dumps(0x1950A86A20F9469CFC6C, 2) + b"x", "is a PyTorch checkpoint", "convert_model"),
    "pickle": ("m.pkl", lambda: pickle.dumps({"a": 1}), "is a pickle", "convert_model"),
    "safetensors": (
        "m.safetensors", lambda: struct.pack("<Q", 2) + b"{}" + bytes(8), "is a safetensors file", "optimum-cli export"),
    "gguf": ("m.gguf", lambda: b"GGUF" + bytes(64), "is a GGUF file", "optimum-cli export"),
    "git-lfs": ("m.xml", lambda: POINTER, "is a Git LFS pointer", "git lfs pull"),
    "git-lfs-text": ("m.txt", lambda: POINTER, "is a Git LFS pointer", "git lfs pull"),
    "html": ("m.xml", lambda: PAGE, "is a web page (HTML)", "not the page about it"),
    "html-without-doctype": ("m.xml", lambda: PAGE[16:], "is a web page (HTML)", "not the page about it"),
    "not-found": ("m.xml", lambda: b"404: Not Found", "is text that begins with '404: Not Found'", "download it again"),
    "json": ("config.json", lambda: b'{"a": 1}', "is JSON", "pass the .xml file of a model"),
    "gzip": ("m.xml.gz", lambda: gzip.compress(b"<net/>"), "is compressed with gzip", "gunzip m.xml.gz"),
    "xz": ("m.xml.xz", lambda: lzma.compress(b"<net/>"), "is compressed with xz", "unxz m.xml.xz"),
    "bzip2": ("m.xml.bz2", lambda: bz2.compress(b"<net/>"), "is compressed with bzip2", "bunzip2 m.xml.bz2"),
    "zstd": ("m.xml.zst", lambda: b"\x28\xb5\x2f\xfd" + bytes(16), "is compressed with zstd", "unzstd m.xml.zst"),
    "zip": ("m.zip", lambda: archive("d/m.xml", "d/m.bin"), "is a zip archive", "unpack it, and pass d/m.xml"),
    "zip-cut-short": ("m.zip", lambda: archive("m.xml")[:20], "is a zip archive that is cut short", "again"),
    "7z": ("m.7z", lambda: b"7z\xbc\xaf\x27\x1c" + bytes(16), "is a 7-Zip archive", "unpack it"),
    "tar": ("m.tar", tar, "is a tar archive", "unpack it"),
    "png": ("cat.png", lambda: b"\x89PNG\r\n\x1a\n" + bytes(16), "is a picture (PNG)", "-i NAME=cat.png"),
    "jpeg": ("cat.jpg", lambda: b"\xff\xd8\xff\xe0" + bytes(16), "is a picture (JPEG)", "-i NAME=cat.jpg"),
    "pdf": ("m.pdf", lambda: b"%PDF-1.7\n%\xe2\xe3", "is a PDF document", "pass the .xml file of a model"),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_recognised(row, call, tmp_path):
    name, contents, kind, advice = ROWS[row]
    Path(name).write_bytes(contents())
    for command in ("show", "run", "check"):
        result = call(command, name)
        said = result.stderr + result.stdout
        assert result.exit_code == 2, said
        assert f"error[IR003 not-ir]: not an IR: the file {kind}" in said
        assert advice in said.split("= help: ")[1].splitlines()[0]
        assert "UTF-8" not in said
    with pytest.raises(irrun.ReadError, match="not an IR"):
        irrun.read_model(name)


def test_a_model_of_the_onnx_package(call):
    onnx = pytest.importorskip("onnx", reason="onnx is an extra of the tests")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "graph", [x], [y])
    onnx.save(onnx.helper.make_model(graph), "m.xml")
    assert "not an IR: the file is an ONNX model" in call("show", "m.xml").stderr


def test_a_bin_beside_its_model(call, tmp_path):
    shutil.copy(SAMPLES / "convnet.bin", tmp_path)
    shutil.copy(SAMPLES / "convnet.xml", tmp_path)
    assert "help: a .bin holds the weights; pass convnet.xml\n" in call("show", "convnet.bin").stderr


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        ([], "pass the .xml file of a model; the folder holds none"),
        (["m.xml", "m.bin"], "pass the model in it: folder/m.xml"),
        (["a.xml", "b.xml", "c.xml", "d.xml"], "pass a model in it: folder/a.xml, folder/b.xml, folder/c.xml, ..."),
        (["saved_model.pb"], "it is a TensorFlow SavedModel; convert it to IR: ovc folder"),
    ],
)
def test_a_folder(names, advice, call):
    Path("folder").mkdir()
    for name in names:
        Path("folder", name).touch()
    result = call("run", "folder")
    assert result.exit_code == 2
    assert result.stderr == (
        f"error[IR000 unreadable]: cannot read folder: it is a folder, not a file\n  = help: {advice}\n"
    )


def test_standard_input(call):
    from click.testing import CliRunner

    from irrun.cli import cli

    result = CliRunner().invoke(cli, ["show", "-"], input=onnx_model())
    assert "the file is an ONNX model" in result.stderr
    assert "ovc FILE.onnx" in result.stderr or "then ovc FILE.onnx" in result.stderr


def test_what_is_still_read(call):
    """Pages of all endings, and IR in any encoding, are not taken for something else."""
    layer = '<layer id="0" type="ReLU" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer>'
    Path("page.xml").write_text(f"<!DOCTYPE html>\n<html><body><pre>{layer.replace('<', '&lt;')}</pre></body></html>")
    Path("notes.txt").write_text("no example")
    Path("list.md").write_text('["a"]')
    assert "not an IR" not in call("show", "page.xml").stderr
    for name in ("notes.txt", "list.md"):
        assert "the page has no <layer> example" in call("show", name).stderr


# ---------------------------------------------------------------------------------------------
# weights


@pytest.mark.parametrize(("contents", "message", "advice"), [
    (POINTER, "convnet.bin is a Git LFS pointer; 6 constants have their values in it", "git lfs pull"),
    (PAGE, "convnet.bin is a web page; 6 constants have their values in it", "download the .bin itself"),
])  # fmt: skip
def test_a_bin_that_holds_no_weights(contents, message, advice, call, tmp_path):
    shutil.copy(SAMPLES / "convnet.xml", tmp_path)
    Path("convnet.bin").write_bytes(contents)
    result = call("run", "convnet.xml")
    assert result.exit_code == 1
    assert f"error[IR501 weights-missing]: {message}" in result.stderr
    assert advice in result.stderr
    assert call("show", "convnet.xml").exit_code == 0  # what the .xml says is there to be seen


@pytest.mark.parametrize(("name", "contents", "kind"), [
    ("w.xml", lambda: b"<?xml version='1.0'?><net/>", "is XML"),
    ("w.npy", npy, "is a NumPy array (.npy)"),
    ("w.npz", npz, "holds NumPy arrays (.npz)"),
    ("w.pt", lambda: archive("m/data.pkl"), "is a PyTorch model"),
    ("w.bin", lambda: POINTER, "is a Git LFS pointer"),
])  # fmt: skip
def test_weights_that_are_named(name, contents, kind, call):
    Path(name).write_bytes(contents())
    result = call("run", SAMPLES / "convnet.xml", "-w", name)
    assert result.exit_code == 2
    assert f"cannot read {name}: no weights: the file {kind}" in result.stderr


def test_without_weights_a_contradiction_names_both_ends_and_gives_no_advice(call, tmp_path):
    """The .bin would decide which end is right, and it is not there: the Result may be the correct one."""
    text = (SAMPLES / "broadcast_numpy.xml").read_text()
    lines = text.split("\n")
    for line in (39, 49):  # the output of the Broadcast, and the input of the Result
        assert "<dim>50</dim>" in lines[line - 1]
        changed = [*lines[: line - 1], lines[line - 1].replace("50", "48"), *lines[line:]]
        Path("m.xml").write_text("\n".join(changed))
        missing, finding = irrun.check("m.xml")
        assert (missing.code, finding.code) == ("IR501", "IR402")
        ends = ("[1,16,50,48]", "[1,16,50,50]") if line == 39 else ("[1,16,50,50]", "[1,16,50,48]")
        assert finding.message == (
            f'Broadcast "broadcast" output 2 declares {ends[0]}, but Result "out" input 0 declares {ends[1]}'
        )
        assert finding.help is None
        assert finding.fix is None
        assert finding.notes == (
            'Broadcast "broadcast" output 2: line 35', 'Result "out" input 0: line 45',
            "without the .bin, irrun cannot tell which of the two is wrong",
        )  # fmt: skip
    shutil.copy(SAMPLES / "broadcast_numpy.bin", "m.bin")
    (finding,) = irrun.check("m.xml")
    assert finding.line == 49
    assert finding.help == "declare [1,16,50,50]"


# ---------------------------------------------------------------------------------------------
# inputs, shapes and outputs


@pytest.mark.parametrize(("name", "contents", "what", "advice"), [
    ("README.md", lambda: b"# text", "is a file, but neither an array nor a picture", "pass a .npy, .npz or picture"),
    ("data", npy, "is a NumPy array", "rename it to data.npy"),
    ("cat", lambda: b"\x89PNG\r\n\x1a\n", "is a picture", "ending .png or .jpg"),
    ("m.onnx", onnx_model, "is an ONNX model, neither an array nor a picture", "pass a .npy, .npz or picture"),
    ("pointer", lambda: POINTER, "is a Git LFS pointer, neither an array nor a picture", "git lfs pull"),
    ("x.npy", lambda: POINTER, "the file is a Git LFS pointer", "git lfs pull"),
    ("x.npz", lambda: POINTER, "the file is a Git LFS pointer", "git lfs pull"),
    ("x.npy", lambda: PAGE, "the file is a web page (HTML)", "not the page about it"),
    ("x.png", lambda: POINTER, "the file is a Git LFS pointer", "git lfs pull"),
    ("x.png", npy, "the file is a NumPy array (.npy)", "rename it to x.npy"),
])  # fmt: skip
def test_an_input_that_is_no_array(name, contents, what, advice, call):
    Path(name).write_bytes(contents())
    result = call("run", SAMPLES / "convnet.xml", "-i", f"image={name}")
    assert result.exit_code == 2
    assert what in result.stderr
    assert "is no file" not in result.stderr
    assert advice in result.stderr.split("= help: ")[1]


def test_an_input_that_is_a_folder(call):
    Path("folder").mkdir()
    result = call("run", SAMPLES / "convnet.xml", "-i", "image=folder")
    assert 'cannot be read from "folder", which is a folder' in result.stderr


@pytest.mark.parametrize("shape", ["[1,2", "1,2]", "[[1,2]", "[1,2]]", "]1,2["])
def test_a_shape_with_half_a_bracket(shape, call):
    result = call("check", SAMPLES / "convnet.xml", "--shape", f"image={shape}")
    assert result.exit_code == 2
    assert f'input "image" cannot have the shape "{shape}"' in result.output


def test_an_output_has_the_format_of_its_name(call):
    model = SAMPLES / "convnet.xml"
    assert call("run", model, "-o", "out.npy").exit_code == 0
    assert Path("out.npy").read_bytes().startswith(b"\x93NUMPY")
    assert call("run", model, "-o", "out.npz").exit_code == 0
    with np.load("out.npz") as saved:
        assert np.array_equal(np.load("out.npy"), saved["out"])
    for name, extra, said in (
        ("out.json", (), "ends neither in .npz nor in .npy"),
        ("out.npy", ("--tap", "logits"), "a .npy holds one array, but there are taps; write out.npz"),
    ):
        result = call("run", model, "-o", name, *extra)
        assert result.exit_code == 2
        assert said in result.stderr
    assert not Path("out.json").exists()
