"""GroupConvolution-1."""

from typing import Any

import numpy as np
import pytest

from irrun.opdef import Value
from irrun.types import ELEMENT_TYPES, PartialShape
from kit import *

F32 = ELEMENT_TYPES["f32"]


def _attributes(spatial: int, **given: Any) -> dict[str, Any]:
    ones, zeros = [1] * spatial, [0] * spatial
    plain = {"strides": ones, "pads_begin": zeros, "pads_end": zeros, "dilations": ones, "auto_pad": "explicit"}
    return plain | given


_1D, _2D, _3D = _attributes(1), _attributes(2), _attributes(3)

VALUES = [
    Values("one-group", "GroupConvolution-1", [[[[1, 3, 3, 0, 1, 2]]], [[[[2, 0, 1]]]]], [[[5, 6, 7, 2]]], _1D),
    Values("depthwise", "GroupConvolution-1", [[[[1, 2, 3], [4, 5, 6]]], [[[[1, 10]]], [[[1, -1]]]]], [[[21, 32], [-1, -1]]], _1D),
    Values("multiplier", "GroupConvolution-1", [[[[1, 2, 3], [4, 5, 6]]], [[[[1, 0]], [[0, 1]]], [[[1, 1]], [[1, -1]]]]], [[[1, 2], [2, 3], [9, 11], [-1, -1]]], _1D),
    Values("two-of-two", "GroupConvolution-1", [[[[1], [2], [3], [4]]], [[[[1], [10]]], [[[1], [10]]]]], [[[21], [43]]], _1D),
    Values("i64-beyond-2**53", "GroupConvolution-1", [[[[2**53 + 1, 1]]], [[[[1, 1]]]]], [[[2**53 + 2]]], _1D),
    Values("no-batch", "GroupConvolution-1", [np.ones((0, 4, 3)), np.ones((2, 3, 2, 2))], np.ones((0, 6, 2)), _1D),
]  # fmt: skip

SHAPES = [
    Shapes("spec-1d", "GroupConvolution-1", ["f32[1,12,224]", "f32[4,1,3,5]"], "f32[1,4,224]", _attributes(1, pads_begin=[2], pads_end=[2])),
    Shapes("spec-2d", "GroupConvolution-1", ["f32[1,12,224,224]", "f32[4,1,3,5,5]"], "f32[1,4,224,224]", _attributes(2, pads_begin=[2, 2], pads_end=[2, 2])),
    Shapes("spec-3d", "GroupConvolution-1", ["f32[1,12,224,224,224]", "f32[4,1,3,5,5,5]"], "f32[1,4,224,224,224]", _attributes(3, pads_begin=[2] * 3, pads_end=[2] * 3)),
    Shapes("dynamic", "GroupConvolution-1", ["f32[?,?,?]", "f32[4,2,3,5]"], "f32[?,8,1..]", _1D),
    Shapes("groups-from-channels", "GroupConvolution-1", ["f32[1,12,9]", "f32[?,2,3,5]"], "f32[1,8,5]", _1D),
    Shapes("unknown-filters", "GroupConvolution-1", ["f32[1,12,9]", "f32[?,?,?,?]"], "f32[1,?,1..9]", _1D),
    Shapes("unknown-rank-of-data", "GroupConvolution-1", ["f32[...]", "f32[4,2,3,5,5]"], "f32[?,8,1..,1..]", _2D),
    Shapes("unknown-rank-of-filters", "GroupConvolution-1", ["f32[1,12,9]", "f32[...]"], "f32[1,?,1..9]", _1D),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-ranks", "GroupConvolution-1", ["f32[1,12,9]", "f32[12,1,5]"], _1D),
    Refusal("c1-rank-2", "GroupConvolution-1", ["f32[1,12]", "f32[...]"], _1D),
    Refusal("c1-rank-7", "GroupConvolution-1", ["f32[...]", "f32[1,1,1,1,1,1,1]"], _1D),
    Refusal("c2-strides", "GroupConvolution-1", ["f32[1,12,9]", "f32[4,1,3,5]"], _2D),
    Refusal("c3-stride-0", "GroupConvolution-1", ["f32[1,12,9]", "f32[4,1,3,5]"], _attributes(1, strides=[0])),
    Refusal("c3-negative-pad", "GroupConvolution-1", ["f32[1,12,9]", "f32[4,1,3,5]"], _attributes(1, pads_end=[-1])),
    Refusal("c4-kernel", "GroupConvolution-1", ["f32[1,12,4]", "f32[4,1,3,5]"], _1D),
    Refusal("c5-channels", "GroupConvolution-1", ["f32[1,13,9]", "f32[4,1,3,5]"], _1D),
    Refusal("c5-no-number-of-groups", "GroupConvolution-1", ["f32[1,13,9]", "f32[?,1,3,5]"], _1D),
    Refusal("ir302-types", "GroupConvolution-1", ["f32[1,12,9]", "f16[4,1,3,5]"], _1D),
]

_MODELS = [
    ("1d", (2, 6, 9), (3, 4, 2, 3), _1D),
    ("one-group", (2, 3, 9), (1, 4, 3, 3), _attributes(1, strides=[2], pads_begin=[1], pads_end=[2])),
    ("1x1", (2, 6, 5, 4), (3, 2, 2, 1, 1), _2D),
    ("2d", (2, 6, 8, 7), (2, 4, 3, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("2d-all", (2, 6, 12, 11), (2, 1, 3, 3, 2), _attributes(2, strides=[2, 3], dilations=[3, 2], pads_begin=[1, 0], pads_end=[2, 4])),
    ("depthwise", (2, 7, 8, 9), (7, 1, 1, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("depthwise-stride", (2, 7, 9, 8), (7, 1, 1, 3, 3), _attributes(2, strides=[2, 2], pads_begin=[1, 0], pads_end=[1, 1])),
    ("depthwise-dilation", (1, 3, 9, 12), (3, 1, 1, 3, 3), _attributes(2, strides=[1, 2], dilations=[2, 3], pads_begin=[2, 3], pads_end=[2, 3])),
    ("depthwise-1d", (2, 5, 12), (5, 1, 1, 4), _attributes(1, strides=[3], pads_begin=[1], pads_end=[1])),
    ("depthwise-1x1", (2, 5, 3, 4), (5, 1, 1, 1, 1), _2D),
    ("depthwise-3d", (1, 4, 5, 6, 7), (4, 1, 1, 3, 2, 3), _attributes(3, strides=[1, 2, 1], pads_begin=[1, 0, 1], pads_end=[0, 1, 1])),
    ("multiplier", (2, 3, 6, 5), (3, 4, 1, 2, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("3d", (1, 4, 5, 6, 7), (2, 3, 2, 2, 3, 2), _3D),
    ("same-upper", (1, 4, 7, 8), (4, 1, 1, 3, 2), _attributes(2, auto_pad="same_upper", strides=[2, 1])),
    ("same-lower", (1, 4, 7, 8), (2, 2, 2, 4, 3), _attributes(2, auto_pad="same_lower", strides=[1, 3])),
    ("valid", (1, 4, 7, 8), (2, 2, 2, 4, 3), _attributes(2, auto_pad="valid")),
]  # fmt: skip

CASES = [
    Case(
        f"{id}-{'constant' if constant else 'parameter'}",
        "GroupConvolution-1",
        [random(*data), random(*filters, seed=1)],
        attributes,
        constants=[1] if constant else [],
    )
    for id, data, filters, attributes in _MODELS
    for constant in (True, False)
] + [
    Case(
        f"{np.dtype(t).name}",
        "GroupConvolution-1",
        # OpenVINO: saturates u8, so the numbers stay small
        [random(1, 4, 5, 6, dtype=t), random(2, 3, 2, 2, 3, dtype=t, seed=1) % (2 if t == np.uint8 else 9)],
        _attributes(2, pads_begin=[1, 1], pads_end=[1, 1]),
    )
    for t in (*NUMERIC, np.float64)
]


_LARGE = [
    ("transform", (2, 5, 60, 50), (5, 1, 1, 21, 15), _attributes(2, pads_begin=[10, 3], pads_end=[10, 9])),
    ("transform-of-pads", (1, 3, 30, 40), (3, 1, 1, 20, 21), _attributes(2, pads_begin=[25, 0], pads_end=[3, 27])),
    ("transform-1d", (2, 3, 3000), (3, 1, 1, 300), _1D),
    ("transform-3d", (1, 2, 20, 22, 24), (2, 1, 1, 9, 8, 10), _3D),
    ("taps", (2, 6, 60, 50), (6, 1, 1, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("taps-blocks", (1, 40, 110, 120), (40, 1, 1, 3, 2), _2D),
    (
        "taps-stride",
        (1, 5, 110, 100),
        (5, 1, 1, 4, 3),
        _attributes(2, strides=[2, 2], pads_begin=[1, 1], pads_end=[2, 0]),
    ),
    (
        "taps-dilation-and-stride",
        (1, 3, 90, 140),
        (3, 1, 1, 4, 3),
        _attributes(2, strides=[1, 2], dilations=[5, 3], pads_begin=[3, 7], pads_end=[1, 2]),
    ),
    ("taps-1d", (2, 3, 5000), (3, 1, 1, 5), _attributes(1, strides=[2], pads_begin=[2], pads_end=[2])),
    (
        "planes-dilation-and-stride",
        (2, 5, 30, 31),
        (5, 1, 1, 4, 5),
        _attributes(2, strides=[2, 3], dilations=[3, 2], pads_begin=[5, 1], pads_end=[0, 4]),
    ),
    (
        "planes-of-pads",
        (1, 3, 6, 5),
        (3, 2, 1, 3, 2),
        _attributes(2, strides=[1, 2], pads_begin=[9, 4], pads_end=[3, 8]),
    ),
    ("planes-of-groups", (1, 8, 20, 20), (4, 2, 2, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("matmul", (2, 12, 9, 9), (4, 5, 3, 1, 1), _attributes(2, strides=[2, 1])),
    ("tiles", (1, 64, 15, 15), (2, 32, 32, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("blocks-of-groups", (2, 70, 40, 40), (70, 1, 1, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("blocks-of-rows", (1, 4, 300, 300), (2, 2, 2, 3, 3), _attributes(2, strides=[2, 1])),
]


@pytest.mark.parametrize(("data", "filters", "attributes"), [pytest.param(*m, id=id) for id, *m in _MODELS + _LARGE])
def test_prepared(data, filters, attributes):
    """The kernel for constant filters does what ``run`` does, for data of one shape after the other."""
    op = operation("GroupConvolution-1", attributes)
    x, w = random(*data), random(*filters, seed=1)
    kernel = kernel_of(op, Value(F32, PartialShape.of(data)), Value.of(w)).call
    for fed in (x, np.concatenate([x, x], axis=-1), x[::-1], x[:0]):
        expected, got = op.run(fed, w), kernel(fed, w)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        # Winograd's method rounds a little more
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=3e-5 * max(1, expected.std()) if fed.size else 0)


@pytest.mark.parametrize(("data", "filters", "attributes"), [pytest.param(*m, id=id) for id, *m in _MODELS + _LARGE])
def test_prepared_by_parts(data, filters, attributes):
    """So it does where its output goes to memory that was used before, and what follows is done part by part."""
    op, x, w = operation("GroupConvolution-1", attributes), random(*data), random(*filters, seed=1)
    expected, kernel = op.run(x, w), kernel_of(op, Value.of(x).reshaped(data), Value.of(w))
    got = filled(kernel, expected.shape, np.float32, x, w)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=3e-5 * max(1, expected.std()))
    assert kernel.flops == 2 * expected.size * w[0, 0].size


@pytest.mark.parametrize("kernel", [3, 15])
@pytest.mark.parametrize("size", [32, 60])
def test_prepared_infinities(kernel, size):
    """An infinity or NaN reaches the windows that see it, and no others."""
    op = operation("GroupConvolution-1", _attributes(2, pads_begin=[1, 1], pads_end=[1, 1]))
    x, w = random(2, 40, size, size), random(40, 1, 1, kernel, kernel, seed=1)
    x[1, 3, 5, 5], x[1, 4, 30, 29] = np.inf, np.nan
    expected, kernel = op.run(x, w), kernel_of(op, Value.of(x).reshaped(x.shape), Value.of(w))
    with np.errstate(invalid="ignore"):
        got = filled(kernel, expected.shape, np.float32, x, w)
    assert np.isfinite(expected).sum() > expected.size - 500
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=3e-5 * max(1, float(np.std(expected[0]))))


@pytest.mark.parametrize(
    ("algorithm", "data", "filters"),
    [
        ("matmul", (1, 6, 9, 9), (2, 4, 3, 1, 1)),
        ("im2col of planes", (1, 6, 9, 9), (6, 1, 1, 3, 3)),
        ("im2col", (1, 16, 9, 9), (2, 8, 8, 3, 3)),
        ("Winograd F(4×4, 3×3)", (1, 64, 20, 20), (2, 32, 32, 3, 3)),
        ("Fourier transform", (1, 6, 60, 60), (6, 1, 1, 31, 31)),
    ],
)
def test_prepared_algorithm(algorithm, data, filters):
    kernel = kernel_of(
        operation("GroupConvolution-1", _2D), Value(F32, PartialShape.of(data)), Value.of(random(*filters))
    )
    assert kernel.algorithm == algorithm
