"""How much memory a run will take, told from the plan."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from dataclasses import dataclass

from irrun.model import Layer, Model
from irrun.plan import Planning, plan
from irrun.pool import SMALL, lent_size
from irrun.steps import Plan, Step

__all__ = ["Memory", "predicted"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes at the moment of a run when they are most, without those of Python and the libraries."""

    weights: int
    """Constants in the .bin, which is mapped: all are read once, and the system may take this memory back."""
    prepared: int
    """What was computed of them: folded constants, weights as kernels want them, and the plan itself."""
    values: int
    """Inputs, outputs and what stands between them."""
    layer: Layer | None
    """The one that is computed at that moment."""

    @property
    def total(self) -> int:
        return self.weights + self.prepared + self.values


def predicted(model: Model, max_memory: int) -> Memory | None:
    """The memory that a run of the model takes; None where dims, or what bodies are run on, are known only then.

    What a kernel needs while it computes is not in it: blocks of a few megabytes. Raises as ``irrun.compile``.
    """
    tracemalloc.start()
    try:
        made = plan(model, Planning(max_memory))
        prepared = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    if any(step.bodies for step in made.steps) or not all(v.shape.is_static for v in made.values.values()):
        return None
    constants = {layer.attributes.get("offset"): layer.attributes.get("size") for layer in model.layers.values()}
    values, layer = _largest(made)
    return Memory(sum(int(size) for size in constants.values() if size), prepared, values, layer)


def _largest(plan: Plan) -> tuple[int, Layer | None]:
    """The most bytes of values at once, what the pool keeps included, and the layer that is then computed."""
    values = list(plan.values.values())
    size = [math.prod(v.shape.static or ()) * v.type.dtype.itemsize for v in values]
    now = most = sum(size[slot] for slot in plan.parameters)  # which are the caller's, and stay
    layer = None
    owner = {slot: slot for slot in plan.parameters}  # whose memory a slot is in
    holders = dict.fromkeys(plan.parameters, 2)  # how many slots are in a memory
    free: Counter[int] = Counter()  # what the pool keeps, by size
    lent: set[int] = set()
    strided: set[int] = set()
    for step in plan.steps:
        shared = _shares(step, strided)
        for slot in step.writes:
            base = owner.get(step.reads[0], slot) if shared else slot
            owner[slot] = base
            holders[base] = holders.get(base, 0) + 1
            if shared and (step.op.views == "strided" or step.reads[0] in strided):
                strided.add(slot)
            if base == slot:
                if step.out and size[slot] > SMALL:
                    size[slot] = lent_size(size[slot])
                    lent.add(slot)
                if slot in lent and free[size[slot]]:
                    free[size[slot]] -= 1
                else:
                    now += size[slot]
        if now > most:
            most, layer = now, step.layer
        for slot in step.frees:
            base = owner[slot]
            holders[base] -= 1
            if holders[base]:
                continue
            if base in lent:
                free[size[base]] += 1
            else:
                now -= size[base]
    return most, layer


def _shares(step: Step, strided: set[int]) -> bool:
    """Whether a step gives views of its first input."""
    takes_out = step.kernel.out or step.kernel.elementwise or step.kernel.finish
    return bool(step.op.views) and not takes_out and (step.op.views == "strided" or step.reads[0] not in strided)
