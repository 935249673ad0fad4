"""Attention of a few queries, as it is compiled, against the formula in f64."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.tokens.few_queries import attend_in_place

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def attention(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None, scale: float
) -> np.ndarray:
    times = query.shape[1] // key.shape[1]
    query, key, value = (a.astype(np.float64) for a in (query, key.repeat(times, 1), value.repeat(times, 1)))
    scores = query @ key.swapaxes(-1, -2) * scale
    if mask is not None:
        scores = scores + (np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else mask)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


@pytest.mark.parametrize("masked", ["", "boolean", "added", "one for all keys", "for each head"])
@pytest.mark.parametrize(
    ("batch", "heads", "groups", "queries", "keys", "width", "wide"),
    [
        (1, 12, 4, 1, 49, 64, 64),
        (2, 6, 2, 3, 17, 5, 9),
        (1, 3, 3, 4, 1, 8, 16),
        (3, 4, 1, 2, 40, 33, 7),
        (1, 4, 2, 1, 10, 80, 117),
    ],
    ids=str,
)
def test_attention(
    batch: int, heads: int, groups: int, queries: int, keys: int, width: int, wide: int, masked: str
) -> None:
    query, key, value = normal(batch, heads, queries, width), normal(batch, groups, keys, width), None
    room = normal(batch, groups, keys + 7, wide)
    value = room[:, :, :keys]  # a view, as the cache of a language model is
    mask = {
        "": None,
        "boolean": RANDOM.random((batch, 1, queries, keys)) < 0.7,
        "added": normal(queries, keys),
        "one for all keys": normal(batch, 1, queries, 1),
        "for each head": normal(heads, 1, keys),
    }[masked]
    if mask is not None and mask.dtype == np.bool_:
        mask[..., 0] = True
    around = np.full((batch + 2, heads, queries, wide), 7, np.float32)
    out = around[1:-1]
    assert attend_in_place(query, key, value, mask, 0.3, out)
    assert (around[[0, -1]] == 7).all()
    np.testing.assert_allclose(out, attention(query, key, value, mask, 0.3), rtol=2e-6, atol=2e-6)


def test_a_query_without_a_key_to_see_is_nan() -> None:
    out = np.empty((1, 2, 1, 4), np.float32)
    assert attend_in_place(
        normal(1, 2, 1, 4), normal(1, 2, 3, 4), normal(1, 2, 3, 4), np.zeros((1, 1, 1, 3), np.bool_), 1, out
    )
    assert np.isnan(out).all()


def test_a_hidden_key_counts_nothing_however_large_its_score() -> None:
    query, key, value = normal(1, 1, 1, 4), normal(1, 1, 3, 4), normal(1, 1, 3, 4)
    key[0, 0, 1] = query[0, 0, 0] * 1e4
    mask = np.array([[[[True, False, True]]]])
    out = np.empty((1, 1, 1, 4), np.float32)
    assert attend_in_place(query, key, value, mask, 1, out)
    np.testing.assert_allclose(out, attention(query, key[:, :, ::2], value[:, :, ::2], None, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("key", "value", "mask"),
    [
        (normal(1, 2, 5, 4).swapaxes(2, 3), normal(1, 2, 4, 4), None),
        (normal(1, 2, 4, 5), normal(1, 2, 3, 4), None),
        (normal(1, 3, 4, 5), normal(1, 3, 4, 4), None),
        (normal(1, 2, 4, 5), normal(1, 2, 4, 4), np.zeros((1, 1, 1, 3), np.float32)),
        (normal(1, 2, 4, 5), normal(1, 2, 4, 4), np.zeros((1, 1, 1, 1, 4), np.float32)),
        (normal(1, 2, 0, 5), normal(1, 2, 0, 4), None),
    ],
    ids=["columns", "lengths", "groups", "mask", "axes of the mask", "no keys"],
)
def test_what_it_cannot_do_is_left_to_others(key: np.ndarray, value: np.ndarray, mask: np.ndarray | None) -> None:
    assert not attend_in_place(normal(1, 4, 1, 5), key, value, mask, 1, np.empty((1, 4, 1, 4), np.float32))


def test_a_result_that_is_not_contiguous_is_left_to_others() -> None:
    out = np.empty((1, 4, 1, 8), np.float32)[..., ::2]
    assert not attend_in_place(normal(1, 4, 1, 5), normal(1, 2, 3, 5), normal(1, 2, 3, 4), None, 1, out)
