"""Attention of one token of each sequence to paged caches, as it is compiled, against the formula in f64."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.extensions.internal._attend import Bias
from irrun.fast.tokens.paged import decoded

SLOTS, GROUPS, SIZE, WIDTH = 4, 2, 7, 5
PAST = np.array([0, 9, 3], np.int32)
BLOCKS, BEGINS = np.array([6, 1, -1, 4, 0], np.int32), np.array([0, 1, 4, 5], np.int32)


def drawn(heads: int) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(heads)
    rows = [rng.standard_normal((3, n), np.float32) for n in (heads * SIZE, GROUPS * SIZE, GROUPS * WIDTH)]
    caches = [rng.standard_normal((7, GROUPS, SLOTS, n), np.float32) for n in (SIZE, WIDTH)]
    return rows, caches, [PAST, np.arange(4, dtype=np.int32), BLOCKS, BEGINS]


@pytest.mark.parametrize("heads", [2, 6])
@pytest.mark.parametrize(
    ("window", "slopes", "sinks"), [(0, False, False), (3, False, False), (0, True, False), (5, True, True)]
)
def test_averages(heads: int, window: int, slopes: bool, sinks: bool) -> None:
    rows, caches, tables = drawn(heads)
    slope = np.linspace(0.1, 1, heads, dtype=np.float32)
    sink = np.linspace(-1, 2, heads, dtype=np.float32)
    bias = Bias(0.3, window, slope if slopes else None, sink if sinks else None)
    found = decoded(rows, caches, tables, bias)
    assert found is not None
    for s, at in enumerate(PAST):
        own = BLOCKS[BEGINS[s] : BEGINS[s + 1]]
        seen = [p for p in range(at + 1) if own[p // SLOTS] >= 0 and (not window or p > at - window)]
        for h in range(heads):
            g = h // (heads // GROUPS)
            key, value = (
                np.array([cache[own[p // SLOTS], g, p % SLOTS] for p in seen], np.float64) for cache in caches
            )
            assert (key[-1] == rows[1][s, g * SIZE : g * SIZE + SIZE]).all()  # the new key is in the cache
            scores = key @ rows[0][s, h * SIZE : h * SIZE + SIZE] * 0.3
            scores = scores - slope[h] * (at - np.array(seen)) * slopes
            weights = np.exp(scores)
            expected = weights @ value / (weights.sum() + (np.exp(sink[h]) if sinks else 0))
            assert np.abs(found[s, h * WIDTH : h * WIDTH + WIDTH] - expected).max() < 2e-6


@pytest.mark.parametrize(
    ("table", "place", "number"),
    [(0, 1, 12), (0, 1, -1), (1, 1, 2), (2, 0, 7), (2, 0, -2), (2, 3, -1), (3, 1, 0), (3, 3, 6), (3, 0, -1)],
)
def test_tables_that_name_no_room_are_left_to_others(table: int, place: int, number: int) -> None:
    """No memory outside the caches is read or written: positions, sequences, blocks and begins are checked."""
    rows, caches, tables = drawn(2)
    tables[table] = tables[table].copy()
    tables[table][place] = number
    assert decoded(rows, caches, tables, Bias(0.3)) is None


def test_other_caches_are_left_to_others() -> None:
    rows, caches, tables = drawn(2)
    assert decoded(rows, [cache.astype(np.float16) for cache in caches], tables, Bias(0.3)) is None
    assert decoded(rows, [np.asfortranarray(cache) for cache in caches], tables, Bias(0.3)) is None
    assert decoded([rows[0][:2], *rows[1:]], caches, tables, Bias(0.3)) is None
