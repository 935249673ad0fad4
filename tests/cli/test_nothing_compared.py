"""No verdict rests on nothing: without a value, a case, a model or a code, each command fails and says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
import irrun.testing
from irrun import build as b
from irrun.conformance import read_suite
from irrun.conformance.suite import SUITE, Suite, write_suite
from irrun.debug import bisect, compare, precision
from irrun.debug.measurements import apply_tolerances, read_measurements, write_measurements
from irrun.debug.tolerances import Tolerances
from irrun.surgery import original, require_equal
from places import SAMPLES

MODEL = SAMPLES / "elementwise.xml"


def saved(model: irrun.Model, path: Path) -> str:
    irrun.save_model(model, path)
    return str(path)


@pytest.fixture
def empty(tmp_path: Path) -> str:
    """Return a model whose output has no element."""
    x = b.parameter([0, 3], "f32", name="x")
    return saved(b.model(b.Exp(b.ReLU(x, name="relu"), name="y")), tmp_path / "empty.xml")


@pytest.fixture
def undefined(tmp_path: Path) -> str:
    """Return a model whose output is NaN, although the inner value before it is a number."""
    x = b.parameter([2, 3], "f32", name="x")
    negative = b.Subtract(b.ReLU(x, name="relu"), 2.0, name="negative")
    return saved(b.model(b.Log(negative, name="y")), tmp_path / "undefined.xml")


@pytest.mark.parametrize("name", ["empty", "undefined"])
def test_outputs_without_a_number(name: str, call: Any, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(name)
    for command in (
        ("compare", path, f"exact:{path}"),
        ("compare", path, f"exact:{path}", "--outputs-only"),
        ("bisect", path, f"exact:{path}"),
        ("precision", path),
    ):
        result = call(*command)
        assert (result.exit_code, "nothing was compared" in result.stderr) == (2, True), result.output


def test_two_dumps_without_a_number(empty: str, call: Any) -> None:
    for folder in ("first", "second"):
        assert call("run", empty, "--dump", folder).exit_code == 0
    result = call("compare", "first", "second")
    assert (result.exit_code, "nothing was compared" in result.stderr) == (2, True)


def test_one_output_without_a_number(tmp_path: Path) -> None:
    """Another output has numbers: these are compared."""
    x = b.parameter([2], "f32", name="x")
    outputs = {"nan": b.Log(b.Subtract(b.ReLU(x, name="relu"), 2.0, name="less"), name="log"), "y": b.Tanh(x, name="t")}
    path = saved(b.model(outputs), tmp_path / "model.xml")
    assert compare(path, f"exact:{path}").agrees
    assert bisect(path, f"exact:{path}").verdict == "agree"


def test_no_samples(tmp_path: Path) -> None:
    path = str(MODEL)
    for judge in (lambda: compare(path, path, []), lambda: bisect(path, path, []), lambda: precision(path, [])):
        with pytest.raises(irrun.EngineError, match="nothing"):
            judge()
    with pytest.raises(irrun.ModelError, match="no sample"):
        require_equal(original(path), path, feeds=[])
    with pytest.raises(AssertionError, match="nothing was compared"):
        irrun.testing.assert_matches(path, [np.zeros((1, 3, 4), np.float32), np.zeros((3, 1), np.float32)], {})


def test_saved_measurements_without_a_value(tmp_path: Path) -> None:
    from dataclasses import replace

    comparison = compare(str(MODEL), str(MODEL), frontier=True)
    write_measurements(replace(comparison, outputs=(), layers=()), tmp_path / "saved.json")
    with pytest.raises(irrun.EngineError, match="nothing was compared"):
        apply_tolerances(read_measurements(tmp_path / "saved.json"), Tolerances())


def test_check_without_a_code(call: Any) -> None:
    for options in (
        ("--ignore", "IR"),
        ("--select", "IR4", "--ignore", "IR4"),
        ("--select", "IR401", "--ignore", "IR4"),
    ):
        result = call("check", MODEL, *options)
        assert (result.exit_code, "nothing would be checked" in result.stderr) == (2, True)
    assert call("check", MODEL, "--select", "IR4", "--ignore", "IR401").exit_code == 0


def test_fuzz_without_a_model(call: Any) -> None:
    result = call("fuzz", "--minutes", "0.0000001")
    assert (result.exit_code, "no model was compared" in result.stderr) == (2, True)


def test_conformance_without_a_case(call: Any, tmp_path: Path) -> None:
    whole = read_suite(SUITE)
    open_case = next(case for case in whole.cases if case.verdict == "open")
    tanh, relu = (next(c for c in whole.cases if c.name.startswith(f"{type}/")) for type in ("Tanh-1", "ReLU-1"))
    for name, cases in (("none", []), ("few", [tanh, relu, open_case])):
        write_suite(Suite(whole.operations, whole.rules, cases), tmp_path / f"{name}.jsonl.xz")
    few, none = "few.jsonl.xz", "none.jsonl.xz"
    for case, file in ((tanh, "tanh"), (relu, "relu")):
        result = call("conformance", "run", "exact", "--suite", few, "--only", case.name, "-o", f"{file}.jsonl")
        assert result.exit_code == 0, result.output
    result = call("conformance", "run", "exact", "--suite", few, "--only", open_case.name, "-o", "open.jsonl")
    assert (result.exit_code, "nothing was judged" in result.stderr) == (1, True)
    for command, text in (
        (("compare", "tanh.jsonl", "relu.jsonl"), "nothing was compared"),
        (("run", "exact", "--suite", none, "-o", "x.jsonl"), "the suite has no case"),
        (("scoreboard", "exact", "--suite", none, "-o", "x"), "the suite has no case"),
        (("smoke", "exact", "--suite", none), "none of the cases of a smoke test"),
        (("report", "tanh.jsonl", "--suite", none, "-o", "pages"), "the result of no case"),
    ):
        result = call("conformance", *command)
        assert (result.exit_code, text in result.stderr) == (2, True), (command, result.output)
    result = call("conformance", "compare", "tanh.jsonl", "tanh.jsonl")
    assert (result.exit_code, "compared: 1 case" in result.stdout) == (0, True)
