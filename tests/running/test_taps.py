"""Values inside a run: taps, dumps and hooks."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.cli import cli
from irrun.running import dump
from nets import Net
from places import SAMPLES

CONVNET = SAMPLES / "convnet.xml"
IMAGE = str(CONVNET.parent / "image.npy")


def _model() -> irrun.Model:
    x = b.parameter([2, 4], name="x")
    left, right = b.Split(b.Add(x, [[1.0], [2.0]], name="sum"), 1, num_splits=2, name="split")
    loop = b.Loop(3, True, left, body=lambda i, a: (True, b.Multiply(a, [[2.0]], name="twice")), name="loop")
    return b.model({"y": b.Subtract(loop, right, name="difference")})


X = np.arange(8, dtype=np.float32).reshape(2, 4)


def test_taps() -> None:
    executable = irrun.compile(_model(), strict=True)
    outputs = executable(X, taps=["split", "s*m", "x"])
    assert list(outputs.taps) == ["x", "sum", "split", "split:3"]
    total = X + np.array([[1], [2]])
    for name, want in (("x", X), ("sum", total), ("split", total[:, :2]), ("split:3", total[:, 2:])):
        np.testing.assert_array_equal(outputs.taps[name], want)
    assert executable(X).taps == {}
    np.testing.assert_array_equal(outputs["y"], executable(X)["y"])
    assert "twice" not in executable(X, taps="*").taps, "it is of a body"


def test_taps_are_copies() -> None:
    model = b.model({"y": b.Reshape(b.parameter([4], name="x"), [2, 2], special_zero=False, name="view")})
    executable = irrun.compile(model)
    x = np.zeros(4, np.float32)
    outputs = executable(x, taps="*")
    for array in outputs.taps.values():
        array[...] = 1
    assert not x.any()
    assert not outputs["y"].any()


def test_a_name_that_looks_like_a_glob_and_one_that_is_not_unique(tmp_path: Path) -> None:
    x = b.parameter([2], name="a[0]")
    path = tmp_path / "model.xml"
    irrun.save_model(b.model(b.ReLU(b.ReLU(x, name="one"), name="two")), path)
    path.write_text(path.read_text().replace('name="one"', 'name="two"'))
    taps = irrun.compile(path)(np.ones(2, np.float32), taps=["a[0]", "two"]).taps
    assert list(taps) == ["a[0]", "two#1", "two#2"]


def test_no_such_layer() -> None:
    with pytest.raises(irrun.FeedError, match=r'IR606.*no layer is called "dfference"; did you mean "difference"'):
        irrun.compile(_model())(X, taps=["dfference"])


# ---------------------------------------------------------------------------------------------
# dumps


def _index(folder: Path) -> list[dict[str, Any]]:
    rows = json.loads((folder / "index.json").read_text())
    assert {p.name for p in folder.iterdir()} == {"index.json", *(row["file"] for row in rows)}
    return rows


def test_dump(tmp_path: Path) -> None:
    executable = irrun.compile(_model())
    with irrun.Dump(tmp_path / "values") as values:
        outputs = executable(X, hooks=[values])
    rows = _index(tmp_path / "values")
    found = {(row["layer"], row["port"], row.get("iteration")): row for row in rows}
    assert [key for key in found if "twice" in key[0]] == [("loop/twice", 2, n) for n in range(3)]
    assert {key[0] for key in found} == {"sum", "split", "loop", "loop/twice", "difference"}
    row = found["difference", 2, None]
    y = outputs["y"]
    np.testing.assert_array_equal(np.load(tmp_path / "values" / row["file"]), y)
    assert (row["operation"], row["type"], row["shape"]) == ("Subtract", "f32", [2, 2])
    figures = [row[name] for name in ("min", "mean", "max", "std")]
    np.testing.assert_allclose(figures, [y.min(), y.mean(), y.max(), y.std()])
    assert row["sha256"] == hashlib.sha256(y.tobytes()).hexdigest()


@pytest.mark.parametrize(
    ("array", "type", "figures"),
    [
        (np.array([1, np.nan, 3, np.inf, -np.inf], np.float16), "f16", (1, 2, 3, 1, 1, 2)),
        (np.array([np.nan]), "f64", (None, None, None, None, 1, 0)),
        (np.array([1, 2, 3], ml_dtypes.bfloat16), "bf16", (1, 2, 3, math.sqrt(2 / 3), 0, 0)),
        (np.array([-8, 7], ml_dtypes.int4), "i4", (-8, -0.5, 7, 7.5, 0, 0)),
        (np.array(True), "boolean", (True, 1, True, 0, 0, 0)),
        (np.array(["a", "bc"], object), "string", (None, None, None, None, 0, 0)),
        (np.empty((0, 3), np.int64), "i64", (None, None, None, None, 0, 0)),
        (np.array([2**53 + 1]), "i64", (2**53 + 1, 2**53, 2**53 + 1, 0, 0, 0)),
        (np.broadcast_to(np.float32(7), (300, 300)), "f32", (7, 7, 7, 0, 0, 0)),
        (np.arange(400000, dtype=np.float32).reshape(2, -1).T, "f32", (0, 199999.5, 399999, 115470.0538378, 0, 0)),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_figures(array: np.ndarray, type: str, figures: Sequence[Any], tmp_path: Path) -> None:
    layer = irrun.read_model(CONVNET).parameters[0]
    with irrun.Dump(tmp_path / "d") as values:
        values.add(layer, layer.outputs[0], array)
    (row,) = _index(tmp_path / "d")
    assert (row["type"], row["shape"]) == (type, list(array.shape))
    got = [row[name] for name in ("min", "mean", "max", "std", "nan", "inf")]
    assert got == [n if n is None else pytest.approx(n) for n in figures]
    stored = struct.pack("<4i", 2, 0, 1, 3) + b"abc" if type == "string" else array.tobytes()
    assert row["sha256"] == hashlib.sha256(stored).hexdigest()
    held = np.load(tmp_path / "d" / row["file"])
    np.testing.assert_array_equal(held, dump.storable(array))


class _Fails:
    def before(self, step: irrun.Step, inputs: Sequence[np.ndarray | None]) -> None:
        assert step.layer.name != "difference"

    def after(self, step: irrun.Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        pass


def test_the_index_of_a_run_that_failed(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "yet"
    with pytest.raises(AssertionError), irrun.Dump(folder) as values:
        irrun.compile(_model())(X, hooks=[values, _Fails()])
    assert _index(folder)[-1]["layer"] == "loop"


def test_outputs_that_the_file_leaves_out_are_not_kept(tmp_path: Path) -> None:
    """TopK has two outputs; the file declares the first, which alone is read."""
    net = Net()
    x, k = net.parameter("f32", "3", name="x"), net.const("i64", "", (1).to_bytes(8, "little"), name="k")
    how = {"axis": 0, "mode": "max", "sort": "value", "index_element_type": "i32"}
    net.result(net.add("TopK", [x, k], [("FP32", "1")], opset="opset11", name="top", **how))
    outputs = irrun.compile(net.save(tmp_path))([[2.0, 5.0, 3.0]], taps="*")
    assert {name: array.tolist() for name, array in outputs.taps.items()} == {"x": [2, 5, 3], "k": 1, "top": [5]}


# ---------------------------------------------------------------------------------------------
# the command


def test_command(tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    arguments = ["run", str(CONVNET), "-i", f"image={IMAGE}", "--tap", "block1/*", "--tap", "logits", "-o", str(out)]
    result = CliRunner().invoke(cli, [*arguments, "--dump", str(tmp_path / "d")])
    assert result.exit_code == 0
    rows = result.output.split("taps\n")[1].splitlines()
    names = [
        "block1/weights",
        "block1/bias",
        "block1/conv",
        "block1/add",
        "block1/relu",
        "block1/pool",
        "block1/pool:2",
        "logits",
    ]
    assert [row.split()[0] for row in rows[1:]] == names
    with np.load(out) as held:
        assert set(held.files) == {"out", *names}
    assert _index(tmp_path / "d")[0]["layer"] == "image"
    assert len(_index(tmp_path / "d")) == 14


def test_command_as_json() -> None:
    result = CliRunner().invoke(cli, ["run", str(CONVNET), "--tap", "logits", "--format", "json"])
    (tap,) = json.loads(result.stdout)["taps"]
    assert (tap["name"], tap["shape"]) == ("logits", [1, 10])


def test_command_refuses_a_layer_that_is_not_there() -> None:
    result = CliRunner().invoke(cli, ["run", str(CONVNET), "--tap", "block3*"])
    assert result.exit_code == 2
    assert "IR606" in result.output
