"""Predict the peak memory of a run from its plan."""

from __future__ import annotations

import tracemalloc
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from irrun.inference.bind import bind_all
from irrun.inference.propagate import Values, declared, propagate
from irrun.model import Layer, Model
from irrun.model.weights import Weights
from irrun.opdef import Value
from irrun.planning.constants import RELEASE_BYTES
from irrun.planning.plan import plan
from irrun.planning.plans import planning
from irrun.planning.steps import Plan
from irrun.running.liveness import peak_of, sizes_of
from irrun.running.pool import SMALL
from irrun.types import Dim, ElementType, PartialShape

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


def predicted(model: Model, max_memory: int, variables: Mapping[str, PartialShape] | None = None) -> Memory | None:
    """Return the peak memory of a run; None if a shape is known only at run time.

    ``variables`` are shapes by the ids of variables. The others have the shapes that they have in the first run. The
    temporary memory of kernels, a few megabytes, is not included. Raises the same errors as ``irrun.compile``.
    """
    given = _states(model, variables or {})
    weights = _Watched() if model.weights is None else _Watched(model.weights.path, model.weights.given)
    tracemalloc.start()
    try:
        made = plan(replace(model, weights=weights), planning(model, max_memory), given)
        prepared, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    peak = peak_of(made, inputs=True)
    if peak is None:
        return None
    read = _read(made, sizes_of(made), weights.held()) + _read_in_place(made, sizes_of(made))
    running = Memory(read, prepared, peak.bytes, peak.layer)
    packing = Memory(_unpacked(made), most, 0, None)
    return packing if packing.weights > SMALL and packing.total > running.total else running


def _states(model: Model, variables: Mapping[str, PartialShape]) -> dict[int, Value]:
    """Return the variables whose shapes are known, by the id of the ReadValue."""
    layers = [layer for layer in model.layers.values() if layer.type == "ReadValue"]
    if not layers:
        return {}
    values: Values = {}
    propagate(model, {layer.id: op for layer, op, _ in bind_all(model)}, _settled, values, {})
    states: dict[int, Value] = {}
    for layer in layers:
        feed = model.feeds[layer.id][0] if layer.inputs else None
        shape = variables.get(layer.attributes.get("variable_id", ""))
        if shape is None:
            own = values[layer.id, 0].shape
            shape = values[feed].shape if feed is not None else own
            if feed is None and own.dims is not None:
                shape = PartialShape(tuple(Dim(dim.lo) for dim in own.dims))
        states[layer.id] = Value(values[layer.id, 0].type, shape)
    return states


def _settled(layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
    """Return what is inferred of a layer, or what it declares if it is refused, which planning will report."""
    return declared(layer) if isinstance(inferred, Exception) else inferred


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


def _read(plan: Plan, sizes: Sequence[int], held: Mapping[int, int]) -> int:
    """Return the bytes of the .bin that a run reads. A kernel that only moves data reads no more than it writes."""
    read: Counter[int] = Counter()
    for step in plan.steps:
        for position, slot in enumerate(step.uses):
            array = plan.constants.get(slot)
            if array is not None and position not in step.kernel.packing.inputs and id(array.base) in held:
                moves = not (step.kernel.flops or step.kernel.out == "elementwise")
                read[id(array.base)] += sum(sizes[write] for write in step.writes) if moves else array.nbytes
    return sum(min(size, read.get(own, size)) for own, size in held.items())


def _read_in_place(plan: Plan, sizes: Sequence[int]) -> int:
    """Return the bytes of matrices that a run reads as the file has them: all of them, or the rows that it takes."""
    read = Counter[int]()
    for step in plan.steps:
        for position, slot in enumerate(step.uses):
            if slot in plan.stored and position in step.kernel.packing.inputs and not step.kernel.packing.bytes:
                moves = not (step.kernel.flops or step.kernel.out == "whole")
                read[slot] += sum(sizes[write] for write in step.writes) if moves else plan.stored[slot]
    return sum(min(size, plan.stored[slot]) for slot, size in read.items())


def _unpacked(plan: Plan) -> int:
    """Return the most bytes of the .bin in memory while weights are packed. The planner releases them in between."""
    planned = read = most = 0
    for step in plan.steps:
        for position, slot in enumerate(step.uses):
            if slot in plan.constants:
                size = plan.stored.get(slot, plan.constants[slot].nbytes)
                planned += size
                read += size if position in step.kernel.packing.inputs else 0
        most = max(most, read)
        if planned > RELEASE_BYTES:
            planned = read = 0
    return most
