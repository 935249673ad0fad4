"""Products with integer weights: few rows, whose sums over groups of codes are scaled in registers, and many in bf16."""

from __future__ import annotations

import numpy as np
import pytest

from bf16 import in_bf16
from irrun.opdef import Epilogue, Stored
from irrun.types import ELEMENT_TYPES

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.codes import PackedCodes
from irrun.fast.precision.digits import DigitCodes
from irrun.fast.precision.rounded_codes import RoundedCodes
from irrun.fast.precision.tiles import TILES
from irrun.fast.product import WIDTH

RANDOM = np.random.default_rng(0)
WITH_TILES = pytest.mark.skipif(not TILES, reason="this processor has no tiles")
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


def is_split(stored: Stored) -> bool:
    """Return whether rows are split into digits here, for a matrix whose groups vectors divide."""
    return DigitCodes.holds(stored, False)


@pytest.mark.parametrize("type", RANGES)
@pytest.mark.parametrize(("depth", "groups"), [(16, 1), (96, 3), (512, 1), (320, 1)])
def test_rows_split_into_digits(type: str, depth: int, groups: int) -> None:
    """Even and odd numbers of rows, more than are split at once, whole and partial panels; large and small rows."""
    for columns in (1, WIDTH + 1, 2 * WIDTH):
        stored, numbers = matrix(type, depth, columns, groups, whole=columns > 1)
        if not is_split(stored):
            pytest.skip("this processor has no instruction that adds four products of bytes")
        packed = DigitCodes(stored, False)
        largest = np.abs(numbers).max() + 256 * 2
        for rows in (1, 2, 5, 50):
            a = RANDOM.standard_normal((rows, depth + 2), np.float32)[:, 1 : depth + 1]
            a[:, ::7] *= 2.0 ** RANDOM.integers(-55, 80, (rows, 1))
            around = np.full((rows, columns + 2), 7, np.float32)
            packed.multiply(a, around[:, 1:-1])
            most = 2**-23 * np.sqrt(depth + 2) * np.abs(a.astype(np.float64)).sum(1, keepdims=True) * largest
            assert (np.abs(around[:, 1:-1] - a.astype(np.float64) @ numbers) <= most).all()
            assert (around[:, [0, -1]] == 7).all()


@pytest.mark.parametrize("type", RANGES)
def test_digits_of_whole_numbers_are_exact(type: str) -> None:
    """Whole numbers of up to 23 bits. Without a carry, the first digit of the largest would be 128."""
    codes = RANDOM.integers(*RANGES[type], (64, WIDTH))
    flat = codes.reshape(-1)
    raw = (flat[::2] & 15 | (flat[1::2] & 15) << 4) if type.endswith("4") else flat & 255
    stored = Stored(raw.astype(np.uint8), ELEMENT_TYPES[type], (64, WIDTH))
    if not is_split(stored):
        pytest.skip("this processor has no instruction that adds four products of bytes")
    out = np.empty((1, WIDTH), np.float32)
    for number in (1, 127, 128, -128, 32639, -32768, 4177919, -4194303, 4194303):
        row = np.eye(1, 64, 21, dtype=np.float32) * np.float32(number)
        DigitCodes(stored, False).multiply(row, out)
        np.testing.assert_array_equal(out, row @ codes.astype(np.float32))


@pytest.mark.parametrize("sizes", [(1e3,), (1e6,), (1e9,), (1e9, 1e4), (1e12, 1e8, 1e4), (1e15, 1e11, 1e7, 1e4)])
def test_few_large_numbers_do_not_hide_the_others(sizes: tuple[float, ...]) -> None:
    """Large numbers of a row meet codes of 0, so that the product has the precision of the small ones.

    With four sizes beside that of most numbers, the row is not split.
    """
    codes = RANDOM.integers(-8, 8, (256, WIDTH))
    codes[: len(sizes)] = 0
    flat = codes.reshape(-1)
    stored = Stored((flat[::2] & 15 | (flat[1::2] & 15) << 4).astype(np.uint8), ELEMENT_TYPES["i4"], codes.shape)
    if not is_split(stored):
        pytest.skip("this processor has no instruction that adds four products of bytes")
    rows = RANDOM.standard_normal((3, 256), np.float32)
    rows[1, : len(sizes)] = sizes
    out = np.empty((3, WIDTH), np.float32)
    DigitCodes(stored, False).multiply(rows, out)
    exact = rows.astype(np.float64) @ codes
    most = 2**-19 * np.abs(rows.astype(np.float64)) @ np.abs(codes)
    assert (np.abs(out - exact) <= most).all()


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 2.0**122, 2.0**-130])
def test_rows_without_digits(number: float) -> None:
    """A row with numbers that have no unit is that of f32, and changes no other row."""
    stored, numbers = matrix("i4", 32, WIDTH, 2, whole=True)
    if not is_split(stored):
        pytest.skip("this processor has no instruction that adds four products of bytes")
    a = np.zeros((3, 32), np.float32)
    a[0], a[1, 5], a[2] = 1, number, 2
    out = np.empty((3, WIDTH), np.float32)
    DigitCodes(stored, False).multiply(a, out)
    with np.errstate(invalid="ignore"):
        each = a[1, :, None] * numbers.astype(np.float32)
    np.testing.assert_allclose(out[1], each.sum(0), rtol=1e-6)
    np.testing.assert_allclose(out[[0, 2]], a[[0, 2]] @ numbers, rtol=1e-5, atol=1e-4)


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


@WITH_TILES
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("type", RANGES)
@pytest.mark.parametrize(("depth", "groups"), [(8, 1), (96, 3), (129, 1), (135, 5), (256, 16), (1100, 4)])
def test_rows_and_codes_rounded_to_bf16(type: str, depth: int, groups: int, whole: bool) -> None:
    """Even groups and odd ones, panels that are unpacked in one part and in several, and more rows than are held."""
    for columns in (1, WIDTH - 1, 2 * WIDTH + 17):
        stored, _ = matrix(type, depth, columns, groups, whole=whole)
        assert RoundedCodes.holds(stored, False)
        packed, right = RoundedCodes(stored, False), in_bf16(stored.unpack_rows(slice(None)))
        for rows in (1, 5, 16, 33, 300):
            a = RANDOM.standard_normal((rows, depth + 2), np.float32)[:, 1 : depth + 1]
            around = np.full((rows, columns + 2), 7, np.float32)
            packed.multiply(a, around[:, 1:-1])
            left = in_bf16(a)
            assert (np.abs(around[:, 1:-1] - left @ right) <= 2**-21 * (np.abs(left) @ np.abs(right))).all()
            assert (around[:, [0, -1]] == 7).all()


@WITH_TILES
@pytest.mark.parametrize("type", RANGES)
def test_a_transposed_matrix_of_codes_rounded_to_bf16(type: str) -> None:
    """What follows is computed, too, and parts of the rows and of the columns are those of the whole."""
    depth, columns, rows = 200, 150, 40
    codes = RANDOM.integers(*RANGES[type], (columns, depth)).reshape(-1)
    raw = (codes[::2] & 15 | (codes[1::2] & 15) << 4) if type.endswith("4") else codes & 255
    zeros, scales = np.full((columns, 4), 3, np.float32), RANDOM.uniform(0.5, 2, (columns, 4)).astype(np.float32)
    stored = Stored(raw.astype(np.uint8), ELEMENT_TYPES[type], (columns, depth), zeros, scales)
    assert RoundedCodes.holds(stored, True)
    packed, right = RoundedCodes(stored, True), in_bf16(stored.unpack_rows(slice(None))).T
    a, out = RANDOM.standard_normal((rows, depth), np.float32), np.empty((rows, columns), np.float32)
    bias, more = RANDOM.standard_normal(columns, np.float32), RANDOM.standard_normal((rows, columns), np.float32)
    packed.multiply(a, out, 0, Epilogue(bias, True, (0.0, 50.0)), more)
    left = in_bf16(a)
    most = 2**-21 * (np.abs(left) @ np.abs(right) + np.abs(bias) + np.abs(more))
    assert (np.abs(out - np.clip(left @ right + bias + more, 0, 50)) <= most).all()
    plain, part = np.empty_like(out), np.empty_like(out)
    packed.multiply(a, plain)
    for begin, end in ((0, 1), (1, 38), (38, rows)):
        packed.multiply(a[begin:end], part[begin:end, :WIDTH])
        packed.multiply(a[begin:end], part[begin:end, WIDTH:], WIDTH)
    np.testing.assert_array_equal(part, plain)
