"""Older and newer operation sets, versions of the IR, and the decompositions that older operation sets need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun import surgery
from oracle import Oracle


def _x(*shape: int | str, type: str = "f32") -> b.Node:
    return b.parameter(shape, type)


DYNAMIC = ("?", 4, "?", 3)
SIZES = {"mode": "linear", "shape_calculation_mode": "sizes"}
WINDOWS: dict[str, Any] = {
    "kernel": [2, 2], "strides": [2, 2], "pads_begin": [1, 1], "pads_end": [1, 1], "auto_pad": "explicit",
}  # fmt: skip
ROUNDED = {**WINDOWS, "rounding_type": "ceil_torch"}
CASES: dict[str, tuple[int, Callable[[], b.Node | b.Output], str]] = {
    "Swish": (3, lambda: b.Swish(_x(2, 3), 0.5), "Multiply Multiply Sigmoid"),
    "HSwish": (3, lambda: b.HSwish(_x(2, "?")), "Add Clamp Divide Multiply"),
    "HSigmoid": (4, lambda: b.HSigmoid(_x(2, 3)), "Add Clamp Divide"),
    "SoftPlus": (3, lambda: b.SoftPlus(_x(2, 3)), "Abs Add Add Exp Log Negative ReLU"),
    "Mish": (3, lambda: b.Mish(_x(2, 3)), "Abs Add Add Exp Log Multiply Negative ReLU Tanh"),
    "Gelu, erf": (6, lambda: b.Gelu(_x(2, 3)), "Gelu"),
    "Gelu, tanh": (
        6,
        lambda: b.Gelu(_x(2, 3), approximation_mode="tanh"),
        "Add Add Multiply Multiply Multiply Multiply Power Tanh",
    ),
    "LogSoftmax": (4, lambda: b.LogSoftmax(_x(2, 3), axis=-1), "Exp Log ReduceMax ReduceSum Subtract Subtract"),
    "SoftMax": (7, lambda: b.SoftMax(_x(2, "?", 3), axis=-2), "SoftMax"),
    "ReduceL1": (3, lambda: b.ReduceL1(_x(2, 3), [1], keep_dims=True), "Abs ReduceSum"),
    "ReduceL2": (3, lambda: b.ReduceL2(_x(2, 3), [1], keep_dims=False), "Multiply ReduceSum Sqrt"),
    "ReduceL2, f16": (3, lambda: b.ReduceL2(_x(2, 3, type="f16"), [1]), "Convert Convert Multiply ReduceSum Sqrt"),
    "Gelu-2": (1, lambda: b.Gelu(_x(2, 3), opset=2), "Add Erf Multiply Multiply Multiply"),
    "MaxPool": (7, lambda: b.MaxPool(_x(1, 2, 5, 6), opset=8, **WINDOWS)[0], "MaxPool"),
    "Gather": (7, lambda: b.Gather(_x(2, 3), [0, -1], 1), "Add Convert Gather GreaterEqual Less LogicalAnd Select"),
    "RDFT": (
        8,
        lambda: b.RDFT(_x(2, "?", 6), [1, 2]),
        "Add Concat DFT Divide Multiply Slice Unsqueeze",
    ),
    "IRDFT": (8, lambda: b.IRDFT(_x(2, 3, 4, 2), [0, 1]), "Gather IDFT Multiply Squeeze"),
    "ScatterElementsUpdate": (
        11,
        lambda: b.ScatterElementsUpdate(_x(3, 2), [[-1, 0]], _x(1, 2), 0, use_init_val=False, opset=12),
        "Add Convert Less ScatterElementsUpdate Select",
    ),
    "Pad": (
        11,
        lambda: b.Pad(_x(4, "?"), [-1, 2], [0, -1], np.float32(7), pad_mode="constant", opset=12),
        "Pad StridedSlice",
    ),
    "Slice": (
        7,
        lambda: b.Slice(_x(4, "?", 5), [1, -3], [4, 2**31], [2, 1], [2, 0]),
        "Concat Concat Concat Convert Convert Convert Gather Gather Gather StridedSlice",
    ),
    "SoftSign": (8, lambda: b.SoftSign(_x(*DYNAMIC)), "Abs Add Divide"),
    "IsNaN": (9, lambda: b.IsNaN(_x(2, 3)), "NotEqual"),
    "IsInf": (9, lambda: b.IsInf(b.Log(_x(2, 3))), "Equal Equal Log LogicalOr"),
    "IsInf, positive": (9, lambda: b.IsInf(_x(2, 3), detect_negative=False), "Equal"),
    "IsFinite": (9, lambda: b.IsFinite(b.Log(_x(2, 3))), "Equal Log Subtract"),
    "Interpolate, sizes": (10, lambda: b.Interpolate(_x(1, 2, 3, 4), [6, 8], [2, 3], **SIZES), "Interpolate"),
    "Interpolate, scales": (
        10,
        lambda: b.Interpolate(
            _x(1, 2, 4, 4), np.array([2, 1.5], np.float32), [2, 3], mode="cubic", shape_calculation_mode="scales"
        ),
        "Interpolate",
    ),
    "GroupNormalization": (
        11,
        lambda: b.GroupNormalization(_x(*DYNAMIC), _x(4), _x(4), num_groups=2, epsilon=1e-3),
        "Add MVN Multiply Reshape Reshape ShapeOf Unsqueeze Unsqueeze",
    ),
    "BitwiseAnd": (12, lambda: b.BitwiseAnd(_x(2, 3, type="boolean"), _x(3, type="boolean")), "LogicalAnd"),
    "BitwiseNot": (12, lambda: b.BitwiseNot(_x(2, 3, type="boolean")), "LogicalNot"),
    "attention": (
        12,
        lambda: b.ScaledDotProductAttention(*(_x(1, 2, "?", 4) for _ in range(3)), causal=False),
        "MatMul MatMul Multiply SoftMax",
    ),
    "attention, causal": (
        12,
        lambda: b.ScaledDotProductAttention(_x(1, 2, 3, 4), *(_x(1, 2, 5, 4) for _ in range(2)), causal=True),
        "Add Gather Gather LessEqual MatMul MatMul Multiply Range Range Select ShapeOf ShapeOf SoftMax Unsqueeze",
    ),
    "attention, mask": (
        12,
        lambda: b.ScaledDotProductAttention(
            _x(1, 2, 3, 4), *(_x(1, 2, 5, 4) for _ in range(2)), _x(3, 5), 0.3, causal=False
        ),
        "Add MatMul MatMul Multiply Reshape SoftMax",
    ),
    "ConvertPromoteTypes": (
        13,
        lambda: b.Add(*b.ConvertPromoteTypes(_x(2, type="i8"), _x(2, type="f16"))),
        "Add Convert Convert",
    ),
    "EmbeddingBagOffsets": (14, lambda: b.EmbeddingBagOffsets(_x(5, 2), [0, 1, 2], [0, 2]), "EmbeddingBagOffsetsSum"),
    "EmbeddingBagPacked": (14, lambda: b.EmbeddingBagPacked(_x(5, 2), [[0, 1], [2, 3]]), "EmbeddingBagPackedSum"),
    "SearchSorted": (
        14,
        lambda: b.SearchSorted(np.array([-0.5, 0, 0.5], np.float32), _x(2, 3), right_mode=True, output_type="i32"),
        "Convert LessEqual ReduceSum Unsqueeze Unsqueeze",
    ),
    "SliceScatter": (
        14,
        lambda: b.SliceScatter(_x(4, 5), _x(4, 2), [1], [5], [2], [1]),
        "Range ReduceProd Reshape Reshape Reshape Reshape Reshape ScatterUpdate ShapeOf Slice",
    ),
    "EmbeddingBagOffsets, mean": (
        14,
        lambda: b.EmbeddingBagOffsets(_x(5, 2), [0, 1, 2], [0, 2, 2], reduction="mean"),
        "Concat Convert Convert Divide EmbeddingBagOffsetsSum Maximum Reshape StridedSlice Subtract",
    ),
    "EmbeddingBagPacked, mean": (
        14,
        lambda: b.EmbeddingBagPacked(_x(5, 2), [[0, 1], [2, 3]], reduction="mean"),
        "Convert Divide EmbeddingBagPackedSum Maximum",
    ),
    "AvgPool": (15, lambda: b.AvgPool(_x(1, 2, 5, 6), exclude_pad=True, dilations=[1, 1], **WINDOWS), "AvgPool"),
    "AvgPool, ceil_torch": (
        13,
        lambda: b.AvgPool(_x(1, 2, 6, 6), exclude_pad=False, opset=14, **ROUNDED),
        "AvgPool",
    ),
    "Squeeze": (14, lambda: b.Squeeze(_x(1, 2, 1), [0, 1], allow_axis_skip=True), "Reshape"),
    "ScatterNDUpdate": (
        14,
        lambda: b.ScatterNDUpdate(_x(3, 4, "?"), [[0, -1], [2, 1], [0, 3]], _x(3, "?"), reduction="sub", opset=15),
        "Add Add Add Broadcast Concat Concat Concat Concat Convert Convert Convert Gather Gather Gather Gather Less "
        "Multiply Multiply Negative ReduceProd ReduceProd Reshape Reshape Reshape Reshape ScatterElementsUpdate "
        "Select ShapeOf ShapeOf ShapeOf",
    ),
    "STFT": (
        14,
        lambda: b.STFT(_x(2, 9), _x(3), 5, 2, transpose_frames=True),
        "Add Gather Multiply Pad RDFT Range Squeeze Subtract Transpose Unsqueeze",
    ),
    "OneHot": (
        15,
        lambda: b.OneHot([-1, 0, 5], 3, 2.0, 0.5, axis=-1, negative_indices_mode="normalize"),
        "Add Convert Less OneHot Select",
    ),
    "BitwiseNot, integers": (12, lambda: b.BitwiseNot(_x(2, 3, type="i32")), "Subtract"),
    "Identity": (15, lambda: b.Identity(_x(2, 3)), "Convert"),
}


def _types(model: irrun.Model) -> str:
    return " ".join(sorted(ly.type for ly in model.layers.values() if ly.type not in ("Parameter", "Const", "Result")))


@pytest.mark.parametrize("name", CASES)
def test_decompositions(name: str) -> None:
    opset, build, types = CASES[name]
    model = b.model({"y": build()})
    older = surgery.downgrade(model, opset)
    assert _types(older) == types
    assert all(int((layer.version or "").removeprefix("opset")) <= opset for layer in older.layers.values())
    assert [older.result_name(result) for result in older.results] == ["y"]
    assert not irrun.check(older).diagnostics
    surgery.require_equal(surgery.original(model), older, limit=0.0)


@pytest.mark.parametrize("name", CASES)
def test_openvino_computes_the_same(name: str, tmp_path: Path, oracle: Oracle) -> None:
    opset, build, _ = CASES[name]
    model = b.model({"y": build()})
    irrun.save_model(model, tmp_path / "a.xml")
    irrun.save_model(surgery.downgrade(model, opset), tmp_path / "b.xml")
    random = np.random.default_rng(0)
    inputs = [
        (random.standard_normal([d.value or 5 for d in tensor.shape]) * 3).astype(tensor.type.dtype)  # type: ignore[union-attr]
        for tensor in model.inputs
    ]
    (expected,), (found,) = oracle(tmp_path / "a.xml", inputs), oracle(tmp_path / "b.xml", inputs)
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-4, atol=1e-5)


def test_special_numbers() -> None:
    """What IsNaN, IsInf and IsFinite say of numbers that are none."""
    x = b.parameter([4], name="x")
    outputs = {
        "nan": b.IsNaN(x),
        "inf": b.IsInf(x),
        "finite": b.IsFinite(x),
        "positive": b.IsInf(x, detect_negative=False),
    }
    older = surgery.downgrade(b.model(outputs), 9)
    found = irrun.run(older, np.array([1, np.nan, np.inf, -np.inf], np.float32))
    assert [found[name].tolist() for name in outputs] == [
        [False, True, False, False],
        [False, False, True, True],
        [True, False, False, False],
        [False, False, True, False],
    ]


def _older(opset: int, node: b.Node | b.Output, *arrays: np.ndarray) -> np.ndarray:
    """Return what the decomposition of a model with one output computes."""
    older = surgery.downgrade(b.model({"y": node}), opset)
    return irrun.run(older, list(arrays))["y"]


def test_the_angles_of_zeros_and_infinities() -> None:
    """Atan2 as C99 defines it for signed zeros and infinities."""
    special = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, 1e-30, -1e-30], np.float32)
    y, x = np.meshgrid(special, special)
    with np.errstate(all="ignore"):
        found = _older(16, b.Atan2(_x(8, 8), _x(8, 8)), y, x)
    np.testing.assert_allclose(found, np.arctan2(y, x), rtol=1e-6)
    assert (np.signbit(found) == np.signbit(np.arctan2(y, x))).all()


def test_fourier_transforms_of_other_sizes() -> None:
    """RDFT and IRDFT that cut and pad their axes, where OpenVINO is wrong (departures rdft_size and irdft_one)."""
    random = np.random.default_rng(0)
    real = random.standard_normal((2, 3, 6)).astype(np.float32)
    found = _older(8, b.RDFT(_x(2, 3, 6), [-2, 2], [4, 7]), real)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], np.fft.rfft2(real, (4, 7)), atol=1e-5)
    parts = random.standard_normal((3, 4, 2)).astype(np.float32)
    whole = parts[..., 0] + 1j * parts[..., 1]
    for size in (3, 5, 6, 8, 9):
        found = _older(8, b.IRDFT(_x(3, 4, 2), [0, 1], [-1, size]), parts)
        np.testing.assert_allclose(found, np.fft.irfft2(whole, (3, size)), atol=1e-6)


def test_windows_that_begin_in_the_pads() -> None:
    """Of 3 elements, windows of 1 with step 2 and a pad at the end, ceil has a window in the pad; ceil_torch has none."""
    array = np.arange(1, 4, dtype=np.float32).reshape(1, 1, 3)
    one = {**ROUNDED, "kernel": [1], "strides": [2], "pads_begin": [0], "pads_end": [1]}
    for node in (b.MaxPool(_x(1, 1, 3), opset=14, **one)[0], b.AvgPool(_x(1, 1, 3), exclude_pad=True, **one)):
        assert _older(13, node, array).tolist() == [[[1, 3]]]


def test_decompositions_in_bodies_and_states() -> None:
    """A decomposed layer in a Loop, one whose value is a state, and one whose inputs are decomposed themselves."""
    x = b.parameter([2, "?"], name="x")
    loop = b.Loop(3, True, x, body=lambda i, a: (True, b.SoftSign(b.SoftSign(a))), name="loop")
    read = b.ReadValue(np.ones((2, 1), np.float32), variable_id="v", variable_type="f32", variable_shape="2,1")
    sink = b.Assign(b.SoftSign(read), variable_id="v")
    model = b.model({"y": b.Add(loop, read)}, sinks=[sink])
    older = surgery.downgrade(model, 8)
    assert not irrun.check(older).diagnostics
    surgery.require_equal(surgery.original(model), older)
    (layer,) = [layer for layer in older.layers.values() if layer.bodies]
    assert _types(layer.bodies["body"]) == "Abs Abs Add Add Divide Divide"


def test_indices_that_may_be_negative() -> None:
    """Gather-7 has no negative indices: OpenVINO 2022.1 gives 0 for them."""
    x, ids = _x(4, 2), b.parameter(["?"], "i64", name="ids")
    found = _older(7, b.Gather(x, ids, 0), np.arange(8, dtype=np.float32).reshape(4, 2), np.array([-1, 1, -4]))
    assert found.tolist() == [[6, 7], [2, 3], [0, 1]]
    outside = _older(7, b.Gather(x, ids, 0), np.arange(8, dtype=np.float32).reshape(4, 2), np.array([4, -4, -5]))
    assert outside.tolist() == [[0, 0], [0, 1], [0, 0]], "Gather-8 gives 0 outside the axis"
    one = _older(7, b.Gather(x, b.parameter([], "i64", name="id"), 0), np.ones((4, 2), np.float32), np.array(-1))
    assert one.tolist() == [1, 1], "a scalar index takes no axis"
    plain = surgery.downgrade(b.model({"y": b.Gather(_x(4, 2), [3, 0], 0)}), 7)
    assert _types(plain) == "Gather"


def test_defaults_are_written(tmp_path: Path) -> None:
    """A SoftMax without an axis has axis 1. Releases of OpenVINO read SoftMax-1 without one as if it had axis 0."""
    irrun.save_model(b.model({"y": b.SoftMax(_x(2, 3))}), tmp_path / "a.xml")
    text = (tmp_path / "a.xml").read_text("utf-8")
    (tmp_path / "a.xml").write_text(text.replace('axis="1"', ""), "utf-8")
    older = surgery.downgrade(tmp_path / "a.xml", 7)
    (softmax,) = [layer for layer in older.layers.values() if layer.type == "SoftMax"]
    assert (softmax.version, softmax.attributes) == ("opset1", {"axis": "1"})


@pytest.mark.parametrize(
    ("build", "opset", "said"),
    [
        (lambda: b.BitwiseAnd(_x(2, type="i32"), _x(2, type="i32")), 12, 'BitwiseAnd "y" needs opset13'),
        (lambda: b.Slice(_x(4), [3], [0], [-1]), 7, 'Slice "y" needs opset8'),
        (lambda: b.Inverse(_x(2, 2), adjoint=False), 13, 'Inverse "y" needs opset14'),
        (lambda: b.ScatterElementsUpdate(_x(3), [0, 0], _x(2), 0, reduction="sum"), 11, "has reduction=.sum., which"),
        (
            lambda: b.AvgPool(_x(1, 2, "?", 4), exclude_pad=True, **ROUNDED),
            13,
            "rounding_type=.ceil_torch. should be one of",
        ),
    ],
)
def test_layers_that_older_operation_sets_cannot_say(build, opset, said) -> None:
    node = build()
    node.layer.name = "y"
    with pytest.raises(irrun.ModelError, match=said):
        surgery.downgrade(b.model({"out": node}), opset)


def test_the_newest_operation_sets(tmp_path: Path, oracle: Oracle) -> None:
    """Gather-1 becomes Gather-8, ShapeOf-1 ShapeOf-3; Interpolate-4 has other inputs than 11, and stays."""
    x = b.parameter([1, 2, 3, 4], name="x")
    gathered = b.Gather(x, [0], 1, opset=1, name="gathered")
    shape = b.ShapeOf(gathered, opset=1, name="shape")
    resized = b.Interpolate(
        gathered,
        [6, 8],
        np.ones(2, np.float32),
        [2, 3],
        mode="nearest",
        shape_calculation_mode="sizes",
        opset=4,
        name="r",
    )
    model = b.model({"y": resized, "s": shape})
    newer = surgery.upgrade(model)
    versions = {layer.name: layer.version for layer in newer.layers.values()}
    assert (versions["gathered"], versions["shape"], versions["r"]) == ("opset8", "opset3", "opset4")
    surgery.require_equal(surgery.original(model), newer)
    irrun.save_model(newer, tmp_path / "a.xml")
    data = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    found = oracle(tmp_path / "a.xml", [data])
    np.testing.assert_array_equal(found[0], data[:, :1].repeat(2, 2).repeat(2, 3))
    np.testing.assert_array_equal(found[1], [1, 1, 3, 4])


def test_versions_of_the_ir(tmp_path: Path, ov: object) -> None:
    """In OpenVINO, both versions have the same types, and version 11 has the names that version 10 has by itself."""
    x = b.parameter([2, 4], "i64", name="x")
    parts = b.Split(b.Convert(x, destination_type="i32"), 1, num_splits=2, name="parts")
    for version, model in enumerate(
        [surgery.with_version(b.model({"y": b.Abs(parts[1], name="a"), "p": parts[0]}), 10)]
    ):
        irrun.save_model(model, tmp_path / "v10.xml")
        irrun.save_model(surgery.with_version(model, 11), tmp_path / "v11.xml")
        interfaces = []
        for name in ("v10", "v11"):
            read = ov.Core().read_model(tmp_path / f"{name}.xml")  # type: ignore[attr-defined]
            assert f'version="{name[1:]}"' in (tmp_path / f"{name}.xml").read_text()
            interfaces.append([(port.get_names(), str(port.element_type)) for port in (*read.inputs, *read.outputs)])
        assert interfaces[0] == interfaces[1], version
        assert interfaces[0][2][0] == {"p", "parts.0"}


@pytest.mark.parametrize(
    ("type", "said"),
    [
        ("f16", 'input "x" is f16, which OpenVINO changes in IR version 10; insert a Convert to f32'),
        ("i64", 'output ".*" is i64, which OpenVINO changes in IR version 10; insert a Convert to i32'),
        ("boolean", 'output ".*" is boolean'),
    ],
)
def test_types_that_version_10_changes(type: str, said: str) -> None:
    x = b.parameter([2], type, name="x")
    with pytest.raises(irrun.ModelError, match=said):
        surgery.with_version(b.model({"y": b.Reshape(x, [1, 2], special_zero=False)}), 10)


def test_newer_versions_that_say_something_else() -> None:
    """Broadcast-1 in mode explicit is Broadcast-3; NonMaxSuppression-4 has another output than NonMaxSuppression-1."""
    x = b.parameter([3], name="x")
    wide = b.Broadcast(x, [2, 3], [1], mode="explicit", opset=1, name="wide")
    boxes, scores = b.parameter([1, 4, 4], name="boxes"), b.parameter([1, 1, 4], name="scores")
    kept = b.NonMaxSuppression(boxes, scores, 2, 0.5, 0.0, box_encoding="corner", opset=1, name="kept")
    newer = surgery.upgrade(b.model({"y": wide, "z": kept}))
    versions = {layer.name: layer.version for layer in newer.layers.values()}
    assert (versions["wide"], versions["kept"]) == ("opset3", "opset1")
