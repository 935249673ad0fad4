"""Join steps that are calls of machine code to one step, which does the calls in turn without Python between them.

A layer of a network in integers takes some microseconds, and Python between two of them as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import prod
from threading import local
from typing import Any, Final

import numpy as np

from irrun.kernels.blocks import placed, scratch
from irrun.opdef import Call, Calls, Kernel, Packing, Value
from irrun.planning.flow import Context, Flow
from irrun.planning.steps import Step

__all__ = ["join_turns"]

_MAX_BETWEEN_BYTES: Final = 1 << 23
"""The most bytes of the values between the steps, which a thread keeps: they stay in the third-level cache. Calls with
larger values take so long that Python between them does not matter."""
_MAX_PREPARED_WORK: Final = 1 << 24
"""The most multiplications and additions of a step for which Python between steps matters, if most of their calls are
prepared anew in each run."""
_FASTER: Final = 4
"""How many times as fast a product of bytes is as one of f32, by which work is measured."""


def join_turns(flow: Flow, context: Context) -> Flow:
    """Join neighbouring steps whose kernels have ``Joins.calls``, if the values between them are not large."""
    steps: list[Step] = []
    runs = groupby(enumerate(flow.steps), lambda numbered: numbered[1].kernel.joins.calls is not None)
    for has_calls, run in runs:
        members = dict(run)
        joined = _joined(flow, members, context.values) if has_calls and len(members) > 1 else None
        steps += members.values() if joined is None else (joined,)
    return flow.replaced(steps)


def _joined(flow: Flow, members: Mapping[int, Step], values: Sequence[Value]) -> Step | None:
    """Return one step for the members, which have these positions, or None if that would not save time."""
    programs = [_Member.of(step) for step in members.values()]
    made = {member.write: n for n, member in enumerate(programs)}
    last = {slot: n for n, member in enumerate(programs) for slot in (*member.given, member.write)}
    writes = [slot for slot in made if not members.keys() >= {*flow.readers.get(slot, (flow.end,))}]
    between = [slot for slot in made if slot not in writes]
    reads = dict.fromkeys(slot for member in programs for slot in member.given if slot not in made)
    places, size = placed([(_bytes(values[slot]), made[slot], last[slot]) for slot in between])
    if size > _MAX_BETWEEN_BYTES:
        return None
    flops = sum(step.kernel.flops for step in members.values())
    prepared = sum(not {*between} >= {*member.given, member.write} for member in programs)
    if 2 * prepared > len(programs) and flops > _MAX_PREPARED_WORK * len(programs):
        return None
    known = {slot: (_shape(values[slot]), values[slot].type.dtype) for slot in made}
    memory = {slot: _Place(place, *known[slot]) for slot, place in zip(between, places)}
    wholes = tuple(known[slot] for slot in writes)
    turns = _Turns(programs, tuple(reads), tuple(writes), wholes, memory, size, flops // _FASTER)
    packed = [step.reads[n] for step in members.values() for n in step.kernel.packing.inputs]
    positions = tuple(range(len(reads), len(reads) + len(packed)))
    kernel = Kernel(
        turns.call,
        "integers in turn",
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


@dataclass(frozen=True, slots=True)
class _Member:
    """A step: its calls, the slots that it reads, with None for what the kernel holds, and the one that it fills."""

    calls: Callable[..., Calls]
    reads: tuple[int | None, ...]
    write: int

    @staticmethod
    def of(step: Step) -> _Member:
        kernel = step.kernel
        assert kernel.joins.calls is not None
        reads = (None if n in kernel.packing.inputs else slot for n, slot in enumerate(step.reads))
        return _Member(kernel.joins.calls, tuple(reads), step.writes[0])

    @property
    def given(self) -> list[int]:
        return [slot for slot in self.reads if slot is not None]

    def calls_of(self, arrays: Mapping[int, np.ndarray]) -> Calls:
        """Return the calls for the arrays of the slots."""
        return self.calls(*(None if slot is None else arrays[slot] for slot in self.reads), out=arrays[self.write])


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

    The values between them are in ``size`` bytes of scratch memory.
    """

    members: Sequence[_Member]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    wholes: tuple[tuple[tuple[int, ...], np.dtype], ...]
    between: Mapping[int, _Place]
    size: int
    work: int
    kept: local = field(default_factory=local)
    """What each thread has prepared: the calls ``in_turn``, for scratch memory at the address ``begin``, and the number
    of the first call of each of the ``outer`` members, which read or fill arrays that every run has anew."""

    def call(self, *arrays: np.ndarray, out: Any = None) -> Any:
        """The kernel. Inputs after those of ``reads`` are constants that the members hold packed."""
        if out is None:
            wholes = [np.empty(shape, dtype) for shape, dtype in self.wholes]
        else:
            wholes = [out] if len(self.writes) == 1 else list(out)
        given = {**dict(zip(self.reads, arrays)), **dict(zip(self.writes, wholes))}
        memory, kept = scratch(0, np.dtype(np.uint8), self.size), self.kept
        begin = memory.__array_interface__["data"][0]
        if getattr(kept, "begin", None) == begin:
            calls = [member.calls_of(self.arrays(member, given, memory)) for member, _ in kept.outer]
            for (_, first), own in zip(kept.outer, calls):
                kept.in_turn.replace(first, own)
        else:
            calls = self.prepare(given, memory)
            kept.begin = begin
        kept.in_turn()
        del calls  # the threads have read their arrays
        return wholes[0] if len(wholes) == 1 else tuple(wholes)

    def prepare(self, given: Mapping[int, np.ndarray], memory: np.ndarray) -> Sequence[Call]:
        """Prepare all calls, and return them."""
        from irrun.fast.machine.sharing import InTurn

        calls: list[Call] = []
        self.kept.outer = []
        for member in self.members:
            if not self.between.keys() >= {*member.given, member.write}:
                self.kept.outer.append((member, len(calls)))
            calls += member.calls_of(self.arrays(member, given, memory))
        self.kept.in_turn = InTurn(calls, self.work)
        return calls

    def arrays(
        self, member: _Member, given: Mapping[int, np.ndarray], memory: np.ndarray
    ) -> Mapping[int, np.ndarray]:  # fmt: skip
        """Return the arrays of the slots of a member, from those of a run and from scratch memory."""
        slots = (*member.given, member.write)
        return {slot: given[slot] if slot in given else self.between[slot].of(memory) for slot in slots}
