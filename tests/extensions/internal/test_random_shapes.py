"""Random dims, among them 0 and 1: the kernels give what the shape rules promise, in types of any width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from internal_faults import LAYERS as TYPES
from internal_operations import i32, ran
from paged_models import OFF

Layer = tuple[list[np.ndarray], dict[str, Any]]


class Draw:
    """Random numbers and arrays of one element type."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64][seed % 4]

    def size(self, least: int = 0, most: int = 3) -> int:
        return int(self.rng.integers(least, most + 1))

    def array(self, *shape: int) -> np.ndarray:
        return self.rng.normal(size=shape).astype(self.dtype)

    def indices(self, end: int, *shape: int) -> np.ndarray:
        return self.rng.integers(0, end, shape).astype(np.int32)

    def begins(self, counts: list[int]) -> np.ndarray:
        return i32(0, *np.cumsum(counts).tolist())


def gated_delta_net(draw: Draw) -> Layer:
    batch, tokens, heads, keys, values, groups = draw.size(), draw.size(), draw.size(1), *(draw.size() for _ in "kv"), 2
    own = heads * groups
    return [
        draw.array(batch, tokens, heads, keys), draw.array(batch, tokens, heads, keys),
        draw.array(batch, tokens, own, values), draw.array(batch, own, keys, values), draw.array(batch, tokens, own),
        draw.array(batch, tokens, own),
    ], {"use_qk_l2norm": bool(draw.size(0, 1))}  # fmt: skip


def selective_ssm(draw: Draw) -> Layer:
    batch, tokens, groups, size, state = draw.size(), draw.size(), draw.size(1), draw.size(), draw.size()
    heads = groups * 2
    return [
        draw.array(heads), draw.array(batch, tokens, heads), draw.array(batch, tokens, groups, state),
        draw.array(batch, tokens, heads, size), draw.array(batch, tokens, groups, state),
        draw.array(batch, heads, size, state),
    ], {}  # fmt: skip


def mamba2(draw: Draw) -> Layer:
    batch, heads, tokens, size, state = (draw.size() for _ in range(5))
    return [
        draw.array(batch, heads, tokens, 1, 1), draw.array(batch, heads, tokens, size, state),
        draw.array(batch, heads, tokens, state), draw.array(batch, heads, size, state),
    ], {}  # fmt: skip


def tables(draw: Draw) -> tuple[int, int, list[np.ndarray]]:
    """The numbers of tokens and blocks, and the tables of some sequences, among them none and empty ones."""
    counts = [draw.size() for _ in range(draw.size())]
    pasts, intervals = [draw.size() for _ in counts], [draw.size(-1, 2) for _ in counts]
    needed = [1 + -(-(p % e + c) // e) if e > 0 else 2 for c, p, e in zip(counts, pasts, intervals)]
    blocks = sum(needed) + draw.size()
    order = draw.rng.permutation(blocks)[: sum(needed)]
    return sum(counts), blocks, [
        draw.begins(counts), order.astype(np.int32), draw.begins(needed), i32(*pasts), i32(*intervals),
    ]  # fmt: skip


def paged_gated_delta_net(draw: Draw) -> Layer:
    tokens, blocks, own = tables(draw)
    heads, keys, values = draw.size(1), draw.size(), draw.size()
    return [
        draw.array(tokens, heads, keys), draw.array(tokens, heads, keys), draw.array(tokens, heads * 2, values),
        draw.array(blocks, heads * 2, values, keys), draw.array(tokens, heads * 2), draw.array(tokens, heads * 2), *own,
    ], {}  # fmt: skip


def paged_selective_ssm(draw: Draw) -> Layer:
    tokens, blocks, own = tables(draw)
    groups, size, state = draw.size(1), draw.size(), draw.size()
    return [
        draw.array(groups * 2), draw.array(tokens, groups * 2), draw.array(tokens, groups, state),
        draw.array(tokens, groups * 2, size), draw.array(tokens, groups, state),
        draw.array(blocks, groups * 2, size, state), *own,
    ], {}  # fmt: skip


def paged_causal_conv1d(draw: Draw) -> Layer:
    tokens, blocks, own = tables(draw)
    group, groups, width = draw.size(1), draw.size(), draw.size()
    hidden = group * groups
    return [
        draw.array(tokens, hidden), draw.array(blocks, hidden, width), draw.array(hidden, group, width),
        draw.array(hidden if draw.size(0, 1) else 0), *own,
    ], {}  # fmt: skip


def moe(draw: Draw) -> Layer:
    tokens, hidden, inner, experts, top = draw.size(), draw.size(), draw.size(), draw.size(1), draw.size()
    common = [draw.array(1, tokens, hidden), draw.array(tokens, top), draw.indices(experts, tokens, top)]
    if draw.size(0, 1):
        weights = [(experts, inner, hidden), (experts, inner, hidden), (experts, hidden, inner)]
        return [*common, *(draw.array(*w) for w in weights)], {"expert_type": "GEMM3_SWIGLU"}
    weights = [(experts, hidden, 2 * inner), (experts, 1, 2 * inner), (experts, inner, hidden), (experts, 1, hidden)]
    return [*common, *(draw.array(*w) for w in weights)], {"expert_type": "GEMM2_BIAS_SWIGLU_CLAMP"}


def gather_matmul(draw: Draw) -> Layer:
    rows, inner, columns, experts, slots = draw.size(), draw.size(), draw.size(), draw.size(1), draw.size()
    return [
        draw.array(slots if draw.size(0, 1) else 1, rows, inner), draw.array(experts, columns, inner),
        draw.indices(experts, rows, slots), draw.array(experts, 1, columns),
    ], {}  # fmt: skip


def gated_residual(draw: Draw) -> Layer:
    count, size, rank, mode = draw.size(1), draw.size(1), draw.size(1), draw.size(0, 2)
    leading = [draw.size() for _ in range(draw.size(1))]
    attributes = {"mode": mode, "hc_count": count, "hidden_size": size, "lowrank": rank}
    residual, whole = draw.array(*leading, count * size), count * size
    if mode == 1:
        return [residual, draw.array(*leading, size), draw.array(*leading, count)], attributes
    return [residual, draw.array(whole), draw.array(rank, whole), draw.array(whole, rank)], attributes


def convolution_biased(draw: Draw) -> Layer:
    spatial, batch, ins, outs = draw.size(1), draw.size(), draw.size(), draw.size()
    kernel, dilations = [draw.size(1) for _ in range(spatial)], [draw.size(1, 2) for _ in range(spatial)]
    sizes = [(k - 1) * d + 1 + draw.size() for k, d in zip(kernel, dilations)]
    pads = [draw.size(0, 2) for _ in range(spatial)]
    attributes = {
        "strides": tuple(draw.size(1) for _ in range(spatial)), "dilations": tuple(dilations), "pads_begin": tuple(pads),
        "pads_end": tuple(pads), "auto_pad": ["explicit", "valid", "same_upper", "same_lower"][draw.size()],
    }  # fmt: skip
    return [
        draw.array(batch, ins, *sizes), draw.array(outs, ins, *kernel), draw.array(1, outs, *[1] * spatial),
    ], attributes  # fmt: skip


def sparse_attention_indexer(draw: Draw) -> Layer:
    batch, heads, queries, size, ratio = draw.size(), draw.size(1), draw.size(), draw.size(), draw.size(1)
    keys = queries + draw.size()
    return [
        draw.array(batch, heads, queries, size), draw.array(batch, keys // ratio, size), np.array(keys, np.int64),
        draw.array(batch, queries, heads),
    ], {"compress_ratio": ratio, "token_budget": ratio * draw.size(1)}  # fmt: skip


def block_sparse_attention(draw: Draw) -> Layer:
    batch, heads, queries, size, values, ratio = *(draw.size() for _ in range(5)), draw.size(1)
    heads, keys, width = heads + 1, queries + draw.size(), draw.size()
    visible = (np.arange(keys - queries, keys) + 1) // ratio
    rows = np.array([draw.rng.permutation(max(n, width))[:width] for n in visible], np.int32).reshape(queries, width)
    counts = np.array(
        [next((i for i, b in enumerate(row) if b >= n), width) for row, n in zip(rows, visible)], np.int32
    )
    return [
        draw.array(batch, heads * 2, queries, size), draw.array(batch, heads, keys, size),
        draw.array(batch, heads, keys, values), np.broadcast_to(rows, (batch, 1, queries, width)).copy(),
        np.broadcast_to(counts, (batch, 1, queries)).copy(),
    ], {"compress_ratio": ratio}  # fmt: skip


def sparse_sdpa(draw: Draw) -> Layer:
    heads, size, values, block, each = (draw.size(1) for _ in range(5))
    batch, queries, width = draw.size(), draw.size(), draw.size()
    keys = queries + each * draw.size()
    blocks = -(-queries // each)
    rows = np.broadcast_to(np.arange(width, dtype=np.int32), (batch, 1, blocks, width)).copy()
    attributes = {
        "num_heads": heads * 2, "num_kv_heads": heads, "h_sel": 1, "k_head_size": size, "v_head_size": values,
        "sel_block_size": block, "q_block_size": each, "causal": bool(draw.size(0, 1)),
    }  # fmt: skip
    return [
        draw.array(batch, heads * 2, queries, size), draw.array(batch, heads, keys, size),
        draw.array(batch, heads, keys, values), rows, draw.indices(width + 1, batch, 1, blocks),
    ], attributes  # fmt: skip


def qsa_indexer(draw: Draw) -> Layer:
    heads, ratio, rotary, size = draw.size(1), draw.size(1), 2 * draw.size(0, 1), 2 + draw.size()
    batch, queries, blocks, pending = draw.size(), draw.size(), draw.size(), draw.size(0, ratio - 1)
    attributes = {
        "compress_ratio": ratio, "block_topk": draw.size(1), "h_sel": heads, "indexer_rotary_dim": rotary,
        "indexer_head_dim": size, "scale": 1.0,
    }  # fmt: skip
    return [
        draw.array(batch, queries, heads * 2, size), draw.array(batch, queries, heads, size),
        draw.array(batch, queries, 2 * rotary), draw.array(batch, heads, blocks, size),
        draw.array(batch, heads, pending, size), draw.array(batch, 2 * rotary), draw.array(size),
    ], attributes  # fmt: skip


def block_tables(draw: Draw, slots: int) -> tuple[int, int, list[np.ndarray]]:
    """The numbers of new tokens and blocks, and past_lens, subsequence_begins, block_indices, block_indices_begins."""
    counts = [draw.size() for _ in range(draw.size())]
    pasts = [draw.size() for _ in counts]
    needed = [-(-(past + count) // slots) + draw.size(0, 1) for past, count in zip(pasts, counts)]
    blocks = sum(needed) + draw.size()
    order = draw.rng.permutation(blocks)[: sum(needed)].astype(np.int32)
    return sum(counts), blocks, [i32(*pasts), draw.begins(counts), order, draw.begins(needed)]


def paged_attention(draw: Draw) -> Layer:
    heads, slots, size, width = (draw.size(1) for _ in range(4))
    tokens, blocks, own = block_tables(draw, slots)
    caches = [draw.rng.normal(size=(blocks, heads, slots, row)).astype(np.float32) for row in (size, width)]
    rows = [draw.array(tokens, heads * row) for row in (2 * size, size, width)]
    options = {**OFF, "sliding_window": np.int32(draw.size())}
    if draw.size(0, 1):
        options |= {"sinks": draw.array(1, 2 * heads, 1, 1), "alibi_slopes": draw.array(2 * heads)}
    return [*rows, *caches, *own, *map(np.asarray, options.values())], {}


def pa_kv_reorder(draw: Draw) -> Layer:
    heads, slots = draw.size(), draw.size(1)
    draw.dtype = np.float16 if draw.dtype == np.float64 else draw.dtype
    counts = [draw.size(1) for _ in range(draw.size())]
    pairs = [draw.size() for _ in counts]
    blocks = sum(counts) + draw.size()
    positions = [draw.indices(count * slots, pair, 2).ravel() for count, pair in zip(counts, pairs)]
    return [
        draw.array(blocks, heads, slots, draw.size()), draw.array(blocks, heads, slots, draw.size()),
        draw.rng.permutation(blocks)[: sum(counts)].astype(np.int32), draw.begins(counts),
        np.concatenate([i32(), *positions]), draw.begins(pairs),
    ], {}  # fmt: skip


def gather_matmul_compressed(draw: Draw) -> Layer:
    rows, groups, group, columns, experts, slots = *(draw.size(1) for _ in range(4)), draw.size(1), draw.size()
    codes = draw.rng.integers(-8, 8, (experts, columns, groups, group)).astype(np.int8)
    zeros = draw.rng.integers(-8, 8, (experts, columns, groups, 1)).astype(np.int8)
    return [
        draw.array(1, rows, groups * group), codes, draw.indices(experts, rows, slots), draw.array(0),
        draw.array(experts, columns, groups, 1), zeros if draw.size(0, 1) else np.zeros(0, np.int8),
    ], {}  # fmt: skip


def sparse_pa(draw: Draw) -> Layer:
    heads, size, values, slots = (draw.size(1) for _ in range(4))
    tokens, blocks, (past, begins, table, table_begins) = block_tables(draw, slots)
    attributes = {
        "num_heads": heads * 2, "num_kv_heads": heads, "h_sel": 1, "k_head_size": size, "v_head_size": values,
        "sel_block_size": slots, "q_block_size": 1, "block_size": slots, "scale": 0.5,
    }  # fmt: skip
    width = draw.size()
    plan = np.broadcast_to(np.arange(width, dtype=np.int32), (tokens, 1, width)).copy()
    return [
        draw.array(tokens, heads * 2 * size), draw.array(tokens, heads * size), draw.array(tokens, heads * values),
        draw.array(blocks, heads, slots, size), draw.array(blocks, heads, slots, values), table, table_begins, begins,
        past, plan, draw.indices(width + 1, tokens, 1), begins,
    ], attributes  # fmt: skip


def paged_qsa_indexer(draw: Draw) -> Layer:
    heads, ratio, rotary, size = draw.size(1), draw.size(1), 2 * draw.size(0, 1), 2 + draw.size()
    page, ring = ratio * draw.size(1), ratio * draw.size(1)
    tokens, pages, (past, begins, table, table_begins) = block_tables(draw, page)
    rings = len(past) + draw.size()
    attributes = {
        "compress_ratio": ratio, "block_topk": draw.size(1), "h_sel": heads, "indexer_rotary_dim": rotary,
        "indexer_head_dim": size, "scale": 1.0, "page_size": page, "ring_capacity": ring,
    }  # fmt: skip
    return [
        draw.array(tokens, heads * 2 * size), draw.array(tokens, heads * size), draw.array(tokens, 2 * rotary),
        draw.array(pages, heads, page // ratio, size), draw.array(rings, heads, ring, size),
        draw.array(rings, ring // ratio, 2 * rotary), draw.array(size),
        draw.rng.permutation(rings)[: len(past)].astype(np.int32), table, table_begins, begins, past,
    ], attributes  # fmt: skip


LAYERS: dict[str, Callable[[Draw], Layer]] = {
    "BlockSparseAttention": block_sparse_attention, "ConvolutionBiased": convolution_biased,
    "GatedDeltaNet": gated_delta_net, "GatherMatmulCompressed": gather_matmul_compressed, "PaKVReorder": pa_kv_reorder,
    "PagedAttentionExtension": paged_attention, "PagedQSAIndexer": paged_qsa_indexer, "SparsePA": sparse_pa,
    "GatedResidual": gated_residual, "GatherMatmul": gather_matmul, "MOE": moe,
    "Mamba2": mamba2, "PagedCausalConv1D": paged_causal_conv1d, "PagedGatedDeltaNet": paged_gated_delta_net,
    "PagedSelectiveSSM": paged_selective_ssm, "QSAIndexer": qsa_indexer, "SSM": selective_ssm,
    "SelectiveSSM": selective_ssm, "SparseAttentionIndexer": sparse_attention_indexer, "SparseSDPA": sparse_sdpa,
}  # fmt: skip


@pytest.mark.parametrize("type", LAYERS)
def test_kernel_and_shape_rule(type: str) -> None:
    for seed in range(24):
        arrays, attributes = LAYERS[type](Draw(seed))
        try:
            ran(type, arrays, **attributes)
        except Exception as error:
            error.add_note(f"seed {seed}: {[array.shape for array in arrays]} {attributes}")
            raise


def test_every_type_is_drawn() -> None:
    assert {*LAYERS} == {*TYPES}
