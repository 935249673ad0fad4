"""Products of a few rows with integer weights: sums over groups of codes, scaled in registers."""

from __future__ import annotations

import numpy as np
import pytest

from irrun.opdef import Stored
from irrun.types import ELEMENT_TYPES

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.codes import PackedCodes
from irrun.fast.product import WIDTH

RANDOM = np.random.default_rng(0)
RANGES = {"u8": (0, 256), "i8": (-128, 128), "u4": (0, 16), "i4": (-8, 8)}


def matrix(type: str, depth: int, columns: int, groups: int, *, whole: bool) -> tuple[Stored, np.ndarray]:
    """Return a matrix of codes with a zero, which may be ``whole``, and a scale for each group, and it in f64."""
    codes = RANDOM.integers(*RANGES[type], (depth, columns))
    if type.endswith("4"):
        nibbles = np.append(codes.reshape(-1) & 15, np.zeros(codes.size % 2, np.int64)).astype(np.uint8)
        raw = nibbles[::2] | nibbles[1::2] << 4
    else:
        raw = codes.astype(np.uint8 if type == "u8" else np.int8).reshape(-1).view(np.uint8)
    scales = RANDOM.uniform(0.5, 2, (groups, columns)).astype(np.float32)
    zeros = RANDOM.integers(*RANGES[type], (groups, columns)) + np.float32(0 if whole else 0.25)
    stored = Stored(raw, ELEMENT_TYPES[type], (depth, columns), zeros.astype(np.float32), scales)
    each = depth // groups
    return stored, (codes - np.repeat(zeros.astype(np.float64), each, 0)) * np.repeat(scales, each, 0)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("type", RANGES)
@pytest.mark.parametrize(("depth", "groups"), [(8, 1), (96, 3), (129, 1), (256, 16)])
def test_a_few_rows(type: str, depth: int, groups: int, whole: bool) -> None:
    """Every number of rows, whole and partial panels, alone and four at a time, and rows that lie apart."""
    for columns in (1, WIDTH + 1, 4 * WIDTH, 5 * WIDTH + 3):
        stored, numbers = matrix(type, depth, columns, groups, whole=whole)
        packed = PackedCodes(stored, False)
        # the product of the rows with the codes and that with the zeros, each rounded, are subtracted
        largest = np.abs(numbers).max() + 256 * 2
        for rows in (1, 2, 3, 4, 5):
            a = RANDOM.standard_normal((rows, depth + 2), np.float32)[:, 1 : depth + 1]
            around = np.full((rows, columns + 2), 7, np.float32)
            packed.multiply(a, around[:, 1:-1])
            most = 2**-23 * np.sqrt(depth + 2) * np.abs(a.astype(np.float64)).sum(1, keepdims=True) * largest
            assert (np.abs(around[:, 1:-1] - a.astype(np.float64) @ numbers) <= most).all()
            assert (around[:, [0, -1]] == 7).all()


def test_codes_of_four_bits_are_exact() -> None:
    """A row with a single 1 shows each code as it is: sums of whole numbers are exact."""
    codes = np.arange(32 * WIDTH).reshape(32, WIDTH) % 16
    raw = (codes.reshape(-1)[::2] | codes.reshape(-1)[1::2] << 4).astype(np.uint8)
    packed = PackedCodes(Stored(raw, ELEMENT_TYPES["u4"], (32, WIDTH)), False)
    out = np.empty((1, WIDTH), np.float32)
    for number in range(32):
        packed.multiply(np.eye(1, 32, number, dtype=np.float32), out)
        np.testing.assert_array_equal(out[0], codes[number])


def test_a_huge_row_is_no_difference_of_infinities() -> None:
    """The sum with the codes exceeds f32, the product does not."""
    stored = Stored(
        np.full(16 * WIDTH // 2, 0xFF, np.uint8), ELEMENT_TYPES["u4"], (16, WIDTH),
        np.full((1, WIDTH), 14, np.float32), np.full((1, WIDTH), 0.5, np.float32),
    )  # fmt: skip
    out = np.empty((1, WIDTH), np.float32)
    PackedCodes(stored, False).multiply(np.full((1, 16), 2.0**122, np.float32), out)
    np.testing.assert_array_equal(out, np.full((1, WIDTH), 2.0**125, np.float32))
