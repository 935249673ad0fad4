"""Sides: KIND[OPTIONS]:PATH, and the errors of texts that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

import irrun
from irrun.diagnostics import EngineError
from irrun.engines import Side, parse_side, parse_sides


@pytest.mark.parametrize(
    ("text", "kind", "path", "options"),
    [
        ("m.xml", "irrun", "m.xml", {}),
        ("irrun:m.xml", "irrun", "m.xml", {}),
        ("exact:m.xml", "exact", "m.xml", {}),
        ("openvino:a/b.xml", "openvino", "a/b.xml", {}),
        ("openvino[device=GPU,precision=f16]:m.xml", "openvino", "m.xml", {"device": "GPU", "precision": "f16"}),
        ("openvino[ threads = 4 ]:m.xml", "openvino", "m.xml", {"threads": "4"}),
        ("irrun[precision=auto]:m.xml", "irrun", "m.xml", {"precision": "auto"}),
        ("exact[precision=bf16]:m.xml", "exact", "m.xml", {"precision": "bf16"}),
        ("openvino[]:m.xml", "openvino", "m.xml", {}),
        ("openvino[KV_CACHE_PRECISION=u8]:m.xml", "openvino", "m.xml", {"KV_CACHE_PRECISION": "u8"}),
        ('openvino[python="/a, b]/python"]:m.xml', "openvino", "m.xml", {"python": "/a, b]/python"}),
        ("openvino[python='/say \"x\"/python']:m.xml", "openvino", "m.xml", {"python": '/say "x"/python'}),
        ("openvino:C:\\m.xml", "openvino", "C:\\m.xml", {}),
        ("C:\\m.xml", "irrun", "C:\\m.xml", {}),
        ("c:m.xml", "irrun", "c:m.xml", {}),
        ("models/a:b.xml", "irrun", "models/a:b.xml", {}),
        ("./openvino:m.xml", "irrun", "./openvino:m.xml", {}),
        ("openvino.xml", "irrun", "openvino.xml", {}),
        ("net[1].xml", "irrun", "net[1].xml", {}),
        ("onnx:m.onnx", "onnx", "m.onnx", {}),
        ("ort[device=GPU]:m.onnx", "ort", "m.onnx", {"device": "GPU"}),
        ("evaluate:m.xml", "evaluate", "m.xml", {}),
        ("onnxifier[threads=2]:m.xml", "onnxifier", "m.xml", {"threads": "2"}),
        ("pyopenvino[source=../clone]:m.xml", "pyopenvino", "m.xml", {"source": "../clone"}),
        ("values.npz", "npz", "values.npz", {}),
        ("dump:values", "dump", "values", {}),
        ("irrun:openvino:x", "irrun", "openvino:x", {}),
    ],
)
def test_sides(text: str, kind: str, path: str, options: dict[str, str]) -> None:
    side = parse_side(text)
    assert (side.kind, side.path, dict(side.options)) == (kind, Path(path), options)
    assert parse_side(str(side)) == side


def test_a_folder_is_a_dump(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text("[]")
    assert parse_side(str(tmp_path)).kind == "dump"


@pytest.mark.parametrize("kind", ["", "irrun:", "openvino[precision=f32]:", "dump:"])
def test_a_folder_without_anything_to_compare(kind: str, tmp_path: Path) -> None:
    """The message says what a folder must hold, and which model to pass."""
    holds = (
        r"IR701.* neither a language model \(openvino_model\.xml\) nor the values of `irrun run --dump` \(index\.json\)"
    )
    with pytest.raises(EngineError, match=rf"{holds}; pass a model: the path of its \.xml file"):
        parse_side(f"{kind}{tmp_path}")
    (tmp_path / "net.xml").write_text("")
    with pytest.raises(EngineError, match=rf"{holds}; pass a model: .*net\.xml"):
        parse_side(f"{kind}{tmp_path}")


def test_a_file_may_be_named_like_a_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net:1.xml").write_text("")
    assert parse_side("net:1.xml") == Side("irrun", Path("net:1.xml"))


@pytest.mark.parametrize(("text", "kind"), [("openvino", "openvino"), ("ort[threads=2]", "ort"), ("m.xml", "irrun")])
def test_engines_without_a_model(text: str, kind: str) -> None:
    side = parse_side(text, needs_path=False)
    assert side.kind == kind
    assert (side.path is None) == (text != "m.xml")


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        ("m.xml", "openvino", ["irrun:m.xml", "openvino:m.xml"]),
        ("openvino[threads=1]", "m.xml", ["openvino[threads=1]:m.xml", "irrun:m.xml"]),
        ("exact[weights=b.bin]:m.xml", "openvino", ["exact[weights=b.bin]:m.xml", "openvino[weights=b.bin]:m.xml"]),
        ("ort:m.onnx", "onnx", ["ort:m.onnx", "onnx:m.onnx"]),
        ("values.npz", "m.xml", ["npz:values.npz", "irrun:m.xml"]),
    ],
)
def test_an_engine_without_a_path_runs_the_other_model(first: str, second: str, texts: list[str]) -> None:
    assert [str(side) for side in parse_sides(first, second)] == texts


@pytest.mark.parametrize(
    ("first", "second", "missing"),
    [("openvino", "exact", "openvino"), ("values.npz", "openvino[threads=1]", "openvino[threads=1]")],
)
def test_no_side_names_a_model(first: str, second: str, missing: str) -> None:
    with pytest.raises(irrun.EngineError) as caught:
        parse_sides(first, second)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == f"cannot use {missing!r}: the model that the engine runs is missing"
    assert diagnostic.help == f"write {missing}:MODEL.xml"


def test_a_file_may_be_named_like_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("openvino").write_text("")
    assert parse_sides("m.xml", "openvino")[1] == Side("irrun", Path("openvino"))


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        ("openvno:m.xml", "there is no engine 'openvno'", "did you mean openvino?"),
        ("OpenVINO:m.xml", "there is no engine 'OpenVINO'", "did you mean openvino?"),
        ("tensorrt:m.xml", "there is no engine 'tensorrt'", "the kinds are irrun, exact,"),
        ("m.onnx", "irrun runs no ONNX models", "write onnx:m.onnx"),
        ("", "a path is missing", ""),
        ("openvino:", "a path is missing", "write openvino:model.xml"),
        ("openvino[device=GPU]", "a colon is missing", "write openvino[...]:PATH"),
        ("openvino[device=GPU]m.xml", "a colon is missing", "write openvino[...]:PATH"),
        ("openvino[device=GPU:m.xml", "is not closed", "write openvino[device=CPU]:PATH"),
        ("openvino[devise=GPU]:m.xml", "openvino has no option 'devise'", "did you mean device?"),
        ("openvino[KV_CACHE_PRECISION=]:m.xml", "KV_CACHE_PRECISION has no value", "pass the value of the property"),
        ("evaluate[KV_CACHE_PRECISION=u8]:m.xml", "evaluate has no option", "its options are weights, python"),
        ("exact[device=GPU]:m.xml", "exact has no option 'device'", "its options are precision, weights"),
        ("npz[threads=1]:m.npz", "npz has no option 'threads'", "write npz:PATH"),
        ("openvino[device]:m.xml", "the option device has no value", "pass the name of a device"),
        ("openvino[device=]:m.xml", "the option device has no value", "pass the name of a device"),
        ("openvino[precision=f8]:m.xml", "the option precision cannot be 'f8'", "pass f32, f16 or bf16"),
        ("openvino[precision=auto]:m.xml", "the option precision cannot be 'auto'", "pass f32, f16 or bf16"),
        (
            "irrun[precision=f16]:m.xml",
            "the option precision cannot be 'f16'",
            "pass f32, bf16, int8-activations or auto",
        ),
        ("openvino[threads=0]:m.xml", "the option threads cannot be '0'", "a number from 1"),
        ("openvino[threads=1,threads=2]:m.xml", "threads is passed twice", "remove one"),
        ("openvino[device=CPU,]:m.xml", "an option is empty", "remove the extra comma"),
        ("openvino[device=CPU,,threads=1]:m.xml", "an option is empty", "remove the extra comma"),
        ("openvino[=CPU]:m.xml", "openvino has no option ''", "its options are"),
        ("openvino[python='/a]:m.xml", "cannot read the options", "quotes"),
    ],
)
def test_texts_that_are_no_sides(text: str, message: str, help: str) -> None:
    with pytest.raises(irrun.EngineError) as caught:
        parse_side(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "IR701"
    assert message in diagnostic.message
    assert help in (diagnostic.help or "")
