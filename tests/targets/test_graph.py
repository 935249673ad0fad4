"""What stands around a layer: weights, attentions, and what OpenVINO joins with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
import irrun.build as b
from irrun.api import load
from irrun.checking.checker import examine
from irrun.targets.facts import facts
from layer_facts import sentences
from nets import Net

ATTENTION = "it ends an attention at an input or an output of the model"
SUMMED, EACH = "its weights have a scale for each summed row", "its weights have a scale for each number"
POINTS = "its weights have zero points for each summed row"
USUAL = "its weights of few bits have a scale for each column or group"
UNUSUAL = (
    "its weights of few bits are no matrix, or have fewer than 4 summed rows, or other scales or zero points than one "
    "for each column or group"
)
UNGROUPED, FEW = "a Reshape changes its weights, which have no groups", ", and fewer than 4 summed rows"
OF_U8, OF_GROUPS = (f"its weights of u8 have a scale for each {part}" for part in ("column", "group"))
BATCHES = "its weights have a batch of several matrices, and no zero points"
TWO = "its weights have two batches of one matrix"
SMALL = "its weights are too small to be decompressed with AMX"


@pytest.mark.parametrize(
    ("type", "scale", "zero_point", "wanted"),
    [
        *(("i4", "8,1", None, {USUAL}), ("i4", "8,1", "1,1", {USUAL}), ("i4", "1,6", None, {SUMMED, UNUSUAL})),
        *(("u8", "8,1", None, {OF_U8}), ("u8", "8,1", "8,1", {OF_U8}), ("u8", "8,1", "1,1", set())),
        *(("i8", "1,6", None, {SUMMED}), ("i8", "8,6", None, {EACH}), ("i8", "8,1", "1,6", {POINTS})),
        *(("i4", "8,1", "8,6", {POINTS, UNUSUAL}), ("i4", "", None, {UNUSUAL}), ("f16", "1,6", None, set())),
    ],
)
@pytest.mark.parametrize("is_read_again", [False, True])
def test_weights_behind_a_decompression(
    tmp_path: Path, type: str, scale: str, zero_point: str | None, wanted: set[str], *, is_read_again: bool
) -> None:
    """Weights of 8 columns and 6 summed rows. Those that another layer reads are folded, and count as any constant."""
    net = Net()
    x, blob = net.parameter("f32", "4,6"), bytes(4 * 48)
    cast, y = _decompressed(net, type, ("8,6", scale, zero_point), blob)
    net.result(net.add("MatMul", [x, y], [("FP32", "...")], name="layer", transpose_b="true"))
    if is_read_again:
        net.result(cast)
    wanted = set() if is_read_again else wanted | ({SMALL} if type != "f16" else set())
    assert sentences(net.save(tmp_path)) & {SUMMED, EACH, POINTS, USUAL, UNUSUAL, OF_U8, SMALL} == wanted


@pytest.mark.parametrize(("type", "wanted"), [("u8", f"{OF_U8}, before a Convert"), ("i4", USUAL)])
def test_a_convert_behind_decompressed_weights(tmp_path: Path, type: str, wanted: str) -> None:
    net, blob = Net(), bytes(4 * 48)
    _, y = _decompressed(net, type, ("8,6", "8,1", None), blob, "f16")
    y = net.add("Convert", [y], [("FP32", "...")], destination_type="f32")
    x = net.parameter("f32", "4,6")
    net.result(net.add("MatMul", [x, y], [("FP32", "...")], name="layer", transpose_b="true"))
    assert wanted in sentences(net.save(tmp_path))


@pytest.mark.parametrize(
    ("shape", "scale", "order", "wanted"),
    [
        *(("8,6", "8,1", "1,0", {OF_U8}), ("8,6", "8,1", "0,1", {SUMMED}), ("8,6", "1,6", None, {OF_GROUPS})),
        *(("8,3", "8,1", "1,0", {OF_U8 + FEW}), ("8,1", "8,1", "1,0", set())),
    ],
)
@pytest.mark.parametrize("is_transposed", [False, True])
def test_weights_that_a_layer_moves(
    tmp_path: Path, shape: str, scale: str, order: str | None, wanted: set[str], *, is_transposed: bool
) -> None:
    """A Transpose moves the axes, or a Reshape gives them other lengths. The product may transpose the weights, too."""
    net, blob = Net(), bytes(4 * 64)
    _, y = _decompressed(net, "u8", (shape, scale, None), blob)
    numbers = np.array([int(n) for n in (order or "6,8").split(",")], "<i8").tobytes()
    y = net.add("Transpose" if order else "Reshape", [y, net.const("i64", "2", numbers)], [("FP32", "...")])
    flag = "true" if is_transposed else "false"
    net.result(net.add("MatMul", [net.parameter("f32", "?,?"), y], [("FP32", "...")], name="layer", transpose_b=flag))
    found = sentences(net.save(tmp_path))
    if not is_transposed:
        assert found & {SUMMED, OF_U8, OF_U8 + FEW, OF_GROUPS, UNGROUPED} == wanted
    assert (UNGROUPED in found) is (is_transposed and order is None)


@pytest.mark.parametrize(
    ("shape", "type", "has_points", "wanted"),
    [
        *(("1,8,6", "i4", False, {USUAL}), ("1,8,6", "u8", False, {OF_U8}), ("6", "i4", False, {UNUSUAL})),
        *(("3,8,6", "i4", False, {UNUSUAL, BATCHES}), ("3,8,6", "u8", False, {BATCHES}), ("3,1,6", "u8", False, set())),
        *(("3,8,6", "u8", True, set()), ("1,1,8,6", "i4", True, {UNUSUAL, TWO}), ("2,1,8,6", "u8", False, set())),
    ],
)
def test_batches_of_weights(tmp_path: Path, shape: str, type: str, has_points: bool, wanted: set[str]) -> None:
    """A batch of one matrix counts as the matrix. 2025.4 has no kernel of several, and 2025.0 none of two axes of 1."""
    net, blob = Net(), bytes(4 * 144)
    scales = ",".join([*shape.split(",")[:-1], "1"])
    x = net.parameter("f32", "4,6")
    _, y = _decompressed(net, type, (shape, scales, scales if has_points else None), blob)
    net.result(net.add("MatMul", [x, y], [("FP32", "...")], name="layer", transpose_b="true"))
    assert sentences(net.save(tmp_path)) & {USUAL, UNUSUAL, OF_U8, BATCHES, TWO} == wanted


def _decompressed(
    net: Net, type: str, shapes: tuple[str, str, str | None], blob: bytes, to: str = "f32"
) -> tuple[Any, Any]:
    """Add weights; ``shapes`` are those of the weights, the scales and the zero points. Return the Convert and the end."""
    weights, scales, points = shapes

    def cast(shape: str) -> Any:
        return net.add("Convert", [_const(net, type, shape, blob)], [(f"FP{to[1:]}", "...")], destination_type=to)

    first = y = cast(weights)
    if points is not None:
        y = net.add("Subtract", [y, cast(points)], [(f"FP{to[1:]}", "...")])
    return first, net.add("Multiply", [y, _const(net, to, scales, blob)], [(f"FP{to[1:]}", "...")])


def _const(net: Net, type: str, shape: str, blob: bytes) -> Any:
    count = int(np.prod([int(dim) for dim in shape.split(",") if dim]))
    return net.const(type, shape, blob[: (count * int(type[1:]) + 7) // 8])


@pytest.mark.parametrize(
    ("shape", "is_transposed", "wanted"),
    [
        ("1,2,4", True, {"its weights have one column and several groups"}),
        ("3,2,4", True, set()),
        ("1,2,4", False, {"its weights have one group"}),
        ("2,4,3", False, set()),
    ],
)
def test_groups_of_weights(tmp_path: Path, shape: str, is_transposed: bool, wanted: set[str]) -> None:
    """Each group of summed rows has a scale, and a Reshape joins the groups."""
    net, dims = Net(), [int(dim) for dim in shape.split(",")]
    scales = f"{dims[0]},{dims[1]},1" if is_transposed else f"{dims[0]},1,{dims[2]}"
    size, joined = int(np.prod(dims)), (dims[0], dims[1] * dims[2]) if is_transposed else (dims[0] * dims[1], dims[2])
    weights = net.add("Convert", [net.const("u8", shape, bytes(size))], [("FP32", shape)], destination_type="f32")
    scale = net.const("f32", scales, bytes(4 * int(np.prod([int(dim) for dim in scales.split(",")]))))
    weights = net.add("Multiply", [weights, scale], [("FP32", shape)])
    target = net.const("i64", "2", np.array(joined, "<i8").tobytes())
    weights = net.add("Reshape", [weights, target], [("FP32", "...")], special_zero="false")
    x = net.parameter("f32", f"5,{joined[1] if is_transposed else joined[0]}")
    flag = "true" if is_transposed else "false"
    net.result(net.add("MatMul", [x, weights], [("FP32", "...")], name="layer", transpose_a="false", transpose_b=flag))
    found = sentences(net.save(tmp_path))
    assert {s for s in found if "group" in s} == wanted | {OF_GROUPS}
    assert "its weights are too small to be decompressed with AMX" in found


@pytest.mark.parametrize(
    ("before", "after", "ends_there"),
    [("", "", True), ("", "MatMul", True), ("ReLU", "", True), ("ReLU", "Tanh", True), ("ReLU", "MatMul", False)],
)
@pytest.mark.parametrize("is_one_layer", [False, True])
def test_attention_at_an_end_of_the_model(
    tmp_path: Path, before: str, after: str, *, ends_there: bool, is_one_layer: bool
) -> None:
    """2025.4.1 refuses an attention at an input of the model, or at a Result with no product before it."""
    net = Net()
    x = net.parameter("f32", "1,4,4")
    x = net.add(before, [x], [("FP32", "...")]) if before else x
    y = _attention(net, x, x, is_one_layer=is_one_layer)
    if after:
        y = net.add(after, [y, y] if after == "MatMul" else [y], [("FP32", "...")])
    net.result(y)
    assert (ATTENTION in sentences(net.save(tmp_path))) is ends_there


def test_attention_of_constant_values_or_more_than_4_dims(tmp_path: Path) -> None:
    for shape in ("1,4,4", "1,1,1,4,4"):
        x = (net := Net()).parameter("f32", shape)
        values = net.const("f32", "1,4,4", bytes(64)) if shape == "1,4,4" else x
        net.result(_attention(net, x, values, is_one_layer=True))
        assert ATTENTION not in sentences(net.save(tmp_path))


def _attention(net: Net, x: Any, values: Any, *, is_one_layer: bool) -> Any:
    type = "ScaledDotProductAttention"
    if is_one_layer:
        return net.add(type, [x, x, values], [("FP32", "...")], name="layer", opset="opset13", causal="false")
    scores = net.add("MatMul", [x, x], [("FP32", "...")], transpose_b="true")
    scores = net.add("Multiply", [scores, net.const("f32", "", bytes(4))], [("FP32", "...")])
    weights = net.add("SoftMax", [scores], [("FP32", "...")], axis="2")
    return net.add("MatMul", [weights, values], [("FP32", "...")], name="layer")


def _joined(dims: Sequence[int], bias: Sequence[int], type: Callable[..., Any] = b.Add) -> Any:
    product = b.MatMul(b.parameter(dims, name="x"), _ones(4, 4))
    return b.Relu(type(product, _ones(*bias), name="layer"))


def _multiplied(first: Callable[..., Any], factor: Any) -> Any:
    return b.Multiply(first(b.parameter([4], name="x"), _ones(4)), factor, name="layer")


def _gelu(divided: Callable[..., Any], last: Callable[..., Any]) -> Any:
    x = b.parameter([4], name="x")
    half = b.Multiply(b.Add(b.Erf(divided(x, _ones(4))), _ones(4)), _ones(4), name="layer")
    return last(x, half)


def _quantized(x: Any, levels: int = 256, type: str = "f8") -> Any:
    return b.FakeQuantize(x, *[b.constant(np.ones((), type))] * 4, levels=levels, name="layer")


def _f64() -> Any:
    return b.parameter([4], "f64", name="x")


def _normed(x: Any, outer: Callable[..., Any]) -> Any:
    return outer(b.BatchNormInference(x, *[_ones(4)] * 4, epsilon=1.0), _ones(1, 4), name="layer")


def _twice_normed(inner: Callable[..., Any]) -> Any:
    x = inner(b.parameter([2, 4], name="x"), _ones(1, 4))
    return b.BatchNormInference(x, *[_ones(4)] * 4, epsilon=1.0, name="layer")


def _attended(*ranks: int, mask: Sequence[int] = ()) -> Any:
    inputs = [b.parameter([1] * (rank - 2) + [4, 4], name=f"x{n}") for n, rank in enumerate(ranks)]
    masks = [b.parameter(mask, name="mask")] if mask else []
    return b.ScaledDotProductAttention(*inputs, *masks, causal=False, name="layer")


def _ones(*shape: int) -> Any:
    return b.constant(np.ones(shape, "f4"))


WIDER, AGAIN, SUMMED_UP, ADDED = (
    "it adds dims to a product, before a layer with one input",
    "a constant multiplies a product with another",
    "a constant multiplies a sum with another",
    "a constant is added to a sum with another",
)
RANKS, NORMAL = "it ends an attention whose inputs differ in rank", "a Subtract reads it"
ONCE = "a constant scales it before a convolution"
SCALED, IN_F64 = "constants scale its channels", "it computes in f64"
UNARY = "what reads it is joined with a layer of one input"
IN_KERNEL = "it ends the kernel of the layer before it"
NARROW = "several layers read the Subtract that decompresses its weights of few bits"


@pytest.mark.parametrize(
    ("made", "sentence", "holds"),
    [
        (lambda: _joined([-1, 4], [1, 1, 4]), WIDER, True),
        (lambda: _joined([-1, 4], [1, 1, 4], b.Subtract), WIDER, True),
        (lambda: _joined([-1, 4], [1, 1, 4], b.Multiply), WIDER, False),
        (lambda: _joined([-1, 4], [1, 4]), WIDER, False),
        (lambda: _joined([-1, 4], [2, 1, 4]), WIDER, False),
        (lambda: _joined([3, 4], [1, 1, 4]), WIDER, False),
        (lambda: _multiplied(b.Multiply, _ones(4)), AGAIN, True),
        (lambda: _multiplied(b.Add, _ones(4)), SUMMED_UP, True),
        (lambda: _multiplied(b.Divide, _ones(4)), AGAIN, False),
        (lambda: _multiplied(lambda x, y: b.Add(b.Erf(x), y), _ones(4)), SUMMED_UP, True),
        (lambda: _gelu(b.Divide, b.Multiply), SUMMED_UP, False),
        (lambda: _gelu(b.Multiply, b.Multiply), SUMMED_UP, True),
        (lambda: _gelu(b.Divide, b.Add), SUMMED_UP, True),
        (lambda: _normed(b.parameter([2, 4], name="x"), b.Multiply), SUMMED_UP, True),
        (lambda: _normed(b.parameter([2, 4], name="x"), b.Add), ADDED, True),
        (lambda: _twice_normed(b.Subtract), "constants scale a sum with another", True),
        (lambda: _twice_normed(b.Multiply), "constants scale a sum with another", False),
        (lambda: _multiplied(lambda x, y: b.Add(x, y), b.parameter([4], name="y")), SUMMED_UP, False),
        (lambda: _quantized(b.Transpose(_f64(), [0])), IN_F64, True),
        (lambda: _quantized(b.Add(_f64(), b.constant(np.ones(4)))), IN_F64, True),
        (lambda: _quantized(b.Relu(b.Exp(_f64()))), IN_F64, False),
        (lambda: _quantized(_f64(), levels=2), IN_F64, False),
        (lambda: _quantized(b.Convert(b.parameter([4], name="x"), destination_type="f64")), IN_F64, False),
        (lambda: _quantized(_product("product"), type="f4"), IN_KERNEL, True),
        (lambda: _quantized(b.Relu(_product("product")), type="f4"), IN_KERNEL, False),
        (lambda: {"x": (x := _product("product")), "y": _quantized(x, type="f4")}, IN_KERNEL, False),
        (lambda: b.Add(b.Add(b.parameter([4], name="x"), _ones(4)), _ones(4), name="layer"), ADDED, True),
        (lambda: b.Add(b.Multiply(b.parameter([4], name="x"), _ones(4)), _ones(4), name="layer"), ADDED, False),
        (lambda: _multiplied(b.Add, b.parameter([4], name="y")), SUMMED_UP, False),
        (lambda: _attended(4, 3, 3), RANKS, True),
        (lambda: _attended(3, 3, 4), RANKS, True),
        (lambda: _attended(3, 3, 3, mask=[1, 1, 4, 4]), RANKS, True),
        (lambda: _attended(3, 3, 3, mask=[4, 4]), RANKS, False),
        (lambda: b.Subtract(_normalized(), b.parameter([2, 4], name="y")), NORMAL, True),
        (lambda: b.Add(_normalized(), b.Tanh(b.parameter([2, 4], name="y"))), UNARY, True),
        *(
            (lambda shape=shape: b.Divide(_product(), _ones(*shape)), SCALED, holds)
            for shape, holds in (((1, 3, 1, 1), True), ((1,), False), ((4,), False), ((3, 1, 1), False))
        ),
        (lambda: b.BatchNormInference(_product(), *[_ones(3)] * 4, epsilon=1.0), SCALED, True),
        (lambda: b.Add(_product(), _ones(1, 3, 1, 1)), SCALED, False),
        (lambda: _scaled_and_read(), f"{SCALED} for one of several readers", True),
        (lambda: _convolved(b.Multiply(_product(), _ones(1, 1, 1, 1))), ONCE, True),
        (lambda: b.Multiply(_product(), _ones(1, 1, 1, 1)), ONCE, False),
        (lambda: b.Add(_normalized(), b.parameter([2, 4], name="y")), UNARY, False),
        (lambda: b.Subtract(b.Tanh(b.parameter([2, 4], name="y")), _normalized()), UNARY, False),
        (lambda: b.Relu(_normalized()), NORMAL, False),
        (lambda: b.LogicalNot(b.IsNaN(b.parameter([4], name="x"), name="layer")), "a LogicalNot reads it", True),
        (lambda: _narrow(is_shared=True), NARROW, True),
        (lambda: _narrow(is_shared=False), NARROW, False),
    ],
)
def test_sentences_about_several_layers(tmp_path: Path, made: Callable[[], Any], sentence: str, holds: bool) -> None:
    """Releases join layers, and refuse what they made: each sentence is about what they join."""
    made = made()
    irrun.save_model(b.model(made if isinstance(made, dict) else {"y": made}), tmp_path / "model.xml")
    assert (sentence in sentences(tmp_path / "model.xml")) is holds


def _product(name: str = "layer") -> Any:
    return b.MatMul(b.parameter([2, 3, 5, 4], name="x"), _ones(4, 4), name=name)


def _scaled_and_read() -> Any:
    product = _product()
    return {"x": b.Multiply(product, _ones(1, 3, 1, 1)), "y": b.Relu(product)}


def _convolved(x: Any) -> Any:
    no = {"pads_begin": (0, 0), "pads_end": (0, 0)}
    return b.Convolution(x, _ones(2, 3, 1, 1), strides=(1, 1), dilations=(1, 1), **no)


def _normalized() -> Any:
    return b.GroupNormalization(
        b.parameter([2, 4], name="x"), _ones(4), _ones(4), num_groups=2, epsilon=1.0, name="layer"
    )


def _narrow(*, is_shared: bool) -> Any:
    codes = (
        b.Convert(b.constant(np.ones(shape, ml_dtypes.int4)), destination_type="f32") for shape in ((8, 4), (8, 1))
    )
    weights = b.Subtract(*codes)
    product = b.MatMul(b.parameter([2, 4], name="x"), b.Multiply(weights, _ones(8, 1)), transpose_b=True, name="layer")
    return {"y": product, "weights": weights} if is_shared else product


@pytest.mark.parametrize(("type", "is_empty"), [("i8", True), ("f4", True), ("f4", False)])
def test_an_empty_constant_that_a_result_returns(tmp_path: Path, type: str, *, is_empty: bool) -> None:
    shape = (2, 0) if is_empty else (2, 1)
    irrun.save_model(b.model({"layer": b.constant(np.zeros(shape, type))}), tmp_path / "model.xml")
    parsed = load(tmp_path / "model.xml")
    (found,) = (f for f in facts(parsed, *examine(parsed)) if f.layer is not None and f.layer.type == "Result")
    assert ("it returns an empty constant" in found.sentences) is is_empty


def test_more_than_32_dims(tmp_path: Path) -> None:
    for rank, has_more in ((32, False), (33, True)):
        irrun.save_model(
            b.model({"y": b.Relu(b.parameter([1] * rank, name="x"), name="layer")}), tmp_path / "model.xml"
        )
        assert ("output 0 has more than 32 dims" in sentences(tmp_path / "model.xml")) is has_more
