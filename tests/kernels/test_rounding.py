"""Rounding to bf16: the same as ml_dtypes, but for subnormal numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bf16 import in_bf16
from irrun.kernels.cast import rounded_to_bf16

_CASES = {
    1.0: 1.0,
    1 + 2**-8: 1.0,  # in the middle between two numbers: the even one
    1 + 3 * 2**-8: 1 + 2**-6,
    1 + 2**-8 + 2**-23: 1 + 2**-7,
    -(1 + 2**-8 + 2**-23): -(1 + 2**-7),
    3.38e38: 254 * 2.0**120,
    3.4e38: np.inf,
    2.0**-126: 2.0**-126,
    np.inf: np.inf,
}


@pytest.mark.parametrize("number", _CASES)
def test_numbers(number: float) -> None:
    result = rounded_to_bf16(np.array([number], np.float32))
    assert result.dtype == np.float32
    assert result[0] == _CASES[number]


@pytest.mark.parametrize("number", [1e-45, 1e-40, 2.0**-126 - 2.0**-149, 0.0])
def test_subnormal_numbers_become_zeros_of_their_sign(number: float) -> None:
    result = rounded_to_bf16(np.array([number, -number], np.float32))
    assert (result == 0).all()
    assert np.signbit(result).tolist() == [False, True]


def test_nan_stays_nan() -> None:
    patterns = np.array([0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF80FFFF], np.uint32).view(np.float32)
    assert np.isnan(rounded_to_bf16(patterns)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_all_kinds_of_numbers(dtype: type) -> None:
    """Random bits, from an array with negative strides, which stays as it was."""
    bits = np.random.default_rng(0).integers(0, 256, (50, 1 << 12), np.uint8)
    array = bits.view(dtype)[::-1, ::-1]
    array = array[np.isfinite(array)].reshape(-1)[::-1]
    before = array.copy()
    np.testing.assert_array_equal(rounded_to_bf16(array), in_bf16(array.astype(np.float32)))
    np.testing.assert_array_equal(array, before)
