"""A run in bf16 multiplies rounded operands, on every processor; the sums are those of f64 within rounding of f32.

Where layers follow each other, small integers make every sum exact, so that nothing but the rounding to bf16 is seen.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import irrun
from bf16 import in_bf16
from irrun import build as b
from irrun.growing.layouts import repeated
from irrun.kernels.convolution import winograd
from irrun.planning import plan, plans, requests
from rounded_runs import convolved, inside, node, run

RNG = np.random.default_rng(0)
HALVES = ("f16", "bf16")


@pytest.fixture(autouse=True)
def own_numbers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test numbers of its own."""
    monkeypatch.setitem(globals(), "RNG", np.random.default_rng(zlib.crc32(request.node.name.encode())))


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


def integers(*shape: int, most: int = 600) -> np.ndarray:
    return RNG.integers(-most, most + 1, shape).astype(np.float32)


def constant(array: np.ndarray, type: str) -> Any:
    return array if type == "f32" else b.Convert(b.constant(array, type), destination_type="f32")


def held(array: np.ndarray, type: str) -> np.ndarray:
    """The numbers that a file holds in a type."""
    return in_bf16(array) if type == "bf16" else array.astype(np.float16) if type == "f16" else array


def assert_sums(result: np.ndarray, sums: np.ndarray, terms: np.ndarray, error: float = 2**-21) -> None:
    """Each sum may be wrong by an ``error`` of each of its terms, whose sizes sum up to ``terms``."""
    assert result.dtype == np.float32
    assert result.shape == sums.shape
    assert (np.abs(result - sums) <= error * terms + 1e-37).all()


@pytest.mark.parametrize("type", ["f32", *HALVES])
@pytest.mark.parametrize(("flip_a", "flip_b"), [*itertools.product([False, True], repeat=2)])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [
        (1, 7, 3),
        (5, 64, 65),
        (13, 301, 130),
        (7, 1, 64),
        (200, 1601, 5),
        (0, 4, 3),
        (150, 64, 200),
        (37, 800, 16),
    ],
)
def test_products(way: str, type: str, flip_a: bool, flip_b: bool, rows: int, depth: int, columns: int) -> None:
    a, matrix = normal(2, rows, depth), normal(depth, columns)
    x = b.parameter([2, depth, rows] if flip_a else [2, rows, depth], "f32")
    product = b.MatMul(
        x, constant(matrix.T if flip_b else matrix, type), transpose_a=flip_a, transpose_b=flip_b
    )  # fmt: skip
    result = run(product, way, a.swapaxes(1, 2) if flip_a else a)
    left, right = in_bf16(a), in_bf16(held(matrix, type))
    assert_sums(result, left @ right, np.abs(left) @ np.abs(right))


def test_products_with_what_follows(way: str) -> None:
    a, matrix, bias, other = normal(9, 70), normal(70, 131), normal(131), normal(9, 131)
    x, y = b.parameter([9, 70], "f32", name="x"), b.parameter([9, 131], "f32", name="y")
    result = run(b.Relu(b.Add(b.Add(b.MatMul(x, matrix), bias), y)), way, a, other)
    left, right = in_bf16(a), in_bf16(matrix)
    terms = np.abs(left) @ np.abs(right) + np.abs(bias) + np.abs(other)
    assert_sums(result, np.maximum(left @ right + bias + other, 0), terms)


def test_products_one_after_the_other(way: str) -> None:
    """The result of a product is f32, and rounded where the next one reads it. Products of many rows are joined."""
    a, first, second = integers(80, 24), integers(24, 70, most=2), integers(70, 40, most=1)
    between = in_bf16(a) @ first
    assert (in_bf16(between) != between).mean() > 0.3
    x = b.parameter([80, 24], "f32")
    result = run(b.MatMul(b.Relu(b.MatMul(x, first)), second), way, a)
    np.testing.assert_array_equal(result, in_bf16(np.maximum(between, 0)) @ second)


def test_numbers_that_are_not_finite(way: str) -> None:
    a = np.array([[np.inf, 1, 0], [np.nan, 1, 0], [3.4e38, 1, 0], [1e-40, 1, 0], [0, 0, 1]], np.float32)
    matrix = np.array([[1, 0, 2.0**100], [1, 1, 1], [1e-40, -1, 1]], np.float32)
    result = run(b.MatMul(b.parameter([5, 3], "f32"), matrix), way, a)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(result, in_bf16(a) @ in_bf16(matrix))


# ---------------------------------------------------------------------------------------------
# convolutions


@pytest.mark.parametrize("type", ["f32", *HALVES])
@pytest.mark.parametrize(
    ("ins", "outs", "groups", "kernel", "stride", "dilation", "pad"),
    [
        (16, 70, 1, 1, 1, 1, 0),
        (17, 16, 1, 3, 1, 1, 1),
        (32, 32, 1, 3, 1, 1, 1),
        (96, 100, 1, 3, 1, 1, 1),
        (64, 33, 1, 1, 1, 1, 0),
        (64, 64, 1, 1, 2, 1, 0),
        (34, 10, 1, 5, 1, 2, 3),
        (32, 20, 2, 3, 1, 1, 2),
        (3, 20, 1, 7, 2, 1, 3),
        (1, 5, 1, 3, 1, 1, 1),
        (9, 6, 1, 3, 2, 2, 2),
        (5, 3, 2, 3, 1, 1, 1),
        (4, 6, 3, 1, 2, 1, 0),
        (2, 1, 1, 3, 1, 1, 1),
        (2, 1, 4, 3, 1, 1, 1),
        (1, 1, 40, 3, 1, 1, 1),
        (1, 1, 70, 5, 2, 1, 2),
        (1, 1, 9, 7, 1, 1, 3),
        (1, 1, 100, 3, 1, 2, 2),
    ],
)
def test_convolutions(
    way: str, type: str, ins: int, outs: int, groups: int, kernel: int, stride: int, dilation: int, pad: int
) -> None:
    data, filters = normal(2, groups * ins, 11, 13), normal(groups, outs, ins, kernel, kernel)
    shape = (strides, dilations, pads) = [stride] * 2, [dilation] * 2, [pad] * 2
    make, own = (b.Convolution, filters[0]) if groups == 1 else (b.GroupConvolution, filters)
    x = b.parameter(list(data.shape), "f32")
    result = run(inside(node(make, x, constant(own, type), *shape)), way, data)
    # pictures and their filters stay in f32, or become sums of two numbers of bf16
    rounded, error = (in_bf16, 2**-21) if groups > 1 or ins > 4 else (np.asarray, 2**-16)
    left, right = rounded(data), rounded(held(filters, type))
    terms = convolved(np.abs(left), np.abs(right), strides, dilations, pads)
    assert_sums(result, convolved(left, right, strides, dilations, pads), terms, error)


def test_pictures_with_numbers_that_are_not_finite(way: str) -> None:
    """Such a number is in the results that see it alone, whatever its neighbours are multiplied by."""
    data, filters = normal(2, 3, 30, 40), normal(1, 8, 3, 5, 5)
    data[0, 1, 5, 7], data[1, 2, 20, 39], data[1, 0, 3, 0] = np.inf, np.nan, -np.inf
    pads = [2, 2]
    x = b.parameter(list(data.shape), "f32")
    result = run(inside(node(b.Convolution, x, filters[0], [1, 1], [1, 1], pads)), way, data)
    wanted = convolved(data, filters, [1, 1], [1, 1], pads)
    assert not np.isfinite(wanted).all()
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-3)


def test_filters_are_rounded_for_the_layout_of_the_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in f32 that a kernel of channels-first data would read are twice as large as the file has them."""
    pytest.importorskip("numba", reason="the extra `fast` is not installed")
    monkeypatch.setenv("IRRUN_FAST", "always")
    rounded: list[np.ndarray] = []
    monkeypatch.setattr(requests, "rounded_to_bf16", lambda array: rounded.append(array) or in_bf16(array))
    filters = constant(normal(20, 16, 3, 3), "f16")
    x = b.parameter([1, 16, 9, 9], "f32")
    model = b.model(inside(node(b.Convolution, x, filters, [1, 1], [1, 1], [1, 1])))
    irrun.compile(model, precision="bf16")(normal(1, 16, 9, 9))
    assert not rounded


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("type", ["f32", "f16"])
@pytest.mark.parametrize(
    ("ins", "outs", "kernel", "size", "stride", "pads"),
    [(5, 70, 3, 40, 1, (1, 1)), (32, 33, 3, 67, 2, (1, 1)), (16, 16, 1, 32, 1, (0, 0)), (3, 9, 4, 30, 5, (2, 0))],
)
def test_convolutions_along_one_axis(
    way: str, precision: str, type: str, ins: int, outs: int, kernel: int, size: int, stride: int, pads: tuple[int, int]
) -> None:
    data, filters = normal(2, ins, size), normal(outs, ins, kernel)
    x = b.parameter([2, ins, size], "f32")
    made = b.Convolution(
        x, constant(filters, type), strides=[stride], dilations=[1], pads_begin=[pads[0]], pads_end=[pads[1]]
    )
    result = run(made, way, data, precision=precision)
    left, right = data.astype(np.float64), held(filters, type).astype(np.float64)
    if precision == "bf16" and ins > 4:
        left, right = in_bf16(data), in_bf16(held(filters, type))
    left, right, how = left[:, :, None], right[None, :, :, None], ([1, stride], [1, 1], [0, 0])
    left = np.pad(left, ((0, 0), (0, 0), (0, 0), pads))
    terms = convolved(np.abs(left), np.abs(right), *how)
    assert_sums(result, convolved(left, right, *how)[:, :, 0], terms[:, :, 0])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_transposed_convolutions(way: str, groups: int, stride: int) -> None:
    ins, outs = 5, 18
    data, filters = normal(2, groups * ins, 6, 7), normal(groups, ins, outs, 3, 3)
    x = b.parameter(list(data.shape), "f32")
    make, own = (b.ConvolutionBackpropData, filters[0]) if groups == 1 else (b.GroupConvolutionBackpropData, filters)
    result = run(inside(node(make, x, own, [stride] * 2, [1, 1], [1, 1])), way, data)

    def spread(data: np.ndarray, filters: np.ndarray) -> np.ndarray:
        """The convolution of the data with zeros between its elements, with the filters turned."""
        sparse = np.zeros((*data.shape[:2], *((n - 1) * stride + 1 for n in data.shape[2:])))
        sparse[:, :, ::stride, ::stride] = data
        return convolved(sparse, filters.swapaxes(1, 2)[..., ::-1, ::-1], [1, 1], [1, 1], [1, 1])

    left, right = in_bf16(data), in_bf16(filters)
    assert_sums(result, spread(left, right), spread(np.abs(left), np.abs(right)))


@pytest.mark.parametrize("type", ["f32", *HALVES])
@pytest.mark.parametrize(
    ("channels", "kernel", "stride", "dilation", "pad"),
    [(2, 1, 1, 1, 0), (7, 3, 1, 1, 1), (20, 3, 2, 1, 1), (37, 2, 1, 2, 1), (70, 5, 1, 1, 2), (130, 3, 1, 1, 0)],
)
def test_depthwise(way: str, type: str, channels: int, kernel: int, stride: int, dilation: int, pad: int) -> None:
    data, filters = normal(2, channels, 9, 8), normal(channels, 1, 1, kernel, kernel)
    how = ([stride] * 2, [dilation] * 2, [pad] * 2)
    x = b.parameter([2, channels, 9, 8], "f32")
    result = run(inside(node(b.GroupConvolution, x, constant(filters, type), *how)), way, data)
    left, right = in_bf16(data), in_bf16(held(filters, type))
    assert_sums(result, convolved(left, right, *how), convolved(np.abs(left), np.abs(right), *how))


@pytest.mark.parametrize("channels", [6, 33])
def test_depthwise_ones_one_after_the_other(way: str, channels: int) -> None:
    """Each rounds what it reads, also an odd number of channels."""
    data, deep = integers(2, channels, 6, 7), [integers(channels, 1, 1, 3, 3, most=1) / n for n in (1, 4, 16)]
    how, value, result = ([1, 1], [1, 1], [1, 1]), data.astype(np.float64), b.parameter([2, channels, 6, 7], "f32")
    for filters in deep:
        result, value = node(b.GroupConvolution, result, filters, *how), convolved(in_bf16(value), filters, *how)
    np.testing.assert_array_equal(run(inside(result), way, data), value)


# ---------------------------------------------------------------------------------------------
# attention


def attended(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, shown: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """The attention of rounded numbers with rounded weights, in f64, and how much rounding may change it.

    A score in f32 may differ in its last bits, so that a weight in the middle of two numbers of bf16 becomes either.
    """
    query, key, value = in_bf16(query), in_bf16(key), in_bf16(value)
    scores = query @ key.swapaxes(-1, -2) * np.float32(scale) + shown
    exact = np.exp(scores - scores.max(-1, keepdims=True))
    weights = in_bf16(exact.astype(np.float32))
    low, high = (in_bf16((exact * (1 + 2**-15 * sign)).astype(np.float32)) for sign in (-1, 1))
    total, terms = weights.sum(-1, keepdims=True), np.abs(value)
    changed = high - low
    more = changed @ terms + changed.sum(-1, keepdims=True) * (weights @ terms / total) + 2**-18 * (weights @ terms)
    return weights @ value / total, more / total


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("batch", "queries", "keys", "depth", "width"),
    [
        ((1,), 5, 1, 1, 1),
        ((2, 3), 49, 49, 32, 32),
        ((1,), 70, 35, 64, 80),
        ((2,), 9, 130, 31, 17),
        ((1,), 5, 800, 3, 4),
        ((2,), 150, 197, 64, 72),
        ((1,), 20, 1100, 40, 33),
    ],
)
def test_attention(
    way: str, batch: tuple[int, ...], queries: int, keys: int, depth: int, width: int, causal: bool
) -> None:
    feeds = query, key, value = normal(*batch, queries, depth), normal(*batch, keys, depth), normal(*batch, keys, width)
    some = [b.parameter(list(feed.shape), "f32", name=name) for feed, name in zip(feeds, "qkv")]
    result = run(b.ScaledDotProductAttention(*some, causal=causal), way, *feeds)
    shown = np.where(np.tri(queries, keys, dtype=bool), 0, -np.inf) if causal else np.zeros((queries, keys))
    wanted, by = attended(query, key, value, shown, depth**-0.5)
    assert (np.abs(result - wanted) <= by).all()


def test_attention_with_a_mask_and_a_scale(way: str) -> None:
    query, key, value, mask = normal(2, 2, 50, 20), normal(2, 2, 33, 20), normal(2, 2, 33, 7), normal(1, 2, 50, 33)
    mask[..., 5] = -np.inf
    some = [b.parameter(list(feed.shape), "f32", name=name) for feed, name in zip((query, key, value, mask), "qkvm")]
    node = b.ScaledDotProductAttention(*some, np.float32(0.3), causal=False)
    wanted, by = attended(query, key, value, mask.astype(np.float64), 0.3)
    assert (np.abs(run(node, way, query, key, value, mask) - wanted) <= by).all()


def test_attention_rounds_queries_before_the_scale_and_weights_after_the_largest(way: str) -> None:
    """Every number is exact but the roundings: 257 becomes 256, and the weight of the second key 1 - 2**-9 becomes 1."""
    query, key = np.full((1, 5, 1), 257, np.float32), np.array([[[1], [0]]], np.float32)
    value = np.array([[[1], [0]]], np.float32)
    scale = np.float32(-math.log1p(-(2**-9) * 0.9) / 256)
    some = [b.parameter(list(feed.shape), "f32", name=name) for feed, name in zip((query, key, value), "qkv")]
    node = b.ScaledDotProductAttention(*some, np.float32(0), scale, causal=False)
    result = run(node, way, query, key, value)
    np.testing.assert_array_equal(result, np.full((1, 5, 1), 0.5, np.float32))


# ---------------------------------------------------------------------------------------------
# what stays in f32


def test_attention_of_few_queries_stays_in_f32(way: str) -> None:
    query, key, value = normal(2, 3, 4, 20), normal(2, 3, 9, 20), normal(2, 3, 9, 7)
    some = [b.parameter(list(feed.shape), "f32", name=name) for feed, name in zip((query, key, value), "qkv")]
    model = b.model(b.ScaledDotProductAttention(*some, causal=False))
    result = irrun.compile(model, exact=way == "exact", precision="bf16")([query, key, value])[0]
    weights = np.exp(query.astype(np.float64) @ key.swapaxes(-1, -2) / np.sqrt(20))
    np.testing.assert_allclose(result, weights @ value / weights.sum(-1, keepdims=True), rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize(
    ("size", "channels", "rounds"),
    [(32, 128, False), (29, 128, False), (28, 128, True), (32, 112, True), (32, 272, True)],
)
def test_convolutions_that_winograd_outruns_stay_in_f32(
    way: str, monkeypatch: pytest.MonkeyPatch, size: int, channels: int, rounds: bool, tiles: bool
) -> None:
    """From 64 of Winograd's tiles on, if the pairs of channels are neither too few nor too many.

    The tiles of AMX outrun Winograd's method.
    """
    monkeypatch.setattr(winograd, "may_use_tiles", lambda: tiles)
    data, filters = normal(1, channels, size, size), normal(1, 128, channels, 3, 3) / 4
    how = [1, 1], [1, 1], [1, 1]
    x = b.parameter(list(data.shape), "f32")
    result = run(inside(node(b.Convolution, x, filters[0], *how)), way, data)
    exact, rounded = convolved(data, filters, *how), convolved(in_bf16(data), in_bf16(filters), *how)
    wanted, other = (rounded, exact) if rounds or tiles else (exact, rounded)
    assert np.abs(result - wanted).max() < 1e-3
    assert np.abs(result - other).max() > 1e-2


def test_products_of_two_values_stay_in_f32(way: str) -> None:
    a, c = normal(5, 30), normal(30, 6)
    x, y = b.parameter([5, 30], "f32", name="x"), b.parameter([30, 6], "f32", name="y")
    result = run(b.MatMul(x, y), way, a, c)
    assert_sums(result, a.astype(np.float64) @ c, np.abs(a).astype(np.float64) @ np.abs(c))


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("rows", [3, 4])
@pytest.mark.parametrize("is_known", [True, False])
def test_weights_in_integers_stay_in_f32_without_tiles(
    way: str, monkeypatch: pytest.MonkeyPatch, rows: int, tiles: bool, is_known: bool
) -> None:
    """With tiles, four rows or more are rounded, and so are the numbers of the matrix."""
    for module in plan, plans:
        monkeypatch.setattr(module, "may_use_tiles", lambda: tiles)
    a, codes = normal(rows, 64), RNG.integers(-8, 8, (64, 80)).astype(np.int8)
    scales = np.full((1, 80), 0.0123, np.float32)
    matrix = b.Multiply(b.Convert(b.constant(codes, "i8"), destination_type="f32"), scales)
    x = b.parameter([rows if is_known else -1, 64], "f32")
    result = run(b.MatMul(x, matrix), way, a)
    left, right = a.astype(np.float64), (codes * scales).astype(np.float64)
    if tiles and rows > 3:
        left, right = in_bf16(a), in_bf16(codes * scales)
    assert_sums(result, left @ right, np.abs(left) @ np.abs(right))


@pytest.mark.parametrize("type", ["i8", "u4"])
@pytest.mark.parametrize(
    ("shape", "flips"), [((2, 3, 40), False), ((40, 5), True), ((40, 2), True), ((3, 1, 40), False)]
)
def test_rows_beside_codes_are_those_of_the_whole_input(
    way: str, monkeypatch: pytest.MonkeyPatch, type: str, shape: tuple[int, ...], flips: bool
) -> None:
    """Batches, and columns in place of rows."""
    for module in plan, plans:
        monkeypatch.setattr(module, "may_use_tiles", lambda: True)
    a, codes = normal(*shape), RNG.integers(0, 16, (150, 40))
    scales = np.full((150, 1), 0.0123, np.float32)
    matrix = b.Multiply(b.Convert(b.constant(codes, type), destination_type="f32"), scales)
    model = b.model(b.MatMul(b.parameter(list(shape), "f32"), matrix, transpose_a=flips, transpose_b=True))
    result = irrun.compile(model, exact=way == "exact", precision="bf16")([a])[0]
    numbers, rows = (codes * np.float32(0.0123)).T.astype(np.float32), a.T if flips else a
    left, right = rows.astype(np.float64), numbers.astype(np.float64)
    if math.prod(rows.shape[:-1]) > 3:
        left, right = in_bf16(rows), in_bf16(numbers)
    assert_sums(result, left @ right, np.abs(left) @ np.abs(right))


def test_other_readers_of_a_constant_see_it_as_the_file_has_it(way: str) -> None:
    table, ids = normal(9, 20), np.array([3, 0, 8])
    tied = constant(table, "f16")
    rows = b.Gather(tied, b.parameter([3], "i64"), 0)
    result = run(b.MatMul(rows, tied, transpose_b=True), way, ids)
    known = table.astype(np.float16)
    left, right = in_bf16(known[ids]), in_bf16(known).T
    assert_sums(result, left @ right, np.abs(left) @ np.abs(right))


def test_the_same_for_equal_rows(way: str) -> None:
    """An input with a stride of 0."""
    a, matrix = repeated(normal(6, 40)), normal(40, 70)
    result = run(b.MatMul(b.parameter([6, 40], "f32"), matrix), way, a)
    left, right = in_bf16(np.array(a)), in_bf16(matrix)
    assert_sums(result, left @ right, np.abs(left) @ np.abs(right))


# ---------------------------------------------------------------------------------------------
# the names of precisions


@pytest.mark.parametrize(
    ("flags", "tiles", "meant"),
    [
        ([], False, []),
        (["avx512_bf16", "avx512_vnni"], False, ["bf16", "i8"]),
        (["avx512_bf16", "avx512_vnni"], True, ["bf16"]),
        (["avx_vnni"], False, ["i8"]),
    ],
)
def test_auto_is_what_the_processor_is_made_for(
    monkeypatch: pytest.MonkeyPatch, flags: Sequence[str], tiles: bool, meant: Sequence[str]
) -> None:
    monkeypatch.setattr(plans, "may_use_tiles", lambda: tiles)
    monkeypatch.setattr(plans, "has_flag", flags.__contains__)
    model = b.model(b.MatMul(b.parameter([5, 30], "f32"), normal(30, 6)))
    assert irrun.compile(model, precision="auto").plan.how.rounds == set(meant)


def test_f32_is_the_default(way: str) -> None:
    a, matrix = normal(5, 30), normal(30, 6)
    model = b.MatMul(b.parameter([5, 30], "f32"), matrix)
    result = run(model, way, a, precision="f32")
    np.testing.assert_array_equal(irrun.compile(b.model(model), exact=way == "exact")([a])[0], result)
    assert_sums(result, a.astype(np.float64) @ matrix, np.abs(a).astype(np.float64) @ np.abs(matrix))
