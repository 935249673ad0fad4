"""Convolution-1."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Site, Value
from irrun.types import ELEMENT_TYPES, Dim, PartialShape
from kit import *

F32 = ELEMENT_TYPES["f32"]


def _attributes(spatial: int, **given: Any) -> dict[str, Any]:
    ones, zeros = [1] * spatial, [0] * spatial
    plain = {"strides": ones, "pads_begin": zeros, "pads_end": zeros, "dilations": ones, "auto_pad": "explicit"}
    return plain | given


_1D, _2D, _3D = _attributes(1), _attributes(2), _attributes(3)
_ROW, _FILTER = [[[1, 3, 3, 0, 1, 2, 3]]], [[[2, 0, 1]]]
_IMAGE = [[[[1, 3, 5, 7], [7, 5, 3, 1], [2, 4, 6, 8], [8, 6, 4, 2]]]]
_KERNEL = [[[[1, 2, 3], [0, 1, 0], [3, 2, 1]]]]

VALUES = [
    Values("1d", "Convolution-1", [[[[1, 3, 3, 0, 1, 2]]], _FILTER], [[[5, 6, 7, 2]]], _1D),
    Values("1d-pads", "Convolution-1", [[[[1, 3, 3, 0]]], _FILTER], [[[3, 5, 6, 6]]], _attributes(1, pads_begin=[1], pads_end=[1])),
    Values("1d-stride", "Convolution-1", [[[[1, 3, 3, 0, 1]]], _FILTER], [[[5, 7]]], _attributes(1, strides=[2])),
    Values("1d-dilation", "Convolution-1", [_ROW, _FILTER], [[[3, 8, 9]]], _attributes(1, dilations=[2])),
    Values("1d-all", "Convolution-1", [_ROW, _FILTER], [[[3, 3, 9, 2]]], _attributes(1, strides=[2], pads_begin=[2], pads_end=[2], dilations=[2])),
    Values("1d-two-channels", "Convolution-1", [[[[1, 3, 2, 1], [2, 2, 3, 1]]], [[[2, 0, 1], [1, 0, 2]]]], [[[12, 11]]], _1D),
    Values("1d-two-filters", "Convolution-1", [[[[1, 3, 2, 1]]], [[[2, 0, 1]], [[1, 0, 2]]]], [[[4, 7], [5, 5]]], _1D),
    Values("1d-batch", "Convolution-1", [[[[1, 3, 2, 1]], [[2, 2, 3, 1]]], _FILTER], [[[4, 7]], [[7, 5]]], _1D),
    Values("2d", "Convolution-1", [_IMAGE, _KERNEL], [[[[47, 69], [70, 48]]]], _2D),
    # an odd pad: same_upper puts it at the end, same_lower at the beginning; explicit pads do not count then
    Values("same-upper", "Convolution-1", [[[[1, 2, 3]]], [[[1, 10]]]], [[[21, 32, 3]]], _attributes(1, auto_pad="same_upper", pads_begin=[5])),
    Values("same-lower", "Convolution-1", [[[[1, 2, 3]]], [[[1, 10]]]], [[[10, 21, 32]]], _attributes(1, auto_pad="same_lower", pads_end=[5])),
    Values("same-upper-stride", "Convolution-1", [[[[1, 2, 3, 4]]], [[[1, 10, 100]]]], [[[321, 43]]], _attributes(1, auto_pad="same_upper", strides=[2])),
    Values("valid", "Convolution-1", [[[[1, 2, 3]]], [[[1, 10]]]], [[[21, 32]]], _attributes(1, auto_pad="valid", pads_begin=[5])),
    Values("kernel-larger-than-data", "Convolution-1", [[[[1]]], [[[1, 2, 3, 4]]]], [[[2]]], _attributes(1, auto_pad="same_upper")),
    Values("empty-lists", "Convolution-1", [[[[1, 2, 3]]], [[[1, 10]]]], [[[21, 32]]], {"strides": [], "pads_begin": [], "pads_end": [], "dilations": []}),
    Values("i64-beyond-2**53", "Convolution-1", [[[[2**53 + 1, 1]]], [[[1, 1]]]], [[[2**53 + 2]]], _1D),
    Values("u8-wraps", "Convolution-1", [np.full((1, 1, 2), 200, np.uint8), np.ones((1, 1, 2), np.uint8)], np.array([[[144]]], np.uint8), _1D),
    Values("f16-rounds-once", "Convolution-1", [np.array([[[2048, 1, 1]]], np.float16), np.ones((1, 1, 3), np.float16)], np.array([[[2050]]], np.float16), _1D),
    Values("no-batch", "Convolution-1", [np.ones((0, 1, 3)), np.ones((2, 1, 2))], np.ones((0, 2, 2)), _1D),
    Values("no-channels", "Convolution-1", [np.ones((1, 0, 3)), np.ones((2, 0, 2))], np.zeros((1, 2, 2)), _1D),
    Values("no-filters", "Convolution-1", [np.ones((1, 1, 3)), np.ones((0, 1, 2))], np.ones((1, 0, 2)), _1D),
]  # fmt: skip

SHAPES = [
    Shapes("spec-1d", "Convolution-1", ["f32[1,5,128]", "f32[16,5,4]"], "f32[1,16,63]", _attributes(1, strides=[2], auto_pad="valid")),
    Shapes("spec-2d", "Convolution-1", ["f32[1,3,224,224]", "f32[64,3,5,5]"], "f32[1,64,224,224]", _attributes(2, pads_begin=[2, 2], pads_end=[2, 2])),
    Shapes("spec-3d", "Convolution-1", ["f32[1,7,320,320,320]", "f32[32,7,3,3,3]"], "f32[1,32,106,106,106]", _attributes(3, dilations=[2] * 3, strides=[3] * 3)),
    Shapes("dynamic", "Convolution-1", ["f32[?,3,?,224]", "f32[64,3,7,7]"], "f32[?,64,1..,112]", _attributes(2, strides=[2, 2], pads_begin=[3, 3], pads_end=[3, 3])),
    Shapes("interval", "Convolution-1", ["f32[1,3,8..20]", "f32[4,3,3]"], "f32[1,4,3..9]", _attributes(1, strides=[2])),
    Shapes("same", "Convolution-1", ["f32[1,3,?,7..9]", "f32[4,3,3,3]"], "f32[1,4,?,4..5]", _attributes(2, strides=[1, 2], auto_pad="same_lower")),
    Shapes("unknown-filters", "Convolution-1", ["f32[1,3,8]", "f32[?,?,?]"], "f32[1,?,1..8]", _1D),
    Shapes("unknown-rank-of-data", "Convolution-1", ["f32[...]", "f32[4,3,3,3]"], "f32[?,4,1..,1..]", _2D),
    Shapes("unknown-rank-of-filters", "Convolution-1", ["f32[2,3,9]", "f32[...]"], "f32[2,?,1..9]", _1D),
    Shapes("rank-of-the-strides", "Convolution-1", ["f32[...]", "f32[...]"], "f32[?,?,1..,1..,1..]", _3D),
    Shapes("unknown-ranks", "Convolution-1", ["f32[...]", "f32[...]"], "f32[...]", {"strides": [], "pads_begin": [], "pads_end": [], "dilations": []}),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-rank-2", "Convolution-1", ["f32[1,3]", "f32[4,3]"], _1D),
    Refusal("c1-rank-6", "Convolution-1", ["f32[1,3,4,4,4,4]", "f32[...]"], _2D),
    Refusal("c1-ranks-differ", "Convolution-1", ["f32[1,3,4]", "f32[4,3,2,2]"], _1D),
    Refusal("c1-scalar-filters", "Convolution-1", ["f32[1,3,4]", "f32[]"], _1D),
    Refusal("c2-strides", "Convolution-1", ["f32[1,3,4]", "f32[4,3,2]"], _attributes(1, strides=[1, 1])),
    Refusal("c2-dilations", "Convolution-1", ["f32[1,3,4]", "f32[4,3,2]"], _attributes(1, dilations=[1, 1])),
    Refusal("c2-pads", "Convolution-1", ["f32[1,3,4]", "f32[...]"], _attributes(1, pads_end=[1, 1])),
    Refusal("c3-stride-0", "Convolution-1", ["f32[1,3,4]", "f32[4,3,2]"], _attributes(1, strides=[0])),
    Refusal("c3-dilation-0", "Convolution-1", ["f32[...]", "f32[4,3,2]"], _attributes(1, dilations=[0])),
    Refusal("c3-negative-pad", "Convolution-1", ["f32[1,3,4]", "f32[4,3,2]"], _attributes(1, pads_begin=[-1])),
    Refusal("c3-kernel-0", "Convolution-1", ["f32[1,3,4]", "f32[4,3,0]"], _1D),
    Refusal("c4-kernel", "Convolution-1", ["f32[1,3,4]", "f32[4,3,5]"], _1D),
    Refusal("c4-dilated", "Convolution-1", ["f32[1,3,..6,9]", "f32[4,3,4,2]"], _attributes(2, dilations=[2, 1])),
    Refusal("c5-channels", "Convolution-1", ["f32[1,3,4]", "f32[4,2,2]"], _1D),
    Refusal("ir302-types", "Convolution-1", ["u8[1,3,4]", "i8[4,3,2]"], _1D),
    Refusal("ir301-boolean", "Convolution-1", ["boolean[1,3,4]", "boolean[4,3,2]"], _1D),
]

_MODELS = [
    ("1d", (2, 3, 9), (4, 3, 3), _1D),
    ("1d-stride", (2, 3, 10), (4, 3, 3), _attributes(1, strides=[2], pads_begin=[2], pads_end=[1])),
    ("1d-dilation", (1, 2, 10), (1, 2, 3), _attributes(1, dilations=[3], pads_begin=[2], pads_end=[1])),
    ("1x1", (2, 5, 6, 7), (4, 5, 1, 1), _2D),
    ("1x1-stride", (2, 5, 6, 7), (4, 5, 1, 1), _attributes(2, strides=[2, 3])),
    ("1x1-pads", (1, 5, 6, 7), (4, 5, 1, 1), _attributes(2, pads_begin=[1, 0], pads_end=[0, 2])),
    ("3x3", (1, 4, 8, 9), (5, 4, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("3x3-stride", (2, 4, 9, 8), (5, 4, 3, 3), _attributes(2, strides=[2, 2], pads_begin=[1, 0], pads_end=[1, 1])),
    ("3x3-dilation", (1, 4, 9, 11), (5, 4, 3, 3), _attributes(2, dilations=[2, 3], pads_begin=[2, 3], pads_end=[2, 3])),
    ("2x5-all", (2, 3, 9, 11), (2, 3, 2, 5), _attributes(2, strides=[3, 2], dilations=[3, 2], pads_begin=[1, 3], pads_end=[0, 4])),
    ("pads-wider-than-kernel", (1, 1, 3, 3), (1, 1, 2, 2), _attributes(2, pads_begin=[4, 0], pads_end=[0, 1])),
    ("valid", (1, 3, 7, 6), (2, 3, 3, 2), _attributes(2, auto_pad="valid", pads_begin=[1, 1])),
    ("same-upper", (1, 3, 7, 8), (2, 3, 3, 2), _attributes(2, auto_pad="same_upper", strides=[2, 1])),
    ("same-lower", (1, 3, 7, 8), (2, 3, 4, 3), _attributes(2, auto_pad="same_lower", strides=[1, 3])),
    ("same-upper-dilation", (1, 3, 7, 8), (2, 3, 3, 3), _attributes(2, auto_pad="same_upper", strides=[2, 1], dilations=[2, 2])),
    ("3d", (2, 3, 4, 5, 6), (2, 3, 2, 3, 3), _3D),
    ("3d-all", (1, 2, 6, 5, 7), (3, 2, 2, 3, 2), _attributes(3, strides=[2, 1, 2], dilations=[1, 2, 3], pads_begin=[1, 1, 0], pads_end=[0, 1, 2])),
    ("3d-same", (1, 2, 4, 5, 7), (3, 2, 2, 3, 2), _attributes(3, strides=[2, 1, 2], auto_pad="same_upper")),
]  # fmt: skip

CASES = [
    Case(
        f"{id}-{'constant' if constant else 'parameter'}",
        "Convolution-1",
        [random(*data), random(*filters, seed=1)],
        attributes,
        constants=[1] if constant else [],
    )
    for id, data, filters, attributes in _MODELS
    for constant in (True, False)
] + [
    Case(
        f"{np.dtype(t).name}",
        "Convolution-1",
        # OpenVINO: saturates u8, so the numbers stay small
        [random(1, 2, 5, 6, dtype=t), random(3, 2, 2, 3, dtype=t, seed=1) % (2 if t == np.uint8 else 9)],
        _attributes(2, pads_begin=[1, 1], pads_end=[1, 1]),
    )
    for t in (*NUMERIC, np.float64)
] + [Case("no-batch", "Convolution-1", [random(0, 2, 5), random(3, 2, 2)], _1D)]  # fmt: skip


def test_the_history_of_a_dim():
    """An unknown dim tells how it came about."""
    op = operation("Convolution-1", _attributes(2, strides=[2, 1], pads_begin=[1, 1], pads_end=[1, 1]))
    data = Value(ELEMENT_TYPES["f32"], PartialShape.of([1, 3, Dim.unknown("H"), Dim.unknown("W")]))
    out = op.infer(Site(), data, tensor("f32[8,3,3,3]"))
    assert isinstance(out, Value)
    assert [str(d.term) for d in out.shape][2:] == ["floor((H + 1 + 1 - 3) / 2) + 1", "W"]


_LARGE = [
    ("1x1-blocks-of-rows", (2, 64, 60, 60), (96, 64, 1, 1), _2D),
    ("1x1-blocks-of-filters", (1, 8, 24, 24), (900, 8, 1, 1), _2D),
    ("1x1-stride-1d", (2, 9, 50), (4, 9, 1), _attributes(1, strides=[3])),
    ("patches", (2, 3, 33, 27), (7, 3, 16, 8), _attributes(2, strides=[16, 8])),
    ("patches-1d", (2, 3, 50), (7, 3, 12), _attributes(1, strides=[12])),
    ("stem", (1, 3, 70, 71), (16, 3, 7, 7), _attributes(2, strides=[2, 2], pads_begin=[3, 3], pads_end=[3, 3])),
    ("stride-and-dilation", (1, 3, 40, 41), (5, 3, 4, 5), _attributes(2, strides=[2, 3], dilations=[3, 2], pads_begin=[5, 1], pads_end=[0, 4])),
    ("pads-wider-than-blocks", (1, 64, 30, 90), (32, 64, 2, 2), _attributes(2, pads_begin=[40, 1], pads_end=[50, 0])),
    ("tiles-of-images", (9, 32, 5, 6), (32, 32, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("tiles-of-pads", (1, 32, 20, 21), (32, 32, 3, 3), _attributes(2, pads_begin=[9, 3], pads_end=[6, 11])),
    # OpenVINO: without AVX-512 it gives something else than zeros for windows that see right pads only
    ("pads-wider-than-kernel-at-the-end", (1, 1, 3, 3), (1, 1, 2, 2), _attributes(2, pads_begin=[4, 0], pads_end=[0, 3])),
    ("tiles", (2, 32, 16, 20), (33, 32, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("cut-tiles", (1, 40, 17, 14), (32, 40, 3, 3), _attributes(2, pads_begin=[0, 2], pads_end=[1, 0])),
    ("tiles-same", (1, 32, 15, 15), (32, 32, 3, 3), _attributes(2, auto_pad="same_lower")),
    ("strips-of-tiles", (1, 48, 90, 90), (32, 48, 3, 3), _2D),
    ("blocks-of-rows", (1, 24, 64, 65), (8, 24, 5, 3), _attributes(2, strides=[1, 2], pads_begin=[2, 1], pads_end=[1, 1])),
    ("blocks-of-images", (40, 8, 20, 20), (4, 8, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
    ("blocks-of-planes", (1, 6, 12, 40, 40), (4, 6, 3, 3, 3), _attributes(3, strides=[2, 1, 1], pads_begin=[1, 1, 1])),
]  # fmt: skip


@pytest.mark.parametrize("known", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(("data", "filters", "attributes"), [pytest.param(*m, id=id) for id, *m in _MODELS + _LARGE])
def test_prepared(data, filters, attributes, known):
    """The kernel for constant filters does what ``run`` does, for data of one shape after the other."""
    op = operation("Convolution-1", attributes)
    x, w = random(*data), random(*filters, seed=1)
    kernel = kernel_of(op, Value(F32, PartialShape.of(data) if known else PartialShape(None)), Value.of(w)).call
    larger = np.concatenate([x, x], axis=-1)
    for fed in (x, larger, x[::-1], x[..., ::-1], x[:0]):
        before, expected, got = fed.copy(), op.run(fed, w), kernel(fed, w)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert np.array_equal(fed, before)
        # Winograd's method rounds a little more
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=3e-5 * max(1, expected.std()) if fed.size else 0)


@pytest.mark.parametrize(("data", "filters", "attributes"), [pytest.param(*m, id=id) for id, *m in _MODELS + _LARGE])
def test_prepared_by_parts(data, filters, attributes):
    """So it does where its output goes to memory that was used before, and what follows is done part by part."""
    op, x, w = operation("Convolution-1", attributes), random(*data), random(*filters, seed=1)
    expected, kernel = op.run(x, w), kernel_of(op, Value.of(x).reshaped(data), Value.of(w))
    got = filled(kernel, expected.shape, np.float32, x, w)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=3e-5 * max(1, expected.std()))
    assert kernel.flops == 2 * expected.size * w[0].size
    # other memory layouts of the data
    strided = np.asfortranarray(np.repeat(x, 2, axis=-1))[..., ::2]
    np.testing.assert_array_equal(kernel.call(strided, w), got)


@pytest.mark.parametrize(
    ("algorithm", "data", "filters", "attributes"),
    [
        ("matmul", (1, 3, 9, 9), (4, 3, 1, 1), _attributes(2, strides=[2, 2])),
        ("Winograd F(4×4, 3×3)", (1, 32, 16, 16), (32, 32, 3, 3), _2D),
        ("im2col", (1, 32, 16, 16), (32, 32, 3, 3), _attributes(2, strides=[2, 2])),
        ("im2col", (1, 32, 6, 6), (32, 32, 3, 3), _2D),
        ("im2col", (1, 32, 16, 16), (32, 32, 1, 1), _attributes(2, pads_end=[1, 1])),
    ],
)
def test_prepared_algorithm(algorithm, data, filters, attributes):
    op, w = operation("Convolution-1", attributes), random(*filters)
    kernel = kernel_of(op, Value(F32, PartialShape.of(data)), Value.of(w))
    assert kernel.algorithm == algorithm
    # nobody needs the filters themselves any more
    assert kernel.packing.inputs == (1,)
    np.testing.assert_array_equal(kernel.call(random(*data), np.zeros_like(w)), kernel.call(random(*data), w))


def _precision(dtype: Any) -> float:
    return {"float16": 1e-3, "bfloat16": 1e-2, "float64": 1e-12}.get(np.dtype(dtype).name, 0)


@pytest.mark.parametrize("filters", [(32, 32, 3, 3), (8, 32, 1, 1), (3, 32, 2, 3)])
@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_prepared_types(dtype, filters):
    """Narrow floats are rounded once."""
    op = operation("Convolution-1", _attributes(2, pads_begin=[1, 1], pads_end=[1, 1]))
    x, w = random(1, 32, 14, 14, dtype=dtype), random(*filters, dtype=dtype, seed=1)
    expected, kernel = op.run(x, w), kernel_of(op, Value.of(x).reshaped(x.shape), Value.of(w))
    for got in (kernel.call(x, w), filled(kernel, expected.shape, dtype, x, w)):
        assert got.dtype == expected.dtype
        tolerance = _precision(dtype)
        np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_prepared_integers(dtype):
    op = operation("Convolution-1", _attributes(2, pads_begin=[1, 1], pads_end=[1, 1]))
    x, w = random(1, 32, 14, 14, dtype=dtype), random(32, 32, 3, 3, dtype=dtype, seed=1)
    np.testing.assert_array_equal(kernel_of(op, Value.of(x), Value.of(w)).call(x, w), op.run(x, w))


@pytest.mark.parametrize(
    ("filters", "attributes"),
    [
        ((32, 32, 3, 3), _attributes(2, pads_begin=[1, 1], pads_end=[1, 1])),
        ((3, 32, 3, 3), _attributes(2, strides=[2, 2])),
        ((3, 32, 1, 1), _2D),
    ],
)
def test_prepared_infinities(filters, attributes):
    """An infinity or NaN reaches the windows that see it, and no others."""
    op = operation("Convolution-1", attributes)
    x, w = random(2, 32, 64, 16), random(*filters, seed=1)
    x[1, 3, 5, 5], x[1, 4, 50, 12] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        expected, kernel = op.run(x, w), kernel_of(op, Value.of(x).reshaped(x.shape), Value.of(w))
        got = filled(kernel, expected.shape, np.float32, x, w)
    assert np.isfinite(expected[0]).all()
    assert not np.isfinite(expected[1]).all()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_prepared_beyond_the_range():
    """What would only overflow on Winograd's way is computed the plain one."""
    op = operation("Convolution-1", _2D)
    x, w = random(1, 32, 18, 18) * np.float32(1e38), np.eye(32, dtype=np.float32).reshape(32, 32, 1, 1)
    w = np.pad(w, [(0, 0), (0, 0), (1, 1), (1, 1)])
    with np.errstate(over="ignore", invalid="ignore"):
        got = kernel_of(op, Value.of(x).reshaped(x.shape), Value.of(w)).call(x, w)
    np.testing.assert_array_equal(got, x[:, :, 1:-1, 1:-1])


def test_prepare_without_constant_filters():
    op = operation("Convolution-1", _1D)
    assert kernel_of(op, Value(F32, PartialShape.of([1, 1, 3])), Value(F32, PartialShape.of([1, 1, 2]))).call == op.run
