"""Steps that return views of what another step fills, between the calls of machine code that read these views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irrun.kernels.copies import Reshaped
from irrun.opdef import Value
from irrun.planning.flow import Context, Flow
from irrun.planning.layout import shown_first
from irrun.planning.steps import Step
from irrun.types import PartialShape

__all__ = ["View", "append_views", "may_view", "views_in"]


@dataclass(frozen=True, slots=True)
class View:
    """A step that returns views of its first input. Its other inputs are constant."""

    step: Step
    constants: tuple[np.ndarray | None, ...]

    def of(self, array: np.ndarray) -> Sequence[np.ndarray]:
        """Return the views of an array, in the order of the slots that the step fills."""
        returned: Any = self.step.kernel.call(array, *self.constants)
        return returned if isinstance(returned, tuple) else (returned,)


def append_views(flow: Flow, context: Context) -> Flow:
    """Let kernels with ``Joins.channels_last`` give such results, and append steps that return views of these."""
    steps: list[Step] = []
    for step in flow.steps:
        last, slots = step.kernel.joins.channels_last, step.writes
        shape = context.values[slots[0]].shape.static if last is not None else None
        if last is None or shape is None:
            steps.append(step)
            continue
        moved = PartialShape.of([shape[0], *shape[2:], shape[1]])
        slot = context.add(context.values[slots[0]].reshaped(moved))
        steps.append(replace(step, kernel=last, writes=(slot,), dynamic=False, own_inputs=False))
        steps.append(shown_first(step, slot, slots[0], len(shape)))
    return flow.replaced(steps)


def may_view(step: Step) -> bool:
    """Return whether a step returns views of its first input, or copies that it allocates."""
    kernel = step.kernel
    returns_views = isinstance(kernel.call, Reshaped) or (step.op.views and kernel.out == "new")
    return bool(returns_views) and kernel.joins.calls is None and not step.needed


def views_in(flow: Flow, context: Context) -> dict[int, View]:
    """Return the steps, by position, whose views all calls that read them read in place."""
    views: dict[int, View] = {}
    shown: dict[int, np.ndarray] = {}
    """An array with the strides of each view, by slot, which has no contents."""
    for position, step in enumerate(flow.steps):
        view = _view(step, context) if may_view(step) else None
        if view is None:
            continue
        source = step.reads[0]
        begin = shown[source] if source in shown else _shown(context.values[source])
        found = () if begin is None else view.of(begin)
        if begin is not None and found and all(np.may_share_memory(array, begin) for array in found):
            shown |= zip(step.writes, found)
            views[position] = view
    return {
        position: view
        for position, view in views.items()
        if all(_reads_in_place(flow, slot, shown[slot]) for slot in view.step.writes)
    }


def _reads_in_place(flow: Flow, slot: int, array: np.ndarray) -> bool:
    """Return whether the calls that read a slot read a view with these strides without a copy of it."""
    readers = [flow.steps[position] for position in flow.readers.get(slot, ()) if position < flow.end]
    if array.flags.c_contiguous:
        return True
    numbers = [(step.kernel.joins, n) for step in readers for n, read in enumerate(step.reads) if read == slot]
    return all(
        joins.calls is None or (joins.reads_view is not None and joins.reads_view(number, array))
        for joins, number in numbers
    )


def _view(step: Step, context: Context) -> View | None:
    constants = [None if slot < 0 else context.constants.get(slot) for slot in step.reads[1:]]
    known = all(slot < 0 or array is not None for slot, array in zip(step.reads[1:], constants))
    return View(step, tuple(constants)) if known else None


def _shown(value: Value) -> np.ndarray | None:
    """Return an array without contents for a Value, or None if its shape is unknown."""
    shape = value.shape.static
    if shape is None or 0 in shape:
        return None
    return np.empty(shape, np.byte)  # nothing fills its pages
