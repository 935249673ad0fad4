"""Let kernels compute the steps after them: element-wise steps as an epilogue, and kernels of the same kind.

A kernel with ``Joins.with_epilogue`` applies bias, residual, clamp and an activation to its results before they leave
the cache. Kernels with ``Joins.chain`` compute the value between them piece by piece. The remaining element-wise steps
are fused as usual (``irrun.planning.fuse``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from irrun.opdef import Epilogue, Value
from irrun.planning.flow import Context, Flow, is_static
from irrun.planning.steps import Step

__all__ = ["absorb_followers", "chain_kernels", "join_sequences"]


# ---------------------------------------------------------------------------------------------
# epilogues


def absorb_followers(flow: Flow, context: Context) -> Flow:
    """Let kernels take over the element-wise steps after them; keep the remaining steps."""
    made = dict(flow.made)
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    for position, step in enumerate(flow.steps):
        with_epilogue = step.kernel.joins.with_epilogue
        if with_epilogue is None:
            continue
        epilogue, reads, layers, last = Epilogue(), step.reads, step.layers, step
        while (reader := flow.only_reader(last.writes[0])) is not None and reader in steps:
            then, own = steps[reader], last.writes[0]
            other = _other_input(then, own)
            extended = _extended(epilogue, then, own, other, context.values)
            if extended is None:
                break
            if extended.residual and not epilogue.residual:
                if made.get(other, -1) >= position:  # the residual is computed after this step
                    break
                reads = (*reads, other)
            epilogue, layers, last = extended, (*layers, *then.layers), then
            del steps[reader]
        if last is not step:
            kernel = with_epilogue(epilogue)
            steps[position] = replace(last, kernel=kernel, reads=reads, layers=layers, dynamic=False, own_inputs=False)
            made[last.writes[0]] = position
    return flow.replaced([steps[position] for position in sorted(steps)])


def _other_input(step: Step, own: int) -> int:
    """Return the slot that a step of two inputs reads besides ``own``, or -1 for another number of inputs."""
    return step.reads[1 - step.reads.index(own)] if len(step.reads) == 2 else -1


def _extended(epilogue: Epilogue, step: Step, own: int, other: int, values: Sequence[Value]) -> Epilogue | None:
    """Return the epilogue that also computes ``step``, or None if there is none.

    ``own`` is the slot of the results so far, and ``other`` the other input of ``step``, or -1.
    """
    if step.kernel.out != "elementwise" or not is_static(step, values):
        return None
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
    if formula[0] != "add" or other < 0 or values[other].type is not value.type:
        return None
    bias = _bias(values[other], value)
    if bias is not None:
        return replace(epilogue, bias=bias if epilogue.bias is None else epilogue.bias + bias)
    if epilogue.residual or values[other].shape != value.shape:
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


# ---------------------------------------------------------------------------------------------
# chains and sequences of convolutions


def chain_kernels(flow: Flow, context: Context) -> Flow:
    """Join pairs of kernels with the same ``Joins.chain`` to one step, in the place of the second.

    The pairs with the largest value between them come first. A pair may itself be the first or the second of another.
    """
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    joined: dict[int, int] = {}  # the place of the step into which a step has been joined
    between = [s.reads[0] for s in flow.steps if s.kernel.joins.stages and s.reads[0] in flow.made]
    for slot in sorted(between, key=lambda slot: -prod(context.values[slot].shape.static or ())):
        place, reader = flow.made[slot], flow.only_reader(slot)
        if reader is None:
            continue
        while reader in joined:
            reader = joined[reader]
        first, then = steps[place], steps[reader]
        chain = first.kernel.joins.chain
        if not first.kernel.joins.stages or chain is None or chain is not then.kernel.joins.chain:
            continue
        kernel = chain(first.kernel, then.kernel)
        if kernel is not None:
            del steps[place]
            joined[place] = reader
            reads, layers = (*first.reads, *then.reads[1:]), (*first.layers, *then.layers)
            steps[reader] = replace(then, kernel=kernel, reads=reads, layers=layers)
    return flow.replaced([steps[position] for position in sorted(steps)])


def join_sequences(flow: Flow, context: Context) -> Flow:
    """Join convolutions whose results no other step reads into one step, at the last one's place."""
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    for last in reversed(range(flow.end)):
        group = _sequence_before(flow, steps, last) if last in steps and _is_stage(steps[last]) else {last}
        if len(group) > 1:
            for position in group:
                del steps[position]
            steps[last] = _sequence([flow.steps[position] for position in sorted(group)], context.values)
    return flow.replaced([steps[position] for position in sorted(steps)])


def _sequence_before(flow: Flow, steps: Mapping[int, Step], last: int) -> set[int]:
    """Return the convolutions whose results only they and ``last`` read, as positions in ``steps``, with ``last``."""
    group, waiting = {last}, [last]
    while waiting:
        for slot in flow.steps[waiting.pop()].reads:
            position = flow.made.get(slot, -1)
            is_new = position in steps and position not in group and _is_stage(steps[position])
            if is_new and group.issuperset(flow.readers[slot]):
                group.add(position)
                waiting.append(position)
    return group


def _is_stage(step: Step) -> bool:
    """Return whether a step is a single convolution that can be a member of a sequence."""
    return len(step.kernel.joins.stages) == 1


def _sequence(steps: Sequence[Step], values: Sequence[Value]) -> Step:
    """Return one step that computes a sequence of convolutions."""
    from irrun.fast.convolution.sequences import Member, sequence

    number = {step.writes[0]: n for n, step in enumerate(steps)}
    reads = [slot for step in steps for n, slot in enumerate(step.reads) if n != 1 and slot not in number]
    outer = list(dict.fromkeys(reads))
    number |= {slot: -1 - n for n, slot in enumerate(outer)}
    members = [
        Member(
            step.kernel.joins.stages[0],
            number[step.reads[0]],
            number[step.reads[2]] if len(step.reads) > 2 else None,
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
