"""What the pages leave open: for each behaviour, elements that it names and elements that it does not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import kit
from grouped import each
from irrun.specification import wording
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
    ("integer-overflow", "Convolution-1", _CONVOLVED, [_U8, _ONES], [[[False, False]]]),
    ("integer-overflow", "Convolution-1", _CONVOLVED, [_U8 + 1, _ONES], [[[True, False]]]),
    ("integer-overflow", "Convolution-1", _CONVOLVED, [kit.f32([[[1, 2]]]), kit.f32([[[9]]])], False),
    ("integer-overflow", "Convolution-1", _CONVOLVED, [_U8, None], False),
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
]  # fmt: skip


@each("behaviour, name, attributes, inputs, expected", [*WINDOWS, *GENERATORS])
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
