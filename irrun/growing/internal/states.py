"""Draw layers with states and experts, and the convolution with a bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.growing.internal.draw import Draw, Layer, i32

__all__ = ["LAYERS"]


def _gated_delta_net(draw: Draw) -> Layer:
    batch, tokens, heads, keys, values, groups = draw.size(), draw.size(), draw.size(1), *(draw.size() for _ in "kv"), 2
    own = heads * groups
    return [
        draw.array(batch, tokens, heads, keys),
        draw.array(batch, tokens, heads, keys),
        draw.array(batch, tokens, own, values),
        draw.array(batch, own, keys, values),
        draw.array(batch, tokens, own),
        draw.array(batch, tokens, own),
    ], {"use_qk_l2norm": bool(draw.size(0, 1))}


def _selective_ssm(draw: Draw) -> Layer:
    batch, tokens, groups, size, state = draw.size(), draw.size(), draw.size(1), draw.size(), draw.size()
    heads = groups * 2
    return [
        draw.array(heads),
        draw.array(batch, tokens, heads),
        draw.array(batch, tokens, groups, state),
        draw.array(batch, tokens, heads, size),
        draw.array(batch, tokens, groups, state),
        draw.array(batch, heads, size, state),
    ], {}


def _mamba2(draw: Draw) -> Layer:
    batch, heads, tokens, size, state = (draw.size() for _ in range(5))
    return [
        draw.array(batch, heads, tokens, 1, 1),
        draw.array(batch, heads, tokens, size, state),
        draw.array(batch, heads, tokens, state),
        draw.array(batch, heads, size, state),
    ], {}


def _tables(draw: Draw) -> tuple[int, int, list[np.ndarray]]:
    """The numbers of tokens and blocks, and the tables of some sequences, among them none and empty ones."""
    counts = [draw.size() for _ in range(draw.size())]
    pasts, intervals = [draw.size() for _ in counts], [draw.size(-1, 2) for _ in counts]
    needed = [1 + -(-(p % e + c) // e) if e > 0 else 2 for c, p, e in zip(counts, pasts, intervals)]
    blocks = sum(needed) + draw.size()
    order = draw.rng.permutation(blocks)[: sum(needed)]
    return (
        sum(counts),
        blocks,
        [
            draw.begins(counts),
            order.astype(np.int32),
            draw.begins(needed),
            i32(*pasts),
            i32(*intervals),
        ],
    )


def _paged_gated_delta_net(draw: Draw) -> Layer:
    tokens, blocks, own = _tables(draw)
    heads, keys, values = draw.size(1), draw.size(), draw.size()
    return [
        draw.array(tokens, heads, keys),
        draw.array(tokens, heads, keys),
        draw.array(tokens, heads * 2, values),
        draw.array(blocks, heads * 2, values, keys),
        draw.array(tokens, heads * 2),
        draw.array(tokens, heads * 2),
        *own,
    ], {}


def _paged_selective_ssm(draw: Draw) -> Layer:
    tokens, blocks, own = _tables(draw)
    groups, size, state = draw.size(1), draw.size(), draw.size()
    return [
        draw.array(groups * 2),
        draw.array(tokens, groups * 2),
        draw.array(tokens, groups, state),
        draw.array(tokens, groups * 2, size),
        draw.array(tokens, groups, state),
        draw.array(blocks, groups * 2, size, state),
        *own,
    ], {}


def _paged_causal_conv1d(draw: Draw) -> Layer:
    tokens, blocks, own = _tables(draw)
    group, groups, width = draw.size(1), draw.size(), draw.size()
    hidden = group * groups
    return [
        draw.array(tokens, hidden),
        draw.array(blocks, hidden, width),
        draw.array(hidden, group, width),
        draw.array(hidden if draw.size(0, 1) else 0),
        *own,
    ], {}


def _moe(draw: Draw) -> Layer:
    tokens, hidden, inner, experts, top = draw.size(), draw.size(), draw.size(), draw.size(1), draw.size()
    common = [draw.array(1, tokens, hidden), draw.array(tokens, top), draw.indices(experts, tokens, top)]
    if draw.size(0, 1):
        weights = [(experts, inner, hidden), (experts, inner, hidden), (experts, hidden, inner)]
        return [*common, *(draw.array(*w) for w in weights)], {"expert_type": "GEMM3_SWIGLU"}
    weights = [(experts, hidden, 2 * inner), (experts, 1, 2 * inner), (experts, inner, hidden), (experts, 1, hidden)]
    return [*common, *(draw.array(*w) for w in weights)], {"expert_type": "GEMM2_BIAS_SWIGLU_CLAMP"}


def _gather_matmul(draw: Draw) -> Layer:
    rows, inner, columns, experts, slots = draw.size(), draw.size(), draw.size(), draw.size(1), draw.size()
    return [
        draw.array(slots if draw.size(0, 1) else 1, rows, inner),
        draw.array(experts, columns, inner),
        draw.indices(experts, rows, slots),
        draw.array(experts, 1, columns),
    ], {}


def _gated_residual(draw: Draw) -> Layer:
    count, size, rank, mode = draw.size(1), draw.size(1), draw.size(1), draw.size(0, 2)
    leading = [draw.size() for _ in range(draw.size(1))]
    attributes = {"mode": mode, "hc_count": count, "hidden_size": size, "lowrank": rank}
    residual, whole = draw.array(*leading, count * size), count * size
    if mode == 1:
        return [residual, draw.array(*leading, size), draw.array(*leading, count)], attributes
    return [residual, draw.array(whole), draw.array(rank, whole), draw.array(whole, rank)], attributes


def _convolution_biased(draw: Draw) -> Layer:
    spatial, batch, ins, outs = draw.size(1), draw.size(), draw.size(), draw.size()
    kernel, dilations = [draw.size(1) for _ in range(spatial)], [draw.size(1, 2) for _ in range(spatial)]
    sizes = [(k - 1) * d + 1 + draw.size() for k, d in zip(kernel, dilations)]
    pads = [draw.size(0, 2) for _ in range(spatial)]
    attributes = {
        "strides": tuple(draw.size(1) for _ in range(spatial)),
        "dilations": tuple(dilations),
        "pads_begin": tuple(pads),
        "pads_end": tuple(pads),
        "auto_pad": ["explicit", "valid", "same_upper", "same_lower"][draw.size()],
    }
    return [
        draw.array(batch, ins, *sizes),
        draw.array(outs, ins, *kernel),
        draw.array(1, outs, *[1] * spatial),
    ], attributes


def _gather_matmul_compressed(draw: Draw) -> Layer:
    rows, groups, group, columns, experts, slots = *(draw.size(1) for _ in range(4)), draw.size(1), draw.size()
    codes = draw.rng.integers(-8, 8, (experts, columns, groups, group)).astype(np.int8)
    zeros = draw.rng.integers(-8, 8, (experts, columns, groups, 1)).astype(np.int8)
    return [
        draw.array(1, rows, groups * group),
        codes,
        draw.indices(experts, rows, slots),
        draw.array(0),
        draw.array(experts, columns, groups, 1),
        zeros if draw.size(0, 1) else np.zeros(0, np.int8),
    ], {}


LAYERS: Final[dict[str, Callable[[Draw], Layer]]] = {
    "ConvolutionBiased": _convolution_biased,
    "GatedDeltaNet": _gated_delta_net,
    "GatedResidual": _gated_residual,
    "GatherMatmul": _gather_matmul,
    "GatherMatmulCompressed": _gather_matmul_compressed,
    "MOE": _moe,
    "Mamba2": _mamba2,
    "PagedCausalConv1D": _paged_causal_conv1d,
    "PagedGatedDeltaNet": _paged_gated_delta_net,
    "PagedSelectiveSSM": _paged_selective_ssm,
    "SSM": _selective_ssm,
    "SelectiveSSM": _selective_ssm,
}
