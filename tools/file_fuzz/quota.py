"""The kernel algorithms that a campaign of graphs must reach, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["CYCLE", "missing"]

CYCLE: Final = 40
"""The number of graphs among which each target occurs once."""

ALGORITHMS: Final = (
    "Convolution: Winograd F(2×2, 3×3), channels last", "Convolution: Winograd F(4×4, 3×3), channels last",
    "Convolution: Winograd F(4×4, 3×3)", "Convolution: im2col, channels last", "Convolution: matmul, channels last",
    "GroupConvolution: depthwise, channels last", "GroupConvolution: Fourier transform",
    "GroupConvolution: im2col of planes", "DepthToSpace: channels last",
    "GroupNormalization: in blocks, channels last", "Concat: channels last", "Pad: channels last",
    "Interpolate: in blocks", "MatMul: in blocks", "fused: ScaledDotProductAttention", "fused: Gelu",
    "plans for recurring dims", "pooled memory",
)  # fmt: skip
"""Each occurs in nearly every cycle."""
FAMILIES: Final = {
    "element-wise fusion": ("fused: ReLU", "fused: Tanh", "fused: Sigmoid", "fused: HSwish"),
    "tiles": tuple(f"{type}: in tiles" for type in ("Multiply", "Tanh", "Sigmoid", "ReLU", "HSwish")),
    "a packed recurrence": tuple(
        f"{cell}{form}: packed" for cell in ("LSTM", "GRU", "RNN") for form in ("Cell", "Sequence")
    ),
    "a fused norm": ("fused: MVN", "fused: RMS"),
    "a pool, channels last": ("MaxPool: in blocks, channels last", "AvgPool: in blocks, channels last"),
}
"""What any of several parts shows."""


def missing(outcomes: Mapping[str, int], count: int, threads: int) -> list[str]:
    """Return what a campaign of ``count`` graphs reached in fewer than half of its cycles."""
    least = count // CYCLE / 2
    reached = {name: outcomes.get(name, 0) for name in ALGORITHMS}
    reached |= {name: sum(outcomes.get(part, 0) for part in parts) for name, parts in FAMILIES.items()}
    if threads > 1:
        reached["threads"] = outcomes.get("threads", 0)
    return [f"{name}: {times}, at least {least:g}" for name, times in reached.items() if times < least]
