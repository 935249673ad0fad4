"""Let kernels compute the steps after them: element-wise steps as an epilogue, and kernels of the same kind.

A kernel with ``Joins.with_epilogue`` applies bias, residual, clamp and an activation to its results before they leave
the cache. Kernels with ``Joins.chain`` compute the value between them piece by piece. The remaining element-wise steps
are fused as usual (``irrun.planning.fuse``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from irrun.opdef import Epilogue, Value
from irrun.planning.steps import Step

__all__ = ["absorb"]


def absorb(steps: Sequence[Step], values: Sequence[Value], results: Sequence[int]) -> list[Step]:
    """Return the steps, of which some also compute those that follow them.

    ``values`` holds the Value of each slot, ``results`` the slots of the model's outputs.
    """
    made = {slot: position for position, step in enumerate(steps) for slot in step.writes}
    readers: dict[int, list[int]] = {slot: [-1] for slot in results}
    for position, step in enumerate(steps):
        for slot in step.reads:
            readers.setdefault(slot, []).append(position)
    new: list[Step | None] = list(steps)
    for position, step in enumerate(steps):
        if step.kernel.joins.with_epilogue is None:
            continue
        epilogue, reads, layers, last = Epilogue(), step.reads, step.layers, step
        place = made[step.writes[0]]
        while len(following := readers.get(last.writes[0], ())) == 1 and following[0] >= 0:
            then = new[following[0]]
            if then is None or not _is_static(then, values):
                break
            number = 1 - then.reads.index(last.writes[0]) if len(then.reads) == 2 else 0
            more = _extended(epilogue, then, number, last.writes[0], values)
            # a residual must be computed before
            if more is None or (more.residual > epilogue.residual and made.get(then.reads[number], -1) >= place):
                break
            reads = (*reads, then.reads[number]) if more.residual > epilogue.residual else reads
            epilogue, layers, last = more, (*layers, *then.layers), then
            new[following[0]] = None
        if last is not step:
            kernel = step.kernel.joins.with_epilogue(epilogue)
            new[position] = replace(last, kernel=kernel, reads=reads, layers=layers, dynamic=False, own_inputs=False)
            made[last.writes[0]] = position
    return _in_sequence(_chained([step for step in new if step is not None], values, results), values, results)


def _chained(steps: Sequence[Step], values: Sequence[Value], results: Sequence[int]) -> list[Step]:
    """Return the steps with chains of kernels as one step each, in the place of the last.

    The largest values between two kernels come first.
    """
    readers: dict[int, list[int]] = {slot: [-1] for slot in results}
    made: dict[int, int] = {}
    for position, step in enumerate(steps):
        for slot in step.reads:
            readers.setdefault(slot, []).append(position)
        made |= dict.fromkeys(step.writes, position)
    new: dict[int, Step] = dict(enumerate(steps))
    between = [step.reads[0] for step in steps if step.kernel.joins.stages and step.reads[0] in made]
    for slot in sorted(between, key=lambda slot: -prod(values[slot].shape.static or ())):
        (*_, reader), first = readers[slot], new[made[slot]]
        chain = first.kernel.joins.chain
        if len(readers[slot]) > 1 or reader < 0 or chain is None or chain is not new[reader].kernel.joins.chain:
            continue
        then = new[reader]
        kernel = chain(first.kernel, then.kernel) if first.kernel.joins.stages else None
        if kernel is not None:
            del new[made[slot]]
            for read in first.reads:
                readers[read] = [reader if position == made[slot] else position for position in readers[read]]
            reads, layers = (*first.reads, *then.reads[1:]), (*first.layers, *then.layers)
            new[reader] = replace(then, kernel=kernel, reads=reads, layers=layers)
    return [new[position] for position in sorted(new)]


def _in_sequence(steps: Sequence[Step], values: Sequence[Value], results: Sequence[int]) -> list[Step]:
    """Return the steps with convolutions that only each other read as one step, in the place of the last."""
    made = {slot: position for position, step in enumerate(steps) for slot in step.writes}
    readers: dict[int, set[int]] = {slot: {-1} for slot in results}
    for position, step in enumerate(steps):
        for slot in step.reads:
            readers.setdefault(slot, set()).add(position)
    new: dict[int, Step] = dict(enumerate(steps))
    for last in reversed(range(len(steps))):
        if last not in new or len(steps[last].kernel.joins.stages) != 1:
            continue
        group, waiting = {last}, [last]
        while waiting:
            for slot in steps[waiting.pop()].reads:
                position = made.get(slot, -1)
                known = position in group or position not in new or len(steps[position].kernel.joins.stages) != 1
                if not known and readers[slot] <= group:
                    group.add(position)
                    waiting.append(position)
        if len(group) > 1:
            for position in group:
                del new[position]
            new[last] = _sequence([steps[position] for position in sorted(group)], values)
    return [new[position] for position in sorted(new)]


def _sequence(steps: Sequence[Step], values: Sequence[Value]) -> Step:
    from irrun.fast.convolution.sequences import Member, sequence

    number = {step.writes[0]: n for n, step in enumerate(steps)}
    reads = [slot for step in steps for n, slot in enumerate(step.reads) if n != 1 and slot not in number]
    outer = list(dict.fromkeys(reads))
    number |= {slot: -1 - n for n, slot in enumerate(outer)}
    members = [
        Member(
            step.kernel.joins.stages[0], number[step.reads[0]], number[step.reads[2]] if len(step.reads) > 2 else None
        )
        for step in steps
    ]
    filters = [step.reads[1] for step in steps]
    shape = values[steps[-1].writes[0]].shape.static
    assert shape is not None
    positions = tuple(range(len(outer), len(outer) + len(filters)))
    kernel = sequence(members, shape[0], sum(step.kernel.flops for step in steps), len(outer), positions)
    layers = tuple(layer for step in steps for layer in step.layers)
    return replace(steps[-1], kernel=kernel, reads=(*outer, *filters), layers=layers, dynamic=False, own_inputs=False)


def _extended(epilogue: Epilogue, step: Step, number: int, own: int, values: Sequence[Value]) -> Epilogue | None:
    """Return the epilogue that also computes ``step``, or None if there is none.

    ``number`` is the input of ``step`` that is not ``own``, the slot of the results so far.
    """
    formula, value = step.kernel.joins.formula, values[own]
    result = values[step.writes[0]]
    if value.type is not result.type or value.shape != result.shape or epilogue.change is not None:
        return None
    if step.kernel.joins.change is not None:
        return replace(epilogue, change=step.kernel.joins.change)
    if formula is None or epilogue.limits is not None:
        return None
    if formula[0] == "clamp":
        return replace(epilogue, limits=(formula[1], formula[2]))
    other = values[step.reads[number]] if step.reads[number] >= 0 and step.reads[number] != own else None
    if formula[0] != "add" or other is None or other.type is not value.type:
        return None
    bias = _bias(other, value)
    if bias is not None:
        return replace(epilogue, bias=bias if epilogue.bias is None else epilogue.bias + bias)
    if epilogue.residual or other.shape != value.shape:
        return None
    return replace(epilogue, residual=True)


def _bias(constant: Value, value: Value) -> np.ndarray | None:
    """Return the numbers that a constant adds to each element of the last axis of ``value``, or None."""
    array, shape = constant.exact, value.shape.static
    if array is None or shape is None or not array.size:
        return None
    first = array.reshape(-1, array.shape[-1])[0] if array.ndim else array
    if not np.array_equal(np.broadcast_to(first, array.shape), array, equal_nan=True):
        return None
    return np.ascontiguousarray(np.broadcast_to(first, shape[-1:]))


def _is_static(step: Step, values: Sequence[Value]) -> bool:
    """Return whether a step is element-wise, with one output, static shapes and no keyword arguments."""
    slots = (*(slot for slot in step.reads if slot >= 0), *step.writes)
    static = all(values[slot].shape.is_static for slot in slots)
    return step.kernel.out == "elementwise" and len(step.writes) == 1 and not step.needed and static
