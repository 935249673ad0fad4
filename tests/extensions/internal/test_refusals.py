"""Each clause of the internal operations with states, experts and sparse attention is broken by one input or attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pytest

from internal_operations import i32, made
from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.opdef import Site, Value, labels, resolve
from irrun.types import ELEMENT_TYPES, PartialShape

Given = Value | None


def f(*dims: int) -> Value:
    return Value(ELEMENT_TYPES["f32"], PartialShape.of(dims))


def n(*numbers: int) -> Value:
    return Value.of(i32(*numbers))


TABLES: Final = [n(0, 3, 4), n(0, 1, 2, 3, 4), n(0, 3, 5), n(0, 3), n(2, 2)]
"""Three tokens and one token, blocks 0, 1, 2 and 3, 4, intervals of two."""
STATES: Final = {"num_heads": 4, "num_kv_heads": 2, "h_sel": 2, "k_head_size": 3, "v_head_size": 2}
SDPA: Final = {**STATES, "sel_block_size": 2, "q_block_size": 2}
PA: Final = {**SDPA, "block_size": 4, "scale": 0.5}
QSA: Final = {
    "compress_ratio": 2, "block_topk": 2, "h_sel": 2, "indexer_rotary_dim": 4, "indexer_head_dim": 6, "scale": 1.0,
}  # fmt: skip
PAGED_QSA: Final = {**QSA, "page_size": 4, "ring_capacity": 4}
MOE2: Final = {"expert_type": "GEMM2_BIAS_SWIGLU_CLAMP"}
GATED: Final = {"hc_count": 2, "hidden_size": 3, "lowrank": 2}
CONV: Final = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
PLAN: Final = Value.of(np.array([[[0, 1, -1], [0, 2, 3]], [[1, -1, -1], [0, 1, 2]]], np.int32))
"""The plans of two query blocks for two selection heads."""
COUNTS_OF_PLAN: Final = Value.of(np.array([[2, 3], [1, 3]], np.int32))
WHOLE: Final = Value.of(PLAN.exact.swapaxes(0, 1)[None])  # pyright: ignore[reportOptionalMemberAccess]
WHOLE_COUNTS: Final = Value.of(np.array([[[2, 1], [3, 3]]], np.int32))

LAYERS: Final[dict[str, tuple[list[Value], dict[str, Any]]]] = {
    "GatedDeltaNet": ([f(2, 5, 2, 3), f(2, 5, 2, 3), f(2, 5, 4, 6), f(2, 4, 3, 6), f(2, 5, 4), f(2, 5, 4)], {}),
    "PagedGatedDeltaNet": ([f(4, 2, 3), f(4, 2, 3), f(4, 4, 6), f(5, 4, 6, 3), f(4, 4), f(4, 4), *TABLES], {}),
    "PagedCausalConv1D": ([f(4, 6), f(5, 6, 3), f(6, 2, 3), f(6), *TABLES], {}),
    "SelectiveSSM": ([f(4), f(2, 5, 4), f(2, 5, 2, 6), f(2, 5, 4, 3), f(2, 5, 2, 6), f(2, 4, 3, 6)], {}),
    "SSM": ([f(4), f(2, 5, 4), f(2, 5, 2, 6), f(2, 5, 4, 3), f(2, 5, 2, 6), f(2, 4, 3, 6)], {}),
    "Mamba2": ([f(2, 4, 5, 1, 1), f(2, 4, 5, 3, 6), f(2, 4, 5, 6), f(2, 4, 3, 6)], {}),
    "PagedSelectiveSSM": (
        [f(4), f(4, 4), f(4, 2, 6), f(4, 4, 3), f(4, 2, 6), f(5, 4, 3, 6), *TABLES], {},
    ),
    "MOE": (
        [f(3, 4), f(3, 2), Value.of(np.array([[0, 2], [1, 3], [2, 2]], np.int32)), f(4, 4, 6), f(4, 1, 6), f(4, 3, 4),
         f(4, 1, 4)], MOE2,
    ),
    "GatherMatmul": ([f(2, 3, 4), f(4, 5, 4), Value.of(np.array([[0, 2], [1, 3], [2, 2]], np.int32)), f(4, 1, 5)], {}),
    "GatherMatmulCompressed": (
        [f(2, 3, 4), f(4, 5, 4), Value.of(np.array([[0, 2], [1, 3], [2, 2]], np.int32)), f(0), f(4, 5, 1), f(0)], {},
    ),
    "GatedResidual": (
        [f(2, 5, 6), f(6), f(2, 6), f(6, 2), f(2, 6)], {**GATED, "mode": 0, "produce_write_gate": True},
    ),
    "ConvolutionBiased": ([f(1, 4, 8, 8), f(3, 4, 3, 3), f(1, 3, 6, 6)], CONV),
    "SparseAttentionIndexer": (
        [f(2, 4, 3, 6), f(2, 5, 6), n(10), f(2, 3, 4)],
        {"compress_ratio": 2, "token_budget": 6, "num_selection_heads": 2, "index_element_type": ELEMENT_TYPES["i32"]},
    ),
    "BlockSparseAttention": (
        [f(1, 4, 2, 3), f(1, 2, 6, 3), f(1, 2, 6, 5), Value.of(np.array([[[[0, 1], [2, 0]]]], np.int32)),
         Value.of(np.array([[[1, 2]]], np.int32)), f()], {"compress_ratio": 2},
    ),
    "SparseSDPA": ([f(1, 4, 4, 3), f(1, 2, 8, 3), f(1, 2, 8, 2), WHOLE, WHOLE_COUNTS, f(1, 1, 4, 8), f()], SDPA),
    "SparsePA": (
        [f(3, 12), f(3, 6), f(3, 4), f(5, 2, 4, 3), f(5, 2, 4, 2), n(1, 0, 4), n(0, 2, 3), n(0, 2, 3), n(4, 0), PLAN,
         COUNTS_OF_PLAN, n(0, 1, 2)], PA,
    ),
    "QSAIndexer": (
        [f(2, 5, 4, 6), f(2, 5, 2, 6), f(2, 5, 8), f(2, 2, 3, 6), f(2, 2, 1, 6), f(2, 8), f(6)], QSA,
    ),
    "PagedQSAIndexer": (
        [f(3, 24), f(3, 12), f(3, 8), f(5, 2, 2, 6), f(3, 2, 4, 6), f(3, 2, 8), f(6), n(2, 0), n(1, 0, 4), n(0, 2, 3),
         n(0, 2, 3), n(4, 0)], PAGED_QSA,
    ),
}  # fmt: skip
"""Inputs and attributes that each operation takes."""


@dataclass(frozen=True)
class Broken:
    """Inputs by number and attributes that replace the ones of ``LAYERS``; None leaves an input and all behind it out."""

    type: str
    clause: str
    id: str
    inputs: Mapping[int, Given] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)


def paged(type: str, first: int, rank: tuple[int, Value], dim: tuple[int, Value]) -> list[Broken]:
    """Faults of an operation with states in a table; ``first`` is the number of its input subsequence_begins."""
    begins, blocks, block_begins, past, interval = range(first, first + 5)
    return [
        Broken(type, "C1", "rank", dict([rank])),
        Broken(type, "C1", "tables-2d", {past: Value.of(np.zeros((1, 2), np.int32))}),
        Broken(type, "C2", "dim", dict([dim])),
        Broken(type, "C2", "sequences", {past: n(0, 3, 1)}),
        Broken(type, "C2", "intervals", {interval: n(2)}),
        Broken(type, "C2", "begins", {block_begins: n(0, 5)}),
        Broken(type, "C4", "not-from-0", {begins: n(1, 3, 4)}),
        Broken(type, "C4", "descends", {begins: n(0, 5, 4)}),
        Broken(type, "C4", "tokens-left", {begins: n(0, 2, 3)}),
        Broken(type, "C4", "blocks-left", {block_begins: n(0, 3, 4)}),
        Broken(type, "C5", "beyond", {blocks: n(0, 1, 2, 3, 5)}),
        Broken(type, "C5", "negative", {blocks: n(0, -1, 2, 3, 4)}),
        Broken(type, "C5", "past", {past: n(0, -3)}),
        Broken(type, "C6", "no-block-to-write", {block_begins: n(0, 4, 5)}),
        Broken(type, "C6", "past-off-by-one", {past: n(2, 3), begins: n(0, 3, 4), block_begins: n(0, 2, 5)}),
        Broken(type, "C6", "shorter-interval", {interval: n(1, 2)}),
    ]


BROKEN: Final = [
    Broken("GatedDeltaNet", "C1", "state-2d", {3: f(4, 3)}),
    Broken("GatedDeltaNet", "C1", "beta", {5: f(2, 5)}),
    Broken("GatedDeltaNet", "C2", "key-size", {1: f(2, 5, 2, 4)}),
    Broken("GatedDeltaNet", "C2", "transposed-state", {3: f(2, 4, 6, 3)}),
    Broken("GatedDeltaNet", "C2", "tokens", {4: f(2, 6, 4)}),
    Broken("GatedDeltaNet", "C3", "heads", {0: f(2, 5, 3, 3), 1: f(2, 5, 3, 3)}),
    Broken("GatedDeltaNet", "C3", "no-heads", {0: f(2, 5, 0, 3), 1: f(2, 5, 0, 3)}),
    Broken("GatedDeltaNet", "C4", "eps", attributes={"use_qk_l2norm": True, "k_l2_norm_eps": 0.0}),
    *paged("PagedGatedDeltaNet", 6, (4, f(4)), (3, f(5, 4, 3, 6))),
    Broken("PagedGatedDeltaNet", "C3", "heads", {0: f(4, 3, 3), 1: f(4, 3, 3)}),
    Broken("PagedGatedDeltaNet", "C7", "eps", attributes={"use_qk_l2norm": True, "q_l2_norm_eps": -1e-6}),
    *paged("PagedCausalConv1D", 4, (1, f(5, 6)), (2, f(6, 2, 4))),
    Broken("PagedCausalConv1D", "C2", "bias", {3: f(5)}),
    Broken("PagedCausalConv1D", "C3", "groups", {2: f(6, 4, 3)}),
    *paged("PagedSelectiveSSM", 6, (0, f(1, 4)), (4, f(4, 2, 5))),
    Broken("PagedSelectiveSSM", "C3", "groups", {2: f(4, 3, 6), 4: f(4, 3, 6)}),
    *(Broken(type, clause, name, inputs) for type in ("SelectiveSSM", "SSM") for clause, name, inputs in [
        ("C1", "A", {0: f(4, 1)}), ("C2", "state", {5: f(2, 4, 6, 3)}), ("C2", "dt", {1: f(2, 5, 2)}),
        ("C3", "groups", {2: f(2, 5, 3, 6), 4: f(2, 5, 3, 6)}),
    ]),
    Broken("Mamba2", "C1", "C", {2: f(2, 4, 5, 1, 6)}),
    Broken("Mamba2", "C2", "dA", {0: f(2, 4, 5, 3, 1)}),
    Broken("Mamba2", "C2", "state", {3: f(2, 4, 3, 5)}),
    Broken("MOE", "C1", "vector", {0: f(4)}),
    Broken("MOE", "C1", "rows", {2: Value.of(np.zeros((4, 2), np.int32)), 1: f(4, 2)}),
    Broken("MOE", "C2", "routing", {1: f(2, 3)}),
    Broken("MOE", "C2", "experts", {1: f(5, 1, 3, 1)}),
    Broken("MOE", "C3", "two", {5: None}),
    Broken("MOE", "C3", "of-three", attributes={"expert_type": "GEMM3_SWIGLU"}),
    Broken("MOE", "C4", "transposed", {3: f(4, 6, 4)}),
    Broken("MOE", "C4", "inter-size", {5: f(4, 4, 4)}),
    Broken("MOE", "C4", "odd", {3: f(4, 4, 7), 4: f(4, 1, 7)}),
    Broken("MOE", "C4", "experts", {6: f(3, 1, 4)}),
    Broken("MOE", "C6", "gate", attributes={"gate_idx": 1}),
    Broken("MOE", "C6", "activation", attributes={"activation_type": "GEGLU_ERF"}),
    Broken("MOE", "C5", "beyond", {2: Value.of(np.array([[0, 2], [1, 4], [2, 2]], np.int32))}),
    *(Broken(type, clause, name, inputs) for type in ("GatherMatmul", "GatherMatmulCompressed")
      for clause, name, inputs in [
        ("C1", "A", {0: f(3, 4)}), ("C1", "indices", {2: n(0, 1, 2)}), ("C2", "transposed", {1: f(4, 4, 5)}),
        ("C2", "groups", {1: f(4, 5, 2, 3), 3: f(0), 4: f(4, 5, 1, 1)}), ("C2", "rows", {0: f(2, 2, 4)}),
        ("C3", "slots", {0: f(3, 3, 4)}), ("C4", "bias", {3: f(5)}), ("C2", "bias", {3: f(3, 1, 5)}),
        ("C5", "beyond", {2: Value.of(np.array([[0, 2], [1, 4], [2, 2]], np.int32))}),
        ("C5", "negative", {2: Value.of(np.array([[0, 2], [1, -1], [2, 2]], np.int32))}),
    ]),
    Broken("GatherMatmulCompressed", "C6", "scales", {4: f(4, 5, 3)}),
    Broken("GatherMatmulCompressed", "C6", "zero-points", {5: f(5, 4, 5, 1)}),
    Broken("GatedResidual", "C1", "mode", attributes={"mode": 3}),
    Broken("GatedResidual", "C1", "lowrank", attributes={"lowrank": 0}),
    Broken("GatedResidual", "C2", "final-mix", attributes={"mode": 2}),
    Broken("GatedResidual", "C3", "no-inject", {4: None}),
    Broken("GatedResidual", "C3", "write", attributes={"mode": 1}),
    Broken("GatedResidual", "C4", "vector", {0: f(6)}),
    Broken("GatedResidual", "C4", "width", {0: f(2, 5, 8)}),
    Broken("GatedResidual", "C5", "transposed", {2: f(6, 2)}),
    Broken("GatedResidual", "C5", "norm", {1: f(3)}),
    Broken("GatedResidual", "C6", "gate", {1: f(2, 5, 3), 2: f(2, 5, 3), 3: None}, {"mode": 1}),
    Broken("GatedResidual", "C6", "layer", {1: f(2, 4, 3), 2: f(2, 5, 2), 3: None}, {"mode": 1}),
    Broken("ConvolutionBiased", "C1", "ranks", {1: f(3, 4, 3)}),
    Broken("ConvolutionBiased", "C1", "rank-6", {0: f(1, 4, 2, 2, 2, 2), 1: f(3, 4, 1, 1, 1, 1)}),
    Broken("ConvolutionBiased", "C2", "strides", attributes={"strides": (1,)}),
    Broken("ConvolutionBiased", "C2", "pads", attributes={"pads_end": (0, 0, 0)}),
    Broken("ConvolutionBiased", "C3", "stride-0", attributes={"strides": (0, 1)}),
    Broken("ConvolutionBiased", "C3", "pad", attributes={"pads_begin": (-1, 0)}),
    Broken("ConvolutionBiased", "C3", "kernel", {1: f(3, 4, 0, 3)}),
    Broken("ConvolutionBiased", "C4", "dilated", attributes={"dilations": (4, 1)}),
    Broken("ConvolutionBiased", "C5", "channels", {0: f(1, 3, 8, 8)}),
    Broken("ConvolutionBiased", "C6", "vector", {2: f(3)}),
    Broken("ConvolutionBiased", "C6", "larger", {2: f(1, 3, 8, 8)}),
    Broken("ConvolutionBiased", "C6", "batch", {2: f(2, 3, 6, 6)}),
    Broken("SparseAttentionIndexer", "C1", "keys-4d", {1: f(2, 1, 5, 6)}),
    Broken("SparseAttentionIndexer", "C2", "weights", {3: f(2, 4, 3)}),
    Broken("SparseAttentionIndexer", "C3", "budget", attributes={"token_budget": 5}),
    Broken("SparseAttentionIndexer", "C3", "ratio", attributes={"compress_ratio": 0}),
    Broken("SparseAttentionIndexer", "C4", "selections", attributes={"num_selection_heads": 3}),
    Broken("SparseAttentionIndexer", "C5", "blocks", {2: n(12)}),
    Broken("SparseAttentionIndexer", "C5", "short", {2: n(2), 1: f(2, 1, 6)}),
    Broken("SparseAttentionIndexer", "C5", "vector", {2: n(10, 10)}),
    Broken("SparseAttentionIndexer", "C6", "type", attributes={"index_element_type": ELEMENT_TYPES["u8"]}),
    Broken("BlockSparseAttention", "C1", "rows", {3: Value.of(np.zeros((1, 2, 2), np.int32))}),
    Broken("BlockSparseAttention", "C2", "value", {2: f(1, 2, 5, 5)}),
    Broken("BlockSparseAttention", "C2", "count", {4: Value.of(np.ones((1, 1, 3), np.int32))}),
    Broken("BlockSparseAttention", "C3", "key-heads", {1: f(1, 3, 6, 3), 2: f(1, 3, 6, 5)}),
    Broken("BlockSparseAttention", "C3", "selections",
           {3: Value.of(np.zeros((1, 3, 2, 2), np.int32)), 4: Value.of(np.zeros((1, 3, 2), np.int32))}),
    Broken("BlockSparseAttention", "C4", "ratio", attributes={"compress_ratio": 0}),
    Broken("BlockSparseAttention", "C4", "keys", {1: f(1, 2, 1, 3), 2: f(1, 2, 1, 5)}),
    Broken("BlockSparseAttention", "C5", "scale", {5: f(2)}),
    Broken("BlockSparseAttention", "C6", "count", {4: Value.of(np.array([[[1, 3]]], np.int32))}),
    Broken("BlockSparseAttention", "C6", "future", {3: Value.of(np.array([[[[2, 1], [2, 0]]]], np.int32))}),
    Broken("SparseSDPA", "C1", "query", {0: f(4, 4, 3)}),
    Broken("SparseSDPA", "C2", "heads", {1: f(1, 4, 8, 3), 2: f(1, 4, 8, 2)}),
    Broken("SparseSDPA", "C2", "query-blocks", {0: f(1, 4, 6, 3), 5: f(1, 1, 6, 8)}),
    Broken("SparseSDPA", "C3", "h_sel", attributes={"h_sel": 3}),
    Broken("SparseSDPA", "C3", "kv", attributes={"num_kv_heads": 3}),
    Broken("SparseSDPA", "C3", "block", attributes={"sel_block_size": 0}),
    Broken("SparseSDPA", "C4", "no-count", {4: None}),
    Broken("SparseSDPA", "C5", "count", {4: Value.of(np.array([[[2, 4], [3, 3]]], np.int32))}),
    Broken("SparseSDPA", "C5", "padding", {4: Value.of(np.array([[[3, 1], [3, 3]]], np.int32))}),
    Broken("SparseSDPA", "C6", "mask", {5: f(1, 1, 4, 7)}),
    Broken("SparseSDPA", "C6", "scale", {6: f(3)}),
    Broken("SparseSDPA", "C7", "keys", {1: f(1, 2, 3, 3), 2: f(1, 2, 3, 2), 5: f(1, 1, 4, 3)}),
    Broken("SparseSDPA", "C7", "aligned", {1: f(1, 2, 9, 3), 2: f(1, 2, 9, 2), 5: f(1, 1, 4, 9)}),
    Broken("SparsePA", "C1", "cache", {3: f(5, 2, 4)}),
    Broken("SparsePA", "C2", "value-cache", {4: f(5, 2, 3, 2)}),
    Broken("SparsePA", "C2", "query", {0: f(3, 6)}),
    Broken("SparsePA", "C2", "sequences", {8: n(4, 0, 0)}),
    Broken("SparsePA", "C3", "pages", attributes={"sel_block_size": 3}),
    Broken("SparsePA", "C4", "tokens", {7: n(0, 2, 4)}),
    Broken("SparsePA", "C4", "query-blocks", {11: n(0, 2, 2)}),
    Broken("SparsePA", "C5", "order", {9: Value.of(PLAN.exact[:, :, ::-1].copy())}),  # pyright: ignore[reportOptionalSubscript]
    Broken("SparsePA", "C6", "page", {5: n(1, 5, 4)}),
    Broken("SparsePA", "C6", "room", {8: n(8, 0)}),
    Broken("SparsePA", "C7", "aligned", {8: n(3, 0)}),
    Broken("SparsePA", "C7", "negative", {8: n(-2, 0)}),
    Broken("SparsePA", "C8", "no-plan", {10: None}),
    Broken("SparsePA", "C8", "mask", {10: n(0, 1, 2), 11: None}),
    Broken("QSAIndexer", "C1", "keys", {1: f(2, 5, 12)}),
    Broken("QSAIndexer", "C2", "phases", {2: f(2, 5, 4)}),
    Broken("QSAIndexer", "C2", "summaries", {3: f(2, 1, 3, 6)}),
    Broken("QSAIndexer", "C3", "rotary", attributes={"indexer_rotary_dim": 8}),
    Broken("QSAIndexer", "C3", "odd", attributes={"indexer_rotary_dim": 3}),
    Broken("QSAIndexer", "C3", "top", attributes={"block_topk": 0}),
    Broken("QSAIndexer", "C4", "heads", {0: f(2, 5, 3, 6)}),
    Broken("QSAIndexer", "C4", "selections", attributes={"h_sel": 4}),
    Broken("QSAIndexer", "C5", "pending", {4: f(2, 2, 2, 6)}),
    Broken("PagedQSAIndexer", "C1", "keys", {1: f(3, 2, 6)}),
    Broken("PagedQSAIndexer", "C2", "width", {1: f(3, 13)}),
    Broken("PagedQSAIndexer", "C2", "heads", {1: f(3, 6)}),
    Broken("PagedQSAIndexer", "C2", "ring", {4: f(3, 2, 2, 6)}),
    Broken("PagedQSAIndexer", "C3", "page", attributes={"page_size": 5}),
    Broken("PagedQSAIndexer", "C4", "heads", {0: f(3, 18)}),
    Broken("PagedQSAIndexer", "C5", "tokens", {10: n(0, 2, 2)}),
    Broken("PagedQSAIndexer", "C5", "blocks", {9: n(0, 1, 2)}),
    Broken("PagedQSAIndexer", "C6", "page", {8: n(1, 5, 4)}),
    Broken("PagedQSAIndexer", "C6", "ring", {7: n(3, 0)}),
    Broken("PagedQSAIndexer", "C6", "room", {11: n(7, 0)}),
    Broken("PagedQSAIndexer", "C7", "past", {11: n(4, -1)}),
]  # fmt: skip


def inferred(type: str, inputs: list[Value], attributes: Mapping[str, Any]) -> tuple[Value, ...]:
    op = made(type, len(inputs), dict(attributes))
    return infer(op, Site(op.outputs or (2 if attributes.get("produce_write_gate") else 1)), inputs, {}, contents=False)


@pytest.mark.parametrize("type", LAYERS)
def test_the_layer_is_right(type: str) -> None:
    inferred(type, *LAYERS[type])


@pytest.mark.parametrize("row", BROKEN, ids=lambda row: f"{row.type}-{row.clause}-{row.id}")
def test_broken(row: Broken) -> None:
    inputs, attributes = LAYERS[row.type]
    given: list[Value] = []
    for number, own in enumerate(inputs):
        value = row.inputs.get(number, own)
        if value is None:
            break
        given.append(value)
    with pytest.raises(Refused) as caught:
        inferred(row.type, given, {**attributes, **row.attributes})
    assert caught.value.label == row.clause, caught.value


def test_every_clause_is_broken() -> None:
    for type in LAYERS:
        cls = resolve(type, None, "extension")
        assert cls is not None
        assert {row.clause for row in BROKEN if row.type == type} == {*labels(cls)}, type


@pytest.mark.parametrize("type", ["PagedGatedDeltaNet", "PagedCausalConv1D", "PagedSelectiveSSM"])
def test_a_run_refuses_tables(type: str) -> None:
    """The kernel refuses what the shape rule refuses, since it may get tables that no rule has seen."""
    inputs, _ = LAYERS[type]
    arrays = [np.zeros([d.lo for d in v.shape], np.float32) if v.exact is None else v.exact for v in inputs]
    arrays[-4] = i32(0, 1, 2, 3, 9)
    with pytest.raises(Refused, match="names block 9") as caught:
        made(type, len(arrays), {}).run(*arrays)
    assert caught.value.label == "C5"
