"""Filters with NaN or Inf meet no element in the pads: pads are left out of the sums, not multiplied as zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irrun
import irrun.build as b
from irrun.opdef import Value
from irrun.planning.requests import channels_last_kernel
from irrun.types import ELEMENT_TYPES, PartialShape
from kit import operation

PADDED: dict[str, Any] = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}


def convolved(type: str, data: tuple[int, ...], filters: np.ndarray) -> np.ndarray:
    """Return the convolution of ones."""
    x = b.parameter(list(data), name="x")
    return irrun.compile(b.model(getattr(b, type)(x, filters, **PADDED)))([np.ones(data, np.float32)]).arrays[0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("type", "data", "filters"),
    [
        pytest.param("Convolution", (1, 3, 8, 9), (4, 3, 3, 3), id="im2col"),
        pytest.param("Convolution", (1, 32, 16, 16), (32, 32, 3, 3), id="Winograd"),
        pytest.param("Convolution", (1, 1, 64, 64), (1, 1, 3, 3), id="one-plane"),
        pytest.param("GroupConvolution", (1, 6, 8, 9), (6, 1, 1, 3, 3), id="depthwise"),
        pytest.param("GroupConvolution", (1, 6, 8, 9), (2, 2, 3, 3, 3), id="groups"),
    ],
)
def test_pads_are_not_multiplied(type: str, data: tuple[int, ...], filters: tuple[int, ...], bad: float) -> None:
    weights = np.full(filters, 0.5, np.float32)
    weights.reshape(-1, 3, 3)[0, 0, 0] = bad  # the tap above and left of the centre, of the first filter
    out = convolved(type, data, weights)
    assert np.isfinite(out[0, 1:]).all()
    assert np.isfinite(out[0, 0, 0]).all(), "the windows of the first row see a pad through this tap"
    assert np.isfinite(out[0, 0, :, 0]).all()
    np.testing.assert_array_equal(out[0, 0, 1:, 1:], np.full_like(out[0, 0, 1:, 1:], bad))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_transposed_convolutions_multiply_no_pads(bad: float) -> None:
    weights = np.full((2, 1, 3, 3), 0.5, np.float32)
    weights[0, 0, 0, 0] = bad  # its products lie one row up and one column left: the last row and column get none
    out = convolved("ConvolutionBackpropData", (1, 2, 7, 8), weights)
    assert np.isfinite(out[0, 0, -1]).all()
    assert np.isfinite(out[0, 0, :, -1]).all()
    np.testing.assert_array_equal(out[0, 0, :-1, :-1], np.full((6, 7), bad, np.float32))


def test_channels_last_data_is_left_to_the_methods_that_skip_pads() -> None:
    weights = np.ones((4, 3, 3, 3), np.float32)
    for bad, taken in ((1.0, True), (np.nan, False)):
        weights[0, 0, 0, 0] = bad
        inputs = Value(ELEMENT_TYPES["f32"], PartialShape.of([1, 3, 8, 9])), Value.of(weights)
        assert (channels_last_kernel(operation("Convolution-1", PADDED), inputs) is not None) == taken
