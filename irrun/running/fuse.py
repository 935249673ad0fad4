"""Several steps made one: what is computed element by element is done on parts that stay in cache.

A group is a set of element-wise steps of one shape and type whose values nobody outside reads, but for the last.
It is computed part by part: on each part, all of its steps. Where its values come from a kernel that ``finish``es
parts (a convolution, a matrix product), the group is done on these in place: bias, activation and residual
then cost no pass through memory of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from irrun.kernels.blocks import each_block, scratch
from irrun.opdef import Kernel, Value
from irrun.running.steps import Step

__all__ = ["fuse"]

_PART: Final = 1 << 16
"""Bytes of a part: a few of them fit into the second cache of a core."""


def fuse(steps: Sequence[Step], values: Sequence[Value], results: Sequence[int]) -> list[Step]:
    """The steps with every group made one step, at the place of its last. ``values`` are those of the slots."""
    return _Fusion(steps, values, results).steps()


class _Fusion:
    """Finds the groups among steps, which are known by their positions."""

    def __init__(self, steps: Sequence[Step], values: Sequence[Value], results: Sequence[int]) -> None:
        self.all, self.values = steps, values
        self.made = {slot: position for position, step in enumerate(steps) for slot in step.writes}
        self.readers: dict[int, set[int]] = {slot: {-1} for slot in results}
        for position, step in enumerate(steps):
            for slot in step.reads:
                self.readers.setdefault(slot, set()).add(position)
        self.taken: set[int] = set()

    def steps(self) -> list[Step]:
        fused: dict[int, Step] = {}
        for last in reversed(range(len(self.all))):
            if last in self.taken or not (self.all[last].kernel.elementwise and self.is_static(last)):
                continue
            group, source = self.group(last)
            if source is not None or len(group) > 1:
                self.taken |= group | ({source} if source is not None else set())
                members = [self.all[p] for p in sorted(group)]
                fused[last] = _joined(members, None if source is None else self.all[source], self.values)
        kept = (p for p in range(len(self.all)) if p in fused or p not in self.taken)
        return [fused.get(p, self.all[p]) for p in kept]

    def group(self, last: int) -> tuple[set[int], int | None]:
        """The group that ends with a step, and the step before it that finishes parts for it."""
        group, open, sources = {last}, [last], [-1]
        read: dict[int, int] = {}
        while open:
            for slot in set(self.all[open.pop()].reads) & self.made.keys():
                before = self.made[slot]
                read[slot] = read.get(slot, 0) + 1
                if read[slot] < len(self.readers[slot]) or before in self.taken or not self.alike(before, last):
                    continue
                if self.all[before].kernel.elementwise:
                    group.add(before)
                    open.append(before)
                elif self.all[before].kernel.finish:
                    sources.append(before)
        return group, max(sources) if len(sources) > 1 else None

    def alike(self, position: int, last: int) -> bool:
        """Whether a step gives what the last one of its group gives: one value, of the same shape and type."""
        value, final = (self.values[self.all[p].writes[0]] for p in (position, last))
        return self.is_static(position) and value.type is final.type and value.shape.static == final.shape.static

    def is_static(self, position: int) -> bool:
        step = self.all[position]
        slots = (*(slot for slot in step.reads if slot >= 0), *step.writes)
        return len(step.writes) == 1 and not step.needed and all(self.values[s].shape.is_static for s in slots)


def _joined(members: Sequence[Step], source: Step | None, values: Sequence[Value]) -> Step:
    """One step for all."""
    last = members[-1]
    inner = {step.writes[0] for step in members}
    first = () if source is None else source.reads
    own = source.writes[0] if source else None
    others = tuple(dict.fromkeys(s for m in members for s in m.reads if s >= 0 and s not in inner and s != own))
    steps = members if source is None else [source, *members]
    value = values[last.writes[0]]
    shape, dtype = value.shape.static, value.type.dtype
    assert shape is not None
    operands = [_Operand.of(values[slot].shape.static or (), shape) for slot in others]
    group = _Group(_program(members, others, own), tuple(operands), shape, dtype, len(first))
    kernel = group.parts if source is None else group.behind(source.kernel.call)
    algorithm = "in parts" if source is None else source.kernel.algorithm
    ignored = () if source is None else source.kernel.ignores
    flops, pack = sum(step.kernel.flops for step in steps), steps[0].kernel.pack
    made = Kernel(kernel, algorithm, out=True, flops=flops, ignores=ignored, pack=pack)
    layers = tuple(layer for step in steps for layer in step.layers)
    # all shapes are known, and no shape follows from what is computed element by element
    return replace(
        last, kernel=made, reads=(*first, *others), layers=layers, dynamic=False, own_inputs=False
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Operand:
    """How what is broadcast to a group's shape is cut into parts: by ``axes`` of that shape, None for an axis of 1."""

    axes: tuple[int | None, ...]

    @staticmethod
    def of(shape: tuple[int, ...], whole: tuple[int, ...]) -> _Operand:
        skipped = len(whole) - len(shape)
        return _Operand(tuple(None if n == 1 else axis for axis, n in enumerate(shape, skipped)))

    def part(self, array: np.ndarray, index: tuple[slice, ...]) -> np.ndarray:
        return array[tuple([_ALL if axis is None else index[axis] for axis in self.axes])]


_ALL: Final = slice(None)
_PLACE: Final = 0
"""The register that is the part of the output; the operands follow, then scratch."""
_SCRATCH: Final = 3
"""The first number of scratch memory that kernels do not use."""


@dataclass(frozen=True, slots=True)
class _Member:
    """``call`` on registers, into a register."""

    call: Callable[..., Any]
    reads: tuple[int | None, ...]
    write: int


def _program(members: Sequence[Step], others: Sequence[int], own: int | None) -> tuple[_Member, ...]:
    """The members over registers: each writes to the output's part as soon as that is free, else to scratch."""
    register = {slot: 1 + number for number, slot in enumerate(others)}
    if own is not None:
        register[own] = _PLACE
    last_read = {slot: number for number, step in enumerate(members) for slot in step.reads}
    holds: dict[int, int | None] = {_PLACE: own}  # what stands in each register that may be written to
    program: list[_Member] = []
    for number, step in enumerate(members):
        reads = tuple(None if slot < 0 else register[slot] for slot in step.reads)
        free = [r for r, slot in holds.items() if slot is None or last_read[slot] <= number]
        write = min(free) if free else 1 + len(others) + len(holds) - 1
        if number == len(members) - 1:
            write = _PLACE
        slot = step.writes[0]
        holds[write], register[slot] = slot, write
        last_read.setdefault(slot, number)
        program.append(_Member(step.kernel.call, reads, write))
    return tuple(program)


@dataclass(frozen=True, slots=True)
class _Group:
    """The steps of a group over registers, and how its operands are cut."""

    program: tuple[_Member, ...]
    operands: tuple[_Operand, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    skipped: int
    """How many of the inputs are those of the step before."""

    def on(self, arrays: Sequence[np.ndarray], part: np.ndarray, index: tuple[slice, ...]) -> None:
        """Compute one part of the output."""
        registers: list[Any] = [part, *(o.part(a, index) for o, a in zip(self.operands, arrays))]
        for member in self.program:
            if member.write == len(registers):
                registers.append(scratch(_SCRATCH + len(registers), self.dtype, *part.shape))
            target = registers[member.write]
            member.call(*[None if r is None else registers[r] for r in member.reads], out=target)

    def parts(self, *arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The group alone."""
        whole = np.empty(self.shape, self.dtype) if out is None else out

        def fill(index: tuple[slice, ...]) -> None:
            self.on(arrays, whole[index], index)

        each_block(fill, self.shape, self.dtype.itemsize, _PART, work=whole.nbytes, least=4 * _PART)
        return whole

    def behind(self, source: Callable[..., Any]) -> Callable[..., Any]:
        """The group on what another kernel finishes."""

        def call(*arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            finish = partial(self.on, arrays[self.skipped :])
            return source(*arrays[: self.skipped], out=out, finish=finish)

        return call
