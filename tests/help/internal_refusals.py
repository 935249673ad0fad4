"""Faults of internal operations, each of which breaks one clause by one input or attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from internal_faults import PLAN, Given, f, floats, n
from internal_operations import i32
from irrun.opdef import Value, resolve
from irrun.types import ELEMENT_TYPES

__all__ = ["BROKEN", "Broken"]

TURNED: Final = {
    "rotated_block_indices": i32(3), "rotation_deltas": i32(1), "rotation_trig_lut": np.ones((2, 6), np.float32),
}  # fmt: skip
SPARSE: Final = {
    "xattention_threshold": floats(0.5), "xattention_block_size": np.int32(4), "xattention_stride": np.int32(2),
}  # fmt: skip


@dataclass(frozen=True)
class Broken:
    """Inputs by number and attributes that replace the ones of ``LAYERS``; None leaves an input and all behind it out."""

    type: str
    clause: str
    id: str
    inputs: Mapping[int, Given] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def given(self, valid: Sequence[Value]) -> list[Value]:
        """Return the inputs of the broken layer, from those of the valid one."""
        values: list[Value] = []
        for number, own in enumerate(valid):
            value = self.inputs.get(number, own)
            if value is None:
                break
            values.append(value)
        return values


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


def named(type: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Broken]:
    """Faults of inputs by name: the dims of a Parameter, or the contents of a constant."""
    cls = resolve(type, None, "extension")
    assert cls is not None
    places = [port.name for port in cls.inputs]
    return [
        Broken(type, clause, f"{number}-{next(iter(changed))}", {
            places.index(name): f(*new) if isinstance(new, tuple) else Value.of(np.asarray(new))
            for name, new in changed.items()
        }) for number, (clause, changed) in enumerate(rows)
    ]  # fmt: skip


BROKEN: Final = [
    *named("PagedAttentionExtension", [
        ("C1", {"query": (6, 24, 1)}),
        ("C1", {"value": (5, 10)}),
        ("C2", {"key_cache": (12, 2, 4)}),
        ("C2", {"value_cache": (11, 2, 4, 5)}),
        ("C2", {"value_cache": (12, 1, 4, 10)}),
        ("C2", {"value_cache": (12, 2, 3, 5)}),
        ("C3", {"key": (6, 13)}),
        ("C3", {"key": (6, 14)}),
        ("C3", {"value": (6, 12)}),
        ("C3", {"query": (6, 18)}),
        ("C4", {"past_lens": np.zeros((1, 2), np.int32)}),
        ("C4", {"subsequence_begins": i32(0, 6)}),
        ("C4", {"block_indices_begins": i32(0, 4)}),
        ("C5", {"subsequence_begins": i32(0, 5, 7)}),
        ("C5", {"subsequence_begins": i32(1, 5, 6)}),
        ("C5", {"block_indices_begins": i32(0, 5, 4)}),
        ("C5", {"past_lens": i32(-1, 4)}),
        ("C6", {"past_lens": i32(4, 4)}),
        ("C6", {"block_indices": i32(3, 12, 0, 1)}),
        ("C6", {"block_indices": i32(3, -2, 0, 1)}),
        ("C6", {"block_indices": i32(3, -1, 0, 1)}),
        ("C7", {"scale": floats(1, 2)}),
        ("C7", {"sliding_window": i32()}),
        ("C8", {"alibi_slopes": floats(1, 2)}),
        ("C8", {"sinks": floats(1, 2, 3).reshape(1, 3, 1, 1)}),
        ("C9", {"score_aggregation_window": i32(1, 2, 3)}),
        ("C9", {"xattention_threshold": floats(1, 2, 3)}),
        ("C10", {**TURNED, "rotated_block_indices": i32(12)}),
        ("C10", {**TURNED, "rotation_deltas": i32(1, 1)}),
        ("C10", {**TURNED, "rotation_deltas": i32(2)}),
        ("C10", {**TURNED, "rotation_trig_lut": np.ones((2, 4), np.float32)}),
        ("C11", {**SPARSE, "xattention_stride": np.int32(3)}),
        ("C11", {**SPARSE, "xattention_block_size": np.int32(0)}),
        ("C12", {"adaptive_rkv_evictable_sizes": i32(4, 6)}),
        ("C12", {"adaptive_rkv_start_size": np.int32(3)}),
        ("C13", {"token_type_ids": i32(1)}),
    ]),
    *named("PaKVReorder", [
        ("C1", {"key_cache": (6, 2, 4)}),
        ("C1", {"value_cache": (6, 1, 4, 2)}),
        ("C2", {"block_indices": np.zeros((1, 3), np.int32)}),
        ("C2", {"block_update_indices_begins": i32(0, 2)}),
        ("C3", {"block_indices_begins": i32(0, 2, 2)}),
        ("C3", {"block_indices_begins": i32(1, 2, 3)}),
        ("C3", {"block_indices_begins": i32(0, 4, 3)}),
        ("C3", {"block_update_indices": i32(5, 1, 3)}),
        ("C3", {"block_update_indices_begins": i32(0, 1, 4)}),
        ("C4", {"block_indices": i32(5, 6, 0)}),
        ("C4", {"block_indices": i32(5, -1, 0)}),
        ("C5", {"block_update_indices": i32(8, 1, 3, 0)}),
        ("C5", {"block_update_indices": i32(5, 1, 3, 4)}),
        ("C5", {"block_update_indices": i32(5, -1, 3, 0)}),
    ]),
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
