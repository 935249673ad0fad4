"""What OpenVINO reads of a file, and what the plugin then infers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import irrun
import irrun.build as b
from layer_facts import by_layer
from nets import Net


def test_facts_follow_from_what_openvino_reads(tmp_path: Path) -> None:
    """OpenVINO takes the type of Convert from its attribute, and refuses the Subtract behind it; ports say nothing."""
    net = Net()
    x, y = net.parameter("i32", "2", name="x"), net.parameter("f32", "2", name="y")
    cast = net.add("Convert", [x], [("FP32", "2")], name="cast", destination_type="u8")
    net.result(net.add("Subtract", [cast, y], [("FP32", "2")], name="difference"))
    difference = by_layer(net.save(tmp_path))["difference"]
    assert difference.blocks
    assert {"input 0 is u8", "irrun reports IR302"} <= difference.sentences


def test_a_parameter_without_a_shape_is_a_scalar(tmp_path: Path) -> None:
    """Its missing attribute blocks no release. A layer behind it does that cannot take a scalar, but may take others."""
    net = Net()
    x, axis = net.parameter("f32", "1,2", name="x"), net.const("i64", "", bytes(8))
    net.result(net.add("Add", [x, net.parameter("f32", "3")], [("FP32", "3")], name="sum"))
    net.result(net.add("Split", [x, axis], [("FP32", "1,2")], name="split", num_splits="1"))
    path = net.save(tmp_path)
    path.write_text(path.read_text().replace(' shape="1,2"', ""))
    found = by_layer(path)
    assert {"it has no attribute shape", "output 0 has rank 0"} <= found["x"].sentences
    assert [name for name, facts in found.items() if facts.blocks] == ["split"]


def test_a_dim_with_two_signs_counts_as_one_of_an_unknown_length(tmp_path: Path) -> None:
    """2026.4.1 reads it. irrun reports it, and the layers behind it have the shape that this release infers."""
    net = Net()
    net.result(net.add("Abs", [net.parameter("f32", "-1", name="x")], [("FP32", "-1")], name="y"))
    path = net.save(tmp_path)
    path.write_text(path.read_text().replace('shape="-1"', 'shape="--1"'))
    found = by_layer(path)
    assert {"a number has several signs", "irrun reports IR404"} <= found["x"].sentences
    assert {"input 0 has rank 1", "input 0 has unknown dims"} <= found["y"].sentences


@pytest.mark.parametrize(
    ("text", "is_axis", "begins"),
    [("x", True, False), ("2,x", False, True), ("--1", True, False), ("-1", True, True)],
)
def test_a_text_that_is_no_number_counts_as_0(tmp_path: Path, text: str, is_axis: bool, begins: bool) -> None:
    """OpenVINO 2026.1 reads the number that the text begins with, or 0. 2026.2 refuses a text that begins with none."""
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    net.result(net.add("SoftMax", [x], [("FP32", "2,3")], name="y", opset="opset8", axis=text))
    path = net.save(tmp_path)
    found = by_layer(path)["y"]
    assert found.blocks is not is_axis
    assert ("a number has no valid text" not in found.sentences) is begins
    refused = {f.code for f in irrun.check(path, targets=["openvino==2026.4.1"]).errors}
    assert ("IR903" in refused) is not begins


@pytest.mark.parametrize(
    ("type", "attributes", "wanted", "blocks"),
    [
        ("Reverse", {}, 'mode="index"', False),
        (
            "ROIAlign",
            {"pooled_w": "2", "sampling_ratio": "2", "spatial_scale": "1", "mode": "avg"},
            'pooled_h="0"',
            True,
        ),
        ("AvgPool", {"kernel": "1", "strides": "1", "pads_end": "0", "exclude-pad": "true"}, 'pads_begin="0"', False),
        ("MaxPool", {"kernel": "1", "pads_begin": "0", "pads_end": "0"}, "it has no attribute strides", True),
        ("TopK", {"axis": "0", "mode": "max"}, 'sort="none"', False),
        ("Concat", {}, 'axis="0"', False),
        (
            "RegionYolo",
            {"classes": "1", "coords": "0", "num": "2", "axis": "1", "end_axis": "3"},
            "output 0 is empty",
            False,
        ),
    ],
)
def test_what_a_missing_attribute_counts_as(
    tmp_path: Path, type: str, attributes: dict[str, Any], wanted: str, blocks: bool
) -> None:
    """OpenVINO makes a layer with a value for each attribute. A pooling has no steps then, and no release reads it."""
    net = Net()
    x, k = net.parameter("f32", "4,1,4"), net.const("i64", "1", bytes([1, *[0] * 7]))
    boxes = [net.parameter("f32", shape) for shape in ("1,1,4,4", "1,4")]
    feeds = {"Reverse": [x, k], "ROIAlign": [*boxes, k], "TopK": [x, net.const("i64", "", bytes([1, *[0] * 7]))]}
    feeds["RegionYolo"] = boxes[:1]
    opset = "opset3" if type == "ROIAlign" else "opset1"
    net.result(net.add(type, feeds.get(type, [x]), [("FP32", "...")], name="y", opset=opset, **attributes))
    found = by_layer(net.save(tmp_path))["y"]
    assert wanted in found.sentences
    assert found.blocks is blocks


@pytest.mark.parametrize("type", ["Reshape", "Unsqueeze"])
def test_the_plugin_keeps_the_shapes_that_the_reader_inferred(tmp_path: Path, type: str) -> None:
    """The reader takes the first Interpolate for one without pads, and replaces ShapeOf. The plugin then pads."""
    net, one = Net(), bytes([1, *[0] * 7])
    y = net.add(
        "Interpolate", [net.parameter("f32", "4,3"), net.const("i64", "1", one)], [("FP32", "4,3")], axes="1",
        mode="nearest", pads_end="2,0",
    )  # fmt: skip
    shape = net.add("ShapeOf", [y], [("I64", "2")]) if type == "Reshape" else net.const("i64", "1", one)
    attributes: dict[str, Any] = {"special_zero": "false"} if type == "Reshape" else {}
    net.result(net.add(type, [y, shape], [("FP32", "...")], name="y", **attributes))
    assert by_layer(net.save(tmp_path))["y"].blocks


def test_axes_of_the_first_interpolation_are_a_set(tmp_path: Path) -> None:
    """OpenVINO sorts them, and so resizes axis 1 to 3: the convolution behind it has other channels then."""
    net = Net()
    sizes = net.const("i64", "2", bytes([3, *[0] * 7, 1, *[0] * 7]))
    y = net.add(
        "Interpolate", [net.parameter("f32", "1,3,1,1"), sizes], [("FP32", "1,1,3,1")], axes="2,1", mode="nearest"
    )
    steps: dict[str, Any] = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    net.result(net.add("Convolution", [y, net.parameter("f32", "4,1,1,1")], [("FP32", "1,4,3,1")], name="y", **steps))
    path = net.save(tmp_path)
    assert by_layer(path)["y"].blocks
    assert not irrun.check(path).errors


def test_a_body_is_read_before_the_layer_around_it(tmp_path: Path) -> None:
    """A Parameter of a body has another type than what enters it: readers make its layers with this type."""
    x = b.parameter([2], name="x")
    chosen = b.If(b.parameter([], bool, name="at"), x, then=lambda a: b.Gelu(a, name="y"), otherwise=lambda a: a)
    irrun.save_model(b.model({"z": chosen}), path := tmp_path / "model.xml")
    assert not by_layer(path)["y"].blocks
    body = path.read_text().index("<then_body>")
    text = path.read_text()[body:].replace('element_type="f32"', 'element_type="boolean"', 1)
    path.write_text(path.read_text()[:body] + text)
    assert by_layer(path)["y"].blocks
    assert "an input is boolean" in by_layer(path)["y"].sentences
