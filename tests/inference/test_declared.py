"""What a file declares of its values, where that is all that is known, and where inference knows more or less."""

from pathlib import Path
from typing import Any

import pytest

from irrun.api import load
from irrun.inference.propagate import declared_inside
from irrun.inference.trace import Place, Trace
from nets import Net, Output


@pytest.mark.parametrize(
    ("attributes", "port", "expected"),
    [
        ({"element_type": "f16", "shape": ""}, ("FP16", ""), "f16[]"),  # a port of a scalar has no dims
        ({"element_type": "f32", "shape": "1..8,3"}, ("FP32", ""), "f32[1..8,3]"),
        ({"element_type": "f32", "shape": "1..8,3"}, ("FP32", "-1,3"), "f32[1..8,3]"),
        ({"element_type": "f32", "shape": "..."}, ("FP32", ""), "f32[...]"),
        ({"element_type": "f32"}, ("FP32", "2,-1"), "f32[2,?]"),
        ({"element_type": "f32", "shape": "2,x"}, ("FP32", "2,5"), "f32[2,5]"),
        ({"element_type": "i64", "shape": "2"}, ("I32", "2"), "i64[2]"),
        ({"element_type": "no", "shape": "2"}, ("I32", "2"), "i32[2]"),
        ({"shape": "2"}, ("", "2"), "dynamic[2]"),
    ],
    ids=str,
)
def test_what_a_parameter_declares(attributes: dict[str, Any], port: Output, expected: str, tmp_path: Path) -> None:
    """The attributes count, and the port where an attribute is missing or invalid."""
    net = Net()
    net.result(net.add("Parameter", (), [port], **attributes))
    model = load(net.save(tmp_path), None).model
    assert model is not None
    value = declared_inside(model, model.parameters[0].id)
    assert f"{value.type}{value.shape}" == expected


def test_what_a_result_declares(tmp_path: Path) -> None:
    """The port that feeds it, or its own input port where none does."""
    net = Net()
    net.result(net.parameter("i64", "2,3"))
    model = load(net.save(tmp_path), None).model
    value = declared_inside(model, model.results[0].id)
    assert f"{value.type}{value.shape}" == "i64[2,3]"
    net.edges.clear()
    net.layers[1] = net.layers[1].replace("<dim>3</dim>", "<dim>7</dim>")
    model = load(net.save(tmp_path), None).model
    assert model is not None
    value = declared_inside(model, model.results[0].id)
    assert f"{value.type}{value.shape}" == "i64[2,7]"


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ([], []),
        ([("FP32", "9,9")], ["f32[2,1]"]),
        ([("FP32", "9,9"), ("FP32", "8,8")], ["f32[2,1]", "i32[2,1]"]),
        ([("FP32", "9,9"), ("FP32", "8,8"), ("FP32", "7,7")], ["f32[2,1]", "i32[2,1]", "f32[7,7]"]),
    ],
    ids=["none", "too-few", "right", "too-many"],
)
def test_a_layer_with_more_or_fewer_outputs_than_its_operation(
    ports: list[Output], expected: list[str], tmp_path: Path
) -> None:
    """TopK of each row. A trace has the outputs that the file declares."""
    net = Net()
    x, k = net.parameter("f32", "2,3"), net.const("i64", "", (1).to_bytes(8, "little"))
    top = net.add("TopK", [x, k], ports, opset="opset3", axis=1, mode="max", sort="value", index_element_type="i32")
    if ports:
        net.result(top)
    model = load(net.save(tmp_path), None).model
    assert model is not None
    trace = Trace(model)
    found = [position for id, position in trace.values if id == top.layer]
    assert found == list(range(len(ports)))
    values = [trace.values[top.layer, position] for position in found]
    assert [f"{value.type}{value.shape}" for value in values] == expected
    assert [str(trace.dim(Place(trace, top.layer, n, 1))) for n in found] == [text[-2] for text in expected]
