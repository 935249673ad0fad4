"""Join kernels of the same kind to one step, such as consecutive convolutions.

Kernels with ``Joins.chain`` compute the value between them piece by piece, so that it stays in the cache. Convolutions
that are left are computed in one call, in which the threads wait for single parts of each other's results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from irrun.opdef import Value
from irrun.planning.flow import Context, Flow
from irrun.planning.layout import is_copied
from irrun.planning.steps import Step

__all__ = ["chain_kernels", "join_sequences"]


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
    """Join convolutions and poolings whose results no other step reads into one step, at the last one's place."""
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    for last in reversed(range(flow.end)):
        if last not in steps or not _is_stage(steps[last]):
            continue
        group = _sequence_before(flow, steps, last)
        members = [steps[position] for position in sorted(group)]
        copies = {step.reads[0]: copy for step in members if (copy := _copy_before(flow, context, step)) is not None}
        if len(group) > 1 or _pads(members[0]):
            for position in {*group, *copies.values()}:
                del steps[position]
            sources = {slot: flow.steps[copy].reads[0] for slot, copy in copies.items()}
            steps[last] = _sequence(members, context.values, sources)
    return flow.replaced([steps[position] for position in sorted(steps)])


def _sequence_before(flow: Flow, steps: Mapping[int, Step], last: int) -> set[int]:
    """Return the stages whose results only they and ``last`` read, as positions in ``steps``, with ``last``."""
    group, waiting = {last}, [last]
    while waiting:
        for slot in flow.steps[waiting.pop()].reads:
            position = flow.made.get(slot, -1)
            is_new = position in steps and position not in group and _is_stage(steps[position])
            if is_new and group.issuperset(flow.readers[slot]):
                group.add(position)
                waiting.append(position)
    return group


def _copy_before(flow: Flow, context: Context, step: Step) -> int | None:
    """Return the position of the step that lays the channels of a picture last for this step alone, which pads it."""
    copy = flow.maker(step.reads[0])
    if not _pads(step) or copy is None or not is_copied(copy):
        return None
    is_f32 = context.values[copy.reads[0]].type.name == "f32"
    return flow.made[step.reads[0]] if is_f32 and flow.only_reader(step.reads[0]) is not None else None


def _pads(step: Step) -> bool:
    """Return whether a convolution pads its data first."""
    return bool(_stage(step).padded)


def _stage(step: Step) -> Any:
    """Return the stage of a single convolution or pooling."""
    (stage,) = step.kernel.joins.stages
    return stage


def _is_stage(step: Step) -> bool:
    """Return whether a step is a single convolution or pooling that can be a member of a sequence.

    Besides data, filters and residual, a transposed convolution may read the shape of its output.
    """
    return len(step.kernel.joins.stages) == 1 and len(step.reads) <= _parts(step) + 1 + (_stage(step).adds > 0)


def _parts(step: Step) -> int:
    """Return how many inputs hold the data of a single convolution or pooling. The filters follow."""
    return max(len(_stage(step).parts), 1)


def _sequence(steps: Sequence[Step], values: Sequence[Value], sources: Mapping[int, int]) -> Step:
    """Return one step that computes a sequence of convolutions and poolings.

    ``sources`` are the slots that hold the data of convolutions with its channels first, by the slots that these read.
    """
    from irrun.fast.convolution.sequences import Member, sequence

    number = {step.writes[0]: n for n, step in enumerate(steps)}
    parts = [_parts(step) for step in steps]
    reads = [slot for step, n in zip(steps, parts) for slot in (*step.reads[:n], *step.reads[n + 1 :])]
    reads = list(dict.fromkeys(slot for slot in reads if slot not in number))
    number |= {slot: -1 - n for n, slot in enumerate(reads)}
    outer = [sources.get(slot, slot) for slot in reads]
    members = [
        Member(
            _stage(step),
            tuple(number[slot] for slot in step.reads[:n]),
            number[step.reads[n + 1]] if _stage(step).adds else None,
            step.reads[0] in sources,
        )
        for step, n in zip(steps, parts)
    ]
    filters = [slot for step, n in zip(steps, parts) for slot in step.reads[n : n + 1]]
    shape = values[steps[-1].writes[0]].shape.static
    assert shape is not None
    positions = tuple(range(len(outer), len(outer) + len(filters)))
    kernel = sequence(members, shape[0], sum(step.kernel.flops for step in steps), len(outer), positions)
    layers = tuple(layer for step in steps for layer in step.layers)
    return replace(steps[-1], kernel=kernel, reads=(*outer, *filters), layers=layers, dynamic=False, own_inputs=False)
