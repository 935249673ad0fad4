"""Merge steps that only give their data another shape, such as a Transpose that moves an axis of one element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from irrun.opdef import Kernel, Value
from irrun.planning.steps import Step

__all__ = ["reshaped"]


def reshaped(steps: Sequence[Step], values: Sequence[Value], results: Sequence[int]) -> list[Step]:
    """Return the steps with each chain of views that keeps the order of all elements replaced by one reshape.

    ``values`` holds the Value of each slot, ``results`` the slots of the model's outputs. All shapes of the chain are
    static, and only the next step of the chain reads a value within it.
    """
    made = {slot: step for step in steps for slot in step.writes}
    readers: dict[int, int] = dict.fromkeys(results, 2)
    for step in steps:
        for slot in step.reads:
            readers[slot] = readers.get(slot, 0) + 1
    gone: set[int] = set()
    merged: dict[int, Step] = {}
    for last in reversed(steps):
        if id(last) in gone or not _is_view(last, values):
            continue
        chain = [last]
        while (step := made.get(chain[0].reads[0])) and _is_view(step, values) and readers[step.writes[0]] == 1:
            chain.insert(0, step)
        while chain and not _keeps_order(chain, values):
            chain.pop(0)
        if chain:
            gone.update(id(step) for step in chain[:-1])
            merged[id(last)] = _merged(chain, values)
    return [merged.get(id(step), step) for step in steps if id(step) not in gone]


def _is_view(step: Step, values: Sequence[Value]) -> bool:
    """Return whether a step returns a view of its first input that only depends on shapes and constants."""
    if not step.op.views or step.op.outputs != 1 or step.needed or not step.own_inputs or step.kernel.out != "new":
        return False
    static = all(values[slot].shape.is_static for slot in (step.reads[0], step.writes[0]))
    return static and all(slot < 0 or values[slot].data is not None for slot in step.reads[1:])


def _keeps_order(chain: Sequence[Step], values: Sequence[Value]) -> bool:
    """Return whether the elements of the last output are those of the first input, in the same order."""
    first = values[chain[0].reads[0]]
    if first.type.kind in ("string", "dynamic"):
        return False
    data = whole = np.empty(first.shape.static or (), np.byte)  # nothing reads its contents, nor fills its pages
    for step in chain:
        data = step.op.run(data, *[None if slot < 0 else values[slot].exact for slot in step.reads[1:]])
    same = data.__array_interface__["data"] == whole.__array_interface__["data"]
    return same and data.size == whole.size and data.flags.c_contiguous


def _merged(chain: Sequence[Step], values: Sequence[Value]) -> Step:
    last = chain[-1]
    shape = values[last.writes[0]].shape.static
    assert shape is not None
    layers = tuple(layer for step in chain for layer in step.layers)
    return replace(
        last, kernel=Kernel(_reshape(shape)), reads=chain[0].reads[:1], dynamic=False, layers=layers, own_inputs=False
    )


def _reshape(shape: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda data: data.reshape(shape)
