"""Compiled attention against numpy in f64."""

from __future__ import annotations

import numpy as np
import pytest

from irrun import fast
from irrun.opdef import Index, Kernel, Request, Value
from kit import filled, operation, tensor

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.panels import MAX_SUMMED_ROWS, WIDTH

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def expected(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None = None, *, causal: bool = False
) -> np.ndarray:
    query, key, value = (a.astype(np.float64) for a in (query, key, value))
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    if causal:
        mask = np.tri(*scores.shape[-2:], dtype=bool)
    if mask is not None:
        scores = scores + (np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else mask)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


def kernel_of(*arrays: np.ndarray, causal: bool = False) -> Kernel:
    """Return the kernel for inputs of known rank and type."""
    inputs = [Value(Value.of(a).type, tensor("f32[" + ",".join("?" * a.ndim) + "]").shape) for a in arrays]
    op = operation("ScaledDotProductAttention-13", {"causal": str(causal).lower()})
    kernel = fast.kernel(op, Request(tuple(inputs)))
    assert kernel is not None
    assert kernel.algorithm == "compiled"
    return kernel


def assert_close(got: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=5e-6)


SHAPES = [  # batch, queries, keys, depth, width
    ((1, 1), 5, 5, 1, 1),
    ((2, 3), 49, 49, 32, 32),
    ((1, 2), 197, 197, 64, 64),
    ((), 60, WIDTH - 1, 3, WIDTH + 1),
    ((3,), 7, WIDTH + 1, 80, 2 * WIDTH),
    ((1, 2, 1, 2), 6, 3, 4, 5),
    ((1,), 70, MAX_SUMMED_ROWS + 9, 8, 8),
    ((2,), 150, WIDTH + 6, 8, 8),  # some of the queries come after the last key
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("batch", "queries", "keys", "depth", "width"), SHAPES)
def test_shapes(batch: tuple[int, ...], queries: int, keys: int, depth: int, width: int, causal: bool) -> None:
    """Blocks of queries and panels of keys and values that are whole and not; tiles that cover the result once."""
    batch = batch or (1,)
    query, key, value = normal(*batch, queries, depth), normal(*batch, keys, depth), normal(*batch, keys, width)
    kernel, wanted = kernel_of(query, key, value, causal=causal), expected(query, key, value, causal=causal)
    assert_close(kernel.call(query, key, value), wanted)
    assert_close(filled(kernel, wanted.shape, np.float32, query, key, value), wanted)


def test_views_of_tokens() -> None:
    """The heads of queries, keys and values as views of [batch, tokens, heads, width], of which keys lie backwards."""
    query, key, value = (normal(2, 30, 4, 16).transpose(0, 2, 1, 3) for _ in range(3))
    key = key[:, :, ::-1, ::2]
    query = query[..., 1::2]
    assert_close(kernel_of(query, key, value).call(query, key, value), expected(query, key, value))


@pytest.mark.parametrize(
    "shape", [(), (1,), (9,), (7, 1), (7, 9), (1, 1, 1, 9), (1, 3, 7, 9), (2, 1, 7, 9), (2, 3, 1, 9), (2, 3, 7, 9)]
)
@pytest.mark.parametrize("boolean", [False, True])
def test_masks(shape: tuple[int, ...], boolean: bool) -> None:
    query, key, value = normal(2, 3, 7, 4), normal(2, 3, 9, 4), normal(2, 3, 9, 5)
    mask = np.asarray(RANDOM.random(shape) > 0.3 if boolean else RANDOM.standard_normal(shape) * 3)
    mask = mask if boolean else mask.astype(np.float32)
    if boolean:
        mask.reshape(-1, (1, *shape)[-1])[:, 0] = True  # a query sees at least one key
    got = kernel_of(query, key, value, mask).call(query, key, value, mask)
    assert_close(got, expected(query, key, value, mask))


@pytest.mark.parametrize(
    "mask", [np.zeros((), np.float32), np.ones((), np.bool_), *(np.zeros((1,) * n, np.float32) for n in (4, 5))]
)
def test_a_mask_that_changes_nothing(mask: np.ndarray) -> None:
    """It may add axes to the result."""
    query, key, value = normal(2, 3, 7, 4), normal(2, 3, 9, 4), normal(2, 3, 9, 5)
    got = kernel_of(query, key, value, mask).call(query, key, value, mask)
    assert_close(got, expected(query, key, value, mask))


def test_batches_that_are_broadcast() -> None:
    query, key, value, mask = normal(2, 1, 7, 4), normal(1, 3, 9, 4), normal(9, 5)[None], normal(4, 1, 1, 7, 9)
    got = kernel_of(query, key, value, mask).call(query, key, value, mask)
    assert_close(got, expected(query, key, value, mask))


def test_a_query_that_sees_no_key() -> None:
    """NaN for this query and no other, as the formula gives."""
    query, key, value = normal(1, 8, 4), normal(1, 6, 4), normal(1, 6, 5)
    mask = np.zeros((8, 6), np.float32)
    mask[3] = -np.inf
    with np.errstate(invalid="ignore"):
        wanted = expected(query, key, value, mask)
    np.testing.assert_array_equal(np.isnan(wanted).any(-1), [[False] * 3 + [True] + [False] * 4])
    assert_close(kernel_of(query, key, value, mask).call(query, key, value, mask), wanted)


def test_scores_that_no_exponential_holds() -> None:
    query, key, value = normal(1, 8, 4) * 300, normal(1, 6, 4) * 300, normal(1, 6, 5)
    assert_close(kernel_of(query, key, value).call(query, key, value), expected(query, key, value))


@pytest.mark.parametrize("keys", [5, WIDTH + 5])
@pytest.mark.parametrize("queries", [1, 7])
def test_weights_that_are_no_normal_numbers(queries: int, keys: int) -> None:
    query, key, value = np.zeros((1, queries, 4), np.float32), np.zeros((1, keys, 4), np.float32), normal(1, keys, 4)
    mask = np.full((queries, keys), -88, np.float32)  # e**-88 is no normal number
    mask[:, 2] = 0
    value[:, [0, 1, 3]] = 3e38
    np.testing.assert_array_equal(
        kernel_of(query, key, value, mask).call(query, key, value, mask), value[:, [2] * queries]
    )


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_are_not_finite(number: float) -> None:
    """Of a causal layer, too: a hidden value that is not finite makes NaN of all, as 0 times it does."""
    query, key, value = normal(1, 6, 4), normal(1, 6, 4), normal(1, 6, 5)
    value[0, 5, 2] = number
    for causal in (False, True):
        with np.errstate(invalid="ignore"):
            wanted = expected(query, key, value, causal=causal)
            got = kernel_of(query, key, value, causal=causal).call(query, key, value)
        assert not np.isfinite(wanted[..., 2]).any()
        assert_close(got, wanted)


def test_a_hidden_score_that_is_infinite() -> None:
    """Added to -Inf it is NaN, in the rows of its query alone, also if it is the product of huge numbers."""
    query, key, value = normal(1, 9, 4), normal(1, 9, 4), normal(1, 9, 5)
    query[0, 2, 1], key[0, 6, 1] = 1e30, 1e30
    with np.errstate(all="ignore"):
        got = kernel_of(query, key, value, causal=True).call(query, key, value)
    assert np.flatnonzero(np.isnan(got[0]).any(1)).tolist() == [2]


@pytest.mark.parametrize(
    ("queries", "keys", "depth", "width"), [(0, 3, 4, 5), (3, 0, 4, 5), (3, 4, 5, 0), (0, 0, 4, 4), (1, 2, 3, 0)]
)
def test_no_elements(queries: int, keys: int, depth: int, width: int) -> None:
    """Zeros where there are no keys."""
    query, key, value = normal(2, queries, depth), normal(2, keys, depth), normal(2, keys, width)
    got = kernel_of(query, key, value).call(query, key, value)
    assert got.shape == (2, queries, width)
    if not keys:
        assert not got.any()


def test_no_depth() -> None:
    """The scale is then infinite and every score NaN."""
    query, key, value = normal(1, 3, 0), normal(1, 4, 0), normal(1, 4, 5)
    seen: list[Index] = []
    out = np.zeros((1, 3, 5), np.float32)
    kernel_of(query, key, value).call(query, key, value, out=out, on_tile_ready=seen.append)
    assert len(seen) == 1
    assert np.isnan(out).all()
