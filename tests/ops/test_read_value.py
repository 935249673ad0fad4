"""ReadValue-3 and ReadValue-6, with Assign: state across runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.opdef import Site
from kit import *
from nets import Net


def accumulator(ov: Any, path: Path, version: int, *, initial: bool = True) -> Path:
    """sum += x, in a variable ``sum``; the output is the new sum."""
    opset3, opset6 = ov.opset3, ov.opset6
    x = opset6.parameter([2], np.float32, name="x")
    start = opset6.constant(np.array([10, 20], np.float32))
    if version == 3:
        read = opset3.read_value(start, "sum")
    elif initial:
        read = opset6.read_value(start, "sum", ov.Type.f32, ov.PartialShape([2]))
    else:
        read = opset6.read_value("sum", ov.Type.f32, ov.PartialShape([2]))
    total = opset6.add(read, x)
    assign = (opset3 if version == 3 else opset6).assign(total, "sum")
    ov.serialize(ov.Model([opset6.result(total)], [assign], [x], "accumulator"), path)
    return path


@pytest.mark.parametrize(
    ("version", "initial", "start"), [(6, True, [10, 20]), (6, False, [0, 0]), (3, True, [10, 20])], ids=str
)
def test_state(tmp_path: Path, version: int, initial: bool, start: list[int], ov: Any) -> None:
    path = accumulator(ov, tmp_path / "model.xml", version, initial=initial)
    assert not irrun.check(path).diagnostics
    executable = irrun.compile(path, strict=True)
    assert not executable.state
    for runs in (1, 2, 3):
        total = executable(np.array([1, 2], np.float32))[0]
        assert total.tolist() == [start[0] + runs, start[1] + 2 * runs]
    assert executable.state["sum"].tolist() == [start[0] + 3, start[1] + 6]
    executable.reset_state()
    assert executable(np.array([1, 2], np.float32))[0].tolist() == [start[0] + 1, start[1] + 2]


def test_openvino_agrees(tmp_path: Path, ov: Any) -> None:
    path = accumulator(ov, tmp_path / "model.xml", 6)
    request = ov.Core().compile_model(path, "CPU").create_infer_request()
    executable = irrun.compile(path)
    for x in ([1, 2], [3, 4], [5, 6]):
        fed = np.array(x, np.float32)
        np.testing.assert_array_equal(executable(fed)[0], request.infer([fed])[0])


def test_what_a_caller_gets_is_not_the_state(tmp_path: Path, ov: Any) -> None:
    executable = irrun.compile(accumulator(ov, tmp_path / "model.xml", 6))
    x = np.array([1, 2], np.float32)
    executable(x)[0][:] = 99
    assert executable(x)[0].tolist() == [12, 24]


@pytest.mark.parametrize("init", ["i64[2]", "f32[3]"], ids=["c1-type", "c1-shape"])
def test_refusals(init: str) -> None:
    attributes = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2"}
    with pytest.raises(Refused) as caught:
        infer(operation("ReadValue-6", attributes), Site(), [tensor(init)], {"variables": None})
    assert caught.value.label == "C1"


def _without(missing: tuple[str, ...], folder: Path, *, initial: bool = True) -> Path:
    """Save a model that adds its input to a variable whose ReadValue lacks some attributes."""
    net = Net()
    x = net.parameter("f32", "2")
    start = [net.const("f32", "2", np.array([10, 20], np.float32).tobytes())] if initial else []
    attributes = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2"}
    kept: dict[str, Any] = {name: value for name, value in attributes.items() if name not in missing}
    read = net.add("ReadValue", start, [("FP32", "2")], opset="opset6", **kept)
    total = net.add("Add", [x, read], [("FP32", "2")])
    net.add("Assign", [total], opset="opset6", variable_id="v")
    net.result(total)
    return net.save(folder)


@pytest.mark.parametrize(
    "missing", [("variable_type",), ("variable_shape",), ("variable_type", "variable_shape")], ids=str
)
@pytest.mark.parametrize("exact", [False, True])
def test_the_initial_value_stands_for_missing_attributes(missing: tuple[str, ...], exact: bool, tmp_path: Path) -> None:
    path = _without(missing, tmp_path)
    (finding,) = irrun.check(path)
    assert (finding.code, finding.severity) == ("IR208", "warning")
    assert all(name in finding.message for name in missing)
    model = irrun.compile(path, exact=exact)
    totals = [model(np.array([1, 2], np.float32))[0].tolist() for _ in range(3)]
    assert totals == [[11, 22], [12, 24], [13, 26]]


@pytest.mark.parametrize("missing", ["variable_type", "variable_shape"])
def test_without_an_initial_value_the_attributes_are_required(missing: str, tmp_path: Path) -> None:
    path = _without((missing,), tmp_path, initial=False)
    (finding,) = irrun.check(path)
    assert (finding.code, finding.severity) == ("IR202", "error")
    with pytest.raises(irrun.ModelError):
        irrun.compile(path)
