"""Join steps that are calls of machine code to one step, which does the calls in turn without Python between them.

A layer of a network in integers takes some microseconds, and Python between two of them as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from math import prod
from threading import local
from typing import Any, Final, NamedTuple

import numpy as np

from irrun.kernels.blocks import placed, scratch
from irrun.opdef import Begin, Calls, Kernel, Packing, Together, Value, Variables
from irrun.planning.failures import blamed
from irrun.planning.flow import Context, Flow
from irrun.planning.steps import Step

__all__ = ["gather_calls", "join_turns"]

_MAX_BETWEEN_BYTES: Final = 1 << 23
"""The most bytes of the values between the steps, which a thread keeps: they stay in the third-level cache. Calls with
larger values take so long that Python between them does not matter."""
_SMALL_BETWEEN_BYTES: Final = 1 << 20
"""The same for steps that are not short. Python between them does not matter, and this memory adds to that of a run."""
_MAX_SHORT_WORK: Final = 1 << 28
"""The most multiplications and additions of a short step: it takes half a millisecond."""
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
    flow = gather_calls(flow, context)  # again, because groups of rows have calls now
    steps: list[Step] = []
    runs = groupby(enumerate(flow.steps), lambda numbered: _may_join(flow, numbered[1]))
    for has_calls, run in runs:
        members = dict(run)
        steps += _all_joined(flow, members, context) if has_calls else members.values()
    return flow.replaced(steps)


def _all_joined(flow: Flow, members: Mapping[int, Step], context: Context) -> list[Step]:
    """Return one step for the members, or several if the values between them are large."""
    joined, half = _joined(flow, members, context), len(members) // 2
    if joined is not None:
        return [joined]
    parts = [*members.items()][:half], [*members.items()][half:]
    return [step for part in parts for step in _all_joined(flow, dict(part), context)]


def _has_calls(step: Step) -> bool:
    return step.kernel.joins.calls is not None


def _is_small(step: Step, values: Sequence[Value]) -> bool:
    """Return whether a step gives one value of few bytes, or a mask or indices, whose size may be unknown."""
    if not step.op.pure or step.needed or len(step.writes) != 1:
        return False
    type, shape = values[step.writes[0]].type, values[step.writes[0]].shape
    return _bytes_made(step, values) <= _SMALL_BYTES if shape.is_static else type.kind == "boolean" or type.is_integer


def _may_join(flow: Flow, step: Step) -> bool:
    """Return whether a step has calls, and no element-wise step changes its tiles as soon as they are ready."""
    reader = None if step.kernel.out != "tiles" else flow.only_reader(step.writes[0])
    return _has_calls(step) and (reader is None or flow.steps[reader].kernel.out != "elementwise")


def _passes(step: Step, other: Step) -> bool:
    """Return whether a step may come before another one, which has calls."""
    return _has_calls(other) and not {*other.writes} & {*step.reads}


def _joined(flow: Flow, members: Mapping[int, Step], context: Context) -> Step | None:
    """Return one step for the members, which have these positions, or None if much is between several of them."""
    values, programs = context.values, [_Member.of(step) for step in members.values()]
    made = {slot: n for n, member in enumerate(programs) for slot in member.writes}
    last = {slot: n for n, member in enumerate(programs) for slot in member.slots}
    constants = {slot: context.constants[slot] for slot in last if slot in context.constants}
    held = {slot: array for slot, array in constants.items() if array.flags.c_contiguous and array.flags.aligned}
    reads = tuple(slot for slot in last if slot not in made and slot not in held)
    writes = [slot for slot in made if not members.keys() >= {*flow.readers.get(slot, (flow.end,))}]
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
    is_short = flops <= _MAX_SHORT_WORK * len(members)
    if size > (_MAX_BETWEEN_BYTES if is_short else _SMALL_BETWEEN_BYTES) and len(members) > 1:
        return None
    memory = {slot: _Place(place, *known[slot]) for slot, place in zip(between, places)}
    bytes = np.dtype(np.uint8)
    spare = [_Place(place, (live[0],), bytes) for place, live in zip(places[len(between) :], lives[len(between) :])]
    wholes = tuple(known[slot] for slot in writes)
    work = flops + sum(_bytes_made(step, values) for step in members.values())
    unknown = frozenset(last.keys() - known.keys())
    turns = _Turns(programs, held, reads, unknown, tuple(writes), wholes, memory, spare, size, work)
    packed = [step.reads[n] for step in members.values() for n in step.kernel.packing.inputs]
    behind = len(reads) + len(held)
    positions = tuple(range(behind, behind + len(packed)))
    kernel = Kernel(
        turns.call,
        "compiled in turn" if len(programs) > 1 else programs[0].step.kernel.algorithm,
        out="whole",
        flops=flops,
        packing=Packing(positions, sum(step.kernel.packing.bytes for step in members.values())),
    )
    return replace(
        members[max(members)],
        kernel=kernel,
        reads=reads,
        holds=(*held, *packed),
        writes=tuple(writes),
        layers=tuple(layer for step in members.values() for layer in step.layers),
        needed={name: value for step in members.values() for name, value in step.needed.items()},
        grows=tuple(pair for step in members.values() for pair in step.grows),
        dynamic=False,
        own_inputs=False,
    )


def _bytes_made(step: Step, values: Sequence[Value]) -> int:
    shapes = [(values[slot].shape.static, values[slot].type.dtype.itemsize) for slot in step.writes]
    return sum(prod(shape) * size for shape, size in shapes if shape is not None)


@dataclass(frozen=True, slots=True)
class _Member:
    """A step, and the slots that it reads, with -1 for what its kernel holds."""

    step: Step
    reads: tuple[int, ...]

    @staticmethod
    def of(step: Step) -> _Member:
        held = step.kernel.packing.inputs
        reads = (-1 if n in held else slot for n, slot in enumerate(step.reads))
        return _Member(step, tuple(reads))

    @property
    def writes(self) -> tuple[int, ...]:
        return self.step.writes

    @property
    def given(self) -> list[int]:
        return [slot for slot in self.reads if slot >= 0]

    @property
    def slots(self) -> list[int]:
        return [*self.given, *self.writes]

    def calls(self, arrays: Mapping[int, np.ndarray], spare: np.ndarray) -> Calls:
        """Return the calls for the arrays of the slots."""
        calls = self.step.kernel.joins.calls
        assert calls is not None
        return calls(*self.inputs(arrays), out=self.out(arrays), spare=spare)

    def compute(self, arrays: Mapping[int, np.ndarray], needed: Mapping[str, Any]) -> None:
        """Fill the arrays of the slots without calls. Raises FailedWithin."""
        inputs, out = self.inputs(arrays), self.out(arrays)
        with blamed(self.step, inputs):
            if self.step.kernel.joins.begin is None:
                self.step.kernel.call(*inputs, out=out)
            else:
                np.copyto(out, self.step.kernel.call(*inputs, **needed))

    def inputs(self, arrays: Mapping[int, np.ndarray]) -> list[np.ndarray | None]:
        return [None if slot < 0 else arrays[slot] for slot in self.reads]

    def out(self, arrays: Mapping[int, np.ndarray]) -> Any:
        """Return the array to fill, or several in a tuple."""
        filled = tuple(arrays[slot] for slot in self.writes)
        return filled[0] if len(filled) == 1 else filled


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

    The values between them, copies of small inputs and outputs, and the ``spare`` memory of each are in ``size`` bytes
    of scratch memory. ``held`` are constants. The calls need not be prepared for where inputs of ``unknown`` shapes
    are, which ``Joins.begin`` reads.
    """

    members: Sequence[_Member]
    held: Mapping[int, np.ndarray]
    reads: tuple[int, ...]
    unknown: frozenset[int]
    writes: tuple[int, ...]
    wholes: tuple[tuple[tuple[int, ...], np.dtype], ...]
    between: Mapping[int, _Place]
    spare: Sequence[_Place]
    size: int
    work: int
    kept: local = field(default_factory=local)
    """What each thread has ``prepared``."""

    def call(self, *arrays: np.ndarray, out: Any = None, **needed: Any) -> Any:
        """The kernel."""
        if out is None:
            wholes = [np.empty(shape, dtype) for shape, dtype in self.wholes]
        else:
            wholes = [out] if len(self.writes) == 1 else list(out)
        given = {
            slot: array if slot in self.unknown else np.ascontiguousarray(array)
            for slot, array in zip(self.reads, arrays)
        }
        given |= dict(zip(self.writes, wholes))
        memory, prepared = scratch(0, np.dtype(np.uint8), self.size), getattr(self.kept, "prepared", None)
        if prepared is None or not prepared.is_in(memory):
            prepared = self.kept.prepared = _Prepared(self, memory)
        if not prepared(given, needed):
            apart = np.empty(self.size, np.uint8)  # the kernels use scratch memory
            inner = {slot: place.of(apart) for slot, place in self.between.items() if slot not in given}
            held = {**self.held, **inner, **given}
            for member in self.members:
                member.compute(held, needed)
        return wholes[0] if len(wholes) == 1 else tuple(wholes)


class _Begun(NamedTuple):
    """What members do in each run before the calls. What they read is the same (``Begin.reads``).

    ``reads`` are these slots for each member, with the arrays that are the same in each run, and ``spare`` their
    memory, u8 [members, n].
    """

    begins: Sequence[Begin]
    reads: Sequence[Sequence[tuple[int, np.ndarray | None]]]
    spare: np.ndarray


class _Prepared:
    """The calls of steps in turn, with values between them in ``memory``.

    A run prepares the calls of a member again if its arrays are at other addresses than in the run before.
    """

    def __init__(self, turns: _Turns, memory: np.ndarray) -> None:
        self.turns, self.memory = turns, memory
        self.inner = {slot: place.of(memory) for slot, place in turns.between.items()}
        self.spare = [place.of(memory) for place in turns.spare]
        self.copied = [slot for slot in turns.reads if slot in self.inner]
        self.returned = [slot for slot in turns.writes if slot in self.inner]
        self.lasting = {**turns.held, **self.inner}
        """The arrays that are the same in each run, by slot."""
        still = {*self.lasting, *turns.unknown}
        moving = {n: [slot for slot in member.slots if slot not in still] for n, member in enumerate(turns.members)}
        self.moving = {n: slots for n, slots in moving.items() if slots}
        """The slots of members whose arrays may be at other addresses in each run."""
        self.begun = self._begun()
        self.together: Together | None = None
        kernels = [member.step.kernel.joins for member in turns.members]
        self.faults = [self.spare[n][:8].view(np.int64) for n, joins in enumerate(kernels) if joins.checked]
        self.addresses: list[list[int]] = []
        self.first: list[int] = []
        self.held: list[list[np.ndarray]] = [[] for _ in turns.members]
        self.in_turn: Any = None

    def is_in(self, memory: np.ndarray) -> bool:
        return self.memory.__array_interface__["data"] == memory.__array_interface__["data"]

    def __call__(self, given: Mapping[int, np.ndarray], needed: Mapping[str, Any]) -> bool:
        """Do the calls with the arrays of a run, and return whether the results are right."""
        from irrun.fast.machine.memory import data_address
        from irrun.fast.machine.sharing import InTurn

        for slot in self.copied:
            np.copyto(self.inner[slot], given[slot])
        begun = self.begin(given, **needed) if self.begun else []
        if begun is None:
            return False
        moving = [[data_address(given[slot]) for slot in slots] for slots in self.moving.values()]
        if self.in_turn is None:
            calls = [self.calls(n, given) for n in range(len(self.turns.members))]
            self.first = [*accumulate((len(own) for own in calls), initial=0)]
            self.in_turn = InTurn([call for own in calls for call in own], self.turns.work)
        elif moving != self.addresses:
            for n, found, before in zip(self.moving, moving, self.addresses):
                if found != before:
                    self.in_turn.replace(self.first[n], self.calls(n, given))
        self.addresses = moving
        for fault in self.faults:
            fault[0] = 0
        self.in_turn()
        for slot in self.returned:
            np.copyto(given[slot], self.inner[slot])
        del begun  # its arrays are read by the calls
        return not any(fault[0] for fault in self.faults)

    def _begun(self) -> Sequence[_Begun]:
        """Return what members do before the calls, and give them memory for it."""
        alike: dict[object, list[int]] = {}
        for n, member in enumerate(self.turns.members):
            begin, held = member.step.kernel.joins.begin, self.turns.held
            if begin is not None:
                slots = [member.reads[number] for number in begin.reads]
                same = tuple(held[slot].tobytes() if slot in held else slot for slot in slots)
                alike.setdefault(same, []).append(n)
        begun: list[_Begun] = []
        for numbers in alike.values():
            joins = [self.turns.members[n].step.kernel.joins for n in numbers]
            spare = np.zeros((len(numbers), max(one.spare_bytes for one in joins)), np.uint8)
            for n, own in zip(numbers, spare):
                self.spare[n] = own
            reads = [[(slot, self.lasting.get(slot)) for slot in self.turns.members[n].reads] for n in numbers]
            begun.append(_Begun([one.begin for one in joins if one.begin is not None], reads, spare))
        return begun

    def begin(self, given: Mapping[int, np.ndarray], *, variables: Variables) -> list[Any] | None:
        """Do what members do before the calls. Return what has to live as long as these, or None: see ``Begin``."""
        results: list[Any] = []
        length = 0 if self.together is None else variables.grow(self.together)
        for begins, reads, spare in self.begun if length else ():
            inputs = [given.get(slot) if array is None else array for slot, array in reads[0]]
            results.append(begins[0].again(*inputs, spare=spare, length=length))
        if length and None not in results:
            return results
        results = []
        for begins, reads, spare in self.begun:
            for begin, slots, own in zip(begins, reads, spare):
                inputs = [given.get(slot) if array is None else array for slot, array in slots]
                results.append(begin.first(*inputs, spare=own, variables=variables))
                if results[-1] is None:
                    return None
        self.together = variables.together(
            [id for begun in self.begun for begin in begun.begins for id in begin.variables]
        )
        return results

    def arrays(self, n: int, given: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Return the array of each slot of a member: one that lasts, or else one of this run."""
        slots = self.turns.members[n].slots
        return {slot: self.lasting[slot] if slot in self.lasting else given[slot] for slot in slots}

    def calls(self, n: int, given: Mapping[int, np.ndarray]) -> Calls:
        """Return the calls of a member, and hold the arrays that are theirs alone."""
        arrays = self.arrays(n, given)
        calls = self.turns.members[n].calls(arrays, self.spare[n])
        used = [one for call in calls for one in call.arguments if isinstance(one, np.ndarray)]
        self.held[n] = [one for one in used if one.flags.owndata and not any(one is other for other in arrays.values())]
        return calls
