"""Layers of internal operations that are right, for tests that break them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from internal_operations import i32, made
from irrun.growing.internal import OFF
from irrun.inference.layer import infer
from irrun.opdef import Site, Value
from irrun.types import ELEMENT_TYPES, PartialShape

__all__ = ["LAYERS", "PLAN", "Given", "f", "floats", "inferred", "n"]

Given = Value | None


def f(*dims: int) -> Value:
    return Value(ELEMENT_TYPES["f32"], PartialShape.of(dims))


def n(*numbers: int) -> Value:
    return Value.of(i32(*numbers))


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


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
    "PagedAttentionExtension": (
        [f(6, 24), f(6, 12), f(6, 10), f(12, 2, 4, 6), f(12, 2, 4, 5), n(0, 4), n(0, 5, 6), n(3, 4, 0, 1), n(0, 2, 4),
         *(Value.of(np.asarray(option)) for option in OFF.values())], {},
    ),
    "PaKVReorder": (
        [f(6, 2, 4, 3), f(6, 2, 4, 2), n(5, 2, 0), n(0, 2, 3), n(5, 1, 3, 0), n(0, 1, 2)], {},
    ),
}  # fmt: skip
"""Inputs and attributes that each operation takes."""


def inferred(type: str, inputs: list[Value], attributes: Mapping[str, Any]) -> tuple[Value, ...]:
    op = made(type, len(inputs), dict(attributes))
    return infer(op, Site(op.outputs or (2 if attributes.get("produce_write_gate") else 1)), inputs, {}, contents=False)
