"""Join steps that are calls of machine code to one step, which does the calls in turn without Python between them.

A layer of a network in integers takes some microseconds, and Python between two of them as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from math import prod
from threading import local
from typing import Any, Final

import numpy as np

from irrun.kernels.blocks import placed, scratch
from irrun.opdef import Calls, Kernel, Packing, Value
from irrun.planning.flow import Context, Flow, is_static
from irrun.planning.steps import Step

__all__ = ["join_turns"]

_MAX_BETWEEN_BYTES: Final = 1 << 23
"""The most bytes of the values between the steps, which a thread keeps: they stay in the third-level cache. Calls with
larger values take so long that Python between them does not matter."""
_SMALL_BETWEEN_BYTES: Final = 1 << 20
"""The same for steps that are not short. Python between them does not matter, and this memory adds to that of a run."""
_MAX_SHORT_WORK: Final = 1 << 28
"""The most multiplications and additions of a short step: it takes half a millisecond."""
_SMALL_BYTES: Final = 1 << 14
"""The most bytes of a value that is made earlier than it has to be: others would stay in memory for longer."""
_MAX_PASSED: Final = 1 << 8
"""The most steps that a step comes before."""


def join_turns(flow: Flow, context: Context) -> Flow:
    """Join neighbouring steps whose kernels have ``Joins.calls``, if the values between them are not large.

    A step alone is joined with itself: then, a run does not prepare its calls again.
    """
    flow = flow.replaced(_gathered(flow.steps, context.values))
    steps: list[Step] = []
    runs = groupby(enumerate(flow.steps), lambda numbered: _may_join(flow, numbered[1]))
    for has_calls, run in runs:
        members = dict(run)
        steps += _all_joined(flow, members, context.values) if has_calls else members.values()
    return flow.replaced(steps)


def _all_joined(flow: Flow, members: Mapping[int, Step], values: Sequence[Value]) -> list[Step]:
    """Return one step for the members, or several if the values between them are large."""
    joined, half = _joined(flow, members, values), len(members) // 2
    if joined is not None:
        return [joined]
    parts = [*members.items()][:half], [*members.items()][half:]
    return [step for part in parts for step in _all_joined(flow, dict(part), values)]


def _has_calls(step: Step) -> bool:
    return step.kernel.joins.calls is not None


def _may_join(flow: Flow, step: Step) -> bool:
    """Return whether a step has calls, and no element-wise step changes its tiles as soon as they are ready."""
    reader = None if step.kernel.out != "tiles" else flow.only_reader(step.writes[0])
    return _has_calls(step) and (reader is None or flow.steps[reader].kernel.out != "elementwise")


def _gathered(steps: Sequence[Step], values: Sequence[Value]) -> list[Step]:
    """Return the steps in another order: small ones without calls come before those with calls, next to others."""
    gathered: list[Step] = []
    for step in steps:
        at = place = len(gathered)
        if (
            not _has_calls(step)
            and step.op.pure
            and is_static(step, values)
            and _bytes_made(step, values) <= _SMALL_BYTES
        ):
            while place > max(0, at - _MAX_PASSED) and _passes(step, gathered[place - 1]):
                place -= 1
            at = place if place == 0 or not _has_calls(gathered[place - 1]) else at
        gathered.insert(at, step)
    return gathered


def _passes(step: Step, other: Step) -> bool:
    """Return whether a step may come before another one, which has calls."""
    return _has_calls(other) and not {*other.writes} & {*step.reads}


def _joined(flow: Flow, members: Mapping[int, Step], values: Sequence[Value]) -> Step | None:
    """Return one step for the members, which have these positions, or None if much is between several of them."""
    programs = [_Member.of(step) for step in members.values()]
    made = {member.write: n for n, member in enumerate(programs)}
    last = {slot: n for n, member in enumerate(programs) for slot in (*member.given, member.write)}
    writes = [slot for slot in made if not members.keys() >= {*flow.readers.get(slot, (flow.end,))}]
    between = [slot for slot in made if slot not in writes]
    reads = dict.fromkeys(slot for member in programs for slot in member.given if slot not in made)
    spares = [member.kernel.joins for member in programs]
    lives = [(_bytes(values[slot]), made[slot], last[slot]) for slot in between]
    for n, joins in enumerate(spares):
        first, end = (0, len(programs)) if joins.checked else (n, n)
        lives.append((joins.spare_bytes, first, end))
    order = sorted(range(len(lives)), key=lambda n: lives[n][1])
    found, size = placed([lives[n] for n in order])
    places = [place for _, place in sorted(zip(order, found))]
    flops = sum(step.kernel.flops for step in members.values())
    is_short = flops <= _MAX_SHORT_WORK * len(members)
    if size > (_MAX_BETWEEN_BYTES if is_short else _SMALL_BETWEEN_BYTES) and len(members) > 1:
        return None
    known = {slot: (_shape(values[slot]), values[slot].type.dtype) for slot in made}
    memory = {slot: _Place(place, *known[slot]) for slot, place in zip(between, places)}
    bytes = np.dtype(np.uint8)
    spare = [_Place(place, (joins.spare_bytes,), bytes) for place, joins in zip(places[len(between) :], spares)]
    wholes = tuple(known[slot] for slot in writes)
    work = flops + sum(_bytes_made(step, values) for step in members.values())
    turns = _Turns(programs, tuple(reads), tuple(writes), wholes, memory, spare, size, work)
    packed = [step.reads[n] for step in members.values() for n in step.kernel.packing.inputs]
    positions = tuple(range(len(reads), len(reads) + len(packed)))
    kernel = Kernel(
        turns.call,
        "compiled in turn" if len(programs) > 1 else programs[0].kernel.algorithm,
        out="whole",
        flops=flops,
        packing=Packing(positions, sum(step.kernel.packing.bytes for step in members.values())),
    )
    layers = tuple(layer for step in members.values() for layer in step.layers)
    last_step = replace(members[max(members)], kernel=kernel, layers=layers, dynamic=False, own_inputs=False)
    return replace(last_step, reads=(*reads, *packed), writes=tuple(writes))


def _shape(value: Value) -> tuple[int, ...]:
    shape = value.shape.static
    assert shape is not None
    return shape


def _bytes(value: Value) -> int:
    return prod(_shape(value)) * value.type.dtype.itemsize


def _bytes_made(step: Step, values: Sequence[Value]) -> int:
    return sum(_bytes(values[slot]) for slot in step.writes)


@dataclass(frozen=True, slots=True)
class _Member:
    """A step: its kernel, the slots that it reads, with None for what the kernel holds, and the one that it fills."""

    kernel: Kernel
    reads: tuple[int | None, ...]
    write: int

    @staticmethod
    def of(step: Step) -> _Member:
        held = step.kernel.packing.inputs
        reads = (None if n in held or slot < 0 else slot for n, slot in enumerate(step.reads))
        return _Member(step.kernel, tuple(reads), step.writes[0])

    @property
    def given(self) -> list[int]:
        return [slot for slot in self.reads if slot is not None]

    def calls(self, arrays: Mapping[int, np.ndarray], spare: np.ndarray) -> Calls:
        """Return the calls for the arrays of the slots."""
        assert self.kernel.joins.calls is not None
        return self.kernel.joins.calls(*self.inputs(arrays), out=arrays[self.write], spare=spare)

    def compute(self, arrays: Mapping[int, np.ndarray]) -> None:
        """Fill the array of the slot without calls."""
        self.kernel.call(*self.inputs(arrays), out=arrays[self.write])

    def inputs(self, arrays: Mapping[int, np.ndarray]) -> list[np.ndarray | None]:
        return [None if slot is None else arrays[slot] for slot in self.reads]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value begins in scratch memory, its shape and its dtype."""

    begin: int
    shape: tuple[int, ...]
    dtype: np.dtype

    def of(self, memory: np.ndarray) -> np.ndarray:
        end = self.begin + prod(self.shape) * self.dtype.itemsize
        return memory[self.begin : end].view(self.dtype).reshape(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class _Turns:
    """Steps in turn, with the slots that they read and fill, the shape and dtype of what they fill, and their work.

    The values between them, and the ``spare`` memory of each, are in ``size`` bytes of scratch memory.
    """

    members: Sequence[_Member]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    wholes: tuple[tuple[tuple[int, ...], np.dtype], ...]
    between: Mapping[int, _Place]
    spare: Sequence[_Place]
    size: int
    work: int
    kept: local = field(default_factory=local)
    """What each thread has ``prepared``."""

    def call(self, *arrays: np.ndarray, out: Any = None) -> Any:
        """The kernel. Inputs after those of ``reads`` are constants that the members hold packed."""
        if out is None:
            wholes = [np.empty(shape, dtype) for shape, dtype in self.wholes]
        else:
            wholes = [out] if len(self.writes) == 1 else list(out)
        given = {slot: np.ascontiguousarray(array) for slot, array in zip(self.reads, arrays)}
        given |= dict(zip(self.writes, wholes))
        memory, prepared = scratch(0, np.dtype(np.uint8), self.size), getattr(self.kept, "prepared", None)
        if prepared is None or not prepared.is_in(memory):
            prepared = self.kept.prepared = _Prepared(self, memory)
        if not prepared(given):
            apart = np.empty(self.size, np.uint8)  # the kernels use scratch memory
            for member in self.members:
                member.compute(self.arrays(member, given, apart))
        return wholes[0] if len(wholes) == 1 else tuple(wholes)

    def arrays(
        self, member: _Member, given: Mapping[int, np.ndarray], memory: np.ndarray
    ) -> Mapping[int, np.ndarray]:  # fmt: skip
        """Return the arrays of the slots of a member, from those of a run and from scratch memory."""
        slots = (*member.given, member.write)
        return {slot: given[slot] if slot in given else self.between[slot].of(memory) for slot in slots}


class _Prepared:
    """The calls of steps in turn, with values between them in ``memory``.

    A run prepares the calls of a member again if its arrays are at other addresses than in the run before.
    """

    def __init__(self, turns: _Turns, memory: np.ndarray) -> None:
        self.turns, self.memory = turns, memory
        slots = [[s for s in (*member.given, member.write) if s not in turns.between] for member in turns.members]
        self.slots, self.addresses = slots, [[-1] * len(own) for own in slots]
        self.first: list[int] = []
        self.held: list[list[np.ndarray]] = [[] for _ in slots]
        self.in_turn: Any = None
        checked = [n for n, member in enumerate(turns.members) if member.kernel.joins.checked]
        self.faults = [turns.spare[n].of(memory)[:8].view(np.int64) for n in checked]

    def is_in(self, memory: np.ndarray) -> bool:
        return self.memory.__array_interface__["data"] == memory.__array_interface__["data"]

    def __call__(self, given: Mapping[int, np.ndarray]) -> bool:
        """Do the calls with the arrays of a run. Return whether the results are right."""
        from irrun.fast.machine.memory import data_address
        from irrun.fast.machine.sharing import InTurn

        addresses = [[data_address(given[slot]) for slot in own] for own in self.slots]
        if self.in_turn is None:
            calls = [self.calls(n, given) for n in range(len(addresses))]
            self.first = [*accumulate((len(own) for own in calls), initial=0)]
            self.in_turn = InTurn([call for own in calls for call in own], self.turns.work)
        elif addresses != self.addresses:
            for n, (found, before) in enumerate(zip(addresses, self.addresses)):
                if found != before:
                    self.in_turn.replace(self.first[n], self.calls(n, given))
        self.addresses = addresses
        for fault in self.faults:
            fault[0] = 0
        self.in_turn()
        return not any(fault[0] for fault in self.faults)

    def calls(self, n: int, given: Mapping[int, np.ndarray]) -> Calls:
        """Return the calls of a member, and hold the arrays that are theirs alone."""
        turns, member = self.turns, self.turns.members[n]
        arrays = turns.arrays(member, given, self.memory)
        calls = member.calls(arrays, turns.spare[n].of(self.memory))
        used = [one for call in calls for one in call.arguments if isinstance(one, np.ndarray)]
        self.held[n] = [one for one in used if one.flags.owndata and not any(one is other for other in arrays.values())]
        return calls
