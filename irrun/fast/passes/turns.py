"""Join steps that are calls of machine code to one step, which does the calls in turn without Python between them.

A layer of a network in integers takes some microseconds, and Python between two of them as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby
from math import prod
from typing import Final

import numpy as np

from irrun.fast.passes.calling import Member, Place, Turns, bytes_of
from irrun.fast.passes.row_groups import alone
from irrun.fast.passes.views import View, may_view, views_in
from irrun.kernels.blocks import placed
from irrun.model import Layer
from irrun.opdef import Joins, Kernel, Packing, Value
from irrun.planning.flow import Context, Flow
from irrun.planning.layout import Moving
from irrun.planning.steps import Step

__all__ = ["gather_calls", "join_turns"]

_MAX_BETWEEN_BYTES: Final = 1 << 25
"""The most bytes of the values between the steps, which a thread keeps. Calls with larger values take so long that
Python between them does not matter."""
_MAX_WORK: Final = 1 << 37
"""The most multiplications and additions of several steps: between steps, a run can be interrupted, and looks at its
deadline. A core takes some tenths of a second for them with tiles, and some seconds with AVX2."""
_WORK_PER_BYTE: Final = 4
"""The time that a byte of a result takes beside products, in units of ``threads.WORTH``."""
_SMALL_BYTES: Final = 1 << 14
"""The most bytes of a value that is made earlier than it has to be: others would stay in memory for longer."""
_COPIED_BYTES: Final = 1 << 17
"""The most bytes of an input or output that is copied, so that the calls need not be prepared for where it is."""
_MAX_PASSED: Final = 1 << 8
"""The most steps that a step comes before."""


def gather_calls(flow: Flow, context: Context) -> Flow:
    """Let small steps without calls come before those with calls, next to others, so that fewer runs are cut."""
    gathered: list[Step] = []
    for step in flow.steps:
        at = place = len(gathered)
        if not _has_calls(step) and _is_small(step, context.values):
            while place > max(0, at - _MAX_PASSED) and _passes(step, gathered[place - 1]):
                place -= 1
            at = place if place == 0 or not _has_calls(gathered[place - 1]) else at
        gathered.insert(at, step)
    return flow.replaced(gathered)


def join_turns(flow: Flow, context: Context) -> Flow:
    """Join neighbouring steps whose kernels have ``Joins.calls``, if the values between them are not large.

    A step alone is joined with itself: then, a run does not prepare its calls again.
    """
    flow = gather_calls(_with_calls(flow, context), context)
    views = views_in(flow, context)

    def joins(position: int) -> bool:
        step = flow.steps[position]
        # calls are prepared for known shapes; Begin alone reads others, in each run
        slots = step.writes if step.kernel.joins.begin is not None else (*step.writes, *step.reads)
        is_static = all(context.values[slot].shape.is_static for slot in slots if slot >= 0)
        return position in views or (_has_calls(step) and is_static)

    steps: list[Step] = []
    for may_join, positions in groupby(range(flow.end), joins):
        run = [*positions]
        steps += _all_joined(flow, run, views, context) if may_join else [flow.steps[n] for n in run]
    return flow.replaced(steps)


def _with_calls(flow: Flow, context: Context) -> Flow:
    """Return the flow in which copies of runs, and element-wise steps for which there is machine code, have calls."""
    from irrun.fast.copying import copied_in_calls, turned_in_calls

    steps: list[Step] = []
    for step in flow.steps:
        kernel, value = step.kernel, context.values[step.writes[0]] if step.writes else None
        if value is not None and kernel.out == "elementwise":
            step = alone(step, context.values)
        elif value is not None and isinstance(step.op, Moving) and step.op.order and kernel.out == "whole":
            step = replace(
                step, kernel=turned_in_calls(kernel, value.shape.static or (), value.type.dtype, step.op.first)
            )
        elif value is not None:
            step = replace(step, kernel=copied_in_calls(kernel, value.type.dtype))
        steps.append(step)
    return flow.replaced(steps)


def _all_joined(flow: Flow, run: Sequence[int], views: Mapping[int, View], context: Context) -> list[Step]:
    """Return one step for the steps at these positions, or several if the values between them are large.

    Behind it are the steps that give views which others read.
    """
    inner, after = _parted(flow, run, views)
    calls = [position for position in inner if position not in views]
    if not calls:
        return [flow.steps[position] for position in run]
    joined = _joined(flow, inner, after, views, context)
    if joined is not None:
        return [joined, *(flow.steps[position] for position in after)]
    half = run.index(calls[len(calls) // 2])
    while half and run[half - 1] in views:  # views are next to what reads them
        half -= 1
    half = half or run.index(calls[0]) + 1
    return [step for part in (run[:half], run[half:]) for step in _all_joined(flow, part, views, context)]


def _parted(flow: Flow, run: Sequence[int], views: Mapping[int, View]) -> tuple[list[int], list[int]]:
    """Return the positions of steps to join, and of the views among them that other steps read, which may be both."""
    members, inner, after = {*run}, {position for position in run if position not in views}, set[int]()
    for position in reversed(run):
        if position in views:
            readers = {reader for slot in flow.steps[position].writes for reader in flow.readers.get(slot, ())}
            inner |= {position} if readers & inner else set()
            after |= {position} if readers - members or readers & after or not readers else set()
    return sorted(inner), sorted(after)


def _has_calls(step: Step) -> bool:
    return step.kernel.joins.calls is not None


def _is_small(step: Step, values: Sequence[Value]) -> bool:
    """Return whether a step gives one value of few bytes, or a mask or indices, whose size may be unknown."""
    if not step.op.pure or step.needed or len(step.writes) != 1:
        return False
    type, shape = values[step.writes[0]].type, values[step.writes[0]].shape
    return (
        bytes_of(step.writes, values) <= _SMALL_BYTES if shape.is_static else type.kind == "boolean" or type.is_integer
    )


def _passes(step: Step, other: Step) -> bool:
    """Return whether a step may come before another one, which has calls or may return a view."""
    return (_has_calls(other) or may_view(other)) and not {*other.writes} & {*step.reads}


def _joined(
    flow: Flow, inner: Sequence[int], after: Sequence[int], views: Mapping[int, View], context: Context
) -> Step | None:
    """Return one step for the steps at the positions ``inner``, or None if much is between several of them.

    The views ``after`` are steps behind it.
    """
    members = {position: flow.steps[position] for position in inner if position not in views}
    seen = [views[position] for position in inner if position in views]
    values, own = context.values, {*inner} - {*after}
    of_members = _layers(flow, inner, own, views)
    programs = [Member.of(step, layers, values) for step, layers in zip(members.values(), of_members)]
    made = {slot: n for n, member in enumerate(programs) for slot in member.writes}
    roots: dict[int, int] = {}
    """The slot of the value that each view shows."""
    for view in seen:
        source = view.step.reads[0]
        roots |= dict.fromkeys(view.step.writes, roots.get(source, source))
    last = {roots.get(slot, slot): n for n, member in enumerate(programs) for slot in member.slots}
    constants = {slot: context.constants[slot] for slot in last if slot in context.constants}
    held = {slot: array for slot, array in constants.items() if array.flags.c_contiguous and array.flags.aligned}
    reads = tuple(slot for slot in last if slot not in made and slot not in held)
    writes = [slot for slot in made if not own >= {*flow.readers.get(slot, (flow.end,))}]
    known = {
        slot: (shape, values[slot].type.dtype) for slot in last if (shape := values[slot].shape.static) is not None
    }
    sizes = {slot: prod(shape) * dtype.itemsize for slot, (shape, dtype) in known.items()}
    copied = [slot for slot in (*reads, *writes) if slot not in constants]
    copied = [slot for slot in copied if slot in known and sizes[slot] <= _COPIED_BYTES and values[slot].type.bits]
    between = [*(slot for slot in made if slot not in writes), *copied]
    ends = last | dict.fromkeys(writes, len(programs))
    lives = [(sizes[slot], made.get(slot, 0), ends[slot]) for slot in between]
    for n, joins in enumerate(member.step.kernel.joins for member in programs):
        first, end = (0, len(programs)) if joins.checked else (n, n)
        lives.append((joins.spare_bytes if joins.begin is None else 0, first, end))
    order = sorted(range(len(lives)), key=lambda n: lives[n][1])
    found, size = placed([lives[n] for n in order])
    places = [place for _, place in sorted(zip(order, found))]
    flops = sum(step.kernel.flops for step in members.values())
    if (size > _MAX_BETWEEN_BYTES or flops > _MAX_WORK) and len(members) > 1:
        return None
    memory = {slot: Place(place, *known[slot]) for slot, place in zip(between, places)}
    bytes = np.dtype(np.uint8)
    spare = [Place(place, (live[0],), bytes) for place, live in zip(places[len(between) :], lives[len(between) :])]
    wholes = tuple(known[slot] for slot in writes)
    work = flops + _WORK_PER_BYTE * sum(bytes_of(step.writes, values) for step in members.values())
    unknown = frozenset(last.keys() - known.keys())
    turns = Turns(programs, seen, roots, held, reads, unknown, tuple(writes), wholes, memory, spare, size, work)
    packed = [step.reads[n] for step in members.values() for n in step.kernel.packing.inputs]
    behind = len(reads) + len(held)
    positions = tuple(range(behind, behind + len(packed)))
    kernel = Kernel(
        turns.call,
        "compiled in turn" if len(programs) > 1 else programs[0].step.kernel.algorithm,
        out="whole",
        flops=flops,
        joins=Joins(spare_bytes=size),
        packing=Packing(positions, sum(step.kernel.packing.bytes for step in members.values())),
    )
    return replace(
        members[max(members)],
        kernel=kernel,
        reads=reads,
        holds=(*held, *packed),
        writes=tuple(writes),
        layers=tuple({id(layer): layer for program in programs for layer in program.layers}.values()),
        needed={name: value for step in members.values() for name, value in step.needed.items()},
        grows=tuple(pair for step in members.values() for pair in step.grows),
        dynamic=False,
        own_inputs=False,
        parts=turns.parts if len(programs) > 1 else None,
    )


def _layers(flow: Flow, inner: Sequence[int], own: Set[int], views: Mapping[int, View]) -> list[list[Layer]]:
    """Return the layers of each step with calls, and of the views before it."""
    layers: list[list[Layer]] = [[]]
    for position in inner:
        layers[-1] += flow.steps[position].layers if position in own else ()
        if position not in views:
            layers.append([])
    return layers[:-1]
