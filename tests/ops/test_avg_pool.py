"""AvgPool-1, AvgPool-14 and AvgPool-16."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Value
from irrun.types import PartialShape
from kit import *


def _attributes(*kernel: int, exclude: bool = True, **given: Any) -> dict[str, Any]:
    ones, zeros = [1] * len(kernel), [0] * len(kernel)
    plain = {"kernel": list(kernel), "strides": ones, "pads_begin": zeros, "pads_end": zeros, "exclude-pad": exclude}
    return plain | {"auto_pad": "explicit", "rounding_type": "floor"} | given


def _explicit(pads: int, *kernel: int, **given: Any) -> dict[str, Any]:
    padded = [pads] * len(kernel)
    return _attributes(*kernel, pads_begin=padded, pads_end=padded, **given)


_3X3, _4X4 = arange(1, 1, 3, 3, start=1), arange(1, 1, 4, 4, start=1)
_SAME_UPPER = np.array([[[[3, 4, 2.25], [6, 7, 3.75], [3.75, 4.25, 2.25]]]], np.float32)
_SAME_LOWER = np.array([[[[0.25, 0.75, 1.25], [1.25, 3, 4], [2.75, 6, 7]]]], np.float32)

_UNSAID = {"kernel": [2], "strides": [2], "pads_begin": [1], "pads_end": [0], "exclude-pad": True}
"""Only what is required."""

VALUES = [
    Values("2x2", "AvgPool-1", [_3X3], np.array([[[[3, 4], [6, 7]]]], np.float32), _attributes(2, 2)),
    Values("ceil", "AvgPool-1", [_4X4], np.array([[[[6, 7], [10, 11]]]], np.float32), _attributes(3, 3, rounding_type="ceil")),
    Values("exclude", "AvgPool-16", [[[[[1.0, 2], [3, 4]]]]], [[[[1, 1.5, 2], [2, 2.5, 3], [3, 3.5, 4]]]], _explicit(1, 2, 2)),
    Values("include", "AvgPool-14", [[[[[2.5, 2, 12, 4, 5]]]]], [[[[0.5, 2, 1]]]], _explicit(1, 3, 3, exclude=False, strides=[1, 2])),
    Values("same-upper", "AvgPool-1", [_3X3], _SAME_UPPER, _attributes(2, 2, exclude=False, auto_pad="same_upper")),
    Values("same-lower", "AvgPool-1", [_3X3], _SAME_LOWER, _attributes(2, 2, exclude=False, auto_pad="same_lower")),
    Values("3d", "AvgPool-16", [arange(1, 1, 2, 2, 2, start=1)], np.array([[[[[1.5], [3.5]], [[5.5], [7.5]]]]], np.float32), _attributes(1, 1, 2, auto_pad="valid")),
    Values("dilations", "AvgPool-16", [[[[1.0, 2, 3, 4, 6]]]], [[[2, 3, 4.5]]], _attributes(2, dilations=[2])),
    # OpenVINO: the CPU plugin gives NaN where there is nothing to take the mean of, the reference kernel 0
    Values("only-pads", "AvgPool-1", [_3X3], np.array([[[[1, 2.5, 0], [5.5, 7, 0], [0, 0, 0]]]], np.float32), _explicit(1, 2, 2, strides=[2, 2], rounding_type="ceil")),
    Values("half-to-even", "AvgPool-1", [[[[1, 2, 3, -4, -5, 0]]]], [[[2, 2, 0, -4, -2]]], _attributes(2)),
    Values("u8-sum-beyond-u8", "AvgPool-1", [np.array([[[200, 250]]], np.uint8)], np.array([[[225]]], np.uint8), _attributes(2)),
    Values("i64-sum-beyond-i64", "AvgPool-1", [[[[2**63 - 1, 2**63 - 3, -(2**63), -(2**63) + 2]]]], [[[2**63 - 2, -2, -(2**63) + 1]]], _attributes(2)),
    Values("u64-sum-beyond-u64", "AvgPool-1", [np.array([[[2**64 - 1, 1]]], np.uint64)], np.array([[[2**63]]], np.uint64), _attributes(2)),
    Values("i64-beyond-2**53", "AvgPool-1", [[[[2**53 + 1, 2**53 + 1]]]], [[[2**53 + 1]]], _attributes(2)),
    Values("f16-rounds-once", "AvgPool-1", [np.array([[[2048, 1, 1, 2]]], np.float16)], np.array([[[513]]], np.float16), _attributes(4)),
    Values("bf16", "AvgPool-1", [np.array([[[256, 1, 3, 4]]], ml_dtypes.bfloat16)], np.array([[[66]]], ml_dtypes.bfloat16), _attributes(4)),
    Values("nan", "AvgPool-1", [[[[1.0, np.nan, 2, 4]]]], [[[np.nan, np.nan, 3]]], _attributes(2)),
    # with rounding up there were a third window, without the pad or with "same_upper" the first would see 5 and 1
    *[Values(f"defaults-{v}", f"AvgPool-{v}", [[[[5.0, 1, 2, 3]]]], [[[5, 1.5]]], _UNSAID) for v in (1, 14, 16)],
    Values("no-channels", "AvgPool-1", [np.ones((2, 0, 3))], np.ones((2, 0, 2)), _attributes(2)),
]  # fmt: skip

SHAPES = [
    # the specification's first two examples say 32, against the formula for a stride of 2
    Shapes("spec-same-1", "AvgPool-1", ["f32[1,3,32,32]"], "f32[1,3,16,16]", _attributes(2, 2, strides=[2, 2], auto_pad="same_upper")),
    Shapes("spec-same-2", "AvgPool-1", ["f32[1,3,32,32]"], "f32[1,3,16,16]", _attributes(5, 5, strides=[2, 2], auto_pad="same_upper")),
    Shapes("spec-explicit-1", "AvgPool-14", ["f32[1,3,32,32]"], "f32[1,3,10,10]", _explicit(1, 5, 5, strides=[3, 3])),
    Shapes("spec-explicit-2", "AvgPool-16", ["f32[1,3,32,32]"], "f32[1,3,15,15]", _explicit(1, 5, 5, strides=[2, 2])),
    Shapes("spec-valid", "AvgPool-1", ["f32[1,3,32,32]"], "f32[1,3,14,14]", _explicit(1, 5, 5, strides=[2, 2], auto_pad="valid")),
    Shapes("spec-dilations", "AvgPool-16", ["f32[1,3,32,32]"], "f32[1,3,13,13]", _explicit(1, 5, 5, strides=[2, 2], dilations=[2, 2])),
    Shapes("dynamic", "AvgPool-1", ["f16[?,?,?]"], "f16[?,?,1..]", _attributes(3)),
    Shapes("unknown-rank", "AvgPool-14", ["f32[...]"], "f32[?,?,1..,1..,1..]", _attributes(2, 2, 2)),
    Shapes("ceil-torch", "AvgPool-14", ["f32[1,1,3]"], "f32[1,1,2]", _explicit(1, 2, strides=[2], rounding_type="ceil_torch")),
]  # fmt: skip

_LABELS = [
    ("c1-rank", "f32[1,3,9,9]", _attributes(2)),
    ("c1-kernel-4d", "f32[...]", _attributes(1, 1, 1, 1)),
    ("c2-strides", "f32[1,3,9]", _attributes(2, strides=[1, 1])),
    ("c2-no-strides", "f32[1,3,9]", _attributes(2, strides=[])),
    ("c3-stride-0", "f32[1,3,9]", _attributes(2, strides=[0])),
    ("c3-negative-pad", "f32[1,3,9]", _attributes(2, pads_end=[-1])),
    ("c4-kernel", "f32[1,3,4]", _attributes(5)),
]
REFUSALS = [
    *[Refusal(f"{id}-{v}", f"AvgPool-{v}", [data], a) for v in (1, 14, 16) for id, data, a in _LABELS],
    Refusal("c2-dilations", "AvgPool-16", ["f32[1,3,9]"], _attributes(2, dilations=[1, 1])),
    Refusal("c3-dilation-0", "AvgPool-16", ["f32[1,3,9]"], _attributes(2, dilations=[0])),
    Refusal("c4-dilated", "AvgPool-16", ["f32[1,3,4]"], _attributes(3, dilations=[2])),
    Refusal("ir301-string", "AvgPool-1", ["string[1,3,9]"], _attributes(2)),
    *[Refusal(f"ir301-boolean-{v}", f"AvgPool-{v}", ["boolean[1,3,9]"], _attributes(2)) for v in (1, 14, 16)],
]

_MODELS = [
    ("1d", (2, 3, 9), _attributes(3, strides=[2], pads_begin=[1])),
    ("2x2", (1, 2, 6, 8), _attributes(2, 2, strides=[2, 2])),
    ("3x3", (2, 2, 9, 8), _explicit(1, 3, 3, strides=[2, 2])),
    ("global", (2, 3, 7, 5), _attributes(7, 5)),
    ("3d", (1, 2, 5, 6, 7), _attributes(2, 3, 2, strides=[2, 1, 3], pads_end=[1, 0, 1])),
    ("pads-at-one-end", (1, 2, 6, 6), _attributes(3, 3, strides=[2, 2], pads_begin=[1, 0])),
    ("ceil", (1, 2, 8, 7), _attributes(3, 2, strides=[2, 3], rounding_type="ceil", pads_begin=[0, 1])),
    ("ceil-without-pads", (1, 2, 8, 7), _attributes(3, 2, strides=[2, 3], rounding_type="ceil")),
    ("valid", (1, 2, 8, 7), _explicit(1, 3, 2, strides=[2, 3], auto_pad="valid")),
    ("same-upper", (1, 2, 8, 7), _attributes(3, 2, strides=[2, 3], auto_pad="same_upper")),
    ("same-lower-ceil", (1, 2, 8, 7), _attributes(3, 2, strides=[2, 3], auto_pad="same_lower", rounding_type="ceil")),
    ("same-without-pads", (1, 2, 8, 6), _attributes(2, 3, strides=[2, 3], auto_pad="same_upper")),
]
_TORCH = [
    (f"ceil-torch-{size}-{pad}", (1, 1, size), _explicit(pad, 3, strides=[2], rounding_type="ceil_torch"))
    for size in (5, 6, 7) for pad in (0, 1)
]  # fmt: skip
_DILATED = [
    ("dilations", (1, 2, 9, 10), _explicit(1, 3, 2, strides=[1, 2], dilations=[2, 3])),
    ("same-dilations", (1, 2, 9, 10), _attributes(3, 2, strides=[1, 2], dilations=[2, 3], auto_pad="same_upper")),
]
_UNDILATED = [(id, shape, {"dilations": [1] * (len(shape) - 2)} | a) for id, shape, a in _MODELS + _TORCH]

CASES = [
    Case(
        f"{version}-{id}-{'exclude' if exclude else 'include'}",
        f"AvgPool-{version}",
        [random(*shape)],
        attributes | {"exclude-pad": exclude},
    )
    for version, models in ((1, _MODELS), (14, _MODELS + _TORCH), (16, _UNDILATED + _DILATED))
    for id, shape, attributes in models
    for exclude in (True, False)
] + [
    Case(f"{np.dtype(t).name}", "AvgPool-1", [random(1, 2, 5, 6, dtype=t)], _explicit(1, 3, 2))
    for t in (*NUMERIC, np.float64, np.int8)
]


_LARGE = [
    ("blocks", (2, 40, 57, 60), _explicit(1, 3, 3, strides=[2, 2])),
    ("only-pads", (1, 2, 3), _explicit(1, 2, strides=[2], rounding_type="ceil")),
    ("global", (2, 50, 7, 7), _attributes(7, 7)),
    ("pads-on-both-sides", (1, 3, 4, 5), _explicit(2, 3, 3, strides=[4, 4])),
]


@pytest.mark.parametrize("exclude", [True, False])
@pytest.mark.parametrize(
    ("name", "data", "attributes"),
    [
        pytest.param(f"AvgPool-{version}", *model, id=f"{version}-{id}")
        for version, models in ((1, _MODELS + _LARGE), (14, _TORCH), (16, _DILATED))
        for id, *model in models
    ],
)
def test_prepared(name, data, attributes, exclude):
    """The kernel by blocks does what ``run`` does."""
    op, x = operation(name, attributes | {"exclude-pad": exclude}), random(*data)
    x.flat[7::311] = np.nan
    expected, kernel = op.run(x), kernel_of(op, Value.of(x).reshaped(data))
    np.testing.assert_allclose(filled(kernel, expected.shape, np.float32, x), expected, rtol=1e-5, atol=1e-6)
    longer = np.concatenate([x, x], axis=-1)
    np.testing.assert_allclose(kernel.call(longer), op.run(longer), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16, np.int8])
def test_prepared_types(dtype):
    x = random(2, 3, 9, 8, dtype=dtype)
    op = operation("AvgPool-1", _explicit(1, 3, 2) | {"exclude-pad": True})
    expected, got = op.run(x), kernel_of(op, Value.of(x).reshaped(PartialShape(None))).call(x)
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=1e-12)
