"""Do the calls of steps in turn, prepared for where the arrays of a run are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import prod
from threading import local
from typing import Any, NamedTuple

import numpy as np

from irrun.fast.passes.views import View
from irrun.kernels.blocks import scratch
from irrun.model import Layer
from irrun.opdef import Begin, Calls, Together, Value, Variables
from irrun.planning.failures import blamed
from irrun.planning.steps import Part, Step

__all__ = ["Member", "Place", "Turns", "bytes_of"]


def bytes_of(slots: Sequence[int], values: Sequence[Value]) -> int:
    """Return the bytes of the values of slots, as far as their shapes are known."""
    shapes = [(values[slot].shape.static, values[slot].type.dtype.itemsize) for slot in slots]
    return sum(prod(shape) * size for shape, size in shapes if shape is not None)


@dataclass(frozen=True, slots=True)
class Member:
    """A step, its layers and those of the views before it, and the bytes of its inputs and outputs.

    ``reads`` are the slots that it reads, with -1 for what its kernel holds.
    """

    step: Step
    layers: tuple[Layer, ...]
    reads: tuple[int, ...]
    bytes: int

    @staticmethod
    def of(step: Step, layers: Sequence[Layer], values: Sequence[Value]) -> Member:
        held = step.kernel.packing.inputs
        reads = tuple(-1 if n in held else slot for n, slot in enumerate(step.reads))
        return Member(
            step, tuple(layers), reads, bytes_of([slot for slot in (*step.reads, *step.writes) if slot >= 0], values)
        )

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
            kernel = self.step.kernel
            if kernel.out == "new":
                returned = kernel.call(*inputs, **({} if kernel.joins.begin is None else needed))
                np.copyto(out, returned[0] if isinstance(returned, tuple) else returned)
            else:
                kernel.call(*inputs, out=out)

    def inputs(self, arrays: Mapping[int, np.ndarray]) -> list[np.ndarray | None]:
        return [None if slot < 0 else arrays[slot] for slot in self.reads]

    def out(self, arrays: Mapping[int, np.ndarray]) -> Any:
        """Return the array to fill, or several in a tuple."""
        filled = tuple(arrays[slot] for slot in self.writes)
        return filled[0] if len(filled) == 1 else filled


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value begins in scratch memory, its shape and its dtype."""

    begin: int
    shape: tuple[int, ...]
    dtype: np.dtype

    def of(self, memory: np.ndarray) -> np.ndarray:
        end = self.begin + prod(self.shape) * self.dtype.itemsize
        return memory[self.begin : end].view(self.dtype).reshape(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """Steps in turn, with views of their values, the slots that they read and fill, the shape and dtype of what they
    fill, and their work.

    The values between them, copies of small inputs and outputs, and the ``spare`` memory of each are in ``size`` bytes
    of scratch memory. ``held`` are constants. The calls need not be prepared for where inputs of ``unknown`` shapes
    are, which ``Joins.begin`` reads.
    """

    members: Sequence[Member]
    views: Sequence[View]
    roots: Mapping[int, int]
    held: Mapping[int, np.ndarray]
    reads: tuple[int, ...]
    unknown: frozenset[int]
    writes: tuple[int, ...]
    wholes: tuple[tuple[tuple[int, ...], np.dtype], ...]
    between: Mapping[int, Place]
    spare: Sequence[Place]
    size: int
    work: int
    kept: local = field(default_factory=local)
    """What each thread has ``prepared``, and whether it ``did_calls`` in its last run."""

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
        self.kept.did_calls = prepared(given, needed)
        if not self.kept.did_calls:
            apart = np.empty(self.size, np.uint8)  # the kernels use scratch memory
            inner = {slot: place.of(apart) for slot, place in self.between.items() if slot not in given}
            held = self.seen({**self.held, **inner, **given})
            for member in self.members:
                member.compute(held, needed)
        return wholes[0] if len(wholes) == 1 else tuple(wholes)

    def parts(self) -> Sequence[Part]:
        """Return what each member has taken in the last run of this thread: see ``Step.parts``."""
        did_calls = getattr(self.kept, "did_calls", False)
        ticks = self.kept.prepared.ticks() if did_calls else [0] * len(self.members)
        return [
            Part(member.layers, member.step.kernel, member.bytes, time) for member, time in zip(self.members, ticks)
        ]

    def seen(self, arrays: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Return arrays and all views of them, by slot."""
        known = dict(arrays)
        for view in self.views:
            if view.step.reads[0] in known:
                known |= zip(view.step.writes, view.of(known[view.step.reads[0]]))
        return known


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

    def __init__(self, turns: Turns, memory: np.ndarray) -> None:
        self.turns, self.memory = turns, memory
        self.inner = {slot: place.of(memory) for slot, place in turns.between.items()}
        self.spare = [place.of(memory) for place in turns.spare]
        self.copied = [slot for slot in turns.reads if slot in self.inner]
        self.returned = [slot for slot in turns.writes if slot in self.inner]
        self.lasting = turns.seen({**turns.held, **self.inner})
        """The arrays that are the same in each run, by slot."""
        still = {*self.lasting, *turns.unknown}
        moving = {
            n: [turns.roots.get(slot, slot) for slot in member.slots if slot not in still]
            for n, member in enumerate(turns.members)
        }
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

    def ticks(self) -> list[int]:
        """Return how long the calls of each member have taken in the last run: see ``InTurn``."""
        return [int(self.in_turn.ticks[begin:end].sum()) for begin, end in pairwise(self.first)]

    def is_in(self, memory: np.ndarray) -> bool:
        from irrun.fast.machine.memory import data_address

        return data_address(self.memory) == data_address(memory)

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
        moving = given if all(slot in self.lasting or slot in given for slot in slots) else self.turns.seen(given)
        return {slot: self.lasting[slot] if slot in self.lasting else moving[slot] for slot in slots}

    def calls(self, n: int, given: Mapping[int, np.ndarray]) -> Calls:
        """Return the calls of a member, and hold the arrays that are theirs alone."""
        arrays = self.arrays(n, given)
        calls = self.turns.members[n].calls(arrays, self.spare[n])
        used = [one for call in calls for one in call.arguments if isinstance(one, np.ndarray)]
        self.held[n] = [one for one in used if one.flags.owndata and not any(one is other for other in arrays.values())]
        return calls
