"""What the pages leave open: for each behaviour, elements that it names and elements that it does not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import kit
import tables
from grouped import each
from irrun.opdef import resolve
from irrun.specification import FOLDER, wording
from irrun.specification.undefined import BEHAVIOURS

_CONVOLVED = {"strides": [1], "pads_begin": [0], "pads_end": [0], "dilations": [1]}
_DEFORMED = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
_BITS = _DEFORMED | {"mode": "xnor-popcount", "pad_value": 0}
_POOLED = {"kernel": [2], "strides": [1], "pads_begin": [0], "pads_end": [0]}
_MEANS = _POOLED | {"exclude-pad": True}
_U8 = np.array([[[200, 55, 56]]], np.uint8)
_ONES = np.ones((1, 1, 2), np.uint8)
_PIXELS = kit.arange(1, 1, 1, 2)


def _offsets(y: float, *x: float) -> np.ndarray:
    return kit.f32([[[[y] * len(x)], [x]]])


def _draw(*weights: float, count: int = 1) -> list[Any]:
    return [kit.f32([weights]), np.array(count)]


_SAMPLES = {"convert_type": "i64", "with_replacement": True, "log_probs": False}
_BOX = [kit.i64(2), kit.f32(0), kit.f32(1)]


def _range(*numbers: float) -> list[np.ndarray]:
    return [np.array(n) for n in numbers]


WINDOWS: list[tuple[str, str, dict[str, Any], list[Any], Any]] = [
    ("overflowing-sum", "Convolution-1", _CONVOLVED, [_U8, _ONES], [[[False, False]]]),
    ("overflowing-sum", "Convolution-1", _CONVOLVED, [_U8 + 1, _ONES], [[[True, False]]]),
    ("overflowing-sum", "Convolution-1", _CONVOLVED, [kit.f32([[[1, 2]]]), kit.f32([[[9]]])], False),
    ("overflowing-sum", "Convolution-1", _CONVOLVED, [_U8, None], False),
    ("pads-of-bits", "BinaryConvolution-1", _BITS | {"pads_end": [0, 1]}, [_PIXELS, np.ones((1, 1, 1, 1))], [[False, False, True]]),
    ("pads-of-bits", "BinaryConvolution-1", _BITS, [None, None], True),
    ("pads-of-output-shape", "ConvolutionBackpropData-1", _CONVOLVED, [_U8, _ONES], False),
    # whole 4, so that the page crops one element at each end
    ("pads-of-output-shape", "ConvolutionBackpropData-1", _CONVOLVED, [_U8, _ONES, kit.i64(2)], True),
    ("pads-of-output-shape", "ConvolutionBackpropData-1", _CONVOLVED | {"pads_begin": [1]}, [_U8, _ONES, kit.i64(2)], False),
    ("pads-of-output-shape", "ConvolutionBackpropData-1", _CONVOLVED | {"auto_pad": "same_upper"}, [_U8, _ONES, kit.i64(2)], False),
    ("pads-of-output-shape", "ConvolutionBackpropData-1", _CONVOLVED | {"auto_pad": "same_upper"}, [_U8, _ONES, kit.i64(5)], True),
    ("pads-of-output-shape", "ConvolutionBackpropData-1", _CONVOLVED, [_U8, _ONES, None], False),
    ("deformable-groups", "DeformableConvolution-1", _DEFORMED | {"group": 2, "deformable_group": 2}, [None] * 3, False),
    ("deformable-groups", "DeformableConvolution-1", _DEFORMED | {"deformable_group": 2}, [None] * 3, True),
    ("fractional-offsets", "DeformableConvolution-1", _DEFORMED, [_PIXELS, _offsets(0, 1, 0.5), kit.f32([[[[1]]]])], [[[[False, True]]]]),
    ("fractional-offsets", "DeformableConvolution-1", _DEFORMED, [None] * 3, True),
    ("before-the-first-pixel", "DeformableConvolution-8", _DEFORMED, [_PIXELS, _offsets(0, -0.5, 0.5), kit.f32([[[[1]]]])], [[[[True, False]]]]),
    ("before-the-first-pixel", "DeformableConvolution-8", _DEFORMED, [_PIXELS, _offsets(0, -1, np.nan), kit.f32([[[[1]]]])], [[[[False, True]]]]),
    ("before-the-first-pixel", "DeformableConvolution-8", _DEFORMED | {"bilinear_interpolation_pad": True}, [_PIXELS, _offsets(0, -0.5, 0), kit.f32([[[[1]]]])], [[[[False, False]]]]),
    ("nan-in-window", "MaxPool-1", _POOLED, [kit.f32([[[1, 2, np.nan]]])], [[[False, True]]]),
    ("nan-in-window", "AdaptiveMaxPool-8", {}, [kit.f32([[[1, 2, np.nan]]]), kit.i64(3)], [[[False, False, True]]]),
    ("equal-largest", "MaxPool-8", _POOLED, [kit.f32([[[1, 1, 2]]])], (False, np.array([[[True, False]]]))),
    ("equal-largest", "AdaptiveMaxPool-8", {}, [kit.f32([[[1, 1, 2]]]), kit.i64(2)], (False, np.array([[[True, False]]]))),
    ("pads-alone", "MaxPool-1", _POOLED | {"pads_end": [2]}, [kit.f32([[[1]]])], [[[False, False]]]),
    ("pads-alone", "MaxPool-1", _POOLED | {"pads_end": [2]}, [np.array([[[1]]])], [[[False, True]]]),
    ("pads-alone", "MaxPool-1", _POOLED | {"pads_end": [2]}, [np.ones((1, 1, 1), ml_dtypes.float8_e4m3fn)], [[[False, True]]]),
    ("pads-alone", "MaxPool-8", _POOLED | {"pads_end": [2]}, [kit.f32([[[1]]])], (np.array([[[False, False]]]), np.array([[[False, True]]]))),
    ("pads-alone", "AvgPool-1", _MEANS | {"pads_end": [2]}, [kit.f32([[[1]]])], [[[False, True]]]),
    ("pads-alone", "AvgPool-1", _MEANS | {"pads_end": [2], "exclude-pad": False}, [kit.f32([[[1]]])], False),
    ("rounded-integer", "AvgPool-1", _MEANS, [np.array([[[1, 3, 4]]])], [[[False, True]]]),
    ("rounded-integer", "AvgPool-1", _MEANS, [kit.f32([[[1, 3, 4]]])], False),
    ("beyond-the-pads", "AvgPool-1", _MEANS | {"strides": [2], "rounding_type": "ceil", "exclude-pad": False}, [kit.f32([[[1, 3, 4]]])], [False, True]),
    ("beyond-the-pads", "AvgPool-1", _MEANS | {"strides": [2], "rounding_type": "ceil"}, [kit.f32([[[1, 3, 4]]])], False),
    ("same-with-strides", "MaxPool-1", _POOLED | {"auto_pad": "same_upper", "strides": [2]}, [None], True),
    ("same-with-strides", "MaxPool-1", _POOLED | {"auto_pad": "same_upper"}, [None], False),
    ("valid-with-ceil", "MaxPool-8", _POOLED | {"auto_pad": "valid", "rounding_type": "ceil", "strides": [2]}, [kit.f32([[[1, 2, 3]]])], True),
    ("valid-with-ceil", "MaxPool-8", _POOLED | {"auto_pad": "valid", "rounding_type": "ceil", "strides": [2]}, [kit.f32([[[1, 2]]])], False),
    ("windows-in-pads", "MaxPool-14", _POOLED | {"kernel": [1], "rounding_type": "ceil_torch", "pads_end": [2]}, [kit.f32([[[1, 2, 3]]])], True),
    ("windows-in-pads", "MaxPool-14", _POOLED | {"kernel": [1], "rounding_type": "ceil_torch", "pads_end": [1]}, [kit.f32([[[1, 2, 3]]])], False),
]  # fmt: skip

GENERATORS: list[tuple[str, str, dict[str, Any], list[Any], Any]] = [
    ("drawn-at-random", "Multinomial-13", _SAMPLES, _draw(0, 3, 0), [[False]]),
    ("drawn-at-random", "Multinomial-13", _SAMPLES, _draw(0, 3, 1), [[True]]),
    ("drawn-at-random", "Multinomial-13", _SAMPLES, _draw(0, 0), [[True]]),
    ("drawn-at-random", "Multinomial-13", _SAMPLES | {"with_replacement": False}, _draw(0, 3, count=2), [[True]]),
    ("drawn-at-random", "Multinomial-13", _SAMPLES | {"log_probs": True}, _draw(-100, 5), [[False]]),
    ("no-seed", "RandomUniform-8", {"output_type": "f32"}, _BOX, True),
    ("no-seed", "RandomUniform-8", {"output_type": "f32", "op_seed": 1}, _BOX, False),
    ("numbers-of-torch", "RandomUniform-8", {"output_type": "f32", "alignment": "pytorch"}, _BOX, True),
    ("numbers-of-torch", "RandomUniform-8", {"output_type": "f32"}, _BOX, False),
    ("bits-of-a-number", "RandomUniform-8", {"output_type": "i64"}, _BOX, True),
    ("bits-of-a-number", "RandomUniform-8", {"output_type": "f64"}, _BOX, False),
    ("diagonal-outside", "Eye-9", {"output_type": "f32"}, _range(2, 4, 2), True),
    ("diagonal-outside", "Eye-9", {"output_type": "f32"}, _range(2, 4, 1), False),
    ("diagonal-outside", "Eye-9", {"output_type": "f32"}, _range(4, 2, -2), True),
    ("diagonal-outside", "Eye-9", {"output_type": "f32"}, [None, None, None], True),
    ("beyond-output-type", "Range-4", {"output_type": "u8"}, _range(5, 0, -1), True),
    ("beyond-output-type", "Range-4", {"output_type": "u8"}, _range(0, 5, 1), False),
    ("beyond-output-type", "Range-4", {"output_type": "f32"}, _range(5, 0, -1), False),
    ("accumulated", "Range-4", {"output_type": "f16"}, _range(2047, 2051, 1), [False, False, False, True]),
    ("accumulated", "Range-4", {"output_type": "i32"}, _range(0, 2, 1), False),
    ("cut-first", "Range-4", {"output_type": "i32"}, _range(-1.9, 1.9, 1.5), True),
    ("cut-first", "Range-4", {"output_type": "i32"}, _range(0.9, 2.7, 1), False),
]  # fmt: skip

_NEAREST = {"mode": "nearest"}
_ROW = kit.f32([1, 2, 3, 4])
_SIZES = {"mode": "nearest", "shape_calculation_mode": "sizes"}
_SCALES = {"mode": "linear", "shape_calculation_mode": "scales"}
_IMAGE = kit.arange(1, 1, 2, 2)
_HW = [kit.i64(1, 1), kit.i64(2, 3)]


def _grid(*x: float) -> np.ndarray:
    return kit.f32([[[[place, 0] for place in x]]])


def _norm(*variance: float) -> list[Any]:
    rest = [kit.f32([1] * len(variance))] * 3
    return [kit.f32([[1] * len(variance)]), *rest, kit.f32(variance)]


_MVN = {"eps": 1, "normalize_variance": True}
_L2 = {"eps": 1, "eps_mode": "add"}
_LRN = {"alpha": 1, "beta": 1, "bias": 1}
_GRU = {"hidden_size": 1}

IMAGES: list[tuple[str, str, dict[str, Any], list[Any], Any]] = [
    ("either-corner", "GridSample-9", {}, [_PIXELS, _grid(0, 1)], [[[[False, True]]]]),
    ("either-corner", "GridSample-9", {}, [_PIXELS, None], True),
    ("half-way", "GridSample-9", _NEAREST, [_PIXELS, _grid(0, 0.5)], [[[[True, False]]]]),
    ("half-way", "GridSample-9", {}, [_PIXELS, _grid(0)], False),
    ("cubic-between", "GridSample-9", {"mode": "bicubic"}, [_PIXELS, _grid(0, 0.5)], [[[[True, False]]]]),
    ("cubic-between", "GridSample-9", {}, [_PIXELS, _grid(0)], False),
    ("no-point", "GridSample-9", {}, [_PIXELS, _grid(0, np.nan)], [[[[False, True]]]]),
    ("no-point", "GridSample-9", {"padding_mode": "border"}, [_PIXELS[..., :0], _grid(0)], [[[[True]]]]),
    ("rounded-integer", "NV12toRGB-8", {}, [np.full((1, 3, 2, 1), 128, np.uint8)], np.ones((1, 2, 2, 3), bool)),
    ("no-formula", "Interpolate-1", {"mode": "linear", "axes": 0}, [_ROW, kit.i64(7)], False),
    ("no-formula", "Interpolate-1", {"mode": "linear", "axes": 0, "align_corners": False}, [_ROW, kit.i64(7)], True),
    ("no-formula", "Interpolate-1", {"mode": "cubic", "axes": 0}, [_ROW, kit.i64(7)], True),
    ("other-axes", "Interpolate-11", _SIZES | {"mode": "linear_onnx"}, [_IMAGE, *_HW], False),
    ("other-axes", "Interpolate-11", _SIZES | {"mode": "linear_onnx"}, [_ROW, kit.i64(7)], True),
    ("other-axes", "Interpolate-11", _SIZES | {"mode": "bilinear_pillow"}, [_IMAGE, *_HW], False),
    ("other-axes", "Interpolate-11", _SIZES | {"mode": "bilinear_pillow"}, [_ROW, kit.i64(7)], True),
    ("other-axes", "Interpolate-11", _SIZES, [_ROW, kit.i64(7)], False),
    ("other-axes", "Interpolate-4", _SIZES | {"mode": "linear_onnx"}, [_IMAGE, _HW[0], None, _HW[1]], False),
    ("same-size", "Interpolate-11", _SIZES | {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}, [_ROW, kit.i64(4)], True),
    ("same-size", "Interpolate-11", _SIZES | {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}, [_ROW, kit.i64(5)], False),
    ("same-size", "Interpolate-11", _SIZES, [_ROW, kit.i64(4)], False),
    ("either-scale", "Interpolate-4", _SCALES, [_ROW, None, kit.f32([0.75])], False),
    ("either-scale", "Interpolate-4", _SCALES, [_ROW, None, kit.f32([0.7])], True),
    ("either-scale", "Interpolate-11", _SIZES, [_ROW, kit.i64(3)], False),
    ("antialiased", "Interpolate-11", _SIZES | {"mode": "linear", "antialias": True}, [_ROW, kit.i64(2)], True),
    ("antialiased", "Interpolate-11", _SIZES | {"mode": "bilinear_pillow", "antialias": True}, [_ROW, kit.i64(2)], False),
    # coordinates 0.5 and 2.5
    ("near-a-decision", "Interpolate-11", _SIZES, [_ROW, kit.i64(2)], [False, False]),
    ("near-a-decision", "Interpolate-11", _SIZES | {"nearest_mode": "round_prefer_ceil"}, [_ROW, kit.i64(2)], [True, True]),
    # 9 / (18 / 14) is 7, but not in f64
    ("near-a-decision", "Interpolate-11", _SIZES | {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}, [kit.arange(14), kit.i64(18)], np.arange(18) == 9),
    ("near-a-decision", "Interpolate-11", _SIZES | {"mode": "linear"}, [_ROW, kit.i64(2)], False),
]  # fmt: skip

ALGEBRA: list[tuple[str, str, dict[str, Any], list[Any], Any]] = [
    ("other-inputs", "GroupedMatMul-17", {}, [None, None], True),
    ("singular", "Inverse-14", {}, [kit.f32([[[1, 1], [1, 1]], [[1, 0], [0, 1]]])], [[[True]], [[False]]]),
    ("singular", "Inverse-14", {}, [np.ones((2, 0, 0))], False),
    ("adjoint", "Inverse-14", {"adjoint": True}, [None], True),
    ("adjoint", "Inverse-14", {}, [None], False),
    ("no-deviation", "BatchNormInference-5", {"epsilon": 0}, _norm(0, 1), [[True, False]]),
    ("no-deviation", "BatchNormInference-5", {"epsilon": 1}, _norm(0, -1), [[False, True]]),
    ("even-size", "LRN-1", _LRN | {"size": 2}, [None, None], True),
    ("even-size", "LRN-1", _LRN | {"size": 3}, [None, None], False),
    ("negative-axes", "LRN-1", _LRN | {"size": 3}, [_ROW, kit.i64(-1)], True),
    ("negative-axes", "LRN-1", _LRN | {"size": 3}, [_ROW, kit.i64(0)], False),
    ("both-ways", "MVN-2", _MVN | {"across_channels": True, "reduction_axes": [1]}, [None], True),
    ("both-ways", "MVN-2", _MVN | {"reduction_axes": [1]}, [None], False),
    ("axis-twice", "MVN-6", _MVN | {"eps_mode": "inside_sqrt"}, [_ROW, kit.i64(0, -1)], True),
    ("axis-twice", "MVN-6", _MVN | {"eps_mode": "inside_sqrt"}, [_ROW, kit.i64(0)], False),
    ("no-axes", "NormalizeL2-1", _L2, [kit.f32([0, 1]), kit.i64()], True),
    ("sizes-as-inputs", "Col2Im-15", {}, [kit.f32([[[0]]]), kit.i64(1, 1), kit.i64(1, 1)], True),
    ("sizes-as-inputs", "Col2Im-15", {"output_size": "1,1", "kernel_size": "1,1"}, [kit.f32([[[0]]])], False),
    ("no-axes", "NormalizeL2-1", _L2, [kit.f32([0, 1]), kit.i64(0)], False),
    ("overflowing-sum", "Einsum-7", {"equation": "i->"}, [np.array([100, 28], np.int8)], True),
    ("overflowing-sum", "Einsum-7", {"equation": "i->"}, [np.array([100, 27], np.int8)], False),
    ("beyond-the-sequence", "AUGRUSequence-5", _GRU, [np.ones((2, 2, 1)), None, kit.i64(0, 1)], (np.array([[[[True], [True]]], [[[False], [True]]]]), np.array([[[True]], [[False]]]))),
]  # fmt: skip

_LSTM = {"hidden_size": 1}
_BEYOND = ("beyond-the-sequence", "RNNSequence-5", _GRU)
_STEPS = np.ones((1, 2, 1), np.float32)
_TIES = kit.f32([[[1, 2], [3, 4]], [[1, 1], [3, 4]]])
_ONE_HOT = {"axis": -1}
_QUERY, _KEYS = np.ones((1, 1, 1), np.float32), np.ones((1, 2, 1), np.float32)
_FRAMES = {"transpose_frames": False}
_PARTS = np.ones((2, 3, 2), np.float32)
_INVERSE = {"center": False, "normalized": False}

SEQUENCES: list[tuple[str, str, dict[str, Any], list[Any], Any]] = [
    (*_BEYOND, [_STEPS, None, kit.i64(2)], (np.zeros((1, 1, 2, 1), bool), np.array([[[False]]]))),
    (*_BEYOND, [_STEPS, None, kit.i64(3)], (np.ones((1, 1, 2, 1), bool), np.array([[[True]]]))),
    (*_BEYOND, [_STEPS, None, kit.i64(-1)], (np.ones((1, 1, 2, 1), bool), np.array([[[True]]]))),
    ("beyond-the-sequence", "LSTMSequence-5", _LSTM, [_STEPS, None, None, None], (True, True, True)),
    ("more-than-the-page", "LSTMCell-1", _LSTM, [None] * 6, False),
    ("more-than-the-page", "LSTMCell-1", _LSTM, [None] * 7, True),
    ("more-than-the-page", "LSTMCell-1", _LSTM | {"weights_format": "icof"}, [None] * 6, True),
    ("equal-classes", "CTCGreedyDecoder-1", {}, [_TIES, None], [[[[True]]], [[[False]]]]),
    ("equal-classes", "CTCGreedyDecoderSeqLen-6", {}, [_TIES, None], (np.array([[False], [True]]), np.array([False, True]))),
    ("gap-in-mask", "CTCGreedyDecoder-1", {}, [None, kit.f32([[1, 1], [0, 1], [1, 0]])], [[[[True]]], [[[False]]]]),
    ("no-path", "CTCLoss-4", {}, [np.ones((2, 2, 2), np.float32), kit.i64(2, 2), np.zeros((2, 2), np.int64), kit.i64(2, 1)], [True, False]),
    ("no-path", "CTCLoss-4", {}, [None] * 4, True),
    ("blank-label", "CTCLoss-4", {}, [np.ones((2, 2, 2)), kit.i64(2, 2), np.array([[1, 0], [0, 1]]), kit.i64(1, 1)], [True, False]),
    ("blank-label", "CTCLoss-4", {}, [np.ones((1, 2, 2)), kit.i64(2), np.array([[0, 1]]), kit.i64(1), np.array(0)], [True]),
    ("clipped-nan", "RNNCell-1", _GRU | {"clip": 3}, [kit.f32([[0], [np.nan]]), kit.f32([[0], [0]]), kit.f32([[1]])], [[False], [True]]),
    ("clipped-nan", "LSTMCell-4", _GRU | {"clip": 3}, [kit.f32([[0]]), kit.f32([[0]]), kit.f32([[np.inf]]), kit.f32([[0]])], [[True]]),
    ("clipped-nan", "GRUSequence-5", _GRU | {"clip": 3}, [_STEPS, kit.f32([[[0]]]), None, kit.f32([[[np.nan]]])], (np.ones((1, 1, 1, 1), bool), np.ones((1, 1, 1), bool))),
    ("clipped-nan", "RNNCell-1", _GRU, [kit.f32([[np.nan]]), kit.f32([[0]])], False),
    ("equal-classes", "CTCGreedyDecoder-1", {}, [np.ones((1, 1, 0)), None], True),
    ("negative-label", "OneHot-1", _ONE_HOT, [kit.i64(1, -1)], [[False], [True]]),
    ("no-score", "ScaledDotProductAttention-13", {"causal": False}, [_QUERY, _KEYS, _KEYS], [[[False]]]),
    ("no-score", "ScaledDotProductAttention-13", {"causal": False}, [_QUERY, _KEYS * np.inf, _KEYS], True),
    ("no-score", "ScaledDotProductAttention-13", {"causal": False}, [_QUERY, _KEYS, _KEYS, np.zeros((1, 1, 2), bool)], [[[True]]]),
    ("no-score", "ScaledDotProductAttention-13", {"causal": False}, [_QUERY, _KEYS, _KEYS, None, None, _QUERY], True),
    ("last-axis-by-minus-one", "DFT-7", {}, [_PARTS, kit.i64(-1)], True),
    ("last-axis-by-minus-one", "DFT-7", {}, [_PARTS, kit.i64(-2)], False),
    ("other-signal-size", "IRDFT-9", {}, [_PARTS, kit.i64(0, 1)], False),
    ("other-signal-size", "IRDFT-9", {}, [_PARTS, kit.i64(0, 1), kit.i64(-1, 4)], False),
    ("other-signal-size", "IRDFT-9", {}, [_PARTS, kit.i64(0, 1), kit.i64(-1, 5)], True),
    ("other-signal-size", "IRDFT-9", {}, [_PARTS, kit.i64(0, 1), kit.i64(3, -1)], True),
    ("nonfinite-signal", "RDFT-9", {}, [np.array([[np.nan, 1], [2, 3]]), np.array([1])], [[[True]], [[False]]]),
    ("nonfinite-signal", "IRDFT-9", {}, [np.array([[[1, 2.0]], [[np.inf, 3]]]), np.array([1])], [[False], [True]]),
    ("nonfinite-signal", "DFT-7", {}, [np.array([[[1, 2.0]], [[np.inf, 3]]]), np.array([0])], [[[True]]]),
    ("shorter-window", "STFT-15", _FRAMES, [None, np.ones(2), np.array(4), None], True),
    ("shorter-window", "STFT-15", _FRAMES, [None, np.ones(4), np.array(4), None], False),
    # frames of 2 elements, which begin at 0 and 3
    ("outside-the-windows", "ISTFT-16", _INVERSE, [np.ones((2, 2, 2)), np.ones(2), np.array(2), np.array(3)], [False, False, True, False, False]),
    ("outside-the-windows", "ISTFT-16", _INVERSE | {"center": True}, [np.ones((2, 2, 2)), np.ones(2), np.array(2), np.array(3), np.array(5)], [False, True, False, False, True]),
    ("outside-the-windows", "ISTFT-16", _INVERSE, [None] * 4, True),
]  # fmt: skip


@each("behaviour, name, attributes, inputs, expected", [*WINDOWS, *GENERATORS, *IMAGES, *ALGEBRA, *SEQUENCES])
def test_what_a_behaviour_names(
    behaviour: str, name: str, attributes: dict[str, Any], inputs: list[np.ndarray | None], expected: Any
) -> None:
    found = wording(name)
    assert found is not None
    assert behaviour in found.undefined
    undefined: Any = BEHAVIOURS[behaviour](kit.operation(name, attributes), inputs)
    outputs, wanted = (found if isinstance(found, tuple) else (found,) for found in (undefined, expected))
    assert len(outputs) == len(wanted)
    for got, want in zip(outputs, wanted):
        np.testing.assert_array_equal(got, want)


ROWS = [
    row
    for path in sorted(tables.FOLDER.glob("test_*.py"))
    for row in tables.rows(path)
    if isinstance(row, kit.Values | kit.Case)
]


@each("name", sorted(path.stem for path in FOLDER.glob("*.toml")))
def test_behaviours_fit_the_outputs(name: str) -> None:
    """Each behaviour of a version gives flags that broadcast with the outputs of each row of the tables."""
    found = wording(name)
    assert found is not None
    for row in ROWS:
        type, opset = row.op.rsplit("-", 1)
        cls = resolve(type, int(opset))
        if not found.undefined or cls is None or f"{cls.type}-{cls.since}" != name or row.expected is None:
            continue
        op, arrays = kit.operation(row.op, row.attributes), [None if i is None else np.asarray(i) for i in row.inputs]
        outputs = [np.shape(e) for e in (row.expected if isinstance(row.expected, tuple) else (row.expected,))]
        for behaviour in found.undefined:
            undefined: Any = BEHAVIOURS[behaviour](op, arrays)
            each_output = undefined if isinstance(undefined, tuple) else (undefined,) * len(outputs)
            assert len(each_output) == len(outputs), f"{row.id}: {behaviour}"
            for flags, shape in zip(each_output, outputs):
                assert np.broadcast_shapes(np.shape(flags), shape) == shape, f"{row.id}: {behaviour}"
