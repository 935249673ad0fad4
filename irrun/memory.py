"""How much memory a run will take, told from the plan."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import numpy as np

from irrun.model import Layer, Model
from irrun.plan import Planning, plan
from irrun.steps import Plan, Step

__all__ = ["Memory", "predicted"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes at the moment of a run when they are most, without those of Python and the libraries."""

    weights: int
    """Constants in the .bin, which is mapped: what is read of it."""
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
    file = model.weights.data if model.weights is not None else np.empty(0, np.uint8)
    mapped = {a.ctypes.data: a.nbytes for a in made.constants.values() if np.may_share_memory(a, file)}
    values, layer = _largest(made)
    return Memory(sum(mapped.values()), prepared, values, layer)


def _largest(plan: Plan) -> tuple[int, Layer | None]:
    """The most bytes of values that live at once, and the layer then computed."""
    values = list(plan.values.values())
    shape, dtype = [v.shape.static or () for v in values], [v.type.dtype for v in values]
    owner: dict[int, int] = {slot: slot for slot in plan.parameters}
    """Whose memory a slot is in."""
    strided: set[int] = set()
    holders: dict[int, int] = dict.fromkeys(plan.parameters, 1)
    """How many slots are in a memory."""
    size = {slot: int(np.prod(shape[slot])) * dtype[slot].itemsize for slot in range(len(values))}
    now = sum(size[slot] for slot in plan.parameters)
    most, layer = now, None
    for step in plan.steps:
        shared = _shares(step, strided)
        for slot in step.writes:
            base = owner.get(step.reads[0]) if shared else None
            owner[slot] = slot if base is None else base
            holders[owner[slot]] = holders.get(owner[slot], 0) + 1
            now += size[slot] if base is None else 0
            if shared and (step.op.views == "strided" or step.reads[0] in strided):
                strided.add(slot)
        if now > most:
            most, layer = now, step.layer
        for slot in step.frees:
            holders[owner[slot]] -= 1
            if not holders[owner[slot]]:
                now -= size[owner[slot]]
    return most, layer


def _shares(step: Step, strided: set[int]) -> bool:
    """Whether a step gives views of its first input."""
    takes_out = step.kernel.out or step.kernel.elementwise or step.kernel.finish
    return bool(step.op.views) and not takes_out and (step.op.views == "strided" or step.reads[0] not in strided)
