"""irrun show --layers: FLOPs by hand, bytes, consumers, and the forms of weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.checking.listing import entries, select, totals
from irrun.checking.storage import storage
from irrun.cli import cli
from irrun.types import PartialShape
from places import SAMPLES

F = np.float32


def p(*shape: Any, type: str = "f32") -> Any:
    return b.parameter(list(shape), type)


def w(*shape: int, type: Any = F) -> np.ndarray:
    return np.ones(shape, type)


CONV = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}

# the node of one layer, and its FLOPs: each factor is one of the shapes
FLOPS: dict[str, tuple[Callable[[], Any], int | None]] = {
    "convolution": (lambda: b.Convolution(p(2, 3, 10, 10), w(4, 3, 3, 3), **CONV), 2 * (2 * 4 * 8 * 8) * (3 * 3 * 3)),
    "group-convolution": (
        lambda: b.GroupConvolution(p(1, 6, 5, 5), w(2, 4, 3, 3, 3), **CONV), 2 * (8 * 3 * 3) * (3 * 3 * 3)),
    "depthwise": (lambda: b.GroupConvolution(p(1, 6, 5, 5), w(6, 1, 1, 3, 3), **CONV), 2 * (6 * 3 * 3) * 9),
    "transposed": (
        lambda: b.ConvolutionBackpropData(p(1, 3, 4, 4), w(3, 5, 2, 2), **CONV), 2 * (3 * 4 * 4) * (5 * 2 * 2)),
    "transposed-groups": (
        lambda: b.GroupConvolutionBackpropData(p(1, 6, 4, 4), w(2, 3, 5, 2, 2), **CONV), 2 * (6 * 4 * 4) * (5 * 2 * 2)),
    "matmul": (lambda: b.MatMul(p(7, 5), w(5, 3)), 2 * 7 * 5 * 3),
    "matmul-transposed": (lambda: b.MatMul(p(5, 7), w(3, 5), transpose_a=True, transpose_b=True), 2 * 7 * 5 * 3),
    "matmul-batched": (lambda: b.MatMul(p(4, 1, 7, 5), p(2, 5, 3)), 2 * 4 * 2 * 7 * 5 * 3),
    "matmul-vectors": (lambda: b.MatMul(p(5), w(5)), 2 * 5),
    "einsum": (lambda: b.Einsum(p(7, 5), p(5, 3), equation="ij,jk->ik"), 2 * 7 * 5 * 3),
    "einsum-trace": (lambda: b.Einsum(p(5, 5), equation="ii->"), 5),
    "add": (lambda: b.Add(p(2, 1, 4), p(3, 1)), 2 * 3 * 4),
    "exp": (lambda: b.Exp(p(2, 3)), 6),
    "softmax": (lambda: b.SoftMax(p(2, 3), axis=1), 4 * 6),
    "reduce": (lambda: b.ReduceSum(p(2, 3, 4), [1]), 24),
    "max-pool": (
        lambda: b.MaxPool(p(1, 2, 6, 6), kernel=[2, 3], strides=[2, 3], pads_begin=[0, 0], pads_end=[0, 0]),
        (1 * 2 * 3 * 2) * 6),
    "lstm-cell": (
        lambda: b.LSTMCell(p(2, 5), p(2, 3), p(2, 3), w(12, 5), w(12, 3), w(12), hidden_size=3),
        2 * 2 * 12 * (5 + 3)),
    "gru-sequence": (
        lambda: b.GRUSequence(
            p(2, 7, 5), p(2, 1, 3), w(2, type=np.int32), w(1, 9, 5), w(1, 9, 3), w(1, 9), hidden_size=3,
            direction="forward"),
        2 * (2 * 7) * 9 * (5 + 3)),
    "attention": (
        lambda: b.ScaledDotProductAttention(p(2, 4, 6, 8), p(2, 4, 5, 8), p(2, 4, 5, 3), causal=False),
        (2 * 4) * 6 * 5 * (2 * 8 + 2 * 3 + 4)),
    "transpose": (lambda: b.Transpose(p(2, 3), [1, 0]), 0),
    "convert": (lambda: b.Convert(p(2, 3), destination_type="f16"), 0),
    "select": (lambda: b.Select(p(2, 3, type="boolean"), p(2, 3), p(2, 3)), 0),
    "dynamic": (lambda: b.MatMul(p(None, 5), w(5, 3)), None),
}  # fmt: skip


@pytest.mark.parametrize("case", FLOPS)
def test_flops(case: str) -> None:
    build, expected = FLOPS[case]
    node = build()
    model = b.model(list(node))
    (entry,) = [e for e in entries(model) if e.type == node.layer.type]
    assert entry.record()["flops"] == expected


def test_flops_of_unknown_dims_are_at_least_those_of_the_known_ones() -> None:
    model = b.model(b.Relu(b.MatMul(b.parameter("2..,5", "f32"), w(5, 3))))
    sums = totals(entries(model))
    assert sums["exact"] is False
    assert sums["flops"] == 2 * 2 * 5 * 3 + 2 * 3
    assert totals(entries(b.model(b.Relu(p(2, 3))))) == {
        "layers": 3, "flops": 6, "bytes": 2 * 24, "weight_bytes": 0, "exact": True,
    }  # fmt: skip


def test_what_an_entry_says() -> None:
    found = {entry.name: entry for entry in entries(irrun.read_model(SAMPLES / "convnet.xml"))}
    conv = found["block2/conv"].record()
    assert conv == {
        "name": "block2/conv", "type": "Convolution", "version": "opset1",
        "attributes": {"strides": "1, 1", "dilations": "1, 1", "pads_begin": "1, 1", "pads_end": "1, 1",
                       "auto_pad": "explicit"},
        "inputs": [{"type": "f32", "shape": [1, 8, 14, 14]}, {"type": "f32", "shape": [16, 8, 3, 3]}],
        "outputs": [{"type": "f32", "shape": [1, 16, 14, 14]}], "consumers": ["block2/add"],
        "weight_bytes": 4 * 16 * 8 * 9, "flops": 2 * 16 * 14 * 14 * 8 * 9,
        "bytes": 4 * (8 * 14 * 14 + 16 * 8 * 9 + 16 * 14 * 14), "constant": False, "line": 141,
    }  # fmt: skip
    assert found["block1/weights"].is_constant
    assert found["image"].bytes is not None
    assert found["image"].bytes.value == 0


def test_filters() -> None:
    listed = entries(irrun.read_model(SAMPLES / "convnet.xml"))

    def names(**filters: Any) -> list[str]:
        return [entry.name for entry in select(listed, **filters)]

    assert len(names()) == 13
    assert names(types=["conv*"]) == ["block1/conv", "block2/conv"]
    assert names(types=["CONST"]) == [e.name for e in listed if e.type == "Const"]
    assert names(names=["block1/*"], types=["Const"]) == ["block1/weights", "block1/bias"]
    assert names(shape=PartialShape.parse("1,?,7,7")) == ["block2/pool", "flatten"]
    assert names(shape=PartialShape.parse("1,..10")) == ["logits", "probabilities", "out"]
    assert names(names=["logits", "nothing"]) == ["logits"]


def test_layers_of_a_body() -> None:
    x = b.parameter([4, 3], "f32", name="x")
    loop = b.TensorIterator(
        b.sliced(x, axis=0), body=lambda item: b.concatenated(b.Relu(item, name="inner"), axis=0), name="loop"
    )
    listed = entries(b.model(list(loop)))
    inner = next(e for e in listed if e.name == "loop/inner")
    assert inner.record()["flops"] == 3
    outer = next(e for e in listed if e.name == "loop")
    assert outer.flops is None
    assert totals(listed)["exact"] is False  # the body runs four times
    assert inner.consumers == (next(e.name for e in listed if e.type == "Result" and "/" in e.name),)


# ---------------------------------------------------------------------------------------------
# the forms of weights


def decompressed(codes: np.ndarray, type: str, scale: tuple[int, ...], zero: bool, *, shape: Any = None) -> Any:
    """Return the layers that unpack compressed weights, as NNCF writes them."""
    weights = b.Convert(b.constant(codes, type), destination_type="f16")
    if zero:
        point = b.Convert(b.constant(np.ones(scale, np.uint8), type), destination_type="f16")
        weights = b.Subtract(weights, point)
    weights = b.Multiply(weights, b.constant(np.ones(scale, np.float16)))
    if shape is not None:
        weights = b.Reshape(weights, list(shape), special_zero=False)
    return b.Convert(weights, destination_type="f32")


FORMS: dict[str, tuple[Callable[[], Any], tuple[str, int, int]]] = {
    "f32": (lambda: b.constant(w(16, 8)), ("f32", 128, 512)),
    "f16": (lambda: b.Convert(b.constant(w(16, 8, type=np.float16)), destination_type="f32"), ("f16", 128, 256)),
    "int8-per-channel": (
        lambda: decompressed(w(16, 8, type=np.int8), "i8", (16, 1), False),
        ("i8 symmetric, one scale per channel", 128, 128)),
    "uint8-asymmetric": (
        lambda: decompressed(w(16, 8, type=np.uint8), "u8", (16, 1), True),
        ("u8 asymmetric, one scale per channel", 128, 128)),
    "int8-one-scale": (
        lambda: decompressed(w(16, 8, type=np.int8), "i8", (1, 1), False), ("i8 symmetric, one scale", 128, 128)),
    "int4-groups": (
        lambda: decompressed(w(16, 2, 4, type=np.uint8), "u4", (16, 2, 1), True, shape=(16, 8)),
        ("u4 asymmetric, groups of 4", 128, 64)),
    "int4-groups-of-rows": (
        lambda: decompressed(w(4, 4, 8, type=np.int8), "i4", (4, 1, 8), False, shape=(16, 8)),
        ("i4 symmetric, groups of 4", 128, 64)),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMS)
def test_how_weights_are_stored(case: str) -> None:
    build, expected = FORMS[case]
    model = b.model(b.MatMul(b.parameter([3, 8], "f32"), build(), transpose_b=True))
    rows = storage(model)
    main = next(row for row in rows if row.parameters == 128)
    assert (main.form, main.parameters, main.bytes) == expected
    assert {row.form for row in rows if row is not main} <= {"scales and zero points", "i64"}
    (product,) = [entry for entry in entries(model) if entry.type == "MatMul"]
    held = sum(row.bytes for row in rows)
    assert product.weights == held  # all constants lead to the one product


def test_fake_quantized_weights() -> None:
    weights = b.FakeQuantize(
        b.Convert(b.constant(w(16, 8, type=np.int8)), destination_type="f32"), -1.0, 1.0, -1.0, 1.0, levels=255
    )
    model = b.model(b.MatMul(b.parameter([3, 8], "f32"), weights, transpose_b=True))
    assert "i8, FakeQuantize" in {row.form for row in storage(model)}


def test_bytes_that_constants_share_count_once() -> None:
    model = b.model(b.Add(b.Add(b.parameter([8], "f32"), w(8)), w(8)))
    (row,) = storage(model)
    assert (row.constants, row.parameters, row.bytes) == (2, 16, 32)


# ---------------------------------------------------------------------------------------------
# the command


def show(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["show", str(SAMPLES / "convnet.xml"), *arguments])


def test_the_command() -> None:
    lines = show("--layers").stdout.splitlines()
    at = lines.index("layers")
    assert lines[at + 1].split() == [
        "layer", "type", "attributes", "inputs", "outputs", "consumers", "weights", "FLOPs", "bytes",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[at + 2 : at + 15]][1:3] == ["block1/conv", "block1/add"]
    flops = 2 * 8 * 28 * 28 * 9 + 3 * 8 * 28 * 28 + 2 * 16 * 14 * 14 * 72 + 3 * 16 * 14 * 14 + 2 * 784 * 10 + 40
    assert f"in all {flops / 1e3:.3g} k FLOPs" in lines[-1]
    record = json.loads(show("--type", "MatMul", "--format", "json").stdout)
    assert [layer["name"] for layer in record["listed"]] == ["logits"]
    assert record["totals"]["flops"] == flops
    assert record["stored"][0]["stored_as"] == "f32"


def test_other_input_shapes() -> None:
    model = SAMPLES / "elementwise.xml"
    result = CliRunner().invoke(cli, ["show", str(model), "--layers", "--shape", "a=[2,3,4]", "--format", "json"])
    listed = {layer["name"]: layer for layer in json.loads(result.stdout)["listed"]}
    assert listed["multiply"]["outputs"][0]["shape"] == [2, 3, 4]


@pytest.mark.parametrize(("arguments", "said"), [
    (["--with", "[1,x]"], "[1,x] is not a shape"),
    (["--with", "[1,2"], "[1,2 is not a shape"),
    (["--shape", "image=[1]"], "--shape changes only what --memory and --layers show"),
])  # fmt: skip
def test_bad_usage(arguments: list[str], said: str) -> None:
    result = show(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
