"""``irrun run --nan`` and ``irrun.debug.nonfinite``: the layer that makes NaN or Inf, and their way to the outputs."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
import irrun.build as b
from irrun.debug.nonfinite import NonFinite, Origin, Report

INF, NAN = np.inf, np.nan


def examined(model: Any, *feeds: Any, exact: bool = False) -> Report:
    """Run a model and return what the hook found."""
    executable = irrun.compile(model if isinstance(model, irrun.Model) else b.model(model), exact=exact)
    hook = NonFinite(executable.model)
    executable([np.asarray(feed, np.float32) for feed in feeds], hooks=[hook])
    return hook.report()


def first(report: Report) -> Origin:
    assert report.first is not None
    return report.first


@pytest.mark.parametrize("exact", [False, True])
def test_an_overflow_is_found_with_its_elements_and_its_path(exact: bool) -> None:
    x = b.parameter([2, 3], name="x")
    exp = b.Exp(b.Multiply(x, 2.0, name="twice"), name="exp")
    y = b.ReLU(b.Add(exp, 1.0, name="plus"), name="relu")
    report = examined([y, b.Sigmoid(x)], [[0, 1, 50], [2, 0, 1]], exact=exact)
    origin = first(report)
    assert (origin.kind, origin.layer, origin.type, origin.made_from) == ("layer", "exp", "Exp", "finite")
    assert (origin.nan, origin.inf, origin.size) == (0, 1, 6)
    assert [(e.index, e.value, e.inputs) for e in origin.elements] == [((0, 2), INF, (100.0,))]
    assert origin.path == ("exp", "plus", "relu")
    assert origin.reaches is not None
    assert report.verdict == "made"
    assert len(report.origins) == 1  # the layers after it only pass it on


def test_a_division_by_zero_names_both_operands() -> None:
    x, y = b.parameter([3], name="x"), b.parameter([1], name="y")
    origin = first(examined(b.Divide(x, y, name="divide"), [1, 0, -2], [0]))
    assert origin.layer == "divide"
    assert (origin.nan, origin.inf) == (1, 2)
    (i0, v0, a0), (_, v1, a1), (_, v2, a2) = [(e.index, e.value, e.inputs) for e in origin.elements]
    assert (i0, v0, a0) == ((0,), INF, (1.0, 0.0))
    assert np.isnan(v1)
    assert a1 == (0.0, 0.0)
    assert (v2, a2) == (-INF, (-2.0, 0.0))


def test_a_conversion_to_f16_overflows() -> None:
    x = b.parameter([2], name="x")
    origin = first(examined(b.Convert(x, destination_type="f16", name="half"), [1, 70000]))
    assert origin.layer == "half"
    assert [(e.index, e.value, e.inputs) for e in origin.elements] == [((1,), INF, (70000.0,))]


def test_nan_that_follows_from_inf_is_an_origin_of_its_own() -> None:
    x = b.parameter([2], name="x")
    report = examined(b.Multiply(b.Exp(x, name="exp"), 0.0, name="zero"), [1, 100])
    assert [(o.layer, o.made_from) for o in report.origins] == [("exp", "finite"), ("zero", "Inf")]
    assert [(e.index, e.inputs) for e in report.origins[1].elements] == [((1,), (INF, 0.0))]
    assert first(report).layer == "exp"


def test_a_layer_that_is_not_element_wise_shows_no_operands() -> None:
    x = b.parameter([2, 2], name="x")
    origin = first(examined(b.MatMul(x, [[3e38, 0.0], [3e38, 0.0]], name="product"), [[1, 1], [0, 0]]))
    assert origin.layer == "product"
    assert [(e.index, e.value, e.inputs) for e in origin.elements] == [((0, 0), INF, ())]


def test_what_passes_on_is_told_from_what_makes_more() -> None:
    """The second Exp makes Inf of a finite element and passes on the Inf of another one."""
    x, y = b.parameter([2], name="x"), b.parameter([2], name="y")
    report = examined(b.Exp(b.Add(b.Exp(x, name="one"), y, name="sum"), name="two"), [100, 0], [0, 100])
    assert [o.layer for o in report.origins] == ["one", "two"]
    assert [(e.index, e.inputs) for e in report.origins[1].elements] == [((1,), (101.0,))]
    assert [o.layer for o in examined(b.Abs(b.Exp(x), name="abs"), [100, 0]).origins if o.layer == "abs"] == []


def test_a_mask_of_minus_inf_that_softmax_takes_up_is_no_fault() -> None:
    x = b.parameter([1, 3], name="x")
    mask = b.constant([[0.0, -INF, 0.0]], "f32", name="mask")
    report = examined(b.Softmax(b.Add(b.Multiply(x, 0.1), mask, name="masked"), axis=1, name="soft"), [[1, 2, 3]])
    assert report.first is None
    assert report.verdict == "vanishes"
    (origin,) = report.origins
    assert (origin.kind, origin.layer, origin.inf, origin.reaches) == ("constant", "mask", 1, None)
    assert origin.ends_at == ("soft",)


def test_a_row_that_is_masked_as_a_whole_is_a_fault() -> None:
    x = b.parameter([1, 2], name="x")
    mask = b.constant([[-INF, -INF]], "f32", name="mask")
    report = examined(b.Softmax(b.Add(x, mask), axis=1, name="soft"), [[1, 2]])
    assert (first(report).layer, first(report).made_from, first(report).nan) == ("soft", "Inf", 2)
    assert report.verdict == "made"


def test_inf_that_a_layer_takes_up_is_not_blamed_for_what_the_layer_makes() -> None:
    """Exp makes 0 of the -Inf of the mask, and Inf of another element."""
    x = b.parameter([2], name="x")
    report = examined(b.Exp(b.Add(x, b.constant([0.0, -INF], "f32", name="mask"), name="sum"), name="exp"), [100, 0])
    origins = {o.layer: o for o in report.origins}
    assert origins.keys() == {"mask", "exp"}
    assert (origins["mask"].reaches, origins["mask"].ends_at) == (None, ("exp",))
    assert origins["exp"].path == ("exp",)


def test_nan_of_an_input_is_passed_on() -> None:
    x = b.parameter([2], name="x")
    report = examined(b.ReLU(b.Add(x, 1.0), name="relu"), [NAN, 0])
    assert report.first is None
    assert report.verdict == "passed on"
    (origin,) = report.origins
    assert (origin.kind, origin.layer, origin.nan) == ("input", "x", 1)
    assert origin.path[-1] == "relu"


def test_a_loop_names_the_layer_and_the_iteration() -> None:
    """x becomes 10, 100, 1000 and 10,000 in the iterations 0 to 3; its exponential overflows from 100 on, if scaled."""
    x = b.parameter([1], name="x")

    def body(i: Any, value: Any) -> Any:
        grown = b.Multiply(value, 10.0, name="grown")
        return True, grown, b.concatenated(b.Exp(b.Multiply(grown, 0.01, name="scaled"), name="exp"), axis=0)

    loop = b.Loop(5, True, x, body=body, name="loop")
    origin = first(examined(list(loop), [1.0]))
    assert (origin.layer, origin.loops) == ("exp", (("loop", 3),))  # exp(0.01 * 10,000)
    assert origin.elements[0].inputs == (pytest.approx(100.0),)
    assert origin.path == ("loop/exp", "loop")


def test_what_a_loop_carries_is_followed_into_the_next_iteration() -> None:
    x = b.parameter([1], name="x")

    def body(i: Any, value: Any) -> Any:
        return True, b.Multiply(value, value, name="square")

    report = examined(b.Loop(8, True, x, body=body, name="loop"), [1e5])
    assert [(o.layer, o.loops) for o in report.origins] == [("square", (("loop", 2),))]  # 1e10, 1e20, 1e40
    assert first(report).path == ("loop/square", "loop")


def test_nan_that_enters_a_body_comes_from_outside() -> None:
    x = b.parameter([1], name="x")
    inner = b.If(
        True, b.Log(x, name="log"), then=lambda a: b.Add(a, 1.0, name="plus"), otherwise=lambda a: a, name="if"
    )
    report = examined(inner, [-1])
    assert [o.layer for o in report.origins] == ["log"]
    path = first(report).path
    assert path[0] == "log"
    assert path[2:] == ("if/plus", "if")


def test_finite_runs_have_no_origin() -> None:
    x = b.parameter([2], name="x")
    report = examined(b.ReLU(x), [1, 2])
    assert (report.verdict, report.first, report.origins) == ("finite", None, ())


def test_the_memory_is_that_of_a_plain_run() -> None:
    """Sixteen values of 4 MiB in a chain; a hook that kept them would take 64 MiB."""
    value = b.parameter([1 << 20], name="x")
    for _ in range(16):
        value = b.Exp(b.Multiply(value, 1.5))
    executable = irrun.compile(b.model(value))
    feed = np.ones(1 << 20, np.float32)
    executable([feed], hooks=[NonFinite(executable.model)])
    tracemalloc.start()
    executable([feed], hooks=[NonFinite(executable.model)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 << 20


# ---------------------------------------------------------------------------------------------
# the command


@pytest.fixture
def model(tmp_path: Path) -> str:
    x = b.parameter([2], name="x")
    mask = b.constant([0.0, -INF], "f32", name="mask")
    exp = b.Exp(x, name="exp")
    irrun.save_model(
        b.model([b.ReLU(exp, name="relu"), b.Exp(b.Add(b.Multiply(x, 0.1), mask, name="masked"), name="taken")]),
        tmp_path / "m.xml",
    )
    return str(tmp_path / "m.xml")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    from irrun.cli import cli

    with pytest.raises(SystemExit) as exit:
        cli(arguments, prog_name="irrun")
    return int(exit.value.code or 0), capsys.readouterr().out


def test_the_command_prints_the_first_layer(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = run(capsys, "run", model, "-i", "x=[100,1]", "--nan")
    assert status == 1
    shown = out[out.index("NaN and Inf") :].splitlines()
    assert shown[1].startswith('  first: Exp "exp" (output 1, line ')
    assert shown[1].endswith(") makes Inf from finite inputs: 1 of 2 elements")
    assert shown[2] == "    [0] = inf from 100"
    assert shown[3].startswith("    reaches the output ")
    assert shown[3].endswith("exp -> relu")
    assert shown[4].startswith('  Const "mask" (output 0, line ')
    assert shown[5:] == ["    [1] = -inf", '    reaches no output: the values are finite again after "taken"']


def test_the_command_succeeds_if_nothing_reaches_an_output(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = run(capsys, "run", model, "-i", "x=[1,1]", "--nan", "--format", "json")
    record = json.loads(out)["nonfinite"]
    assert status == 0
    assert (record["verdict"], record["first"], record["further"]) == ("vanishes", None, 0)
    assert record["origins"][0]["elements"] == [{"index": [1], "value": "-inf", "inputs": []}]
    assert "nonfinite" not in json.loads(run(capsys, "run", model, "--format", "json")[1])
