"""With int8-activations, rows in i8 are multiplied by integer codes, on every processor; the sums are those of f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from i8 import in_i8
from irrun import build as b
from rounded_runs import run

_RNG = np.random.default_rng(0)
_MOST_SCALE = 0.02
_RANGES = {"u8": (0, 256), "i8": (-128, 128), "u4": (0, 16), "i4": (-8, 8)}


def _normal(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape, np.float32)


def compressed(type: str, columns: int, groups: int, size: int, *, whole: bool = True) -> tuple[Any, np.ndarray]:
    """A matrix [columns, groups * size] of codes with zeros and scales, and the same numbers in f64, transposed."""
    codes = _RNG.integers(*_RANGES[type], (columns, groups, size))
    zeros = _RNG.integers(*_RANGES[type], (columns, groups, 1)).astype(np.float32) + np.float32(0 if whole else 0.25)
    scales = _RNG.uniform(_MOST_SCALE / 2, _MOST_SCALE, (columns, groups, 1)).astype(np.float32)
    wide = b.Subtract(b.Convert(b.constant(codes, type), destination_type="f32"), zeros)
    node = b.Reshape(b.Multiply(wide, scales), np.array([columns, groups * size]), special_zero=False)
    numbers = (codes - zeros.astype(np.float64)) * scales
    return node, numbers.reshape(columns, -1).T


def assert_in_i8(result: np.ndarray, a: np.ndarray, matrix: np.ndarray, type: str) -> None:
    """The products with the codes and those with the zeros may be summed up apart, and then subtracted."""
    left, (low, high) = in_i8(a), _RANGES[type]
    assert result.dtype == np.float32
    most = 2**-21 * np.abs(left).sum(1, keepdims=True) * (high - low) * _MOST_SCALE
    assert (np.abs(result - left @ matrix) <= most + 1e-37).all()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("type", _RANGES)
@pytest.mark.parametrize(
    ("rows", "columns", "groups", "size"),
    [
        (1, 260, 2, 64),
        (2, 65, 1, 96),
        (5, 130, 8, 16),
        (13, 70, 1, 40),
        (200, 64, 3, 32),
        (3, 90, 1, 52),
        (1, 400, 1, 8),
    ],
)
def test_rows_in_i8(way: str, type: str, rows: int, columns: int, groups: int, size: int, whole: bool) -> None:
    """Groups of the matrix are longer than those of rows, shorter, or as long as rows that 32 does not divide."""
    a = _normal(rows, groups * size)
    node, matrix = compressed(type, columns, groups, size, whole=whole)
    x = b.parameter([rows, groups * size], "f32")
    assert_in_i8(run(b.MatMul(x, node, transpose_b=True), way, a, precision="int8-activations"), a, matrix, type)


def test_rows_in_i8_that_are_not_finite(way: str) -> None:
    """NaN and infinities spread in their group alone; the unit of the least numbers would be subnormal."""
    a = _normal(6, 64)
    a[0, 3], a[1, 40], a[2, :32], a[3, :32], a[4, 5] = np.nan, -np.inf, 1e-40, 0, 3e38
    node, matrix = compressed("u4", 70, 1, 64)
    result = run(b.MatMul(b.parameter([6, 64], "f32"), node, transpose_b=True), way, a, precision="int8-activations")
    assert np.isnan(result[:2]).all()
    assert_in_i8(result[2:], a[2:], matrix, "u4")


def test_rows_in_i8_with_what_follows(way: str) -> None:
    a, bias, other = _normal(9, 96), _normal(131), _normal(9, 131)
    node, matrix = compressed("i4", 131, 3, 32)
    x, y = b.parameter([9, 96], "f32", name="x"), b.parameter([9, 131], "f32", name="y")
    product = b.MatMul(x, node, transpose_b=True)
    result = run(b.Relu(b.Add(b.Add(product, bias), y)), way, a, other, precision="int8-activations")
    expected = np.maximum(in_i8(a) @ matrix + bias + other, 0)
    assert (np.abs(result - expected) <= 2**-18 * (np.abs(in_i8(a)) @ np.abs(matrix) + 3)).all()


def test_what_stays_in_f32_beside_rows_in_i8(way: str) -> None:
    """Products with constants that are no integers, and with columns in place of rows."""
    a, plain = _normal(5, 64), _normal(64, 40)
    node, matrix = compressed("u8", 64, 1, 5)
    x = b.parameter([5, 64], "f32")
    product = b.MatMul(x, node, transpose_a=True, transpose_b=True)
    result = run(b.MatMul(product, plain), way, a, precision="int8-activations")
    first = a.astype(np.float64).T @ matrix
    sums = np.abs(a).astype(np.float64).T @ np.abs(matrix)
    assert (np.abs(result - first @ plain) <= 2**-18 * (sums @ np.abs(plain))).all()
