"""IR108: layers that no Result depends on are reported, but for those that do something even so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from nets import Net, Ref


def model() -> tuple[Net, Ref]:
    """A model from its input to its Result; whatever a test adds to it leads nowhere."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(net.add("ReLU", [x], [("FP32", "2")], name="used"), name="y")
    return net, x


def _random_uniform(net: Net, value: Ref) -> Ref:
    """Draws as many numbers as ``value`` has dims."""
    shape = net.add("ShapeOf", [value], [("I64", "1")], opset="opset3", name="before")
    low, high = (net.const("f32", "", np.float32(n).tobytes()) for n in (0, 1))
    ports = [("FP32", "2")]
    return net.add("RandomUniform", [shape, low, high], ports, opset="opset8", name="impure", output_type="f32")


def _multinomial(net: Net, value: Ref) -> Ref:
    zero = net.const("i64", "1", np.int64(0).tobytes())
    rows = net.add("Unsqueeze", [value, zero], [("FP32", "1,2")], name="before")
    ports = [("I64", "1,2")]
    how: dict[str, Any] = {"convert_type": "i64", "with_replacement": "true", "log_probs": "false"}
    count = net.const("i64", "", np.int64(2).tobytes())
    return net.add("Multinomial", [rows, count], ports, opset="opset13", name="impure", **how)


def _read_value(net: Net, value: Ref) -> Ref:
    before = net.add("ReLU", [value], [("FP32", "2")], name="before")
    variable: dict[str, Any] = {"variable_id": "total", "variable_type": "f32", "variable_shape": "2"}
    net.add("Assign", [value], [("FP32", "2")], opset="opset6", variable_id="total")
    return net.add("ReadValue", [before], [("FP32", "2")], opset="opset6", name="impure", **variable)


def _assign(net: Net, value: Ref) -> Ref:
    """With an output port, as OpenVINO writes it."""
    before = net.add("ReLU", [value], [("FP32", "2")], name="before")
    net.add("ReadValue", [value], [("FP32", "2")], opset="opset3", variable_id="total")
    return net.add("Assign", [before], [("FP32", "2")], opset="opset6", name="impure", variable_id="total")


def _read_value_of_opset3(net: Net, value: Ref) -> Ref:
    before = net.add("ReLU", [value], [("FP32", "2")], name="before")
    net.add("Assign", [value], [("FP32", "2")], opset="opset3", variable_id="total")
    return net.add("ReadValue", [before], [("FP32", "2")], opset="opset3", name="impure", variable_id="total")


def _assign_of_opset3(net: Net, value: Ref) -> Ref:
    before = net.add("ReLU", [value], [("FP32", "2")], name="before")
    net.add("ReadValue", [value], [("FP32", "2")], opset="opset3", variable_id="total")
    return net.add("Assign", [before], [("FP32", "2")], opset="opset3", name="impure", variable_id="total")


IMPURE = [_random_uniform, _multinomial, _read_value, _assign, _read_value_of_opset3, _assign_of_opset3]


def unused(net: Net, folder: Path) -> list[tuple[str | None, tuple[str, ...]]]:
    """The layers that are reported, with their notes; nothing else may be wrong with the model."""
    report = irrun.check(net.save(folder))
    assert {d.code for d in report} <= {"IR108"}, list(report)
    return [(d.layer, d.notes) for d in report]


@pytest.mark.parametrize("impure", IMPURE, ids=lambda f: f.__name__[1:])
def test_an_impure_layer_needs_no_reader(impure: Callable[[Net, Ref], Ref], tmp_path: Path) -> None:
    """Nor do the layers that it reads need another one."""
    net, x = model()
    impure(net, x)
    assert unused(net, tmp_path) == []


@pytest.mark.parametrize("impure", IMPURE, ids=lambda f: f.__name__[1:])
def test_a_pure_layer_after_an_impure_one_does(impure: Callable[[Net, Ref], Ref], tmp_path: Path) -> None:
    """The chain of unused layers ends at the impure one."""
    net, x = model()
    drawn = impure(net, x)
    middle = net.add("Abs", [drawn], [drawn.output], name="middle")
    net.add("Abs", [middle], [drawn.output], name="last")
    assert unused(net, tmp_path) == [("last", ("also unused: 1 layer before it",))]


def test_a_pure_layer_in_its_place_does(tmp_path: Path) -> None:
    net, x = model()
    before = net.add("ReLU", [x], [("FP32", "2")], name="before")
    net.add("Abs", [before], [("FP32", "2")], name="pure")
    assert unused(net, tmp_path) == [("pure", ("also unused: 1 layer before it",))]


def test_a_constant_or_a_parameter_needs_no_reader(tmp_path: Path) -> None:
    net, _ = model()
    net.const("f32", "1", bytes(4))
    net.parameter("f32", "2", name="unread")
    assert unused(net, tmp_path) == []


def test_one_output_that_is_read_is_enough(tmp_path: Path) -> None:
    net, x = model()
    k = net.const("i64", "", np.int64(1).tobytes())
    how = {"axis": 0, "mode": "max", "sort": "value"}
    top = net.add("TopK", [x, k], [("FP32", "1"), ("I32", "1")], opset="opset3", name="top", **how)
    assert unused(net, tmp_path) == [("top", ())]
    net.result(Ref(top.layer, top.port + 1, ("I32", "1")))
    assert unused(net, tmp_path) == []
