"""Predict the peak memory of a run from its plan."""

from __future__ import annotations

import tracemalloc
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np

from irrun.model import Layer, Model
from irrun.planning.plan import UNPACKED, Planning, plan
from irrun.planning.steps import Plan, Step
from irrun.running.pool import SMALL, FreeBlocks, lent_size
from irrun.types import ElementType
from irrun.weights import Weights

__all__ = ["Memory", "predicted"]


@dataclass(frozen=True, slots=True)
class Memory:
    """The bytes in use at the peak of a run and its preparation, without those of Python and the libraries."""

    weights: int
    """Bytes read from the .bin. The file is memory-mapped, so the system may reclaim this memory."""
    prepared: int
    """Bytes computed from the .bin: folded constants and packed weights, and the plan itself."""
    values: int
    """Bytes of inputs, outputs and intermediate values."""
    layer: Layer | None
    """The layer that is computed at the peak; None if the peak is before the first layer, while weights are packed."""

    @property
    def total(self) -> int:
        return self.weights + self.prepared + self.values


def predicted(model: Model, max_memory: int) -> Memory | None:
    """Return the peak memory of a run; None if a shape is known only at run time, or if a layer has bodies.

    The temporary memory of kernels, a few megabytes, is not included. Raises the same errors as ``irrun.compile``.
    """
    weights = _Watched() if model.weights is None else _Watched(model.weights.path, model.weights.given)
    tracemalloc.start()
    try:
        made = plan(replace(model, weights=weights), Planning(max_memory))
        prepared, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if any(step.bodies for step in made.steps) or not all(v.shape.is_static for v in made.values.values()):
        return None
    sizes = _sizes(made)
    running = Memory(_read(made, sizes, weights.held()), prepared, *_largest(made, sizes))
    packing = Memory(_unpacked(made), most, 0, None)
    return packing if packing.weights > SMALL and packing.total > running.total else running


class _Watched(Weights):
    """A ``.bin`` that records which of its tensors are still referenced."""

    def __init__(self, path: Path | None = None, data: bytes | None = None) -> None:
        super().__init__(path, data)
        self.tensors: list[tuple[int, weakref.ref[np.ndarray]]] = []

    def tensor(self, offset: int, size: int, element_type: ElementType, shape: tuple[int, ...]) -> np.ndarray:
        array = super().tensor(offset, size, element_type, shape)
        if array.base is not self.data:
            return array
        # the base of all views of the tensor; bytes after it, which a larger `size` declares, do not belong to it
        own = np.frombuffer(self.data[offset : offset + array.nbytes].data, np.uint8)
        self.tensors.append((own.nbytes, weakref.ref(own)))
        return own.view(array.dtype).reshape(shape)

    def held(self) -> dict[int, int]:
        """Return the bytes of the tensors that are still referenced, by the ``id`` of the base of their views."""
        return {id(own): size for size, tensor in self.tensors if (own := tensor()) is not None}


def _sizes(plan: Plan) -> list[int]:
    """Return the bytes of each slot.

    A slot that the planner has added has the size of the array that the executor allocates for it, or else that of
    the first input of its step.
    """
    sizes = [prod(v.shape.static or ()) * v.type.dtype.itemsize for v in plan.values.values()]
    sizes += [0] * (plan.slots - len(sizes))
    for step in plan.steps:
        for slot in step.writes:
            if slot >= len(plan.values):
                sizes[slot] = prod(step.out[0]) * step.out[1].itemsize if step.out else sizes[step.reads[0]]
    return sizes


def _read(plan: Plan, sizes: Sequence[int], held: Mapping[int, int]) -> int:
    """Return the bytes of the .bin that a run reads. A kernel that only moves data reads no more than it writes."""
    read: Counter[int] = Counter()
    for step in plan.steps:
        for position, slot in enumerate(step.reads):
            array = plan.constants.get(slot)
            if array is not None and position not in step.kernel.prepacked and id(array.base) in held:
                moves = not (step.kernel.flops or step.kernel.out == "elementwise")
                read[id(array.base)] += sum(sizes[write] for write in step.writes) if moves else array.nbytes
    return sum(min(size, read.get(own, size)) for own, size in held.items())


def _unpacked(plan: Plan) -> int:
    """Return the most bytes of the .bin in memory while weights are packed. The planner releases them in between."""
    planned = read = most = 0
    for step in plan.steps:
        for position, slot in enumerate(step.reads):
            if slot in plan.constants:
                size = plan.constants[slot].nbytes
                planned += size
                read += size if position in step.kernel.prepacked else 0
        most = max(most, read)
        if planned > UNPACKED:
            planned = read = 0
    return most


def _largest(plan: Plan, sizes: Sequence[int]) -> tuple[int, Layer | None]:
    """Return the peak bytes of values, including free memory in the pool, and the layer computed at the peak."""
    simulation = _Simulation(plan, sizes)
    most, layer = simulation.bytes, None
    for step in plan.steps:
        simulation.compute(step)
        if simulation.bytes > most:
            most, layer = simulation.bytes, step.layer
        simulation.free(step)
    return most, layer


class _Simulation:
    """The memory of values during a run, in which slots may be views of the memory of other slots."""

    def __init__(self, plan: Plan, sizes: Sequence[int]) -> None:
        self.size = list(sizes)
        self.bytes = sum(sizes[slot] for slot in plan.parameters)
        self.owner = {slot: slot for slot in plan.parameters}  # the slot whose memory a slot uses
        self.users = dict.fromkeys(plan.parameters, 2)  # slots that use the memory of a slot; the caller keeps inputs
        self.pooled: FreeBlocks[int] = FreeBlocks()
        self.lent: set[int] = set()  # slots whose memory is lent by the pool
        self.strided: set[int] = set()  # slots that hold strided views

    def compute(self, step: Step) -> None:
        """Allocate the outputs of a step, unless they are views."""
        is_view = self.returns_views(step)
        for slot in step.writes:
            owner = self.owner.get(step.reads[0], slot) if is_view else slot
            self.owner[slot] = owner
            self.users[owner] = self.users.get(owner, 0) + 1
            if is_view and (step.op.views == "strided" or step.reads[0] in self.strided):
                self.strided.add(slot)
            if owner == slot:
                self.allocate(slot, from_pool=step.out is not None and self.size[slot] > SMALL)

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
