"""BinaryConvolution-1. Its filters are u1: tables of kit know no such arrays, so that values have their own test here."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.inference.layer import infer
from irrun.opdef import Site, Value
from irrun.types import ELEMENT_TYPES
from kit import *
from nets import Net


def _attributes(**given: Any) -> dict[str, Any]:
    plain = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1], "auto_pad": "explicit"}
    return plain | {"mode": "xnor-popcount", "pad_value": 0.0} | given


def _padded(value: float, **given: Any) -> dict[str, Any]:
    return _attributes(pads_begin=[0, 1], pads_end=[0, 1], pad_value=value, **given)


_ROW, _PAIR = [[[[1, 1, 0, 0]]]], [[[[1, 0]]]]

# these filters are no constants: fewer than a byte has bits stay in order
CALLS: list[tuple[str, Any, Any, Any, dict[str, Any]]] = [
    ("agree-less-disagree", _ROW, _PAIR, [[[[0, 2, 0]]]], _attributes()),
    ("channels", [[[[1]], [[0]], [[1]]]], [[[[1]], [[1]], [[1]]]], [[[[1]]]], _attributes()),
    ("two-filters", [[[[1, 0]]]], [[[[1, 0]]], [[[0, 0]]]], [[[[2]], [[0]]]], _attributes()),
    ("pad-0", _ROW, _PAIR, [[[[-1, 0, 2, 0, -1]]]], _padded(0)),
    ("pad-1", _ROW, _PAIR, [[[[0, 0, 2, 0, -2]]]], _padded(1)),
    ("pad-minus-1", _ROW, _PAIR, [[[[-2, 0, 2, 0, 0]]]], _padded(-1)),
    ("stride", _ROW, _PAIR, [[[[-1, 2, -1]]]], _padded(0, strides=[1, 2])),
    ("dilation", _ROW, _PAIR, [[[[2, 2]]]], _attributes(dilations=[1, 2])),
    ("same-upper", _ROW, _PAIR, [[[[0, 2, 0, -1]]]], _attributes(auto_pad="same_upper")),
    ("same-lower", _ROW, _PAIR, [[[[-1, 0, 2, 0]]]], _attributes(auto_pad="same_lower")),
    # OpenVINO: the filters of a byte come low bit first, here the last of what a Const is read as
    ("bits-of-a-byte", [[[[1, 0, 0, 0, 0, 0, 0, 0]]]], [[[[0, 0, 0, 0, 0, 0, 0, 1]]]], [[[[8]]]], _attributes()),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int8])
@pytest.mark.parametrize(("data", "filters", "expected", "attributes"), [pytest.param(*v, id=id) for id, *v in CALLS])
def test_values(data, filters, expected, attributes, dtype):
    op = operation("BinaryConvolution-1", attributes)
    x, w = np.array(data, dtype), np.array(filters, np.uint8)
    got = op.run(x, w)
    (inferred,) = infer(op, Site(), [Value.of(x), Value.of(w, ELEMENT_TYPES["u1"])], {}, contents=False)
    assert inferred.shape.static == got.shape
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(x, np.array(data, dtype))
    np.testing.assert_array_equal(w, filters)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("count", [1, 3, 4, 7, 8, 9, 12, 15, 37])
def test_the_last_byte_of_constant_filters(count: int, exact: bool, tmp_path: Path) -> None:
    """The low bits of the last byte are read, too, where the filters do not fill it."""
    rng = np.random.default_rng(count)
    packed, data = rng.integers(0, 256, -(-count // 8), np.uint8), rng.integers(0, 2, (1, 1, 1, count))
    net = Net()
    x = net.parameter("f32", f"1,1,1,{count}", name="x")
    filters = net.const("u1", f"1,1,1,{count}", packed.tobytes())
    lists: dict[str, Any] = {k: ",".join(map(str, v)) if isinstance(v, list) else v for k, v in _attributes().items()}
    net.result(net.add("BinaryConvolution", [x, filters], [("FP32", "1,1,1,1")], **lists))
    path = net.save(tmp_path)
    assert not irrun.check(path).diagnostics
    bits = [packed[n // 8] >> n % 8 & 1 for n in range(count)]
    expected = sum(1 if bit == element else -1 for bit, element in zip(bits, data.ravel().tolist()))
    executable = irrun.compile(path, exact=exact)
    for _ in range(2):
        assert executable(data.astype(np.float32))[0].item() == expected


SHAPES = [
    Shapes("spec", "BinaryConvolution-1", ["f32[1,3,224,224]", "u1[64,3,5,5]"], "f32[1,64,224,224]", _attributes(pads_begin=[2, 2], pads_end=[2, 2])),
    Shapes("dynamic", "BinaryConvolution-1", ["f16[?,?,?,9]", "u1[64,3,5,5]"], "f16[?,64,1..,5]", _attributes()),
    Shapes("unknown-ranks", "BinaryConvolution-1", ["f32[...]", "u1[...]"], "f32[?,?,1..,1..]", _attributes()),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-rank-3", "BinaryConvolution-1", ["f32[1,3,4]", "u1[4,3,2]"], _attributes()),
    Refusal("c1-ranks-differ", "BinaryConvolution-1", ["f32[1,3,4,4]", "u1[4,3,2]"], _attributes()),
    Refusal("c2-strides", "BinaryConvolution-1", ["f32[1,3,4,4]", "u1[4,3,2,2]"], _attributes(strides=[1])),
    Refusal("c3-stride-0", "BinaryConvolution-1", ["f32[1,3,4,4]", "u1[4,3,2,2]"], _attributes(strides=[0, 1])),
    Refusal("c4-kernel", "BinaryConvolution-1", ["f32[1,3,4,4]", "u1[4,3,5,2]"], _attributes()),
    Refusal("c5-channels", "BinaryConvolution-1", ["f32[1,3,4,4]", "u1[4,2,2,2]"], _attributes()),
    Refusal("ir301-f32-filters", "BinaryConvolution-1", ["f32[1,3,4,4]", "f32[4,3,2,2]"], _attributes()),
    Refusal("ir301-boolean-data", "BinaryConvolution-1", ["boolean[1,3,4,4]", "u1[4,3,2,2]"], _attributes()),
]


_MODELS = [
    ("plain", _attributes()),
    ("pads", _attributes(pads_begin=[1, 0], pads_end=[2, 1])),
    ("pads-of-1", _attributes(pads_begin=[1, 1], pads_end=[1, 1], pad_value=1.0)),
    ("pads-of-minus-1", _attributes(pads_begin=[1, 1], pads_end=[1, 1], pad_value=-1.0)),
    ("strides", _attributes(strides=[2, 1], dilations=[1, 2])),
    ("same-upper", _attributes(strides=[2, 1], auto_pad="same_upper")),
    ("same-lower", _attributes(auto_pad="same_lower")),
    ("valid", _attributes(auto_pad="valid", pads_begin=[1, 1])),
]


# OpenVINO: the CPU plugin reads beyond the filters where they do not fill whole bytes
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("attributes", [pytest.param(a, id=id) for id, a in _MODELS])
def test_against_openvino(attributes, dtype, ov, oracle):
    rng = np.random.default_rng(0)
    data, packed = rng.integers(0, 2, (2, 8, 6, 7)).astype(dtype), rng.integers(0, 256, 8 * 8 * 3 * 3 // 8, np.uint8)
    parameter = ov.opset1.parameter(ov.Shape(data.shape), ov.Type(data.dtype))
    filters = ov.op.Constant(ov.Tensor(packed, ov.Shape([8, 8, 3, 3]), ov.Type.u1))
    names = ("strides", "pads_begin", "pads_end", "dilations", "mode", "pad_value", "auto_pad")
    node = ov.opset1.binary_convolution(parameter, filters, *(attributes[n] for n in names))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        ov.serialize(ov.Model([node], [parameter], "case"), path)
        (expected,) = oracle(path, [data])
        assert not irrun.check(path).diagnostics
        np.testing.assert_array_equal(irrun.run(path, [data], strict=True).arrays[0], expected)
