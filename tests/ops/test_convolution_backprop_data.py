"""ConvolutionBackpropData-1."""

from typing import Any

import numpy as np
import pytest

from irrun.opdef import Value
from irrun.types import PartialShape
from kit import *


def _attributes(spatial: int, **given: Any) -> dict[str, Any]:
    ones, zeros = [1] * spatial, [0] * spatial
    plain = {"strides": ones, "pads_begin": zeros, "pads_end": zeros, "dilations": ones, "auto_pad": "explicit"}
    return plain | {"output_padding": zeros} | given


_1D, _2D, _3D = _attributes(1), _attributes(2), _attributes(3)
_ROW, _TWO, _THREE = [[[1, 2, 3]]], [[[1, 2]]], [[[1, 2, 3]]]

VALUES = [
    Values("1d", "ConvolutionBackpropData-1", [_ROW, _TWO], [[[1, 4, 7, 6]]], _1D),
    Values("stride", "ConvolutionBackpropData-1", [_ROW, _TWO], [[[1, 2, 0, 2, 4, 0, 3, 6]]], _attributes(1, strides=[3])),
    Values("pads", "ConvolutionBackpropData-1", [_ROW, _THREE], [[[4, 10, 12, 9]]], _attributes(1, pads_begin=[1])),
    Values("dilation", "ConvolutionBackpropData-1", [_ROW, _TWO], [[[1, 2, 5, 4, 6]]], _attributes(1, dilations=[2])),
    Values("output-padding", "ConvolutionBackpropData-1", [_ROW, _TWO], [[[1, 2, 2, 4, 3, 6, 0]]], _attributes(1, strides=[2], output_padding=[1])),
    Values("output-padding-unlocks", "ConvolutionBackpropData-1", [_ROW, _THREE], [[[2, 5, 4, 9, 6, 9]]], _attributes(1, strides=[2], pads_begin=[1], pads_end=[1], output_padding=[1])),
    Values("channels", "ConvolutionBackpropData-1", [[[[1], [2]]], [[[1], [2], [3]], [[10], [20], [30]]]], [[[21], [42], [63]]], _1D),
    # an odd pad: same_upper has it at the beginning, same_lower at the end, the reverse of Convolution
    Values("same-upper", "ConvolutionBackpropData-1", [_ROW, _TWO, i64(5)], [[[2, 2, 4, 3, 6]]], _attributes(1, strides=[2], auto_pad="same_upper")),
    Values("same-lower", "ConvolutionBackpropData-1", [_ROW, _TWO, i64(5)], [[[1, 2, 2, 4, 3]]], _attributes(1, strides=[2], auto_pad="same_lower")),
    Values("same-upper-larger", "ConvolutionBackpropData-1", [_ROW, _TWO, i64(8)], [[[1, 2, 2, 4, 3, 6, 0, 0]]], _attributes(1, strides=[2], auto_pad="same_upper")),
    Values("same-upper-without-shape", "ConvolutionBackpropData-1", [_ROW, _TWO], [[[1, 2, 2, 4, 3, 6]]], _attributes(1, strides=[2], auto_pad="same_upper", pads_begin=[1])),
    # OpenVINO: valid cuts at the end, the specification at both ends
    Values("valid", "ConvolutionBackpropData-1", [_ROW, _TWO, i64(4)], [[[1, 2, 2, 4]]], _attributes(1, strides=[2], auto_pad="valid")),
    # OpenVINO: the pads at the beginning count together with an output_shape, too
    Values("explicit", "ConvolutionBackpropData-1", [_ROW, _TWO, i64(6)], [[[2, 2, 4, 3, 6, 0]]], _attributes(1, strides=[2], pads_begin=[1])),
    Values("nothing-left", "ConvolutionBackpropData-1", [[[[1]]], [[[1]]]], np.ones((1, 1, 0), int), _attributes(1, pads_begin=[1])),
    Values("i64-beyond-2**53", "ConvolutionBackpropData-1", [[[[2**53 + 1, 1]]], [[[1, 1]]]], [[[2**53 + 1, 2**53 + 2, 1]]], _1D),
    Values("f16-rounds-once", "ConvolutionBackpropData-1", [np.array([[[2048], [1], [1]]], np.float16), np.ones((3, 1, 1), np.float16)], np.array([[[2050]]], np.float16), _1D),
    Values("no-batch", "ConvolutionBackpropData-1", [np.ones((0, 1, 3)), np.ones((1, 2, 2))], np.ones((0, 2, 4)), _1D),
]  # fmt: skip

SHAPES = [
    Shapes("spec-1", "ConvolutionBackpropData-1", ["f32[1,20,224,224]", "f32[20,10,3,3]"], "f32[1,10,447,447]", _attributes(2, strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1])),
    Shapes("spec-2", "ConvolutionBackpropData-1", ["f32[1,20,2,2]", "f32[20,10,3,3]"], "f32[1,10,8,8]", _attributes(2, strides=[3, 3], output_padding=[2, 2])),
    Shapes("spec-3", "ConvolutionBackpropData-1", ["f32[1,20,224,224]", "f32[20,10,3,3]", "i64{450,450}"], "f32[1,10,450,450]", _attributes(2, pads_begin=[1, 1], pads_end=[1, 1], auto_pad="valid")),
    Shapes("dynamic", "ConvolutionBackpropData-1", ["f32[?,?,3..5]", "f32[20,10,3]"], "f32[?,10,7..11]", _attributes(1, strides=[2])),
    Shapes("unknown-sizes", "ConvolutionBackpropData-1", ["f32[?,20,?]", "f32[20,10,?]"], "f32[?,10,?]", _attributes(1, strides=[2])),
    Shapes("partial-shape", "ConvolutionBackpropData-1", ["f32[1,20,9,9]", "f32[20,10,3,3]", "i64{?,18}"], "f32[1,10,?,18]", _2D),
    Shapes("unknown-shape", "ConvolutionBackpropData-1", ["f32[1,20,9,9]", "f32[20,10,3,3]", "i64[?]"], "f32[1,10,?,?]", _2D),
    Shapes("rank-of-the-shape", "ConvolutionBackpropData-1", ["f32[...]", "f32[...]", "i64{7,8}"], "f32[?,?,7,8]", _2D | {"strides": [], "dilations": []}),
    Shapes("unknown-rank-of-data", "ConvolutionBackpropData-1", ["f32[...]", "f32[20,10,3]"], "f32[?,10,1..]", _attributes(1, strides=[2])),
    Shapes("unknown-ranks", "ConvolutionBackpropData-1", ["f32[...]", "f32[...]", "i64[?]"], "f32[...]", _2D | {"strides": [], "dilations": []}),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-rank-2", "ConvolutionBackpropData-1", ["f32[1,3]", "f32[3,4]"], _1D),
    Refusal("c1-ranks-differ", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,2,2]"], _1D),
    Refusal("c2-strides", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,2]"], _2D),
    Refusal("c2-output-padding", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,2]"], _attributes(1, output_padding=[1, 1])),
    Refusal("c3-stride-0", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,2]"], _attributes(1, strides=[0])),
    Refusal("c3-negative-pad", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,2]"], _attributes(1, pads_end=[-1])),
    Refusal("c3-negative-output-padding", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,2]"], _attributes(1, output_padding=[-1])),
    Refusal("c3-kernel-0", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,0]"], _1D),
    Refusal("c4-pads", "ConvolutionBackpropData-1", ["f32[1,3,1]", "f32[3,4,1]"], _attributes(1, pads_begin=[2])),
    Refusal("c5-channels", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[4,3,2]"], _1D),
    Refusal("c6-2d", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,2]", "i64[1,1]"], _1D),
    Refusal("c6-entries", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,2]", "i64{1,4,5}"], _1D),
    Refusal("c6-negative", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,2]", "i64{-1}"], _1D),
    Refusal("ir301-float-shape", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f32[3,4,2]", "f32[1]"], _1D),
    Refusal("ir302-types", "ConvolutionBackpropData-1", ["f32[1,3,4]", "f16[3,4,2]"], _1D),
]  # fmt: skip

_MODELS = [
    ("1d", (2, 3, 5), (3, 4, 3), _1D),
    ("1x1", (2, 3, 5, 4), (3, 4, 1, 1), _2D),
    ("2d", (2, 3, 5, 6), (3, 4, 3, 3), _attributes(2, strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], output_padding=[1, 0])),
    ("2d-all", (1, 3, 5, 6), (3, 2, 2, 4), _attributes(2, strides=[3, 2], dilations=[2, 3], pads_begin=[1, 0], pads_end=[0, 4])),
    ("output-padding", (1, 2, 4, 4), (2, 3, 2, 2), _attributes(2, strides=[2, 3], output_padding=[1, 2])),
    ("valid", (1, 2, 4, 4), (2, 3, 2, 3), _attributes(2, strides=[2, 3], auto_pad="valid", pads_begin=[1, 1])),
    ("same-upper", (1, 2, 4, 4), (2, 3, 2, 3), _attributes(2, strides=[2, 3], auto_pad="same_upper")),
    ("3d", (1, 2, 3, 4, 5), (2, 3, 2, 3, 2), _attributes(3, strides=[2, 1, 2], pads_begin=[1, 1, 0], pads_end=[0, 1, 1])),
]  # fmt: skip

CASES = [
    Case(
        f"{id}-{'constant' if constant else 'parameter'}",
        "ConvolutionBackpropData-1",
        [random(*data), random(*filters, seed=1)],
        attributes,
        constants=[1] if constant else [],
    )
    for id, data, filters, attributes in _MODELS
    for constant in (True, False)
] + [
    Case(
        f"output-shape-{auto_pad}-{size}-{padding}",
        "ConvolutionBackpropData-1",
        [random(1, 2, 4, 3), random(2, 3, 3, 2, seed=1), i64(*size)],
        _attributes(2, strides=[2, 3], auto_pad=auto_pad, output_padding=padding, pads_begin=[1, 0]),
        shapes=[2],
    )
    for auto_pad in ("explicit", "valid", "same_upper", "same_lower")
    for size in ((9, 8), (8, 7), (7, 9), (6, 6), (11, 10))
    for padding in ([0, 0], [1, 2])
] + [
    Case(
        np.dtype(t).name,
        "ConvolutionBackpropData-1",
        # OpenVINO: saturates u8, so the numbers stay small
        [random(1, 2, 3, 4, dtype=t), random(2, 3, 2, 2, dtype=t, seed=1) % (2 if t == np.uint8 else 9)],
        _attributes(2, strides=[2, 1]),
    )
    for t in (*NUMERIC, np.float64)
] + [Case("i32-shape", "ConvolutionBackpropData-1", [arange(1, 1, 4), arange(1, 2, 3), np.array([5], np.int32)], _1D, shapes=[2])]  # fmt: skip


_LARGE = [
    ("upsampling", (2, 3, 40, 41), (3, 20, 2, 2), _attributes(2, strides=[2, 2])),
    ("upsampling-1d", (2, 3, 9), (3, 4, 5), _attributes(1, strides=[5])),
    ("upsampling-cut", (1, 3, 9, 8), (3, 2, 2, 2), _attributes(2, strides=[2, 2], pads_begin=[1, 0], pads_end=[0, 1])),
    ("overlapping", (2, 3, 12, 13), (3, 5, 4, 4), _attributes(2, strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1])),
    ("gaps", (2, 3, 7, 6), (3, 5, 2, 1), _attributes(2, strides=[3, 2])),
    ("tiles", (1, 32, 16, 17), (32, 24, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("dilation", (1, 3, 9, 8), (3, 4, 3, 2), _attributes(2, strides=[1, 2], dilations=[3, 1], pads_begin=[2, 1])),
]  # fmt: skip


@pytest.mark.parametrize(("data", "filters", "attributes"), [pytest.param(*m, id=id) for id, *m in _MODELS + _LARGE])
def test_prepared(data, filters, attributes):
    """The kernel for constant filters does what ``run`` does, whatever it is given to fill."""
    op, x, w = operation("ConvolutionBackpropData-1", attributes), random(*data), random(*filters, seed=1)
    expected = op.run(x, w)
    kernel = kernel_of(op, Value.of(x).reshaped(data), Value.of(w))
    atol = 3e-5 * max(1, expected.std())
    np.testing.assert_allclose(kernel.call(x, w), expected, rtol=1e-5, atol=atol)
    if kernel.out == "tiles":  # not with strides and dilations along one axis
        np.testing.assert_allclose(filled(kernel, expected.shape, np.float32, x, w), expected, rtol=1e-5, atol=atol)
        assert kernel.flops == 2 * x.size * w[0].size
    dynamic = kernel_of(op, Value.of(x).reshaped(PartialShape(None)), Value.of(w)).call
    for fed in (x, np.concatenate([x, x], axis=-1), x[:0]):
        expected, got = op.run(fed, w), dynamic(fed, w)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("size", [(9, 8), (8, 7), (14, 20)])
def test_prepared_for_a_shape(size, known):
    op = operation("ConvolutionBackpropData-1", _attributes(2, strides=[2, 3], pads_begin=[1, 0]))
    x, w = random(1, 2, 4, 3), random(2, 3, 3, 2, seed=1)
    wanted = Value.of(i64(*size)) if known else Value.of(i64(*size)).reshaped([2])
    kernel = kernel_of(op, Value.of(x).reshaped(x.shape), Value.of(w), wanted)
    assert kernel.out == ("tiles" if known else "new")
    np.testing.assert_allclose(kernel.call(x, w, i64(*size)), op.run(x, w, i64(*size)), rtol=1e-5, atol=1e-5)
