"""Simplification: which layers go and why, and that the values, the names and the state stay."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun import surgery
from irrun.base.source import Source
from irrun.ir.parse import parse
from irrun.model.weights import Weights
from nets import Net
from oracle import Oracle


def _model(net: Net) -> irrun.Model:
    return parse(Source("net.xml", net.text.encode()), Weights(data=bytes(net.bin))).model


def _types(model: irrun.Model) -> list[str]:
    """Return the types of the layers that compute, those of bodies included."""
    inner = [t for layer in model.layers.values() for body in layer.bodies.values() for t in _types(body)]
    own = [layer.type for layer in model.layers.values() if layer.type not in ("Parameter", "Const", "Result")]
    return sorted([*own, *inner])


def _simplified(model: irrun.Model) -> tuple[irrun.Model, dict[str, int]]:
    """Return the simplified model, which computes the same, and the removed layers by step."""
    simplified = surgery.simplify(model)
    surgery.require_equal(surgery.original(model), simplified.model)
    assert not irrun.check(simplified.model).diagnostics
    again = surgery.simplify(simplified.model)
    assert (again.model, again.steps) == (simplified.model, ())
    removed = {step.name: step.layers for step in simplified.steps}
    assert sum(removed.values()) == _count(model) - _count(simplified.model)
    return simplified.model, removed


def _count(model: irrun.Model) -> int:
    return sum(1 + sum(map(_count, layer.bodies.values())) for layer in model.layers.values())


DYNAMIC = [1, 3, "?", 4]


@pytest.mark.parametrize("shape", [[1, 3, 2, 4], DYNAMIC, [0, 3, 2, 4]])
@pytest.mark.parametrize(
    ("pair", "step"),
    [
        (lambda x: b.Transpose(b.Transpose(x, [0, 2, 3, 1]), [0, 3, 1, 2]), "layers that cancel"),
        (lambda x: b.Transpose(b.Transpose(x, np.zeros(0, np.int64)), [3, 2, 1, 0]), "layers that cancel"),
        (lambda x: b.Convert(b.Convert(x, destination_type="f64"), destination_type="f32"), "layers that cancel"),
        (lambda x: b.Squeeze(b.Unsqueeze(x, [1]), [1]), "layers that cancel"),
        (lambda x: b.Reshape(x, [0, 0, -1, 4], special_zero=True), "layers without effect"),
        (lambda x: b.Transpose(x, [0, 1, 2, 3]), "layers without effect"),
        (lambda x: b.Slice(x, [0], [2**31], [1], [1]), "layers without effect"),
        (lambda x: b.StridedSlice(x, [0], [0], [1], begin_mask=[1], end_mask=[1]), "layers without effect"),
        (lambda x: b.Pad(x, [0] * 4, [0] * 4, pad_mode="edge"), "layers without effect"),
        (lambda x: b.Tile(x, [1] * 4), "layers without effect"),
        (lambda x: b.Broadcast(x, b.ShapeOf(x)), "layers without effect"),
        (lambda x: b.Multiply(x, np.float32(1)), "layers without effect"),
        (lambda x: b.Subtract(x, np.zeros((3, 1, 1), np.float32)), "layers without effect"),
        (lambda x: b.Split(x, 1, num_splits=1)[0], "layers without effect"),
        (lambda x: b.Concat(x, axis=0), "layers without effect"),
    ],
)
def test_layers_that_do_nothing(shape, pair, step) -> None:
    model = b.model({"y": b.ReLU(pair(b.Abs(b.parameter(shape, name="x"))))})
    simpler, removed = _simplified(model)
    assert _types(simpler) == ["Abs", "ReLU"]
    assert set(removed) - {"equal constants"} == {step}


@pytest.mark.parametrize(
    "pair",
    [
        lambda x: b.Transpose(b.Transpose(x, [0, 2, 3, 1]), [0, 2, 3, 1]),
        lambda x: b.Convert(b.Convert(x, destination_type="f16"), destination_type="f32"),
        lambda x: b.Convert(b.Convert(x, destination_type="i32"), destination_type="f32"),
        lambda x: b.StridedSlice(x, [-1], [0], [-1], begin_mask=[0], end_mask=[1]),
        lambda x: b.Pad(x, [1, 0, 0, 0], [-1, 0, 0, 0], pad_mode="constant"),
        lambda x: b.Add(x, np.float32(0)),  # -0.0 becomes 0.0
        lambda x: b.Multiply(x, np.array([1, 1, 1, 2], np.float32)),
        lambda x: b.Transpose(x, [1, 0, 2, 3]),
        lambda x: b.FakeQuantize(b.FakeQuantize(x, 0.0, 1.0, 0.0, 1.0, levels=4), 0.0, 1.0, 0.0, 1.0, levels=4),
    ],
)
def test_layers_that_do_something_stay(pair) -> None:
    model = b.model({"y": b.ReLU(pair(b.Abs(b.parameter([3, 3, 2, 4], name="x"))))})
    assert "layers that cancel" not in (removed := _simplified(model)[1])
    assert "layers without effect" not in removed


def test_a_squeeze_that_may_drop_an_unknown_dim_stays() -> None:
    """Without axes, Squeeze drops ? if that is 1: the shape that inference assumes is no proof."""
    model = b.model({"y": b.ReLU(b.Squeeze(b.Abs(b.parameter(["?", 3], name="x"))))})
    assert _types(_simplified(model)[0]) == ["Abs", "ReLU", "Squeeze"]
    assert irrun.run(surgery.simplify(model).model, np.ones((1, 3), np.float32))[0].shape == (3,)


def test_equal_layers_and_constants() -> None:
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    three = np.full((2, 3), 3, np.float32).tobytes()
    port = [("FP32", "2,3")]
    branches = [net.add("Tanh", [net.add("Multiply", [x, net.const("f32", "2,3", three)], port)], port) for _ in "ab"]
    net.result(net.add("Add", [branches[0], net.add("Abs", [branches[1]], port)], port), name="y")
    model = _model(net)
    simplified = surgery.simplify(model)
    assert _types(_simplified(model)[0]) == ["Abs", "Add", "Multiply", "Tanh"]
    assert [(step.name, step.layers, step.bytes) for step in simplified.steps] == [
        ("equal constants", 1, 24),
        ("equal layers", 2, 0),
    ]


def test_equal_bytes_of_other_shapes_are_stored_once(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    three = np.full(6, 3, np.float32).tobytes()
    product = net.add("Multiply", [x, net.const("f32", "2,3", three)], [("FP32", "2,3")])
    net.result(net.add("Add", [product, net.const("f32", "1,2,3", three)], [("FP32", "1,2,3")]), name="y")
    simplified = surgery.simplify(_model(net))
    assert [(step.name, step.layers, step.bytes) for step in simplified.steps] == [("equal constants", 0, 24)]
    irrun.save_model(simplified.model, tmp_path / "a.xml", compact=True)
    assert (tmp_path / "a.bin").stat().st_size == 24
    surgery.require_equal(surgery.original(_model(net)), tmp_path / "a.xml")


def test_strings() -> None:
    x = b.parameter([2], "string", name="x")
    word = np.array(["a", "bc"])
    model = b.model({"y": b.Concat(b.Reshape(x, [2], special_zero=False), b.constant(word), b.constant(word), axis=0)})
    simpler, removed = _simplified(model)
    assert _types(simpler) == ["Concat"]
    assert removed == {"equal constants": 1, "layers without effect": 2}


def test_chains_of_reshape() -> None:
    x = b.parameter([2, 3, 4], name="x")
    chain = b.Unsqueeze(b.Reshape(x, [6, 4], special_zero=False), [0])
    model = b.model({"y": b.ReLU(b.Reshape(chain, [-1, 2], special_zero=False, name="last"))})
    simpler, removed = _simplified(model)
    assert _types(simpler) == ["ReLU", "Reshape"]
    assert removed == {"chains of Reshape": 4}


def test_a_chain_whose_first_shape_is_copied_stays() -> None:
    """0 copies a dim of the value before, which has another one earlier in the chain; ? is unknown without the first."""
    x = b.parameter([2, 3, 4], name="x")
    copied = b.Reshape(b.Reshape(x, [6, 4], special_zero=False), [0, 2, 2], special_zero=True)
    y = b.parameter(["?"], name="y")
    known = b.Reshape(b.Reshape(y, [2, 3], special_zero=False), [-1], special_zero=False)
    assert _types(_simplified(b.model({"y": b.ReLU(copied)}))[0]) == ["ReLU", "Reshape", "Reshape"]
    assert surgery.simplify(b.model({"z": b.ReLU(known)})).steps == ()


def test_unused_layers() -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.add("Exp", [net.add("Abs", [x], [("FP32", "2")], name="unused")], [("FP32", "2")], name="after")
    net.result(net.add("ReLU", [x], [("FP32", "2")], name="used"), name="y")
    simplified = surgery.simplify(_model(net))
    assert [layer.name for layer in simplified.model.layers.values()] == ["x", "used", "y"]
    assert [(step.name, step.layers) for step in simplified.steps] == [("unused layers", 2)]


def test_random_numbers_and_state_are_not_merged() -> None:
    def noise() -> b.Node:
        return b.RandomUniform(np.array([4]), np.float32(0), np.float32(1), output_type="f32", global_seed=1, op_seed=2)

    x = b.parameter([4], name="x")
    reads = [
        b.ReadValue(np.zeros(4, np.float32), variable_id=name, variable_type="f32", variable_shape="4") for name in "ab"
    ]
    sinks = [b.Assign(b.Add(read, x), variable_id=name) for read, name in zip(reads, "ab")]
    outputs = {"y": b.Add(b.Add(x, noise()), noise()), "z": b.Subtract(*reads)}
    simpler, removed = _simplified(b.model(outputs, sinks=sinks))
    assert _types(simpler).count("RandomUniform") == 2
    assert _types(simpler).count("ReadValue") == _types(simpler).count("Assign") == 2
    assert set(removed) == {"equal constants"}


def test_bodies() -> None:
    """In an If inside a Loop: layers of different bodies are not merged, and Parameters of bodies stay."""

    def body(i: b.Node, a: b.Node) -> tuple[bool, b.Node]:
        turned = b.Transpose(b.Transpose(a, [1, 0]), [1, 0])
        branch = b.If(
            b.Less(i, 1),
            turned,
            then=lambda v: b.Add(b.Abs(v), b.Abs(v)),
            otherwise=lambda v: b.Convert(b.Abs(v), destination_type="f32"),
        )
        return True, b.Multiply(branch, 2.0)

    model = b.model({"y": b.Loop(3, True, b.parameter([2, "?"], name="x"), body=body)})
    simpler, removed = _simplified(model)
    assert _types(model).count("Abs") == 3
    assert (_types(simpler).count("Abs"), _types(simpler).count("Transpose"), _types(simpler).count("Convert")) == (
        2,
        0,
        0,
    )
    assert (removed["equal layers"], removed["layers without effect"]) == (1, 1)


def test_outputs_keep_their_names() -> None:
    """A layer after which an output is named goes only if the value before it has no name."""
    x = b.parameter([2], name="x")
    same = b.Reshape(x, [2], special_zero=False)
    nameless = b.Reshape(b.Abs(x), [2], special_zero=False)
    model = b.model({"same": same, "first": b.Tanh(x), "second": b.Tanh(x), "other": nameless})
    simpler, _ = _simplified(model)
    assert [simpler.result_name(result) for result in simpler.results] == ["same", "first", "second", "other"]
    assert _types(simpler) == ["Abs", "Reshape", "Tanh", "Tanh"]
    assert simpler.input_names(simpler.parameters[0]) == ("x",)


def test_names_of_inner_tensors_stay() -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    size = net.add("Abs", [x], [("FP32", "2")], names="size")
    same = net.add("Convert", [size], [("FP32", "2")], names="same", destination_type="f32")
    net.result(net.add("ReLU", [same], [("FP32", "2")], names="y"))
    simpler = surgery.simplify(_model(net)).model
    assert [port.names for layer in simpler.layers.values() for port in layer.outputs] == [(), ("size", "same"), ("y",)]


def test_marks_keep_layers_apart() -> None:
    """A Convert that is marked as decompression is another layer than one without the mark."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    halves = [net.add("Convert", [x], [("FP16", "2")], name=name, destination_type="f16") for name in ("plain", "mark")]
    net.result(net.add("Add", halves, [("FP16", "2")]), name="y")
    mark = '<rt_info><attribute name="decompression" version="0"/></rt_info>'
    marked = net.text.replace('<data destination_type="f16"/>', '<data destination_type="f16"/>' + mark, 1)
    for text, count in ((net.text, 1), (marked, 2)):
        simpler = surgery.simplify(parse(Source("net.xml", text.encode())).model).model
        assert _types(simpler).count("Convert") == count


def test_ten_thousand_layers() -> None:
    """Each of 2,500 groups has four layers: one works, two cancel, and one has no effect."""
    net = Net()
    value = x = net.parameter("f32", "1,?,3", name="x")
    order = net.const("i64", "3", np.array([0, 2, 1]).tobytes())
    for _ in range(2_500):
        value = net.add("Abs", [value], [("FP32", "1,-1,3")])
        value = net.add("Transpose", [value, order], [("FP32", "1,3,-1")])
        value = net.add("Transpose", [value, order], [("FP32", "1,-1,3")])
        value = net.add("Convert", [value], [("FP32", "1,-1,3")], destination_type="f32")
    net.result(net.add("Add", [value, x], [("FP32", "1,-1,3")]), name="y")
    model = _model(net)
    began = time.monotonic()
    simplified = surgery.simplify(model)
    assert time.monotonic() - began < 20  # 2 s on an idle machine; quadratic time would be minutes
    assert _types(simplified.model) == ["Abs"] * 2_500 + ["Add"]


def test_openvino_computes_the_same(tmp_path: Path, oracle: Oracle) -> None:
    x = b.parameter([1, 3, "?", 4], name="x")
    y = b.Unsqueeze(b.Squeeze(b.Transpose(b.Transpose(x, [0, 2, 3, 1]), [0, 3, 1, 2]), [0]), [0])
    y = b.Add(b.Multiply(b.ReLU(y), np.full((3, 1, 1), 2, np.float32)), np.full((3, 1, 1), 2, np.float32))
    model = b.model({"y": y, "z": b.Reshape(b.Reshape(y, [-1], special_zero=False), [3, -1], special_zero=False)})
    irrun.save_model(model, tmp_path / "a.xml")
    irrun.save_model(surgery.simplify(model).model, tmp_path / "b.xml")
    data = np.random.default_rng(0).standard_normal((1, 3, 5, 4)).astype(np.float32)
    for expected, output in zip(oracle(tmp_path / "a.xml", [data]), oracle(tmp_path / "b.xml", [data]), strict=True):
        np.testing.assert_array_equal(output, expected)
