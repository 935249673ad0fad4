"""ReadValue-3 and ReadValue-6, with Assign: state across runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.opdef import Site
from kit import operation, tensor


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
