"""Merge steps that only give their data another shape, such as a Transpose that moves an axis of one element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from irrun.opdef import Kernel, Value
from irrun.planning.flow import Context, Flow
from irrun.planning.steps import Step

__all__ = ["merge_views"]


def merge_views(flow: Flow, context: Context) -> Flow:
    """Replace each chain of views that keeps the order of all elements by one reshape.

    All shapes of the chain are static, and only the next step of the chain reads a value within it.
    """
    gone: set[int] = set()
    merged: dict[int, Step] = {}
    for last in reversed(range(flow.end)):
        if last not in gone and _is_view(flow.steps[last], context.values):
            chain = _chain(flow, last, context.values)
            while chain and not _keeps_order([flow.steps[position] for position in chain], context.values):
                chain.pop(0)
            if chain:
                gone.update(chain[:-1])
                merged[last] = _merged([flow.steps[position] for position in chain], context.values)
    return flow.replaced([merged.get(n, step) for n, step in enumerate(flow.steps) if n not in gone])


def _chain(flow: Flow, last: int, values: Sequence[Value]) -> list[int]:
    """Return the positions of the views that end with ``last``, each read by the next one alone."""
    chain = [last]
    while True:
        slot = flow.steps[chain[0]].reads[0]
        before = flow.made.get(slot)
        if before is None or flow.only_reader(slot) is None or not _is_view(flow.steps[before], values):
            return chain
        chain.insert(0, before)


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
    """Return the step that gives the first input of a chain the shape of its last output."""
    last = chain[-1]
    shape = values[last.writes[0]].shape.static
    assert shape is not None
    layers = tuple(layer for step in chain for layer in step.layers)
    return replace(
        last, kernel=Kernel(_reshape(shape)), reads=chain[0].reads[:1], dynamic=False, layers=layers, own_inputs=False
    )


def _reshape(shape: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda data: data.reshape(shape)
