"""BlockSparseAttention, SparseAttentionIndexer, SparseSDPA, SparsePA, QSAIndexer and PagedQSAIndexer."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from internal_operations import i32, ran


def _draw(seed: int) -> Callable[..., np.ndarray]:
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.normal(size=shape).astype(np.float32)


def attend(query: np.ndarray, keys: np.ndarray, values: np.ndarray, seen: list[int], scale: float) -> np.ndarray:
    """One query and one head: softmax over the keys that it sees, one by one; zeros without a key."""
    if not seen:
        return np.zeros(values.shape[-1])
    scores = [float(query.astype(np.float64) @ keys[k]) * scale for k in seen]
    weights = [math.exp(score - max(scores)) for score in scores]
    return np.array(weights) @ values[seen].astype(np.float64) / sum(weights)


# ---------------------------------------------------------------------------------------------
# BlockSparseAttention and SparseAttentionIndexer


@pytest.mark.parametrize("selections", [1, 2, 4])
@pytest.mark.parametrize("ratio", [1, 3])
def test_indexer(selections: int, ratio: int) -> None:
    draw = _draw(ratio)
    length, queries, width = 10, 4, 2
    query, keys, weights = draw(2, 4, queries, 3), draw(2, length // ratio, 3), draw(2, queries, 4)
    attributes = {"compress_ratio": ratio, "token_budget": width * ratio, "num_selection_heads": selections}
    indices, count = ran("SparseAttentionIndexer", [query, keys, np.array(length), weights], **attributes)
    for n in range(2):
        for g in range(selections):
            for q in range(queries):
                visible = (length - queries + q + 1) // ratio
                heads = range(g * (4 // selections), (g + 1) * (4 // selections))
                scores = [
                    sum(weights[n, q, h] * max(float(query[n, h, q] @ keys[n, b]), 0) for h in heads)
                    for b in range(visible)
                ]
                best = sorted(range(visible), key=lambda b: (-scores[b], b))[:width]
                assert count[n, g, q] == len(best)
                assert indices[n, g, q].tolist() == best + [-1] * (width - len(best))


def test_indexer_breaks_ties_by_the_block() -> None:
    """All scores are 0: the first blocks are chosen, by commit 677f0e4."""
    query, keys = np.zeros((1, 2, 1, 3), np.float32), np.ones((1, 5, 3), np.float32)
    attributes = {"compress_ratio": 2, "token_budget": 6}
    indices, count = ran("SparseAttentionIndexer", [query, keys, np.array([11], np.int64)], **attributes)
    assert indices.tolist() == [[[[0, 1, 2]]]]
    assert count.tolist() == [[[3]]]


@pytest.mark.parametrize("selections", [1, 2, 4])
@pytest.mark.parametrize("scaled", [False, True])
def test_block_sparse_attention(selections: int, scaled: bool) -> None:
    draw = _draw(selections)
    query, key, value = draw(1, 4, 3, 2), draw(1, 2, 8, 2), draw(1, 2, 8, 5)
    rows = np.array([[[1, 0], [0, 7], [1, 0]]] * selections, np.int32)[None]
    rows[:, -1, 2, 0], rows[:, -1, 2, 1] = 0, 1
    count = np.array([[[1, 1, 2]] * selections], np.int32)
    count[:, -1, 0] = 0
    scale = 0.3 if scaled else 2**-0.5
    given = [np.array([scale], np.float32)] if scaled else []
    (found,) = ran("BlockSparseAttention", [query, key, value, rows, count, *given], compress_ratio=3)
    for h in range(4):
        for q in range(3):
            position = 5 + q
            own = rows[0, h // (4 // selections), q, : count[0, h // (4 // selections), q]]
            seen = {3 * b + i for b in own for i in range(3)} | {*range((position + 1) // 3 * 3, position + 1)}
            expected = attend(query[0, h, q], key[0, h // 2], value[0, h // 2], sorted(seen), scale)
            np.testing.assert_allclose(found[0, h, q], expected, rtol=1e-4, atol=1e-5)
    if selections == 4:
        assert (found[0, 3, 0] == 0).all()  # position 5 ends a block, and its row is empty


@pytest.mark.parametrize("scaled", [False, True])
def test_block_sparse_attention_of_the_first_revision(scaled: bool) -> None:
    """Commit 91f21a3: rows for all heads, whose padding is -1; a fifth input is the scale."""
    draw = _draw(9)
    query, key, value = draw(1, 2, 2, 2), draw(1, 1, 6, 2), draw(1, 1, 6, 3)
    rows = np.array([[[1, -1, -1], [2, 0, -1]]], np.int64)
    scale = 0.3 if scaled else 2**-0.5
    given = [np.array(scale, np.float32)] if scaled else []
    (found,) = ran("BlockSparseAttention", [query, key, value, rows, *given], compress_ratio=2)
    for h in range(2):
        for q, seen in enumerate(([2, 3, 4], [0, 1, 4, 5])):
            expected = attend(query[0, h, q], key[0, 0], value[0, 0], seen, scale)
            np.testing.assert_allclose(found[0, h, q], expected, rtol=1e-4, atol=1e-5)


def test_all_blocks_are_causal_attention() -> None:
    """A property of the page: with a budget for all blocks, indexer and attention are dense causal attention."""
    draw = _draw(10)
    query, key, value = draw(1, 2, 7, 4), draw(1, 1, 7, 4), draw(1, 1, 7, 4)
    keys = draw(1, 3, 2)
    rows, count = ran("SparseAttentionIndexer", [draw(1, 2, 7, 2), keys, np.array(7)], compress_ratio=2, token_budget=6)
    (found,) = ran("BlockSparseAttention", [query, key, value, rows, count], compress_ratio=2)
    for h in range(2):
        for q in range(7):
            expected = attend(query[0, h, q], key[0, 0], value[0, 0], [*range(q + 1)], 0.5)
            np.testing.assert_allclose(found[0, h, q], expected, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------------------------------------
# SparseSDPA and SparsePA

HEADS = {"num_heads": 4, "num_kv_heads": 2, "k_head_size": 3, "v_head_size": 2}


@pytest.mark.parametrize("selections", [1, 2, 4])
@pytest.mark.parametrize(("causal", "each"), [(True, 1), (False, 1), (True, 2), (False, 2)])
@pytest.mark.parametrize("mask", [None, "boolean", "float"])
def test_sparse_sdpa(selections: int, causal: bool, each: int, mask: str | None) -> None:
    rng = np.random.default_rng(selections)
    draw = _draw(selections)
    queries, keys, size = 3, 7, 2
    query, key, value = draw(1, 4, queries, 3), draw(1, 2, keys, 3), draw(1, 2, keys, 2)
    blocks = -(-queries // each)
    indices, count = np.full((1, selections, blocks, 3), -1, np.int32), np.zeros((1, selections, blocks), np.int32)
    for place in np.ndindex(selections, blocks):
        own = sorted(rng.choice(4, rng.integers(0, 4), replace=False).tolist())
        indices[(0, *place)][: len(own)], count[(0, *place)] = own, len(own)
    visible = rng.random((1, 1, queries, keys)) < 0.7
    bias = np.where(visible, draw(1, 1, queries, keys), -np.inf).astype(np.float32)
    given = {None: [], "boolean": [visible], "float": [bias]}[mask]
    (found,) = ran(
        "SparseSDPA", [query, key, value, indices, count, *given],
        **HEADS, h_sel=selections, sel_block_size=size, q_block_size=each, causal=causal,
    )  # fmt: skip
    for h in range(4):
        for q in range(queries):
            selection = h // (4 // selections)
            own = indices[0, selection, q // each, : count[0, selection, q // each]]
            seen = [
                k for k in range(keys)
                if k // size in own and (not causal or k <= keys - queries + q) and (mask is None or visible[0, 0, q, k])
            ]  # fmt: skip
            extended = np.append(query[0, h, q] * 3**-0.5, 1.0).astype(np.float32)
            column = bias[0, 0, q] if mask == "float" else np.zeros(keys, np.float32)
            rows = np.concatenate((key[0, h // 2], np.where(np.isfinite(column), column, 0)[:, None]), 1)
            expected = attend(extended, rows, value[0, h // 2], seen, 1.0)
            np.testing.assert_allclose(found[0, h, q], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scaled", [False, True])
def test_sparse_sdpa_whose_plan_is_a_mask(scaled: bool) -> None:
    """Without sel_indices and sel_count, attn_mask is the fourth input, and may differ from head to head."""
    draw = _draw(4)
    query, key, value = draw(1, 4, 2, 3), draw(1, 2, 4, 3), draw(1, 2, 4, 2)
    mask = np.random.default_rng(4).random((1, 4, 2, 4)) < 0.6
    scale = 0.7 if scaled else 3**-0.5
    given = [np.array(scale, np.float32)] if scaled else []
    (found,) = ran(
        "SparseSDPA", [query, key, value, mask, *given], **HEADS, h_sel=4, sel_block_size=2, causal=False
    )  # fmt: skip
    for h in range(4):
        for q in range(2):
            expected = attend(
                query[0, h, q], key[0, h // 2], value[0, h // 2], np.flatnonzero(mask[0, h, q]).tolist(), scale
            )
            np.testing.assert_allclose(found[0, h, q], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("each", "pasts"), [(1, (3, 0)), (2, (2, 0))])
@pytest.mark.parametrize("plan", ["list", "mask"])
def test_sparse_pa(causal: bool, each: int, pasts: tuple[int, int], plan: str) -> None:
    """Two sequences in pages of four slots, in any order, of which some hold keys of before."""
    rng, draw = np.random.default_rng(each), _draw(each)
    counts, page, size, selections = (2, 5), 4, 2, 2
    query, key, value = draw(7, 12), draw(7, 6), draw(7, 4)
    key_cache, value_cache = draw(6, 2, page, 3), draw(6, 2, page, 2)
    pages = {0: [4, 1], 1: [5, 0, 2]}
    starts = [0, -(-counts[0] // each)]
    starts.append(starts[1] + -(-counts[1] // each))
    chosen = rng.random((starts[-1], selections, 6)) < 0.6
    if plan == "mask":
        given = [chosen]
    else:
        indices, number = np.full(chosen.shape, -1, np.int32), chosen.sum(-1).astype(np.int32)
        for place in np.ndindex(number.shape):
            indices[place][: number[place]] = np.flatnonzero(chosen[place])
        given = [indices, number]
    found, keys, values = ran(
        "SparsePA",
        [query, key, value, key_cache, value_cache, i32(4, 1, 5, 0, 2), i32(0, 2, 5), i32(0, 2, 7), i32(*pasts), *given,
         i32(*starts)],
        **HEADS, h_sel=selections, sel_block_size=size, q_block_size=each, block_size=page, scale=0.4, causal=causal,
    )  # fmt: skip
    new_keys, new_values = key_cache.copy(), value_cache.copy()
    for s, first in ((0, 0), (1, 2)):
        for t in range(counts[s]):
            where = pages[s][(pasts[s] + t) // page], (pasts[s] + t) % page
            new_keys[where[0], :, where[1]] = key[first + t].reshape(2, 3)
            new_values[where[0], :, where[1]] = value[first + t].reshape(2, 2)
        history = [(pages[s][p // page], p % page) for p in range(pasts[s] + counts[s])]
        for t in range(counts[s]):
            for h in range(4):
                row = chosen[starts[s] + t // each, h // 2]
                seen = [p for p in range(len(history)) if row[p // size] and (not causal or p <= pasts[s] + t)]
                own_keys = np.array([new_keys[a, h // 2, b] for a, b in history])
                own_values = np.array([new_values[a, h // 2, b] for a, b in history])
                expected = attend(query[first + t, 3 * h : 3 * h + 3], own_keys, own_values, seen, 0.4)
                np.testing.assert_allclose(found[first + t, 2 * h : 2 * h + 2], expected, rtol=1e-4, atol=1e-5)
    assert (keys == new_keys).all()
    assert (values == new_values).all()


# ---------------------------------------------------------------------------------------------
# QSAIndexer and PagedQSAIndexer

RATIO, TOP, SIZE, ROTARY = 3, 2, 6, 4
INDEXER = {
    "compress_ratio": RATIO, "block_topk": TOP, "indexer_rotary_dim": ROTARY, "indexer_head_dim": SIZE, "scale": 0.5,
    "eps": 0.25,
}  # fmt: skip


def summaries_of(keys: np.ndarray, phases: np.ndarray, norm: np.ndarray) -> np.ndarray:
    """The summaries (blocks, heads, size) of the keys of a sequence (tokens, heads, size), element by element."""
    result = np.zeros((len(keys) // RATIO, *keys.shape[1:]))
    for block in range(len(result)):
        cos, sin = phases[block * RATIO][:ROTARY], phases[block * RATIO][ROTARY:]
        for head in range(keys.shape[1]):
            mean = keys[block * RATIO : (block + 1) * RATIO, head].astype(np.float64).mean(0)
            x = mean / math.sqrt((mean**2).mean() + 0.25) * norm
            half = ROTARY // 2
            for i in range(SIZE):
                partner = 0.0 if i >= ROTARY else -x[i + half] if i < half else x[i - half]
                result[block, head, i] = x[i] if i >= ROTARY else x[i] * cos[i] + partner * sin[i]
    return result


def chosen_of(query: np.ndarray, summaries: np.ndarray, position: int, selections: int) -> list[list[int]]:
    """The blocks of one query (query heads, size) for each selection."""
    heads = summaries.shape[1]
    group = len(query) // heads
    rows = []
    for selection in range(selections):
        own = [h for h in range(len(query)) if h // group * selections // heads == selection]
        visible = range((position + 1) // RATIO)
        scores = [sum(max(float(query[h] @ summaries[b, h // group]), 0) for h in own) for b in visible]
        best = sorted(sorted(visible, key=lambda b: (-scores[b], b))[:TOP])
        rows.append(best + ([(position + 1) // RATIO] if (position + 1) % RATIO else []))
    return rows


@pytest.mark.parametrize(("heads", "selections"), [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize("pieces", [(11,), (1,) * 11, (2, 5, 4), (3, 1, 7)])
def test_qsa_indexer(heads: int, selections: int, pieces: tuple[int, ...]) -> None:
    """A sequence in pieces, whose state goes from call to call, gives the choice of the whole sequence."""
    draw = _draw(heads)
    query, keys, phases, norm = draw(1, 11, 4, SIZE), draw(1, 11, heads, SIZE), draw(1, 11, 2 * ROTARY), draw(SIZE)
    state = [np.zeros((1, heads, 0, SIZE), np.float32)] * 2 + [np.zeros((1, 2 * ROTARY), np.float32)]
    expected = summaries_of(keys[0], phases[0], norm)
    done = 0
    for piece in pieces:
        own = slice(done, done + piece)
        indices, count, *state = ran(
            "QSAIndexer", [query[:, own], keys[:, own], phases[:, own], *state, norm], h_sel=selections, **INDEXER
        )
        for t in range(piece):
            rows = chosen_of(query[0, done + t], expected, done + t, selections)
            assert count[0, :, t].tolist() == [len(row) for row in rows]
            assert indices[0, :, t].tolist() == [row + [-1] * (TOP + 1 - len(row)) for row in rows]
        done += piece
        np.testing.assert_allclose(state[0][0].swapaxes(0, 1), expected[: done // RATIO], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(state[1][0].swapaxes(0, 1), keys[0, done // RATIO * RATIO : done])
    np.testing.assert_array_equal(state[2], phases[:, done // RATIO * RATIO])


@pytest.mark.parametrize(("heads", "selections"), [(1, 1), (2, 2)])
@pytest.mark.parametrize("calls", [[(7, 8)], [(3, 0), (4, 8)], [(1, 5), (5, 1), (1, 2)]])
def test_paged_qsa_indexer(heads: int, selections: int, calls: list[tuple[int, int]]) -> None:
    """Two sequences of 7 and 8 tokens, in pages of six slots and rings of six keys."""
    draw = _draw(heads)
    lengths = (7, 8)
    query = [draw(n, 4, SIZE) for n in lengths]
    keys = [draw(n, heads, SIZE) for n in lengths]
    phases = [draw(n, 2 * ROTARY) for n in lengths]
    norm = draw(SIZE)
    caches = [draw(5, heads, 2, SIZE), draw(3, heads, 6, SIZE), draw(3, 2, 2 * ROTARY)]
    expected = [summaries_of(k, p, norm) for k, p in zip(keys, phases)]
    pages, done = ([4, 0], [2, 3]), [0, 0]
    for call in calls:
        rows = [slice(done[s], done[s] + call[s]) for s in range(2)]
        inputs = [
            np.concatenate([x[s][rows[s]].reshape(call[s], x[s][0].size) for s in range(2)])
            for x in (query, keys, phases)
        ]
        indices, count, *caches = ran(
            "PagedQSAIndexer",
            [*inputs, *caches, norm, i32(2, 0), i32(4, 0, 2, 3), i32(0, 2, 4), i32(0, call[0], sum(call)), i32(*done)],
            **INDEXER, h_sel=selections, page_size=6, ring_capacity=6,
        )  # fmt: skip
        token = 0
        for s in range(2):
            for t in range(call[s]):
                chosen = chosen_of(query[s][done[s] + t], expected[s], done[s] + t, selections)
                assert count[token].tolist() == [len(row) for row in chosen]
                assert indices[token].tolist() == [row + [-1] * (TOP + 1 - len(row)) for row in chosen]
                token += 1
            done[s] += call[s]
    for s in range(2):
        for block, summary in enumerate(expected[s]):
            own = caches[0][pages[s][block // 2], :, block % 2]
            np.testing.assert_allclose(own, summary, rtol=1e-4, atol=1e-5)
