"""irrun.export: ONNX models, what they compute, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.diagnostics import ModelError
from irrun.model import Model

onnx: Any = pytest.importorskip("onnx", reason="ONNX models need the extra `onnx`")
ort: Any = pytest.importorskip("onnxruntime", reason="ONNX models are run by onnxruntime, of the extra `onnx`")

from irrun.export import NEWEST, OLDEST, registry, to_onnx  # noqa: E402


def computed(path: Path, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return what onnxruntime computes."""
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([value.name for value in session.get_inputs()], arrays)))


def saved(model: Model, folder: Path) -> Path:
    """Write a model, so that findings name its lines."""
    irrun.save_model(model, folder / "model.xml")
    return folder / "model.xml"


@pytest.mark.parametrize("opset", [OLDEST, 18, 21, min(NEWEST, 23)])
def test_a_network_in_each_operation_set(opset: int, tmp_path: Path) -> None:
    x = b.parameter([1, 2, 4, 4], name="x")
    filters = np.arange(36, dtype=np.float32).reshape(2, 2, 3, 3) / 9 - 2
    y = b.Convolution(x, filters, strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilations=[1, 1])
    z = b.ReduceMean(b.ReLU(y, name="relu"), np.array([2, 3]), keep_dims=False)
    written = to_onnx(b.model({"z": z}), tmp_path / "m.onnx", opset=opset)
    assert (written.inputs, written.outputs, written.verified) == (("x",), ("z",), True)
    data = np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 2, 4, 4)
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 3), (2, 3))
    by_hand = np.einsum("nchwij,ocij->nohw", windows, filters).clip(0).mean((2, 3))
    np.testing.assert_allclose(computed(tmp_path / "m.onnx", data)[0], by_hand, rtol=1e-5)
    graph = onnx.load(tmp_path / "m.onnx")
    assert graph.opset_import[0].version == opset
    assert "relu" in [node.name for node in graph.graph.node]


def test_dims_keep_their_names(tmp_path: Path) -> None:
    x = b.parameter(["?", 3], name="x")
    to_onnx(b.model({"y": b.Add(x, np.float32(1))}), tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx").graph
    dims = [value.type.tensor_type.shape.dim for value in (*graph.input, *graph.output)]
    assert [[dim.dim_param or dim.dim_value for dim in each] for each in dims] == [["x[0]", 3], ["x[0]", 3]]


def test_external_data(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).normal(size=(64, 48)).astype(np.float32)
    x = b.parameter([2, 64], name="x")
    written = to_onnx(b.model({"y": b.MatMul(x, weights)}), tmp_path / "m.onnx", external=True)
    assert [file.name for file in written.files] == ["m.onnx", "m.onnx.data"]
    assert (tmp_path / "m.onnx.data").read_bytes() == weights.tobytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    data = np.ones((2, 64), np.float32)
    np.testing.assert_allclose(computed(tmp_path / "m.onnx", data)[0], data @ weights, rtol=1e-4, atol=1e-4)


def test_variables_become_inputs_and_outputs(tmp_path: Path) -> None:
    x = b.parameter([2], name="x")
    read = b.ReadValue(np.zeros(2, np.float32), variable_id="total", variable_type="f32", variable_shape=[2])
    total = b.Add(x, read)
    model = b.model({"y": b.Multiply(total, np.float32(10))}, sinks=[b.Assign(total, variable_id="total")])
    written = to_onnx(model, tmp_path / "m.onnx")
    assert written.states == {"total": "total.next"}
    y, after = computed(tmp_path / "m.onnx", *np.array([[1, 2], [5, 6]], np.float32))
    assert (y.tolist(), after.tolist()) == ([60, 80], [6, 8])


@pytest.mark.parametrize(
    ("type", "opset", "held"),
    [("i8", 17, "INT8"), ("u8", 21, "UINT8"), ("u4", 17, "UINT8"), ("u4", 21, "UINT4"), ("i4", 21, "INT4")],
)
def test_compressed_weights_stay_compressed(type: str, opset: int, held: str, tmp_path: Path) -> None:
    low, high = {"i8": (-128, 128), "u8": (0, 256), "u4": (0, 16), "i4": (-8, 8)}[type]
    codes = np.random.default_rng(0).integers(low, high, (8, 4, 16))
    scales = np.linspace(0.5, 2, 8 * (4 if "4" in type and opset == 21 else 1)).reshape(8, -1, 1).astype(np.float32)
    numbers = b.Multiply(b.Convert(b.constant(codes, type), destination_type="f32"), scales)
    matrix = b.Reshape(numbers, np.array([8, 64]), special_zero=False)
    x = b.parameter([3, 64], name="x")
    to_onnx(b.model({"y": b.MatMul(x, matrix, transpose_b=True)}), tmp_path / "m.onnx", opset=opset)
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert held in [onnx.TensorProto.DataType.Name(tensor.data_type) for tensor in graph.initializer]
    assert "DequantizeLinear" in [node.op_type for node in graph.node]
    data = np.random.default_rng(1).normal(size=(3, 64)).astype(np.float32)
    by_hand = data @ (codes * scales).reshape(8, 64).T
    np.testing.assert_allclose(computed(tmp_path / "m.onnx", data)[0], by_hand, rtol=1e-3, atol=1e-2)


def test_weights_of_two_layers_are_stored_once(tmp_path: Path) -> None:
    """An embedding whose weights, transposed, also give the logits."""
    table = b.constant(np.arange(32, dtype=np.float32).reshape(8, 4))
    rows = b.Gather(table, b.parameter([2], "i64", name="ids"), np.int64(0))
    to_onnx(b.model({"logits": b.MatMul(rows, table, transpose_b=True)}), tmp_path / "m.onnx")
    held = [tuple(tensor.dims) for tensor in onnx.load(tmp_path / "m.onnx").graph.initializer]
    assert [dims for dims in held if np.prod(dims) == 32] == [(8, 4)]


def test_inputs_that_numpy_does_not_have(tmp_path: Path) -> None:
    x = b.parameter([3], "bf16", name="x")
    assert to_onnx(b.model({"y": b.Add(x, x)}), tmp_path / "m.onnx").verified
    (value,) = onnx.load(tmp_path / "m.onnx").graph.input
    assert value.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16


def test_branches(tmp_path: Path) -> None:
    x, condition = b.parameter([2], name="x"), b.parameter([], "boolean", name="condition")
    y = b.If(condition, x, then=lambda x: b.Add(x, x), otherwise=lambda x: x)
    to_onnx(b.model({"y": y}), tmp_path / "m.onnx")
    data = np.array([1, 2], np.float32)
    assert [computed(tmp_path / "m.onnx", data, np.array(c))[0].tolist() for c in (True, False)] == [[2, 4], [1, 2]]


def test_a_level_may_be_rounded_the_other_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A converter that moves each element by less than a rounding of f32, and so a tie to the next level."""
    moved = registry.Converter(lambda call: call("Mul", call.input(0), np.float32(1 + 2e-7)))
    monkeypatch.setitem(registry._CONVERTERS, "Abs", moved)
    x = b.parameter([4], name="x")
    y = b.FakeQuantize(b.Abs(x), *(np.float32(n) for n in (0, 255, 0, 255)), levels=256)
    ties = np.array([0.5, 2.5, 4.5, 6.5], np.float32)
    assert to_onnx(b.model({"y": y}), tmp_path / "m.onnx", feeds=[{0: ties}]).verified
    assert computed(tmp_path / "m.onnx", ties)[0].tolist() != [0, 2, 4, 6]


def test_fake_quantize_on_the_grid_of_integers(tmp_path: Path) -> None:
    x = b.parameter([4], name="x")
    y = b.FakeQuantize(x, *(np.float32(n) for n in (-1.28, 1.27, -1.28, 1.27)), levels=256)
    to_onnx(b.model({"y": y}), tmp_path / "m.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node] == [
        "QuantizeLinear",
        "DequantizeLinear",
    ]
    result = computed(tmp_path / "m.onnx", np.array([-5, 0.004, 0.011, 5], np.float32))[0]
    np.testing.assert_allclose(result, [-1.28, 0, 0.01, 1.27], rtol=1e-6)


def refusal(model: Model | Path, path: Path, **options: Any) -> str:
    with pytest.raises(ModelError) as caught:
        to_onnx(model, path, **options)
    assert not path.exists()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "IR610"
    return f"{diagnostic.line} {diagnostic.layer} {diagnostic.message}"


def test_what_onnx_cannot_say_is_refused_at_its_line(tmp_path: Path) -> None:
    x = b.parameter([3, 3], name="x")
    path = saved(b.model({"y": b.Inverse(x, name="inverted")}), tmp_path)
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if 'name="inverted"' in text)
    assert refusal(path, tmp_path / "m.onnx") == f'{line} inverted Inverse "inverted": has no counterpart in ONNX'


@pytest.mark.parametrize(
    ("shape", "options", "said"),
    [
        ([2], {"opset": 16}, "does not write operation set 16"),
        ("...", {}, "the rank of x is not known"),
    ],
)
def test_refusals(shape: Any, options: dict[str, Any], said: str, tmp_path: Path) -> None:
    x = b.parameter(shape, name="x")
    assert said in refusal(b.model({"y": b.ReLU(x)}), tmp_path / "m.onnx", **options)


def test_a_wrong_converter_is_found_at_its_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = registry.Converter(lambda call: call("Exp", call.input(0)))
    monkeypatch.setitem(registry._CONVERTERS, "Sqrt", wrong)
    x = b.parameter([3], name="x")
    model = b.model({"y": b.Sigmoid(b.Sqrt(b.Abs(x), name="root"))})
    said = refusal(saved(model, tmp_path), tmp_path / "m.onnx")
    assert re.search(r'^\d+ root Sqrt "root": output 0 differs in onnxruntime: 3 of 3 elements', said)
    assert not to_onnx(model, tmp_path / "m.onnx", verify=False).verified


def rows(*shapes: Sequence[int]) -> list[np.ndarray]:
    return [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes]


def test_a_loop_and_its_outputs(tmp_path: Path) -> None:
    """A TensorIterator that adds up the rows of its input, and collects the sums."""
    x, start = b.parameter([4, 3], name="x"), b.parameter([1, 3], name="start")

    def add(row: b.Node, carried: b.Node) -> list[Any]:
        total = b.Add(row, carried)
        return [total, b.concatenated(total)]

    loop = b.TensorIterator(b.sliced(x), start, body=add)
    to_onnx(b.model({"total": loop[0], "sums": loop[1]}), tmp_path / "m.onnx")
    data, zero = rows([4, 3], [1, 3])
    last, sums = computed(tmp_path / "m.onnx", data, zero)
    np.testing.assert_array_equal(sums, zero + data.cumsum(0))
    np.testing.assert_array_equal(last, zero + data.sum(0, keepdims=True))


def _with_functions() -> irrun.Model:
    """Return a model whose first function reads a computed value, and whose second one reads the first."""
    x = b.parameter([2, "?"], name="x")
    inner = b.ErfInv(b.Tanh(b.Multiply(x, np.float32(0.3))), name="inner")
    outer = b.ErfInv(b.Multiply(inner, np.float32(0.1)), name="outer")
    return b.model({"sum": b.Add(inner, x), "inner": inner, "outer": outer})


def test_functions(tmp_path: Path) -> None:
    """A layer without a counterpart is a node of its own domain. ErfInv undoes Erf: onnxruntime runs the rest."""
    model = _with_functions()
    with pytest.raises(irrun.ModelError, match='ErfInv "inner": has no counterpart'):
        to_onnx(model, tmp_path / "a.onnx")
    written = to_onnx(model, tmp_path / "a.onnx", functions=True)
    assert (written.functions, written.verified) == (("org.openvino.opset17:ErfInv",), True)
    proto = onnx.load(tmp_path / "a.onnx")
    assert [node.op_type for node in proto.graph.node if node.domain == "org.openvino.opset17"] == ["ErfInv"] * 2
    assert [output.name for output in proto.graph.output] == ["sum", "inner", "outer"]


def test_functions_have_the_attributes_of_the_layer(tmp_path: Path) -> None:
    data, grid = b.parameter([1, 2, 4, 4], name="data"), b.parameter([3, 5], name="boxes")
    pooled = b.ROIAlignRotated(
        data,
        grid,
        np.zeros(3, np.int64),
        pooled_h=2,
        pooled_w=3,
        sampling_ratio=1,
        spatial_scale=0.5,
        clockwise_mode=True,
    )
    to_onnx(b.model({"y": pooled}), tmp_path / "a.onnx", functions=True)
    (node,) = onnx.load(tmp_path / "a.onnx").graph.node[:1]
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    assert attributes == {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": 1, "spatial_scale": 0.5, "clockwise_mode": 1}


def test_what_a_function_reads_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong converter before a function is found, although no output shows its value."""
    monkeypatch.setitem(registry._CONVERTERS, "Tanh", registry.Converter(lambda call: call("Sin", call.input(0))))
    x = b.parameter([4], name="x")
    model = b.model({"y": b.ErfInv(b.Tanh(x, name="wrong"))})
    with pytest.raises(irrun.ModelError, match='Tanh "wrong": output 0 differs in onnxruntime'):
        to_onnx(model, tmp_path / "a.onnx", functions=True)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda x: b.RandomUniform([2], 0.0, 1.0, output_type="f32", global_seed=0, op_seed=1), "has no counterpart"),
        (lambda x: b.Loop(2, True, x, body=lambda i, a: (True, b.ErfInv(a))), "has no counterpart"),
        (
            lambda x: b.ErfInv(b.Reshape(x, b.parameter(["?"], "i64"), special_zero=False)),
            "the rank of .* is not known",
        ),
    ],
)
def test_layers_that_are_no_functions(build: Callable[[b.Node], b.Node], said: str, tmp_path: Path) -> None:
    with pytest.raises(irrun.ModelError, match=said):
        to_onnx(b.model({"y": build(b.parameter([3], name="x"))}), tmp_path / "a.onnx", functions=True)


def _normalized(x: b.Node) -> b.Node:
    return b.MVN(x, [-1], normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt")


SCALE, BIAS = np.arange(1, 5, dtype=np.float32), np.arange(4, dtype=np.float32) / 8
NORMALIZATIONS: dict[str, tuple[Callable[[b.Node], dict[str, b.Node]], list[str]]] = {
    "scale and bias": (lambda x: {"y": b.Add(b.Multiply(_normalized(x), SCALE), BIAS)}, ["LayerNormalization"]),
    "axes of length 1": (
        lambda x: {"y": b.Add(BIAS.reshape(1, 1, 4), b.Multiply(_normalized(x), SCALE.reshape(1, 1, 4)))},
        ["LayerNormalization"],
    ),
    "scale alone": (lambda x: {"y": b.Multiply(_normalized(x), SCALE)}, ["LayerNormalization"]),
    "a bias of rows": (
        lambda x: {"y": b.Add(b.Multiply(_normalized(x), SCALE), BIAS[:3].reshape(3, 1))},
        ["LayerNormalization", "Add"],
    ),
    "an output between": (
        lambda x: {"n": (n := _normalized(x)), "y": b.Multiply(n, SCALE)},
        ["LayerNormalization", "Mul"],
    ),
}


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_layer_normalization_with_its_parameters(name: str, tmp_path: Path) -> None:
    build, types = NORMALIZATIONS[name]
    to_onnx(b.model(build(b.parameter([2, 3, 4], name="x"))), tmp_path / "a.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "a.onnx").graph.node] == types
    data = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    normal = (data - data.mean(-1, keepdims=True)) / np.sqrt(data.var(-1, keepdims=True) + 1e-5)
    bias = {"scale and bias": BIAS, "axes of length 1": BIAS, "a bias of rows": BIAS[:3].reshape(3, 1)}.get(name, 0)
    np.testing.assert_allclose(computed(tmp_path / "a.onnx", data)[-1], normal * SCALE + bias, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("Ab,bC->CA", [(2, 3), (3, 4)]),
        ("...i->i", [(2, 3, 4)]),
        ("a...b,b...->a...", [(2, 3, 4, 5), (5, 4)]),
        ("bA", [(2, 3)]),
    ],
)
def test_equations_of_einsum(equation: str, shapes: list[tuple[int, ...]], tmp_path: Path) -> None:
    """onnxruntime wants small letters, and ellipses of one rank that the output has."""
    inputs = [b.parameter(shape, name=f"x{n}") for n, shape in enumerate(shapes)]
    to_onnx(b.model({"y": b.Einsum(*inputs, equation=equation)}, inputs=inputs), tmp_path / "a.onnx")
    arrays = [np.random.default_rng(n).standard_normal(shape).astype(np.float32) for n, shape in enumerate(shapes)]
    expected = arrays[0].sum((0, 1)) if equation == "...i->i" else np.einsum(equation, *arrays)
    np.testing.assert_allclose(computed(tmp_path / "a.onnx", *arrays)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("axes", "size"), [([1, 2], 3), ([1], 4), ([], 3)])
def test_lrn_along_other_axes(axes: list[int], size: int, tmp_path: Path) -> None:
    """The definition of the page, with a region of even size one element smaller, as OpenVINO has it."""
    x = b.parameter([2, 3, 5], name="x")
    settings = {"alpha": 0.5, "beta": 0.75, "bias": 2.0, "size": size}
    to_onnx(b.model({"y": b.LRN(x, np.array(axes, np.int64), **settings)}), tmp_path / "a.onnx")
    data = np.random.default_rng(0).standard_normal((2, 3, 5)).astype(np.float32)
    sums, reach = data**2, (size - 1) // 2
    for axis in axes:
        padded = np.pad(sums, [(reach * (a == axis),) * 2 for a in range(3)])
        sums = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis).sum(-1)
    expected = data / (2 + 0.5 / size ** len(axes) * sums) ** 0.75
    np.testing.assert_allclose(computed(tmp_path / "a.onnx", data)[0], expected, rtol=1e-5)
