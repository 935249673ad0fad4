"""The constants of a plan: load and fold them, and count the memory that they take."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from irrun.model import Layer, Model
from irrun.opdef import Op, Stored, Value
from irrun.planning.failures import too_much_memory
from irrun.planning.flow import Inputs
from irrun.planning.steps import Planning, Step
from irrun.types import PartialShape

__all__ = ["RELEASE_BYTES", "Constants"]

RELEASE_BYTES: Final = 1 << 24
"""Bytes of constants that kernels are made for before the planner releases the memory-mapped .bin."""
_MAX_GROWTH: Final = 8
"""A folded constant may be at most ``_MAX_GROWTH`` times the bytes of its inputs, plus ``_SMALL_BYTES``. 4-bit weights
grow 8 times in f32."""
_SMALL_BYTES: Final = 1 << 20
"""Bytes that any folded constant may take, since that little memory does not matter: see ``_MAX_GROWTH``."""
_TRIM: Final = getattr(ctypes.pythonapi, "malloc_trim", None)
"""The function of glibc that returns freed memory to the system; None with another C library."""


class Constants:
    """The constants of a plan, in ``arrays`` by slot.

    ``values`` holds the Value of each slot; that of a constant gets its contents. ``computed`` are the constants of
    another plan of the same model.
    """

    def __init__(self, model: Model, how: Planning, values: list[Value], computed: Mapping[int, np.ndarray]) -> None:
        self.model, self.how, self.values, self.computed = model, how, values, computed
        self.arrays: dict[int, np.ndarray] = {}
        self.reserved = 0  # bytes of unpacked, folded and packed constants
        self.unreleased = 0  # bytes of constants that kernels were made for since the .bin was released

    def hold(self, slot: int, array: np.ndarray) -> None:
        """Store an array as the constant of a slot, and its Value."""
        self.arrays[slot] = array
        self.values[slot] = Value(self.values[slot].type, PartialShape.of(array.shape), array)

    def load(self, layer: Layer, op: Op, slot: int) -> None:
        """Store the array of a Const. Raises ExecutionError (IR604) if it has to be unpacked and is too large.

        An array whose offset in the .bin is no multiple of its element size is copied, because numpy is slow at every
        use of it. A matrix is not: kernels transpose or pack it, and ``kept`` copies one that they read as it is.
        """
        value, weights = self.values[slot], self.model.weights
        assert weights is not None  # compile has refused a model without its .bin
        array = self.computed.get(slot, value.data)
        if array is None:
            self.reserve(layer, _bytes(value))
            if value.type.kind == "string":
                self.reserve(layer, int(layer.attributes["size"]))
            array = op.run(weights=weights, element_type=value.type)
        if not array.flags.aligned and array.ndim != 2:
            self.reserve(layer, _bytes(value))
            array = array.copy()
        self.hold(slot, array)

    def unpack(self, layer: Layer, slot: int, stored: Stored) -> None:
        """Store a matrix that the file has compressed as f32. Raises ExecutionError (IR604) if it is too large."""
        value = self.values[slot]
        self.reserve(layer, _bytes(value))
        self.hold(slot, stored.unpack_rows(slice(None)).reshape(value.shape.static or ()))

    def fold(self, op: Op, inputs: Inputs, writes: Sequence[int]) -> bool:
        """Compute a layer now if its inputs are constant, and return whether that was done.

        Outputs much larger than the inputs (see ``_MAX_GROWTH``) are left to each run.
        """
        outputs = [self.computed.get(write, self.values[write].exact) for write in writes]
        if any(array is None for array in outputs):
            arrays = [None if v is None else v.exact for v in inputs]
            if not inputs or any(v is not None and a is None for v, a in zip(inputs, arrays)):
                return False
            size = sum(_bytes(self.values[write]) for write in writes)
            if size > _MAX_GROWTH * sum(a.nbytes for a in arrays if a is not None) + _SMALL_BYTES:
                return False
            if size + self.reserved > self.how.max_memory:
                return False
            self.reserved += int(size)
            try:
                with np.errstate(all="ignore"):
                    results = op.run(*arrays)
            except Exception:
                return False  # the run will report it
            outputs = results if isinstance(results, tuple) else (results,)
        for write, array in zip(writes, outputs):
            assert array is not None
            self.hold(write, np.asarray(array))
        return True

    def reserve(self, layer: Layer, size: int) -> None:
        """Count the bytes of a constant that is held for ``layer``. Raises ExecutionError (IR604) past the limit."""
        self.reserved += size
        if self.reserved > self.how.max_memory:
            raise too_much_memory(self.model, layer, self.reserved, 0, self.how.max_memory)

    def pack(self, steps: Sequence[Step]) -> None:
        """Have kernels create the packed forms that they would otherwise create in the first run."""
        for step in steps:
            packing = step.kernel.packing
            if packing.create is not None:
                self.reserve(step.layer, packing.bytes)
                packing.create()

    def release_if_large(self, inputs: Inputs) -> None:
        """Release the memory-mapped .bin for every ``RELEASE_BYTES`` of constants for which kernels have been made.

        Otherwise packed weights would be in memory twice. ``inputs`` are those of the kernel made last.
        """
        for value in inputs:
            if value is not None and value.stored is not None:
                self.unreleased += value.stored.raw.nbytes
            elif value is not None and value.data is not None:
                self.unreleased += value.data.nbytes
        if self.unreleased > RELEASE_BYTES:
            self.release()

    def release(self) -> None:
        """Release the memory-mapped .bin, and the memory in which kernels have packed what they have read of it."""
        if self.model.weights is None:
            return
        self.model.weights.release()
        if self.unreleased > _SMALL_BYTES and _TRIM is not None:
            _TRIM(0)
        self.unreleased = 0

    def kept(self, steps: Sequence[Step], results: Sequence[int]) -> tuple[dict[int, np.ndarray], frozenset[int]]:
        """Return the constants that a run reads, as aligned arrays, and the slots of those without contents.

        A constant that kernels hold only in another form (``Packing.inputs``) keeps its dtype and shape alone. Where
        each layer is a step, hooks may read it: then it stays as it is.
        """
        arrays = dict(self.arrays)
        for slot, value in enumerate(self.values):
            if value.stored is not None:
                arrays[slot] = _without_contents(value.type.dtype, value.shape.static or ())
        read = {*results}
        for step in steps:
            read.update(slot for i, slot in enumerate(step.uses) if i not in step.kernel.packing.inputs)
        packed = {slot for step in steps for slot in step.uses} - read
        kept: dict[int, np.ndarray] = {}
        for slot, array in arrays.items():
            if slot in read:
                kept[slot] = np.require(array, requirements="A")
            elif slot in packed:
                kept[slot] = _without_contents(array.dtype, array.shape) if self.how.fuse else array
        return kept, frozenset(packed & kept.keys()) if self.how.fuse else frozenset()


def _bytes(value: Value) -> int:
    """Return the most bytes that a Value may take."""
    return value.shape.count().hi * value.type.dtype.itemsize


def _without_contents(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array that takes no memory: one zero with strides of 0."""
    return np.broadcast_to(np.zeros((), dtype), shape)
