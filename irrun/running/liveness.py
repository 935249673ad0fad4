"""Simulate the memory of a run: the bytes that are live at each step of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from irrun.model import Layer
from irrun.opdef import Op
from irrun.planning.steps import Plan, Step
from irrun.running.pool import SMALL, FreeBlocks, lent_size
from irrun.types import text_bytes

__all__ = ["Peak", "held_bytes", "peak_of", "root_of", "sizes_of", "works"]


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes of values that are live at once in a run, and the layer that is computed then."""

    bytes: int
    layer: Layer | None


def peak_of(plan: Plan, *, inputs: bool) -> Peak | None:
    """Return the peak of a plan, with free memory in the pool; None if it depends on what only a run knows.

    ``inputs`` counts the arrays of Parameters too. The values of bodies, results that are copied for the caller, and
    the arrays that Assign keeps are included, and the values between kernels that one step calls in turn. Other
    temporary memory of kernels is not.
    """
    if not all(v.shape.is_static and v.type.kind != "dynamic" for v in plan.values.values()):
        return None
    if any(map(works, plan.steps)):
        return None
    simulation = _Simulation(plan, sizes_of(plan), inputs)
    peak = Peak(simulation.bytes, None)
    for step in plan.steps:
        inside = _inside(step, simulation.size)
        if inside is None:
            return None
        inside += step.kernel.joins.spare_bytes
        simulation.compute(step)
        if simulation.bytes + inside > peak.bytes or peak.layer is None:
            peak = Peak(simulation.bytes + inside, step.layer)
        simulation.free(step)
    end = simulation.bytes + simulation.copied()
    return peak if end <= peak.bytes or not plan.results else Peak(end, plan.model.results[-1])


def works(step: Step) -> bool:
    """Return whether the operation of a step declares the memory that it works in (``Op.working``)."""
    return type(step.op).working is not Op.working


def held_bytes(plan: Plan) -> int:
    """Return the bytes of constants that a plan holds: those that are not views of the .bin, and packed weights."""
    weights = None if plan.model.weights is None else plan.model.weights.data
    own = {
        id(root): root.nbytes + text_bytes(root)
        for array in plan.constants.values()
        if (root := root_of(array)) is not weights
    }
    packed = sum(step.kernel.packing.bytes for step in plan.steps)
    return sum(own.values()) + packed + sum(held_bytes(body) for step in plan.steps for body in step.bodies.values())


def root_of(array: np.ndarray) -> np.ndarray:
    """Return the array whose memory ``array`` is a view of, or ``array`` itself."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def sizes_of(plan: Plan) -> list[int]:
    """Return the bytes of each slot.

    A slot that the planner has added has the size of the array that the executor allocates for it, or else that of
    the first input of its step.
    """
    sizes = [prod(v.shape.static or ()) * v.type.dtype.itemsize for v in plan.values.values()]
    sizes += [0] * (plan.slots - len(sizes))
    for step in plan.steps:
        for number, slot in enumerate(step.writes):
            if slot >= len(plan.values):
                shape, dtype = step.out[number] if step.out else ((), None)
                sizes[slot] = sizes[step.reads[0]] if dtype is None else prod(shape) * dtype.itemsize
    return sizes


def _inside(step: Step, sizes: Sequence[int]) -> int | None:
    """Return the most bytes that the bodies of a step take beside its outputs; None if that is unknown.

    The outputs of If are the results of a body. The results of an iteration of a loop are live in the next one, and the
    loop collects those that it concatenates.
    """
    most = 0
    for body in step.bodies.values():
        peak = peak_of(body, inputs=False)
        if peak is None:
            return None
        own = sizes_of(body)
        most = max(most, peak.bytes + sum(own[slot] for slot in body.results if "back_edges" in step.needed))
    entries = step.layer.maps.get("port_map", ())
    joined = {e.external for e in entries if e.kind == "output" and e.axis is not None}
    outputs = [(number in joined, sizes[slot]) for number, slot in enumerate(step.writes)] if step.bodies else []
    return max(0, most + sum(size if is_joined else -size for is_joined, size in outputs))


class _Simulation:
    """The memory of values during a run, in which slots may be views of the memory of other slots."""

    def __init__(self, plan: Plan, sizes: Sequence[int], inputs: bool) -> None:
        self.plan = plan
        self.size = list(sizes)
        self.bytes = sum(sizes[slot] for slot in plan.parameters) if inputs else 0
        self.owner = {slot: slot for slot in plan.parameters}  # the slot whose memory a slot uses
        self.users = dict.fromkeys(plan.parameters, 2)  # slots that use the memory of a slot; the caller keeps inputs
        self.pooled: FreeBlocks[int] = FreeBlocks()
        self.lent: set[int] = set()  # slots whose memory is lent by the pool
        self.strided: set[int] = set()  # slots that hold strided views
        self.grown: set[int] = set()  # slots that are the new values of variables, without a copy

    def compute(self, step: Step) -> None:
        """Allocate the outputs of a step, unless they are views, and the memory that it needs until the end."""
        is_view = self.returns_views(step)
        for slot in step.writes:
            owner = self.owner.get(step.reads[0], slot) if is_view else slot
            self.owner[slot] = owner
            self.users[owner] = self.users.get(owner, 0) + 1
            if is_view and (step.op.views == "strided" or step.reads[0] in self.strided):
                self.strided.add(slot)
            if owner == slot:
                self.allocate(slot, from_pool=bool(step.out) and self.size[slot] > SMALL)
        if "variables" in step.op.needs and not step.grows:  # what a variable takes is copied
            self.bytes += sum(self.size[slot] for slot in step.reads if slot >= 0 and slot not in self.grown)
        for old, new in step.grows:  # the buffer has room for half as much more
            self.bytes += self.size[new] // 2 + sum(self.size[n] for n in (old, new) if n >= 0 and n not in step.writes)
            self.grown.add(new)

    def returns_views(self, step: Step) -> bool:
        """Return whether the outputs of a step are views of its first input."""
        strided = step.op.views == "strided"
        return step.kernel.out == "new" and (strided or (bool(step.op.views) and step.reads[0] not in self.strided))

    def allocate(self, slot: int, from_pool: bool) -> None:
        """Allocate the memory of a slot. Free memory of the pool counts already."""
        if from_pool:
            self.size[slot] = lent_size(self.size[slot])
            self.lent.add(slot)
        if not from_pool or self.pooled.take(self.size[slot]) is None:
            self.bytes += self.size[slot]

    def free(self, step: Step) -> None:
        """Free the slots that no later step reads, whose memory returns to the pool if that has lent it."""
        for slot in step.frees:
            owner = self.owner[slot]
            self.users[owner] -= 1
            if self.users[owner]:
                continue
            if owner in self.lent:
                self.pooled.give(self.size[owner], owner)
            else:
                self.bytes -= self.size[owner]

    def copied(self) -> int:
        """Return the bytes of the results that are copied: inputs, constants, views and those returned twice."""
        seen: set[int] = set()
        size = 0
        for slot in self.plan.results:
            if self.owner.get(slot) != slot or slot in self.plan.parameters or slot in seen:
                size += self.size[slot]
            seen.add(slot)
        return size
