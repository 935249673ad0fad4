"""MaxPool-1, MaxPool-8 and MaxPool-14."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Value
from irrun.ops.max_pool import MaxPool14
from irrun.types import PartialShape
from kit import *


def _attributes(*kernel: int, **given: Any) -> dict[str, Any]:
    ones, zeros = [1] * len(kernel), [0] * len(kernel)
    plain = {"kernel": list(kernel), "strides": ones, "pads_begin": zeros, "pads_end": zeros}
    return plain | {"auto_pad": "explicit", "rounding_type": "floor"} | given


def _explicit(pads: int, *kernel: int, **given: Any) -> dict[str, Any]:
    padded = [pads] * len(kernel)
    return _attributes(*kernel, pads_begin=padded, pads_end=padded, **given)


_A = [[[[-1, 2, 3], [4, 5, -6], [-7, 8, 9]]]]
_AB = [[*_A[0], [[2, -1, 5], [6, -7, 1], [8, 2, -3]]]]
_ROW = [[[-1, 2, 3, 5, -7, 9, 1]]]
_TO_9 = [[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]]
_TO_18 = [[*_TO_9[0], [[10, 11, 12], [13, 14, 15], [16, 17, 18]]]]
_INF, _NAN = float("inf"), float("nan")
_TWO_ROWS = [[[5, 1, 2, 3], [4, 6, 7, 0]]]
_UNSAID = {"kernel": [2], "strides": [2], "pads_begin": [1], "pads_end": [0]}
"""Only what is required."""

# the specification's examples: attributes, data, values, places
_EXAMPLES: list[tuple[str, dict[str, Any], Any, Any, Any]] = [
    ("explicit", _explicit(1, 2, 2), _A,
     # the page says -6 at place 5 for the window that sees 3 above -6
     [[[[-1, 2, 3, 3], [4, 5, 5, 3], [4, 8, 9, 9], [-7, 8, 9, 9]]]],
     [[[[0, 1, 2, 2], [3, 4, 4, 2], [3, 7, 8, 8], [6, 7, 8, 8]]]]),
    ("valid", _attributes(3, auto_pad="valid"), _ROW, [[[3, 5, 5, 9, 9]]], [[[2, 3, 3, 5, 5]]]),
    ("same-lower", _attributes(2, 2, auto_pad="same_lower"), _A,
     [[[[-1, 2, 3], [4, 5, 5], [4, 8, 9]]]], [[[[0, 1, 2], [3, 4, 4], [3, 7, 8]]]]),
    ("same-upper", _attributes(2, 2, auto_pad="same_upper"), _AB,
     [[[[5, 5, 3], [8, 9, 9], [8, 9, 9]], [[6, 5, 5], [8, 2, 1], [8, 2, -3]]]],
     [[[[4, 4, 2], [7, 8, 8], [7, 8, 8]], [[12, 11, 11], [15, 16, 14], [15, 16, 17]]]]),
    ("valid-ceil", _attributes(2, 2, auto_pad="valid", strides=[2, 2], rounding_type="ceil"), _A,
     [[[[5, 3], [8, 9]]]], [[[[4, 2], [7, 8]]]]),
]  # fmt: skip

VALUES = [
    *[Values(f"spec-{id}", "MaxPool-1", [data], top, attributes) for id, attributes, data, top, _ in _EXAMPLES],
    *[
        Values(f"spec-{v}-{id}", f"MaxPool-{v}", [data], (top, places), attributes)
        for v in (8, 14) for id, attributes, data, top, places in _EXAMPLES
    ],
    Values("spec-ceil-torch", "MaxPool-14", [_TO_9], ([[[[1, 3], [7, 9]]]], [[[[0, 2], [6, 8]]]]), _explicit(1, 2, 2, strides=[2, 2], rounding_type="ceil_torch")),
    Values("spec-dilations", "MaxPool-8", [_TO_9], ([[[[5, 6, 5], [8, 9, 8], [5, 6, 5]]]], [[[[4, 5, 4], [7, 8, 7], [4, 5, 4]]]]), _explicit(1, 2, 2, dilations=[2, 2])),
    Values("spec-axis", "MaxPool-8", [_TO_18], ([[[[5, 6], [8, 9]], [[14, 15], [17, 18]]]], [[[[4, 5], [7, 8]], [[4, 5], [7, 8]]]]), _attributes(2, 2, axis=2)),
    Values("negative-axis", "MaxPool-14", [_TO_18], ([[[[5, 6], [8, 9]], [[14, 15], [17, 18]]]], np.array([[[[1, 2], [1, 2]], [[1, 2], [1, 2]]]], np.int32)), _attributes(2, 2, axis=-1, index_element_type="i32")),
    # the first of equal elements, row by row
    Values("ties", "MaxPool-8", [[[[[1, 2], [2, 1]]]]], ([[[[2]]]], [[[[1]]]]), _attributes(2, 2)),
    Values("ties-u8", "MaxPool-8", [np.zeros((1, 1, 4), np.uint8)], (np.zeros((1, 1, 3), np.uint8), [[[0, 1, 2]]]), _attributes(2)),
    Values("nan", "MaxPool-8", [[[[1, _NAN, 2, 3, 4, _NAN]]]], ([[[_NAN, _NAN, 3, 4, _NAN]]], [[[1, 1, 3, 4, 5]]]), _attributes(2)),
    Values("nan-1", "MaxPool-1", [[[[1, _NAN, 2, 3]]]], [[[_NAN, _NAN, 3]]], _attributes(2)),
    Values("minus-infinity", "MaxPool-8", [[[[-_INF, -_INF, 0]]]], ([[[-_INF, 0]]], [[[0, 2]]]), _attributes(2)),
    # OpenVINO: gives the lowest finite number, not the specification's -inf
    Values("only-pads", "MaxPool-1", [np.ones((1, 1, 3), np.float32)], np.array([[[1, 1, -_INF]]], np.float32), _explicit(1, 2, strides=[2], rounding_type="ceil")),
    Values("only-pads-i8", "MaxPool-8", [np.ones((1, 1, 3), np.int8)], (np.array([[[1, 1, -128]]], np.int8), [[[0, 1, 0]]]), _explicit(1, 2, strides=[2], rounding_type="ceil")),
    Values("only-pads-of-a-channel", "MaxPool-8", [np.ones((1, 2, 3), np.int8)], (np.array([[[1, 1, -128]] * 2], np.int8), [[[0, 1, 0], [3, 4, 3]]]), _explicit(1, 2, strides=[2], rounding_type="ceil")),
    Values("f8-has-no-infinity", "MaxPool-1", [np.ones((1, 1, 1), ml_dtypes.float8_e4m3fn)], np.array([[[-448, 1, 1]]], ml_dtypes.float8_e4m3fn), _attributes(2, pads_begin=[2], pads_end=[1])),
    Values("i4", "MaxPool-1", [np.array([[[-8, -3, -5]]], ml_dtypes.int4)], np.array([[[-3, -3]]], ml_dtypes.int4), _attributes(2)),
    Values("i64-beyond-2**53", "MaxPool-1", [[[[2**53, 2**53 + 1]]]], [[[2**53 + 1]]], _attributes(2)),
    # with rounding up there were a third window, without the pad or with "same_upper" the first would see 5 and 1
    Values("defaults-1", "MaxPool-1", [_TWO_ROWS], [[[5, 2], [4, 7]]], _UNSAID),
    *[Values(f"defaults-{v}", f"MaxPool-{v}", [_TWO_ROWS], ([[[5, 2], [4, 7]]], [[[0, 2], [4, 6]]]), _UNSAID) for v in (8, 14)],
    Values("no-batch", "MaxPool-14", [np.ones((0, 2, 3))], (np.ones((0, 2, 2)), np.ones((0, 2, 2), np.int64)), _attributes(2)),
]  # fmt: skip

SHAPES = [
    Shapes("spec-explicit", "MaxPool-1", ["f32[1,3,32,32]"], "f32[1,3,17,17]", _explicit(1, 2, 2, strides=[2, 2])),
    Shapes("spec-valid", "MaxPool-14", ["f32[1,3,32,32]"], ["f32[1,3,16,16]", "i64[1,3,16,16]"], _attributes(2, 2, strides=[2, 2], auto_pad="valid")),
    # the specification's example says 32, against its own formula for a stride of 2
    Shapes("spec-same-upper", "MaxPool-8", ["f32[1,3,32,32]"], ["f32[1,3,16,16]", "i32[1,3,16,16]"], _attributes(2, 2, strides=[2, 2], auto_pad="same_upper", index_element_type="i32")),
    Shapes("dynamic", "MaxPool-1", ["u8[?,64,?,112]"], "u8[?,64,1..,56]", _explicit(1, 3, 3, strides=[2, 2])),
    Shapes("interval-ceil", "MaxPool-1", ["f32[1,1,5..8]"], "f32[1,1,2..4]", _attributes(2, strides=[2], rounding_type="ceil") | {"kernel": [3]}),
    Shapes("interval-ceil-torch", "MaxPool-14", ["f32[1,1,2..3]"], ["f32[1,1,2]", "i64[1,1,2]"], _explicit(1, 2, strides=[2], rounding_type="ceil_torch")),
    Shapes("unknown-rank", "MaxPool-8", ["f32[...]"], ["f32[?,?,1..,1..]", "i64[?,?,1..,1..]"], _attributes(2, 1)),
]  # fmt: skip
_LABELS = [
    ("c1-rank", "f32[1,3,9,9]", _attributes(2)),
    ("c1-rank-2", "f32[3,9]", _attributes() | {"strides": []}),
    ("c1-kernel-4d", "f32[...]", _attributes(1, 1, 1, 1)),
    ("c2-strides", "f32[1,3,9]", _attributes(2, strides=[1, 1])),
    ("c2-no-strides", "f32[1,3,9]", _attributes(2, strides=[])),
    ("c2-pads", "f32[...]", _attributes(2, pads_begin=[1, 1])),
    ("c3-stride-0", "f32[1,3,9]", _attributes(2, strides=[0])),
    ("c3-kernel-0", "f32[1,3,9]", _attributes(0)),
    ("c3-negative-pad", "f32[1,3,9]", _attributes(2, pads_end=[-1])),
    ("c4-kernel", "f32[1,3,4]", _attributes(5)),
    ("c4-interval", "f32[1,3,2..4]", _attributes(5, auto_pad="valid", pads_end=[9])),
]
_PLACED = [
    ("c2-dilations", "f32[1,3,9]", _attributes(2, dilations=[1, 1])),
    ("c3-dilation-0", "f32[1,3,9]", _attributes(2, dilations=[0])),
    ("c4-dilated", "f32[1,3,4]", _attributes(3, dilations=[2])),
    ("c5-axis", "f32[1,3,9]", _attributes(2, axis=3)),
    ("c5-negative-axis", "f32[...]", _attributes(2, axis=-4)),
    ("c6-index-type", "f32[1,3,9]", _attributes(2, index_element_type="f32")),
    ("c6-u64", "f32[1,3,9]", _attributes(2, index_element_type="u64")),
]
REFUSALS = [
    *[Refusal(f"{id}-1", "MaxPool-1", [data], attributes) for id, data, attributes in _LABELS],
    *[
        Refusal(f"{id}-{v}", f"MaxPool-{v}", [data], attributes)
        for v in (8, 14) for id, data, attributes in _LABELS + _PLACED
    ],
    Refusal("ir301-string", "MaxPool-1", ["string[1,3,9]"], _attributes(2)),
    *[Refusal(f"ir301-boolean-{v}", f"MaxPool-{v}", ["boolean[1,3,9]"], _attributes(2)) for v in (1, 8, 14)],
]  # fmt: skip

_MODELS = [
    ("1d", (2, 3, 9), _attributes(3, strides=[2], pads_begin=[1])),
    ("2x2", (1, 2, 6, 8), _attributes(2, 2, strides=[2, 2])),
    ("3x3", (2, 2, 9, 8), _explicit(1, 3, 3, strides=[2, 2])),
    ("5x5", (1, 3, 7, 6), _explicit(2, 5, 5)),
    ("global", (2, 3, 7, 5), _attributes(7, 5)),
    ("3d", (1, 2, 5, 6, 7), _attributes(2, 3, 2, strides=[2, 1, 3], pads_end=[1, 0, 1])),
    ("ceil", (1, 2, 8, 7), _attributes(3, 2, strides=[2, 3], rounding_type="ceil", pads_begin=[0, 1])),
    ("valid", (1, 2, 8, 7), _attributes(3, 2, strides=[2, 3], auto_pad="valid")),
    ("valid-ceil", (1, 2, 8, 7), _attributes(3, 2, strides=[2, 3], auto_pad="valid", rounding_type="ceil")),
    ("same-upper", (1, 2, 8, 7), _attributes(3, 2, strides=[2, 3], auto_pad="same_upper")),
    ("same-lower-ceil", (1, 2, 8, 7), _attributes(3, 2, strides=[2, 3], auto_pad="same_lower", rounding_type="ceil")),
]
_PLACED_MODELS = [
    ("dilations", (1, 2, 9, 10), _attributes(3, 2, strides=[1, 2], dilations=[2, 3], pads_begin=[1, 0])),
    ("same-dilations", (1, 2, 9, 10), _attributes(3, 2, strides=[1, 2], dilations=[2, 3], auto_pad="same_upper")),
    *[(f"axis-{axis}", (2, 2, 5, 6), _attributes(2, 3, axis=axis, index_element_type="i32")) for axis in (1, 2, 3, -2)],
]
_TORCH_MODELS = [
    (f"ceil-torch-{size}-{kernel}-{stride}-{pad}", (1, 1, size), _explicit(pad, kernel, strides=[stride], rounding_type="ceil_torch"))
    for size in (5, 6, 7) for kernel in (2, 3) for stride in (2, 3, 4) for pad in (0, 1)
]  # fmt: skip
_DEFAULTS = {"dilations": [], "axis": 0, "index_element_type": "i64"}
_NEWER = [
    (id, shape, _DEFAULTS | {"dilations": [1] * (len(shape) - 2)} | a) for id, shape, a in _MODELS + _PLACED_MODELS
]
_NEWEST = [(id, shape, _DEFAULTS | {"dilations": [1] * (len(shape) - 2)} | a) for id, shape, a in _TORCH_MODELS]

CASES = [
    Case(f"{version}-{id}", f"MaxPool-{version}", [random(*shape)], attributes)
    for version, models in ((1, _MODELS), (8, _NEWER), (14, _NEWER + _NEWEST))
    for id, shape, attributes in models
] + [
    Case(f"{version}-{np.dtype(t).name}", f"MaxPool-{version}", [random(1, 2, 5, 6, dtype=t)], attributes)
    for version, attributes in ((1, _explicit(1, 3, 2)), (8, _explicit(1, 3, 2) | _DEFAULTS | {"dilations": [1, 1]}))
    for t in (*NUMERIC, np.float64)
    # OpenVINO: the place of the largest of only zeros is 0 in u8, the least u8 being what it starts with
    if not (t == np.uint8 and version == 8)
] + [
    Case("only-pads", "MaxPool-8", [random(2, 3, 5, 6, dtype=np.int32)], _explicit(1, 2, 2, strides=[3, 2], rounding_type="ceil") | _DEFAULTS | {"dilations": [1, 1]}),
    Case("distinct-u8", "MaxPool-8", [arange(1, 1, 4, 4, dtype=np.uint8)[..., ::-1]], _attributes(2, 2) | _DEFAULTS | {"dilations": [1, 1]}),
]  # fmt: skip


_LARGE = [
    ("blocks", (2, 40, 57, 60), _explicit(1, 3, 3, strides=[2, 2])),
    ("only-pads", (1, 2, 3), _explicit(1, 2, strides=[2], rounding_type="ceil")),
    ("one-tap", (1, 2, 7, 8), _attributes(1, 1, strides=[2, 3])),
    ("pads-on-both-sides", (1, 3, 4, 5), _explicit(2, 3, 3, strides=[4, 4])),
]


@pytest.mark.parametrize(
    ("name", "data", "attributes"),
    [
        pytest.param(f"MaxPool-{version}", *model, id=f"{version}-{id}")
        for version, models in ((1, _MODELS + _LARGE), (8, _NEWER), (14, _NEWEST))
        for id, *model in models
    ],
)
def test_prepared(name, data, attributes):
    """The kernel of the largest elements alone does what ``run`` does."""
    op, x = operation(name, attributes), random(*data)
    x.flat[::17], x.flat[5::31] = -np.inf, np.nan
    expected = op.run(x)
    if isinstance(op, MaxPool14):
        expected, kernel = expected[0], kernel_of(op, Value.of(x).reshaped(data))
    else:
        kernel = kernel_of(op, Value.of(x).reshaped(data))
    np.testing.assert_array_equal(filled(kernel, expected.shape, np.float32, x), expected)
    longer = np.concatenate([x, x], axis=-1)
    again = op.run(longer)
    np.testing.assert_array_equal(kernel.call(longer), again[0] if isinstance(again, tuple) else again)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16, np.int8])
def test_prepared_types(dtype):
    x = random(2, 3, 9, 8, dtype=dtype)
    for name in ("MaxPool-1", "MaxPool-8"):
        op = operation(name, _explicit(1, 3, 2) | ({} if name == "MaxPool-1" else _DEFAULTS | {"dilations": [1, 1]}))
        value = Value.of(x).reshaped(PartialShape(None))
        if isinstance(op, MaxPool14):
            expected, got = op.run(x)[0], kernel_of(op, value).call(x)
        else:
            expected, got = op.run(x), kernel_of(op, value).call(x)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.astype(float), expected.astype(float))


def test_prepared_with_places():
    op = operation("MaxPool-8", _attributes(2, 2) | _DEFAULTS | {"dilations": [1, 1]})
    x = random(1, 2, 5, 6)
    for got, expected in zip(kernel_of(op, Value.of(x), outputs=2).call(x), op.run(x), strict=True):
        np.testing.assert_array_equal(got, expected)
