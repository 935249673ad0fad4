"""GroupConvolutionBackpropData-1."""

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


_1D, _2D = _attributes(1), _attributes(2)
_SPEC = _attributes(1, strides=[2], pads_begin=[1], pads_end=[1])

VALUES = [
    Values("one-group", "GroupConvolutionBackpropData-1", [[[[1, 2, 3]]], [[[[1, 2]]]]], [[[1, 4, 7, 6]]], _1D),
    Values("depthwise", "GroupConvolutionBackpropData-1", [[[[1, 2], [3, 4]]], [[[[1, 2]]], [[[10, 20]]]]], [[[1, 4, 4], [30, 100, 80]]], _1D),
    Values("two-of-two", "GroupConvolutionBackpropData-1", [[[[1], [2], [3], [4]]], [[[[1]], [[10]]], [[[1]], [[10]]]]], [[[21], [43]]], _1D),
    Values("same-upper", "GroupConvolutionBackpropData-1", [[[[1, 2, 3]]], [[[[1, 2]]]], i64(5)], [[[2, 2, 4, 3, 6]]], _attributes(1, strides=[2], auto_pad="same_upper")),
    Values("same-lower", "GroupConvolutionBackpropData-1", [[[[1, 2, 3]]], [[[[1, 2]]]], i64(5)], [[[1, 2, 2, 4, 3]]], _attributes(1, strides=[2], auto_pad="same_lower")),
    Values("no-batch", "GroupConvolutionBackpropData-1", [np.ones((0, 4, 3)), np.ones((2, 2, 3, 2))], np.ones((0, 6, 4)), _1D),
]  # fmt: skip

SHAPES = [
    Shapes("spec-1d", "GroupConvolutionBackpropData-1", ["f32[1,20,224]", "f32[4,5,2,3]"], "f32[1,8,447]", _SPEC),
    Shapes("spec-2d", "GroupConvolutionBackpropData-1", ["f32[1,20,224,224]", "f32[4,5,2,3,3]"], "f32[1,8,447,447]", {k: v if isinstance(v, str) else v * 2 for k, v in _SPEC.items()}),
    Shapes("spec-3d", "GroupConvolutionBackpropData-1", ["f32[1,20,224,224,224]", "f32[4,5,2,3,3,3]"], "f32[1,8,447,447,447]", {k: v if isinstance(v, str) else v * 3 for k, v in _SPEC.items()}),
    Shapes("groups-from-channels", "GroupConvolutionBackpropData-1", ["f32[?,20,?]", "f32[?,5,2,3]"], "f32[?,8,?]", _SPEC),
    Shapes("shape", "GroupConvolutionBackpropData-1", ["f32[1,20,9]", "f32[4,5,2,3]", "i32{17}"], "f32[1,8,17]", _SPEC),
    Shapes("unknown-rank", "GroupConvolutionBackpropData-1", ["f32[...]", "f32[4,5,2,3]"], "f32[?,8,?]", _SPEC),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-ranks", "GroupConvolutionBackpropData-1", ["f32[1,20,9]", "f32[20,2,3]"], _1D),
    Refusal("c2-strides", "GroupConvolutionBackpropData-1", ["f32[1,20,9]", "f32[4,5,2,3]"], _2D),
    Refusal("c3-stride-0", "GroupConvolutionBackpropData-1", ["f32[1,20,9]", "f32[4,5,2,3]"], _attributes(1, strides=[0])),
    Refusal("c4-pads", "GroupConvolutionBackpropData-1", ["f32[1,20,1]", "f32[4,5,2,3]"], _attributes(1, pads_begin=[4])),
    Refusal("c5-channels", "GroupConvolutionBackpropData-1", ["f32[1,21,9]", "f32[4,5,2,3]"], _1D),
    Refusal("c5-no-number-of-groups", "GroupConvolutionBackpropData-1", ["f32[1,21,9]", "f32[?,5,2,3]"], _1D),
    Refusal("c6-entries", "GroupConvolutionBackpropData-1", ["f32[1,20,9]", "f32[4,5,2,3]", "i64{9,9}"], _1D),
    Refusal("c6-negative", "GroupConvolutionBackpropData-1", ["f32[1,20,9]", "f32[4,5,2,3]", "i64{-9}"], _1D),
    Refusal("ir302-types", "GroupConvolutionBackpropData-1", ["f32[1,20,9]", "f16[4,5,2,3]"], _1D),
]  # fmt: skip

_MODELS = [
    ("1d", (2, 6, 5), (2, 3, 4, 3), _1D),
    ("depthwise", (2, 5, 5, 6), (5, 1, 1, 3, 3), _attributes(2, strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], output_padding=[1, 0])),
    ("2d-all", (1, 6, 5, 6), (3, 2, 2, 2, 4), _attributes(2, strides=[3, 2], dilations=[2, 3], pads_begin=[1, 0], pads_end=[0, 4])),
    ("valid", (1, 4, 4, 4), (2, 2, 3, 2, 3), _attributes(2, strides=[2, 3], auto_pad="valid", pads_begin=[1, 1])),
    ("3d", (1, 4, 3, 4, 5), (2, 2, 3, 2, 3, 2), _attributes(3, strides=[2, 1, 2], pads_begin=[1, 1, 0], pads_end=[0, 1, 1])),
]  # fmt: skip

CASES = (
    [
        Case(
            f"{id}-{'constant' if constant else 'parameter'}",
            "GroupConvolutionBackpropData-1",
            [random(*data), random(*filters, seed=1)],
            attributes,
            constants=[1] if constant else [],
        )
        for id, data, filters, attributes in _MODELS
        for constant in (True, False)
    ]
    + [
        Case(
            f"output-shape-{auto_pad}-{size}",
            "GroupConvolutionBackpropData-1",
            [random(1, 4, 4, 3), random(2, 2, 3, 3, 2, seed=1), i64(*size)],
            _attributes(2, strides=[2, 3], auto_pad=auto_pad, output_padding=[1, 0], pads_begin=[1, 0]),
            shapes=[2],
        )
        for auto_pad in ("explicit", "valid", "same_upper", "same_lower")
        for size in ((9, 8), (8, 7), (7, 9))
    ]
    + [
        Case(
            np.dtype(t).name,
            "GroupConvolutionBackpropData-1",
            # OpenVINO: saturates u8, so the numbers stay small
            [random(1, 4, 3, 4, dtype=t), random(2, 2, 3, 2, 2, dtype=t, seed=1) % (2 if t == np.uint8 else 9)],
            _attributes(2, strides=[2, 1]),
        )
        for t in (*NUMERIC, np.float64)
    ]
)


_LARGE = [
    ("upsampling", (2, 6, 40, 41), (2, 3, 20, 2, 2), _attributes(2, strides=[2, 2])),
    ("upsampling-1d", (2, 6, 9), (2, 3, 4, 5), _attributes(1, strides=[5])),
    ("upsampling-cut", (1, 6, 9, 8), (2, 3, 2, 2, 2), _attributes(2, strides=[2, 2], pads_begin=[1, 0], pads_end=[0, 1])),
    ("overlapping", (2, 6, 12, 13), (2, 3, 5, 4, 4), _attributes(2, strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1])),
    ("gaps", (2, 6, 7, 6), (2, 3, 5, 2, 1), _attributes(2, strides=[3, 2])),
    ("tiles", (1, 64, 16, 17), (2, 32, 24, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("dilation", (1, 6, 9, 8), (2, 3, 4, 3, 2), _attributes(2, strides=[1, 2], dilations=[3, 1], pads_begin=[2, 1])),
]  # fmt: skip


@pytest.mark.parametrize(("data", "filters", "attributes"), [pytest.param(*m, id=id) for id, *m in _MODELS + _LARGE])
def test_prepared(data, filters, attributes):
    """The kernel for constant filters does what ``run`` does, whatever it is given to fill."""
    op, x, w = operation("GroupConvolutionBackpropData-1", attributes), random(*data), random(*filters, seed=1)
    expected = op.run(x, w)
    kernel = kernel_of(op, Value.of(x).reshaped(data), Value.of(w))
    atol = 3e-5 * max(1, expected.std())
    np.testing.assert_allclose(kernel.call(x, w), expected, rtol=1e-5, atol=atol)
    if kernel.out == "tiles":  # not with strides and dilations along one axis
        np.testing.assert_allclose(filled(kernel, expected.shape, np.float32, x, w), expected, rtol=1e-5, atol=atol)
        assert kernel.flops == 2 * x.size * w[0, 0].size
    dynamic = kernel_of(op, Value.of(x).reshaped(PartialShape(None)), Value.of(w)).call
    for fed in (x, np.concatenate([x, x], axis=-1), x[:0]):
        expected, got = op.run(fed, w), dynamic(fed, w)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("size", [(9, 8), (8, 7), (14, 20)])
def test_prepared_for_a_shape(size, known):
    op = operation("GroupConvolutionBackpropData-1", _attributes(2, strides=[2, 3], pads_begin=[1, 0]))
    x, w = random(1, 4, 4, 3), random(2, 2, 3, 3, 2, seed=1)
    wanted = Value.of(i64(*size)) if known else Value.of(i64(*size)).reshaped([2])
    kernel = kernel_of(op, Value.of(x).reshaped(x.shape), Value.of(w), wanted)
    assert kernel.out == ("tiles" if known else "new")
    np.testing.assert_allclose(kernel.call(x, w, i64(*size)), op.run(x, w, i64(*size)), rtol=1e-5, atol=1e-5)
