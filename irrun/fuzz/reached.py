"""Which algorithms of the kernels a campaign has reached, and which it must reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from irrun.growing.grower import CYCLE
from irrun.planning.steps import Plan, Step
from irrun.running.executor import Executable

__all__ = ["algorithms", "unreached"]

ALGORITHMS: Final = (
    "Convolution: Winograd F(2×2, 3×3), channels last", "Convolution: Winograd F(4×4, 3×3), channels last",
    "Convolution: Winograd F(4×4, 3×3)", "Convolution: im2col, channels last", "Convolution: matmul, channels last",
    "GroupConvolution: depthwise, channels last", "GroupConvolution: Fourier transform",
    "GroupConvolution: im2col of planes", "DepthToSpace: channels last",
    "GroupNormalization: in blocks, channels last", "Concat: channels last", "Pad: channels last",
    "Interpolate: in blocks", "MatMul: in blocks", "fused: ScaledDotProductAttention", "fused: Gelu",
    "plans for recurring dims",
)  # fmt: skip
"""What the plans of nearly every cycle of graphs consist of."""
FAMILIES: Final = {
    "element-wise fusion": ("fused: ReLU", "fused: Tanh", "fused: Sigmoid", "fused: HSwish"),
    "tiles": tuple(f"{type}: in tiles" for type in ("Multiply", "Tanh", "Sigmoid", "ReLU", "HSwish")),
    "a packed recurrence": tuple(
        f"{cell}{form}: packed" for cell in ("LSTM", "GRU", "RNN") for form in ("Cell", "Sequence")
    ),
    "a fused norm": ("fused: MVN", "fused: RMS"),
    "a pool, channels last": ("MaxPool: in blocks, channels last", "AvgPool: in blocks, channels last"),
}
"""What any of several parts of plans shows."""


def algorithms(executable: Executable) -> set[str]:
    """Return what the plans of a model consist of: ``MatMul: in blocks``, ``fused: Gelu``."""
    general, *recurring = executable.plans
    found = {part for plan in (general, *recurring) for part in _parts(plan)}
    return found | {"plans for recurring dims"} if recurring else found


def _parts(plan: Plan) -> Iterator[str]:
    """Yield the algorithm of each step, also of the steps of bodies, and what is computed for several layers."""
    for step in plan.steps:
        yield from _names(step)
        for body in step.bodies.values():
            yield from _parts(body)


def _names(step: Step) -> Iterator[str]:
    if step.kernel.algorithm:
        yield f"{step.layers[0].type}: {step.kernel.algorithm}"
    if len(step.layers) > 1:
        yield f"fused: {getattr(step.op, 'type', 'change of layout')}"


def unreached(reached: Mapping[str, int], graphs: int) -> list[str]:
    """Return what a campaign of so many graphs has reached in fewer than half of its cycles, a line for each."""
    least = graphs // CYCLE / 2
    found = {name: reached.get(name, 0) for name in ALGORITHMS}
    found |= {name: sum(reached.get(part, 0) for part in parts) for name, parts in FAMILIES.items()}
    return [f"{name}: {count}, at least {least:g}" for name, count in found.items() if count < least]
