"""Profiles: what each step took, in the order of the steps, also within bodies."""

import json
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.base.compiling import COMPILING
from irrun.cli import cli
from irrun.running.profile import Row
from places import ROOT
from watched import watch


@pytest.mark.parametrize(
    ("layers", "name"),
    [
        (["a/key/MatMul"], "a/key/MatMul"),
        (["a/key/MatMul", "a/key/Add", "a/key/Add_1"], "a/key/MatMul … Add_1"),
        (["a.0.key/MatMul", "a.0.out/Add"], "a.0.key/MatMul … out/Add"),
        (["one", "other"], "one … other"),
        (["Multiply_10", "Multiply_12"], "Multiply_10 … Multiply_12"),
    ],
)
def test_a_step_is_named_after_its_first_and_last_layer(layers: list[str], name: str) -> None:
    members: Any = tuple(SimpleNamespace(name=layer) for layer in layers)
    assert Row(members, "", "", flops=0).name == name


def test_every_step_is_a_row() -> None:
    x = b.parameter([2, 64, 64], "f32", name="x")
    product = b.MatMul(x, b.constant(np.ones((64, 32), np.float32)))
    executable = irrun.compile(b.model({"y": b.Transpose(b.ReLU(product), [0, 2, 1])}), exact=False)
    profile = irrun.Profile()
    start = time.perf_counter()
    for _ in range(3):
        executable([np.ones((2, 64, 64), np.float32)], hooks=[profile])
    elapsed = time.perf_counter() - start
    assert 0 < sum(sum(row.times) for row in profile.rows) <= elapsed
    assert all(seconds >= 0 for row in profile.rows for seconds in row.times)
    steps = watch(executable, [np.ones((2, 64, 64), np.float32)]).steps
    assert [row.layers for row in profile.rows] == [tuple(layer.name for layer in step.layers) for step in steps]
    assert [len(row.times) for row in profile.rows] == [3] * len(profile.rows)
    assert profile.rows[0].bytes >= 4 * 2 * 64 * (64 + 32)
    record = json.loads(json.dumps(profile.record(), allow_nan=False))
    assert sum(step["share"] for step in record["steps"]) == pytest.approx(1)
    assert record["matrix_products"] in ("numpy", "mkl")
    assert record["seconds"] == pytest.approx(sum(step["seconds"] for step in record["steps"]))
    events = profile.trace()["traceEvents"]
    assert len(events) == 3 * len(profile.rows)
    assert all(a["ts"] <= b["ts"] and a["dur"] >= 0 for a, b in pairwise(events))


def test_rates() -> None:
    row = Row((), "MatMul", "", flops=3_000_000_000, bytes=500_000_000, times=[4.0, 1.0, 2.0])
    assert (row.seconds, row.gflops, row.bandwidth) == (2.0, 1.5, 0.25)
    unknown = Row((), "MatMul", "", flops=0, bytes=500_000_000, times=[0.5, 1.5])
    assert (unknown.seconds, unknown.gflops, unknown.bandwidth) == (1.0, None, 0.5)
    at_once = Row((), "MatMul", "", flops=7, bytes=7, times=[0.0])
    assert (at_once.gflops, at_once.bandwidth) == (None, None)


def layer(name: str, type: str, node: int) -> Any:
    return SimpleNamespace(name=name, type=type, node=node)


def test_the_time_of_a_step_is_divided_among_its_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [layer("conv", "Convolution", 1), layer("add", "Add", 2), layer("relu", "ReLU", 3)]
    clock = iter([0.0, 8.0, 8.0, 10.0, 10.0, 11.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    profile = irrun.Profile()
    array = np.zeros(4, np.float32)
    for layers in (members, [layer("pool", "MaxPool", 4)], members[:1]):
        step: Any = SimpleNamespace(
            layers=tuple(layers),
            kernel=SimpleNamespace(algorithm="", flops=0, out="whole"),
            layer=layers[-1],
            parts=None,
        )
        profile.before(step, [array])
        profile.after(step, [array], [array])
    assert [row.title for row in profile.rows] == ["3 layers, Convolution … ReLU", "MaxPool", "Convolution"]
    assert [row.name for row in profile.rows] == ["conv … relu", "pool", "conv"]
    shares = [(s.layer, s.seconds, s.is_estimate) for s in profile.shares({1: 6.0, 2: 1.0, 3: 1.0})]
    assert shares == [("conv", 7.0, True), ("pool", 2.0, False), ("add", 1.0, True), ("relu", 1.0, True)]
    # without the figures of a layer, the step is not divided
    shares = [(s.layer, s.type, s.seconds) for s in profile.shares({1: 6.0, 2: 1.0})]
    assert shares[0] == ("conv … relu", "3 layers, Convolution … ReLU", 8.0)


def test_compiling_is_no_time_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of 9 seconds, of which 5 compile its kernel, in a body whose own step takes 10 seconds in all."""
    clock = iter([0.0, 0.5, 9.5, 10.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(COMPILING, "seconds", 2.0)
    profile = irrun.Profile()
    loop: Any
    inner: Any
    loop, inner = (
        SimpleNamespace(
            parts=None, layers=(layer(name, "Loop", 1),), kernel=SimpleNamespace(algorithm="", flops=0, out="whole")
        )
        for name in ("loop", "inner")
    )
    profile.before(loop, [])
    profile.before(inner, [])
    monkeypatch.setattr(COMPILING, "seconds", 7.0)
    profile.after(inner, [], [])
    profile.after(loop, [], [])
    assert {row.name: row.times for row in profile.rows} == {"inner": [4.0], "loop": [1.0]}


def test_a_view_moves_no_bytes() -> None:
    x = b.parameter([64, 64], "f32", name="x")
    executable = irrun.compile(b.model({"y": b.Transpose(x, [1, 0]), "z": b.ReLU(x)}), layered=True)
    profile = irrun.Profile()
    executable([np.ones((64, 64), np.float32)], hooks=[profile])
    moved = {row.type: (row.bytes, row.bandwidth) for row in profile.rows}
    assert moved["Transpose"] == (0, None)
    assert moved["ReLU"][0] == 2 * 4 * 64 * 64


def test_layers_are_measured_on_request() -> None:
    model = str(ROOT / "samples" / "convnet.xml")
    done = CliRunner().invoke(cli, ["run", "--profile=layers", model, "--format", "json"])
    layers = json.loads(done.output)["profile"]["layers"]
    assert len(layers) == 11
    assert not any(layer["estimate"] for layer in layers)
    done = CliRunner().invoke(cli, ["run", "--profile", model, "--format", "json"])
    profile = json.loads(done.output)["profile"]
    assert {layer["layer"] for layer in profile["layers"]} == {layer["layer"] for layer in layers}
    assert any(layer["estimate"] for layer in profile["layers"])
    assert sum(layer["share"] for layer in profile["layers"]) == pytest.approx(1)
    done = CliRunner().invoke(cli, ["run", "--profile", "--top", "2", model])
    assert "  and 9 layers more; --top N shows N\n" in done.output


def test_the_operations_of_a_product() -> None:
    """A product has two operations for each element and term; a layer of unknown shape reports none."""
    for rows, flops in ((5, 2 * 5 * 3 * 4), (None, 0)):
        x = b.parameter([rows, 4], "f32", name="x")
        executable = irrun.compile(b.model({"y": b.MatMul(x, b.constant(np.ones((4, 3), np.float32)))}), exact=False)
        profile = irrun.Profile()
        executable([np.ones((5, 4), np.float32)], hooks=[profile])
        assert [row.flops for row in profile.rows if "MatMul" in row.type] == [flops]
        assert [row.bytes for row in profile.rows if "MatMul" in row.type] == [4 * (5 * 4 + 4 * 3 + 5 * 3)]


def test_the_time_of_a_body_is_its_steps() -> None:
    x = b.parameter([4], "f32", name="x")
    loop = b.Loop(5, True, x, body=lambda i, a: (True, b.ReLU(b.Tanh(a))))
    executable = irrun.compile(b.model({"y": loop}), exact=True)
    profile = irrun.Profile()
    executable([np.ones(4, np.float32)], hooks=[profile])
    calls = {step["type"]: step["calls"] for step in profile.record()["steps"]}
    assert calls == {"Tanh": 5, "ReLU": 5, "Loop": 1}


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IRRUN_EXACT", raising=False)
    trace = tmp_path / "trace.json"
    args = ["run", str(ROOT / "samples" / "convnet.xml"), "--profile", "--runs", "3", "--trace", str(trace)]
    done = CliRunner().invoke(cli, args)
    assert done.exit_code == 0
    assert "algorithm" in done.output
    assert "3 layers, Convolution … ReLU" in done.output
    names = {event["cat"] for event in json.loads(trace.read_text("utf-8"))["traceEvents"]}
    assert "SoftMax" in names
    done = CliRunner().invoke(cli, [*args[:2], "--profile", "--exact", "--format", "json"])
    types = [step["type"] for step in json.loads(done.output)["profile"]["steps"]]
    assert "Convolution" in types
    assert not any("+" in type for type in types)


def test_a_trace_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    args = ["run", str(ROOT / "samples" / "convnet.xml"), "--trace", str(tmp_path / "no" / "trace.json")]
    done = CliRunner().invoke(cli, args)
    assert done.exit_code == 2
    assert "there is no folder" in done.output
