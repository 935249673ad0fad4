"""Merge steps that only move the elements of a value, such as a Transpose, or the windows that Roll and Reshape cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from irrun.kernels.copies import Reshaped, moving
from irrun.opdef import Kernel, Value
from irrun.planning.flow import Context, Flow
from irrun.planning.layout import Moving
from irrun.planning.steps import Step

__all__ = ["merge_views"]

_MAX_ELEMENTS: Final = 1 << 22
"""The most elements of a value for which the planner follows each of them. In larger ones, steps take much longer than
the calls between them."""


def merge_views(flow: Flow, context: Context) -> Flow:
    """Replace each chain of steps that only move elements by a reshape, by a view, or by one copy and a view.

    All shapes of the chain are static, and only the next step of the chain reads a value within it. Chains that begin
    with one value and end in one Concat are a single copy.
    """
    flow = _merge_gathers(flow, context.values)
    seen: set[int] = set()
    gone: set[int] = set()
    merged: dict[int, Step] = {}
    for last in reversed(range(flow.end)):
        if last in seen or not _moves(flow.steps[last], context.values):
            continue
        chain = _chain(flow, last, context.values)
        seen.update(chain)
        while chain:  # what is left of it before the steps that are merged, or the step that is not, is another one
            count, step = _merged([flow.steps[position] for position in chain], context.values)
            if step is not None:
                merged[chain[-1]] = step
                gone.update(chain[-count:-1])
            chain = chain[:-count]
    return flow.replaced([merged.get(n, step) for n, step in enumerate(flow.steps) if n not in gone])


def _merge_gathers(flow: Flow, values: Sequence[Value]) -> Flow:
    """Replace each Concat of parts of one value by a copy, with the steps that take these parts."""
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    for position, step in enumerate(flow.steps):
        if step.op.gathers and step.own_inputs and not step.needed and not step.dynamic:
            parts = _parts(flow, position, values)
            merged = _gathered(flow, sorted(parts), position, values) if parts else None
            if merged is not None:
                for part in parts:
                    del steps[part]
                steps[position] = merged
    return flow.replaced([steps[position] for position in sorted(steps)])


def _parts(flow: Flow, position: int, values: Sequence[Value]) -> set[int]:
    """Return the positions of steps that move elements for no other step than the one at ``position``."""
    found: set[int] = set()
    waiting = [*flow.steps[position].reads]
    while waiting:
        maker = flow.made.get(waiting.pop())
        if maker is not None and maker not in found and _moves(flow.steps[maker], values):
            found.add(maker)
            waiting.append(flow.steps[maker].reads[0])
    inside = {*found, position}
    while outside := {n for n in found if not inside.issuperset(flow.readers[flow.steps[n].writes[0]])}:
        found -= outside
        inside -= outside
    return found


def _gathered(flow: Flow, parts: Sequence[int], position: int, values: Sequence[Value]) -> Step | None:
    """Return the step that computes ``parts`` and the step after them at ``position``, if they read one value alone."""
    members = [flow.steps[n] for n in (*parts, position)]
    made = {step.writes[0] for step in members}
    sources = {step.reads[0] for step in members[:-1]} - made | {*members[-1].reads} - made
    if len(sources) != 1:
        return None
    (source,) = sources
    shape, type = values[source].shape.static, values[source].type
    count = prod(shape or ())
    if shape is None or type.kind in ("string", "dynamic") or not 0 < count <= _MAX_ELEMENTS:
        return None
    places = {source: np.arange(count, dtype=np.int32).reshape(shape)}
    for step in members[:-1]:
        (places[step.writes[0]],) = _after([step], values, places[step.reads[0]])
    moved = members[-1].op.run(*[places[slot] for slot in members[-1].reads])
    kernel = moving(moved, count, type.dtype.itemsize)
    return None if kernel is None else replace(_joined(members, kernel), reads=(source,))


def _chain(flow: Flow, last: int, values: Sequence[Value]) -> list[int]:
    """Return the positions of the steps that move elements and end with ``last``, each read by the next one alone."""
    chain = [last]
    while True:
        slot = flow.steps[chain[0]].reads[0]
        before = flow.made.get(slot)
        if before is None or flow.only_reader(slot) is None or not _moves(flow.steps[before], values):
            return chain
        chain.insert(0, before)


def _moves(step: Step, values: Sequence[Value]) -> bool:
    """Return whether a step only moves the elements of its first input, by shapes and constants."""
    if step.op.outputs != 1 or step.needed or not (step.own_inputs or isinstance(step.op, Moving)):
        return False
    static = all(values[slot].shape.is_static for slot in (step.reads[0], step.writes[0]))
    if not static or not all(slot < 0 or values[slot].data is not None for slot in step.reads[1:]):
        return False
    return step.op.moves([None if slot < 0 else values[slot] for slot in step.reads])


def _merged(steps: Sequence[Step], values: Sequence[Value]) -> tuple[int, Step | None]:
    """Return how many of the last steps of a chain one step may replace, and this step; 1 and None if there is none."""
    first = values[steps[0].reads[0]]
    shape = first.shape.static
    assert shape is not None
    if first.type.kind in ("string", "dynamic") or not prod(shape):
        return 1, None
    whole = np.empty(shape, np.byte)  # nothing reads its contents, nor fills its pages
    moved = _after(steps, values, whole)
    copies = [n for n, data in enumerate(moved) if not np.may_share_memory(data, moved[n - 1] if n else whole)]
    if copies:
        count, step = len(steps) - 1 - copies[-1], None
        if count:
            return _merged(steps[-count:], values)
        if whole.size <= _MAX_ELEMENTS:
            step = _copy(steps, values, shape, first.type.dtype.itemsize)
        return (1 if step is None else len(steps)), step
    for start in range(len(steps)):
        begin = moved[start - 1] if start else whole
        if _keeps_order(begin, moved[-1]):
            return len(steps) - start, _reshape(steps[start:], values)
        if start < len(steps) - 1 and steps[-1].op.views == "strided" and _keeps_order(begin, moved[-2]):
            return len(steps) - start, _view(steps[start:], values)
    return 1, None


def _after(steps: Sequence[Step], values: Sequence[Value], data: np.ndarray) -> list[np.ndarray]:
    """Return what ``data`` is after each step."""
    after: list[np.ndarray] = []
    for step in steps:
        data = step.op.run(data, *[None if slot < 0 else values[slot].exact for slot in step.reads[1:]])
        after.append(data)
    return after


def _keeps_order(data: np.ndarray, view: np.ndarray) -> bool:
    """Return whether a view of data has the same elements in the same order."""
    same = view.__array_interface__["data"] == data.__array_interface__["data"] and view.size == data.size
    return same and view.flags.c_contiguous and data.flags.c_contiguous


def _joined(steps: Sequence[Step], kernel: Kernel) -> Step:
    """Return the step that computes a chain by a kernel of its first input."""
    layers = tuple(layer for step in steps for layer in step.layers)
    return replace(steps[-1], kernel=kernel, reads=steps[0].reads[:1], dynamic=False, layers=layers, own_inputs=False)


def _reshape(steps: Sequence[Step], values: Sequence[Value]) -> Step:
    """Return the step that gives the first input of a chain the shape of its last output."""
    return _joined(steps, Kernel(Reshaped(values[steps[-1].writes[0]].shape.static or ())))


def _view(steps: Sequence[Step], values: Sequence[Value]) -> Step:
    """Return the step that reshapes the first input of a chain, and returns the last step's view of it."""
    *_, last = steps
    shape, call = values[last.reads[0]].shape.static, last.kernel.call
    constants = [None if slot < 0 else values[slot].exact for slot in last.reads[1:]]
    return _joined(steps, Kernel(lambda data: call(data.reshape(shape), *constants)))


def _copy(steps: Sequence[Step], values: Sequence[Value], shape: tuple[int, ...], itemsize: int) -> Step | None:
    """Return the step that copies each run of elements to its place, or None if the runs are short."""
    count = prod(shape)
    moved = _after(steps, values, np.arange(count, dtype=np.int32).reshape(shape)).pop()
    kernel = moving(moved, count, itemsize)
    return None if kernel is None else _joined(steps, kernel)
