"""Surgery: each edit does what it says, and the result computes what the original does."""

from __future__ import annotations

import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun import surgery
from irrun.base.source import Source
from irrun.debug.difference import diff
from irrun.ir.parse import parse
from nets import Net
from oracle import Oracle
from places import SAMPLES

CONVNET = SAMPLES / "convnet.xml"


@pytest.fixture
def convnet() -> irrun.Model:
    return irrun.read_model(CONVNET)


@pytest.fixture
def image() -> np.ndarray:
    return np.load(CONVNET.parent / "image.npy")


def _changes(one: irrun.Model, other: irrun.Model) -> list[tuple[str, str, str | None, str | None]]:
    """Return the changes of a diff, as (layer, kind, before, after)."""
    rows = []
    for layer in diff(one, other, rt_info=True).layers:
        place = layer.a or layer.b
        assert place is not None
        rows += [(place.name, c.kind, c.a, c.b) for c in layer.changes] or [(place.name, layer.status, None, None)]
    return rows


# ---------------------------------------------------------------------------------------------
# names


def test_renaming_an_input(convnet: irrun.Model, image: np.ndarray) -> None:
    edited = surgery.rename_input(convnet, "image", "pixels")
    assert _changes(convnet, edited) == [
        ("image", "name", "image", "pixels"),
        ("image", "tensor_names", "image", "pixels"),
    ]
    np.testing.assert_array_equal(irrun.run(edited, {"pixels": image})[0], irrun.run(convnet, image)[0])


def test_renaming_an_output(convnet: irrun.Model) -> None:
    edited = surgery.rename_output(convnet, "out", "probabilities")
    assert [edited.result_name(r) for r in edited.results] == ["probabilities"]
    assert _changes(convnet, edited) == [
        ("probabilities", "tensor_names", "out", "probabilities"),
        ("out", "tensor_names", None, "probabilities"),
    ]


def test_openvino_knows_the_new_names(convnet: irrun.Model, image: np.ndarray, tmp_path: Path, ov: object) -> None:
    edited = surgery.rename_output(surgery.rename_input(convnet, "image", "pixels"), "out", "classes")
    irrun.save_model(surgery.expose(edited, "block1/relu", "inner"), tmp_path / "edited.xml")
    model = ov.Core().read_model(tmp_path / "edited.xml")  # type: ignore[attr-defined]
    assert [port.get_any_name() for port in model.inputs] == ["pixels"]
    assert [port.get_names() for port in model.outputs] == [{"classes"}, {"inner"}]


def test_two_outputs_of_one_tensor_keep_their_names() -> None:
    x = b.ReLU(b.parameter([2], name="x"), name="r")
    model = b.model({"first": x, "second": x})
    edited = surgery.rename_output(model, "first", "third")
    assert [edited.result_name(r) for r in edited.results] == ["third", "second"]


def test_renaming_a_layer(convnet: irrun.Model) -> None:
    assert _changes(convnet, surgery.rename_layer(convnet, "flatten", "flat")) == [
        ("flatten", "name", "flatten", "flat")
    ]


@pytest.mark.parametrize(
    ("rename", "old", "new", "said"),
    [
        (surgery.rename_layer, "flatte", "x", r'IR606.*"flatte".*did you mean "flatten"'),
        (surgery.rename_layer, "flatten", "logits", r'IR608.*MatMul "logits" has this name already'),
        (surgery.rename_input, "out", "x", r"IR601.*no input 'out'"),
        (surgery.rename_input, "image", "logits", r'IR608.*MatMul "logits"'),
        (surgery.rename_output, "image", "x", r'IR606.*no output "image".*"out"'),
    ],
)
def test_names_that_are_refused(convnet: irrun.Model, rename, old: str, new: str, said: str) -> None:
    with pytest.raises(irrun.IrrunError, match=said):
        rename(convnet, old, new)


# ---------------------------------------------------------------------------------------------
# inner values


@pytest.mark.parametrize("value", ["block1/relu", "block1/pool:2"])
def test_exposing_an_inner_value(convnet: irrun.Model, image: np.ndarray, value: str) -> None:
    edited = surgery.expose(convnet, value, "inner")
    tap = irrun.compile(convnet)(image, taps=[value.split(":")[0]]).taps[value]
    outputs = irrun.run(edited, image)
    assert [edited.result_name(r) for r in edited.results] == ["out", "inner"]
    np.testing.assert_array_equal(outputs["inner"], tap)


@pytest.mark.parametrize(
    ("value", "name", "said"),
    [
        ("out", None, r'IR608.*"out" is an output already; leave the option out'),
        ("out", "out", r'IR608.*"out" is an output already'),
        ("logits", "out", r'IR608.*another output is called "out"; choose another name'),
        ("block1/pool:9", "x", r'IR608.*MaxPool "block1/pool" has no such output; its output ports are 1, 2'),
        ("block1/poo", "x", r'IR606.*"block1/poo".*did you mean "block1/pool"'),
    ],
)
def test_values_that_cannot_be_exposed(convnet: irrun.Model, value: str, name: str | None, said: str) -> None:
    with pytest.raises(irrun.ModelError, match=said):
        surgery.expose(convnet, value, name)


def test_the_names_of_exposed_values(convnet: irrun.Model, image: np.ndarray) -> None:
    """An output again under another name, a value under the name of another layer, and Results whose names are taken."""
    edited = surgery.expose(convnet, "out", "again")
    edited = surgery.expose(edited, "block1/relu", "flatten")
    edited = surgery.rename_layer(edited, "block1/pool", "logits/result")
    edited = surgery.expose(edited, "logits")
    assert [edited.result_name(r) for r in edited.results] == ["out", "again", "flatten", "logits"]
    assert len({layer.name for layer in edited.layers.values()}) == len(edited.layers)
    assert not irrun.check(edited).errors
    taps = irrun.compile(convnet)(image, taps=["block1/relu", "logits"]).taps
    outputs = irrun.run(edited, image)
    np.testing.assert_array_equal(outputs["again"], outputs["out"])
    np.testing.assert_array_equal(outputs["flatten"], taps["block1/relu"])
    np.testing.assert_array_equal(outputs["logits"], taps["logits"])


# ---------------------------------------------------------------------------------------------
# merging


def _scaled(factor: float, name: str = "y", shape: list[int] | None = None) -> irrun.Model:
    x = b.parameter(shape or [2], name="x")
    return b.model({name: b.Multiply(x, b.constant(np.float32(factor), name="factor"), name="scaled")})


def test_merging() -> None:
    whole = surgery.merge(_scaled(3.0), _scaled(5.0, "z"), {"y": "x"})
    assert [p.name for p in whole.parameters] == ["x"]
    assert [whole.result_name(r) for r in whole.results] == ["z"]
    assert irrun.run(whole, [[1.0, 2.0]])["z"].tolist() == [15.0, 30.0]
    assert {layer.name for layer in whole.layers.values()} >= {"scaled", "scaled_2", "factor", "factor_2"}
    assert not irrun.check(whole).errors


def test_merging_keeps_outputs_if_asked() -> None:
    whole = surgery.merge(_scaled(3.0), _scaled(5.0, "z"), {"y": "x"}, keep=True)
    outputs = irrun.run(whole, [[1.0, 2.0]])
    assert (outputs["y"].tolist(), outputs["z"].tolist()) == ([3.0, 6.0], [15.0, 30.0])


def test_other_inputs_stay() -> None:
    left, right = b.parameter([2], name="y"), b.parameter([2], name="x")
    other = b.model({"z": b.Subtract(left, right)})
    whole = surgery.merge(_scaled(3.0), other)  # the output y becomes the input y
    assert [p.name for p in whole.parameters] == ["x", "x_2"]
    assert irrun.run(whole, {"x": [1.0, 2.0], "x_2": [10.0, 10.0]})["z"].tolist() == [-7.0, -4.0]
    surgery.require_equal(surgery.merged(_scaled(3.0), other, None), whole)


def _accumulator(folder: Path, name: str) -> irrun.Model:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    value = net.add(
        "ReadValue",
        [net.const("f32", "2", bytes(8))],
        [("FP32", "2")],
        name="read",
        opset="opset6",
        variable_id="sum",
        variable_type="f32",
        variable_shape="2",
    )
    total = net.add("Add", [x, value], [("FP32", "2")], name="total")
    net.add("Assign", [total], [("FP32", "2")], name="assign", opset="opset6", variable_id="sum")
    net.result(total, name="y")
    return irrun.read_model(net.save(folder, name))


def test_variables_stay_apart(tmp_path: Path) -> None:
    """Two accumulators with the same variable, one after the other."""
    one, other = _accumulator(tmp_path, "a"), _accumulator(tmp_path, "b")
    whole = surgery.merge(one, other, {"y": "x"})
    model = irrun.compile(whole)
    ones = np.ones(2, np.float32)
    assert [model([ones])[0].tolist() for _ in range(3)] == [[1.0, 1.0], [3.0, 3.0], [6.0, 6.0]]
    surgery.require_equal(surgery.merged(one, other, {"y": "x"}), whole, samples=3)


def test_variables_survive_every_edit(tmp_path: Path) -> None:
    model = _accumulator(tmp_path, "a")
    edited = surgery.downgrade(surgery.drop_unused(surgery.fold_constants(model)), 6)
    edited = surgery.rename_output(surgery.expose(edited, "read"), "y", "sum")
    assert [layer.type for layer in edited.layers.values()].count("Assign") == 1
    surgery.require_equal(surgery.original(model, ["read"]), edited, samples=3)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(irrun.ModelError, match=r'IR608.*output "y" is f32 \[2\], but input "x".*f32 \[3\]'):
        surgery.merge(_scaled(3.0), _scaled(5.0, shape=[3]), {"y": "x"})
    with pytest.raises(irrun.ModelError, match=r"IR608.*no input of .* is named after an output"):
        surgery.merge(_scaled(3.0), _scaled(5.0))
    with pytest.raises(irrun.FeedError, match="IR601"):
        surgery.merge(_scaled(3.0), _scaled(5.0), {"y": "q"})


# ---------------------------------------------------------------------------------------------
# folding and dropping


def test_folding() -> None:
    x = b.parameter([2, 3], name="x")
    doubled = b.Multiply(b.constant(np.arange(3, dtype=np.float32)), b.constant(np.float32(2)), name="doubled")
    parts = b.Split(b.constant(np.arange(6, dtype=np.float32).reshape(2, 3)), 0, num_splits=2, name="parts")
    model = b.model({"y": b.Add(b.Add(x, doubled), parts[1], name="sum")})
    folded = surgery.fold_constants(model)
    assert sorted(layer.type for layer in folded.layers.values()) == [
        "Add",
        "Add",
        "Const",
        "Const",
        "Parameter",
        "Result",
    ]
    zeros = np.zeros((2, 3), np.float32)
    assert irrun.run(folded, zeros)[0].tolist() == [[3.0, 6.0, 9.0]] * 2
    assert not irrun.check(folded).diagnostics
    surgery.require_equal(surgery.original(model), folded)


def test_folding_inside_bodies() -> None:
    """In an If inside a Loop; what only one of several branches folds is enough."""
    x = b.parameter([2], name="x")
    two = np.full(2, 2, np.float32)

    def body(i: b.Node, a: b.Node) -> tuple[bool, b.Node]:
        scale = b.Multiply(two, np.full(2, 3, np.float32), name="six")
        branch = b.If(b.Less(i, 1), a, then=lambda v: b.Add(v, b.Exp(two)), otherwise=b.ReLU, name="if")
        return True, b.Multiply(branch, scale, name="scaled")

    model = b.model({"y": b.Loop(3, True, x, body=body, name="loop")})
    folded = surgery.fold_constants(model)

    def types(model: irrun.Model) -> list[str]:
        inner = [t for layer in model.layers.values() for one in layer.bodies.values() for t in types(one)]
        return sorted([*(layer.type for layer in model.layers.values()), *inner])

    assert set(types(model)) - set(types(folded)) == {"Exp"}
    assert types(model).count("Multiply") - types(folded).count("Multiply") == 1
    assert not irrun.check(folded).diagnostics
    surgery.require_equal(surgery.original(model), folded)
    assert surgery.fold_constants(folded) is folded


def test_folding_a_result() -> None:
    two = np.full(2, 2, np.float32)
    outputs = {"y": b.Exp(two, name="e"), "z": b.constant(two), "w": b.ReLU(b.parameter([1], name="x"))}
    folded = surgery.fold_constants(b.model(outputs))
    assert sorted(layer.type for layer in folded.layers.values()) == [
        "Const", "Const", "Parameter", "ReLU", "Result", "Result", "Result",
    ]  # fmt: skip
    assert np.allclose(irrun.run(folded, np.ones(1, np.float32))["y"], np.exp(two))


def test_folding_leaves_compressed_and_quantised_weights_and_random_numbers() -> None:
    x = b.parameter([1, 256], name="x")
    halves = b.Convert(b.constant(np.ones((256, 4), np.float16)), destination_type="f32", name="decompressed")
    bytes_ = b.Convert(b.constant(np.ones((4, 256), np.int8)), destination_type="f32", name="dequantised")
    full = b.constant(np.ones((256, 256), np.float32))
    quantised = b.FakeQuantize(full, 0.0, 1.0, 0.0, 1.0, levels=256, name="quantised")
    noise = b.RandomUniform([1], 0.0, 1.0, output_type="f32", global_seed=1, op_seed=1, name="noise")
    model = b.model({"y": b.Add(b.MatMul(b.MatMul(b.MatMul(x, halves), bytes_), quantised), noise)})
    assert surgery.fold_constants(model) is model


def test_dropping_unused_layers() -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.parameter("f32", "2", name="idle")
    used = net.add("ReLU", [x], [("FP32", "2")], name="used")
    net.add("Exp", [net.add("Abs", [x], [("FP32", "2")], name="unused")], [("FP32", "2")], name="after")
    net.result(used, name="y")
    model = parse(Source("net.xml", net.text.encode())).model
    edited = surgery.drop_unused(model)
    assert [layer.name for layer in edited.layers.values()] == ["x", "idle", "used", "y"]


# ---------------------------------------------------------------------------------------------
# operation sets


def test_older_versions_that_say_the_same(tmp_path: Path, oracle: Oracle) -> None:
    x = b.parameter([1, 2, 4, 4], name="x")
    window = {"strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0), "kernel": (2, 2)}
    pooled = b.MaxPool(x, dilations=(1, 1), **window, opset=14, name="max")[0]
    mean = b.AvgPool(x, **window, **{"exclude-pad": True}, opset=14, name="mean")
    total = b.Squeeze(b.Add(pooled, mean), [0], opset=15, name="squeezed")
    model = b.model({"y": b.Convert(total, destination_type="f16")})
    older = surgery.downgrade(model, 13)
    versions = {layer.name: layer.version for layer in older.layers.values()}
    assert (versions["max"], versions["mean"], versions["squeezed"]) == ("opset8", "opset1", "opset1")
    surgery.require_equal(surgery.original(model), older)
    irrun.save_model(older, tmp_path / "older.xml")
    data = np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype(np.float32)
    (expected,) = oracle(tmp_path / "older.xml", [data])
    np.testing.assert_allclose(irrun.run(model, data)[0], expected, rtol=1e-2)


def test_what_an_older_operation_set_cannot_say() -> None:
    x = b.parameter([1, 2, "?", 5], name="x")
    window = {"strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0), "kernel": (2, 2)}
    pool = b.MaxPool(x, dilations=(1, 1), **window, rounding_type="ceil_torch", opset=14, name="max")[0]
    with pytest.raises(irrun.ModelError, match=r'IR608.*MaxPool-8 cannot say this.*rounding_type="ceil_torch"'):
        surgery.downgrade(b.model({"y": pool}), 13)
    inverse = b.Inverse(b.parameter([2, 2], name="x"), adjoint=False, name="inv")
    with pytest.raises(irrun.ModelError, match=r'IR608.*Inverse "inv" needs opset14; opset13 has none'):
        surgery.downgrade(b.model({"y": inverse}), 13)


def test_bodies_get_older_versions() -> None:
    def body(total: b.Output, row: b.Output) -> b.Node:
        return b.Add(b.Unsqueeze(b.Squeeze(row, [0], opset=15, name="squeezed"), [0]), total)

    start = np.zeros((1, 3), np.float32)
    model = b.model({"y": b.TensorIterator(start, b.sliced(b.parameter([4, 3], name="x"), axis=0), body=body)})
    older = surgery.downgrade(model, 13)
    (loop,) = [layer for layer in older.layers.values() if layer.bodies]
    versions = {layer.name: layer.version for layer in loop.bodies["body"].layers.values()}
    assert versions["squeezed"] == "opset1"
    surgery.require_equal(surgery.original(model), older)


# ---------------------------------------------------------------------------------------------
# verification


def test_a_wrong_edit_is_found(convnet: irrun.Model) -> None:
    wrong = irrun.extract(convnet, (), "logits")  # without the SoftMax
    with pytest.raises(irrun.ModelError, match=r"IR608.*differs from that of the original"):
        surgery.require_equal(surgery.original(convnet), wrong)


def test_elements_that_irrun_does_not_use_survive(tmp_path: Path) -> None:
    text = CONVNET.read_text()
    marked = text.replace("</net>", '\t<rt_info><tool value="7"/></rt_info>\n</net>')
    marked = marked.replace("</layer>", '<rt_info><attribute name="fused" value="a&amp;b"/></rt_info></layer>')
    (tmp_path / "a.xml").write_text(marked)
    (tmp_path / "a.bin").write_bytes(CONVNET.with_suffix(".bin").read_bytes())
    model = irrun.read_model(tmp_path / "a.xml")
    edited = surgery.drop_unused(surgery.fold_constants(surgery.rename_layer(model, "flatten", "flat")))
    irrun.save_model(edited, tmp_path / "b.xml", compact=True)
    assert _changes(model, irrun.read_model(tmp_path / "b.xml")) == [("flatten", "name", "flatten", "flat")]
    assert not diff(model, irrun.read_model(tmp_path / "b.xml"), rt_info=True).model


def test_an_edit_that_changes_the_state_is_found(tmp_path: Path) -> None:
    """The first run is the same; what it stores is not."""
    model = _accumulator(tmp_path, "a")
    text = (tmp_path / "a.xml").read_text()
    (read,) = [layer for layer in model.layers.values() if layer.name == "read"]
    (total,) = [layer for layer in model.layers.values() if layer.name == "total"]
    (assign,) = [layer for layer in model.layers.values() if layer.name == "assign"]
    wrong = text.replace(
        f'from-layer="{total.id}" from-port="2" to-layer="{assign.id}"',
        f'from-layer="{read.id}" from-port="1" to-layer="{assign.id}"',
    )
    assert wrong != text
    (tmp_path / "b.xml").write_text(wrong)
    shutil.copy(tmp_path / "a.bin", tmp_path / "b.bin")
    with pytest.raises(irrun.ModelError, match=r'IR608.*output "y" differs'):
        surgery.require_equal(surgery.original(model), tmp_path / "b.xml")


@pytest.mark.parametrize(
    ("array", "expected", "dtype", "is_close"),
    [
        ([1, 1000], [1.04, 1000], np.float32, True),  # the limit is 4.3e-5 of 1000
        ([1, 1000], [1.05, 1000], np.float32, False),
        ([1, np.nan, np.inf], [1, np.nan, np.inf], np.float32, True),
        ([1, np.inf], [1, -np.inf], np.float32, False),
        ([1, np.nan], [1, 2], np.float32, False),
        ([1], [[1]], np.float32, False),
        ([], [], np.float32, True),
        ([1000], [1001], np.int32, False),
        ([1, 1], [1, 1], ml_dtypes.uint2, True),
        ([1, 1.015], [1, 1], ml_dtypes.bfloat16, False),  # the limit is 1.1e-2
        (["a", "b"], ["a", "c"], object, False),
    ],
)
def test_what_only_rounding_makes_different(array: list, expected: list, dtype: type, is_close: bool) -> None:
    assert surgery.is_close(np.array(array, dtype), np.array(expected, dtype)) is is_close


def test_other_types_and_limits_are_no_rounding() -> None:
    one = np.ones(2, np.float32)
    assert not surgery.is_close(one, np.ones(2))
    assert not surgery.is_close(one, one * np.float32(1.001))
    assert surgery.is_close(one, one * np.float32(1.001), 2e-3)
