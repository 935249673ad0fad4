"""Draw layers of paged and sparse attention, with tables, plans and caches that agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irrun.growing.internal.draw import Draw, Layer, i32

__all__ = ["LAYERS", "OFF"]

_NONE: Final = np.zeros(0, np.float32)
OFF: Final[dict[str, Any]] = {
    "scale": np.float32(0.4),
    "sliding_window": np.int32(0),
    "alibi_slopes": _NONE,
    "max_context_len": np.int32(0),
    "score_aggregation_window": i32(),
    "rotated_block_indices": i32(),
    "rotation_deltas": i32(),
    "rotation_trig_lut": _NONE,
    "xattention_threshold": _NONE,
    "xattention_block_size": np.int32(0),
    "xattention_stride": np.int32(0),
    "sinks": np.zeros((0, 0, 0, 0), np.float32),
    "adaptive_rkv_start_size": np.int32(0),
    "adaptive_rkv_evictable_sizes": i32(),
    "adaptive_rkv_diversity_block_set_indices": i32(),
    "adaptive_rkv_diversity_block_set_indices_begins": i32(),
    "token_type_ids": i32(),
    "qq_bias": np.zeros(0, np.uint8),
    "qq_bias_begins": i32(),
}
"""The inputs of PagedAttentionExtension behind its tables, as OpenVINO 2026.4.1 turns every option off."""


def _sparse_attention_indexer(draw: Draw) -> Layer:
    batch, heads, queries, size, ratio = draw.size(), draw.size(1), draw.size(), draw.size(), draw.size(1)
    keys = queries + draw.size()
    return [
        draw.array(batch, heads, queries, size),
        draw.array(batch, keys // ratio, size),
        np.array(keys, np.int64),
        draw.array(batch, queries, heads),
    ], {"compress_ratio": ratio, "token_budget": ratio * draw.size(1)}


def _block_sparse_attention(draw: Draw) -> Layer:
    batch, heads, queries, size, values, ratio = *(draw.size() for _ in range(5)), draw.size(1)
    heads, keys, width = heads + 1, queries + draw.size(), draw.size()
    visible = (np.arange(keys - queries, keys) + 1) // ratio
    rows = np.array([draw.rng.permutation(max(n, width))[:width] for n in visible], np.int32).reshape(queries, width)
    counts = np.array(
        [next((i for i, b in enumerate(row) if b >= n), width) for row, n in zip(rows, visible)], np.int32
    )
    return [
        draw.array(batch, heads * 2, queries, size),
        draw.array(batch, heads, keys, size),
        draw.array(batch, heads, keys, values),
        np.broadcast_to(rows, (batch, 1, queries, width)).copy(),
        np.broadcast_to(counts, (batch, 1, queries)).copy(),
    ], {"compress_ratio": ratio}


def _sparse_sdpa(draw: Draw) -> Layer:
    heads, size, values, block, each = (draw.size(1) for _ in range(5))
    batch, queries, width = draw.size(), draw.size(), draw.size()
    keys = queries + each * draw.size()
    blocks = -(-queries // each)
    rows = np.broadcast_to(np.arange(width, dtype=np.int32), (batch, 1, blocks, width)).copy()
    attributes = {
        "num_heads": heads * 2,
        "num_kv_heads": heads,
        "h_sel": 1,
        "k_head_size": size,
        "v_head_size": values,
        "sel_block_size": block,
        "q_block_size": each,
        "causal": bool(draw.size(0, 1)),
    }
    return [
        draw.array(batch, heads * 2, queries, size),
        draw.array(batch, heads, keys, size),
        draw.array(batch, heads, keys, values),
        rows,
        draw.indices(width + 1, batch, 1, blocks),
    ], attributes


def _qsa_indexer(draw: Draw) -> Layer:
    heads, ratio, rotary, size = draw.size(1), draw.size(1), 2 * draw.size(0, 1), 2 + draw.size()
    batch, queries, blocks, pending = draw.size(), draw.size(), draw.size(), draw.size(0, ratio - 1)
    attributes = {
        "compress_ratio": ratio,
        "block_topk": draw.size(1),
        "h_sel": heads,
        "indexer_rotary_dim": rotary,
        "indexer_head_dim": size,
        "scale": 1.0,
    }
    return [
        draw.array(batch, queries, heads * 2, size),
        draw.array(batch, queries, heads, size),
        draw.array(batch, queries, 2 * rotary),
        draw.array(batch, heads, blocks, size),
        draw.array(batch, heads, pending, size),
        draw.array(batch, 2 * rotary),
        draw.array(size),
    ], attributes


def _block_tables(draw: Draw, slots: int) -> tuple[int, int, list[np.ndarray]]:
    """The numbers of new tokens and blocks, and past_lens, subsequence_begins, block_indices, block_indices_begins."""
    counts = [draw.size() for _ in range(draw.size())]
    pasts = [draw.size() for _ in counts]
    needed = [-(-(past + count) // slots) + draw.size(0, 1) for past, count in zip(pasts, counts)]
    blocks = sum(needed) + draw.size()
    order = draw.rng.permutation(blocks)[: sum(needed)].astype(np.int32)
    return sum(counts), blocks, [i32(*pasts), draw.begins(counts), order, draw.begins(needed)]


def _paged_attention(draw: Draw) -> Layer:
    heads, slots, size, width = (draw.size(1) for _ in range(4))
    tokens, blocks, own = _block_tables(draw, slots)
    caches = [draw.rng.normal(size=(blocks, heads, slots, row)).astype(np.float32) for row in (size, width)]
    rows = [draw.array(tokens, heads * row) for row in (2 * size, size, width)]
    options = {**OFF, "sliding_window": np.int32(draw.size())}
    if draw.size(0, 1):
        options |= {"sinks": draw.array(1, 2 * heads, 1, 1), "alibi_slopes": draw.array(2 * heads)}
    return [*rows, *caches, *own, *map(np.asarray, options.values())], {}


def _pa_kv_reorder(draw: Draw) -> Layer:
    heads, slots = draw.size(), draw.size(1)
    draw.dtype = np.dtype(np.float16) if draw.dtype == np.float64 else draw.dtype
    counts = [draw.size(1) for _ in range(draw.size())]
    pairs = [draw.size() for _ in counts]
    blocks = sum(counts) + draw.size()
    positions = [draw.indices(count * slots, pair, 2).ravel() for count, pair in zip(counts, pairs)]
    return [
        draw.array(blocks, heads, slots, draw.size()),
        draw.array(blocks, heads, slots, draw.size()),
        draw.rng.permutation(blocks)[: sum(counts)].astype(np.int32),
        draw.begins(counts),
        np.concatenate([i32(), *positions]),
        draw.begins(pairs),
    ], {}


def _sparse_pa(draw: Draw) -> Layer:
    heads, size, values, slots = (draw.size(1) for _ in range(4))
    tokens, blocks, (past, begins, table, table_begins) = _block_tables(draw, slots)
    attributes = {
        "num_heads": heads * 2,
        "num_kv_heads": heads,
        "h_sel": 1,
        "k_head_size": size,
        "v_head_size": values,
        "sel_block_size": slots,
        "q_block_size": 1,
        "block_size": slots,
        "scale": 0.5,
    }
    width = draw.size()
    plan = np.broadcast_to(np.arange(width, dtype=np.int32), (tokens, 1, width)).copy()
    return [
        draw.array(tokens, heads * 2 * size),
        draw.array(tokens, heads * size),
        draw.array(tokens, heads * values),
        draw.array(blocks, heads, slots, size),
        draw.array(blocks, heads, slots, values),
        table,
        table_begins,
        begins,
        past,
        plan,
        draw.indices(width + 1, tokens, 1),
        begins,
    ], attributes


def _paged_qsa_indexer(draw: Draw) -> Layer:
    heads, ratio, rotary, size = draw.size(1), draw.size(1), 2 * draw.size(0, 1), 2 + draw.size()
    page, ring = ratio * draw.size(1), ratio * draw.size(1)
    tokens, pages, (past, begins, table, table_begins) = _block_tables(draw, page)
    rings = len(past) + draw.size()
    attributes = {
        "compress_ratio": ratio,
        "block_topk": draw.size(1),
        "h_sel": heads,
        "indexer_rotary_dim": rotary,
        "indexer_head_dim": size,
        "scale": 1.0,
        "page_size": page,
        "ring_capacity": ring,
    }
    return [
        draw.array(tokens, heads * 2 * size),
        draw.array(tokens, heads * size),
        draw.array(tokens, 2 * rotary),
        draw.array(pages, heads, page // ratio, size),
        draw.array(rings, heads, ring, size),
        draw.array(rings, ring // ratio, 2 * rotary),
        draw.array(size),
        draw.rng.permutation(rings)[: len(past)].astype(np.int32),
        table,
        table_begins,
        begins,
        past,
    ], attributes


LAYERS: Final[dict[str, Callable[[Draw], Layer]]] = {
    "BlockSparseAttention": _block_sparse_attention,
    "PaKVReorder": _pa_kv_reorder,
    "PagedAttentionExtension": _paged_attention,
    "PagedQSAIndexer": _paged_qsa_indexer,
    "QSAIndexer": _qsa_indexer,
    "SparseAttentionIndexer": _sparse_attention_indexer,
    "SparsePA": _sparse_pa,
    "SparseSDPA": _sparse_sdpa,
}
