"""Fuse element-wise steps into one step that works on one tile after the other, so that its data stay in the cache.

A group is a set of element-wise steps of one shape and element type. Other steps read only the value of its last
step. The fused step runs all steps of the group on one tile of the output before it goes on to the next tile. If the
group reads the output of a kernel that reports its tiles (a convolution, a matrix product), it runs in place on each
tile as soon as that is ready. Bias, activation and residual then need no pass through memory of their own.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from irrun.kernels.blocks import each_block, scratch
from irrun.opdef import Index, Joins, Kernel, Value
from irrun.planning.flow import Context, Flow, is_static
from irrun.planning.steps import Step

__all__ = ["fuse_elementwise"]

_TILE_BYTES: Final = 1 << 16
"""Bytes of a tile of the output. The tiles of a few operands together fit into the second-level cache of a core."""


def fuse_elementwise(flow: Flow, context: Context) -> Flow:
    """Replace each group of steps by one step, in the place of the group's last step."""
    return _Fusion(flow, context.values).fused()


class _Fusion:
    """Finds groups of steps and fuses them."""

    def __init__(self, flow: Flow, values: Sequence[Value]) -> None:
        self.flow, self.values = flow, values
        self.taken: set[int] = set()  # positions of the steps that belong to a group

    def fused(self) -> Flow:
        """Return the flow with each group fused. Groups are sought from the last step backwards."""
        steps = self.flow.steps
        fused: dict[int, Step] = {}
        for last in reversed(range(len(steps))):
            if last in self.taken or steps[last].kernel.out != "elementwise" or not is_static(steps[last], self.values):
                continue
            group, source = self.group(last)
            if source is not None or len(group) > 1:
                self.taken |= group | ({source} if source is not None else set())
                members = [steps[p] for p in sorted(group)]
                fused[last] = _fused(members, None if source is None else steps[source], self.values)
        kept = (p for p in range(len(steps)) if p in fused or p not in self.taken)
        return self.flow.replaced([fused.get(p, steps[p]) for p in kept])

    def group(self, last: int) -> tuple[set[int], int | None]:
        """Return the group that ends with the step ``last``, and the step whose tiles it changes in place, if any.

        All are positions. If several steps report tiles, the latest of them is chosen.
        """
        group, open, sources = {last}, [last], [-1]
        read: dict[int, int] = {}  # how many members read each slot
        while open:
            for slot in {*self.flow.steps[open.pop()].reads} & self.flow.made.keys():
                before = self.flow.made[slot]
                read[slot] = read.get(slot, 0) + 1
                is_inner = read[slot] == len({*self.flow.readers[slot]})
                if not is_inner or before in self.taken or not self.alike(before, last):
                    continue
                if self.flow.steps[before].kernel.out == "elementwise":
                    group.add(before)
                    open.append(before)
                elif self.flow.steps[before].kernel.out == "tiles":
                    sources.append(before)
        return group, max(sources) if len(sources) > 1 else None

    def alike(self, position: int, last: int) -> bool:
        """Return whether a step is static and its only output has the shape and element type of the step ``last``."""
        step, final = self.flow.steps[position], self.values[self.flow.steps[last].writes[0]]
        value = self.values[step.writes[0]]
        return is_static(step, self.values) and value.type is final.type and value.shape.static == final.shape.static


def _fused(members: Sequence[Step], source: Step | None, values: Sequence[Value]) -> Step:
    """Return one step that computes ``source``, if there is one, and then the ``members`` on each tile."""
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
    flops = sum(step.kernel.flops for step in steps)
    if source is None:
        kernel = Kernel(group.tiles, "in tiles", out="whole", flops=flops)
    else:
        kernel = replace(source.kernel, call=group.after(source.kernel.call), out="whole", flops=flops, joins=Joins())
    layers = tuple(layer for step in steps for layer in step.layers)
    # needs no check before it runs: all shapes are static, and those of element-wise results depend on no contents
    return replace(last, kernel=kernel, reads=(*first, *others), layers=layers, dynamic=False, own_inputs=False)


@dataclass(frozen=True, slots=True)
class _Operand:
    """How to slice an operand, which numpy broadcasts to the group's shape, for a tile of that shape.

    ``axes`` holds, for each axis of the operand, the axis of the group's shape, or None if its size is 1.
    """

    axes: tuple[int | None, ...]

    @staticmethod
    def of(shape: tuple[int, ...], whole: tuple[int, ...]) -> _Operand:
        """Return how to slice an operand of ``shape`` in a group of the shape ``whole``."""
        skipped = len(whole) - len(shape)
        return _Operand(tuple(None if n == 1 else axis for axis, n in enumerate(shape, skipped)))

    def part(self, array: np.ndarray, index: Index) -> np.ndarray:
        """Return a view of the part of ``array`` that belongs to the tile ``index``."""
        return array[tuple([_ALL if axis is None else index[axis] for axis in self.axes])]


_ALL: Final = slice(None)
_PLACE: Final = 0
"""The register that holds the tile of the output. The registers of operands follow, then those of scratch memory."""
_SCRATCH: Final = 3
"""The first number of scratch memory that kernels do not use (see ``irrun.kernels.blocks``)."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One step of a group: ``call`` reads registers (None for an absent input) and writes to a register."""

    call: Callable[..., Any]
    reads: tuple[int | None, ...]
    write: int


def _program(members: Sequence[Step], others: Sequence[int], own: int | None) -> tuple[_Member, ...]:
    """Return the members with registers in place of slots.

    ``others`` are the slots of the operands; ``own`` is the slot of the source's output, if there is a source. A member
    writes to the tile of the output if no later member reads the value in it, otherwise to scratch memory.
    """
    register = {slot: 1 + number for number, slot in enumerate(others)}
    if own is not None:
        register[own] = _PLACE
    last_read = {slot: number for number, step in enumerate(members) for slot in step.reads}
    free = [_PLACE] if own is None else []  # a heap of the registers that may be overwritten
    # the register of each slot that may be overwritten after its last read
    owned = {} if own is None else {own: _PLACE}
    unused = 1 + len(others)
    program: list[_Member] = []
    for number, step in enumerate(members):
        reads = tuple(None if slot < 0 else register[slot] for slot in step.reads)
        for slot in {*step.reads} & owned.keys():
            if last_read[slot] == number:
                heapq.heappush(free, owned.pop(slot))
        if number == len(members) - 1:
            write = _PLACE
        elif free:
            write = heapq.heappop(free)
        else:
            write, unused = unused, unused + 1
        slot = step.writes[0]
        owned[slot] = register[slot] = write
        program.append(_Member(step.kernel.call, reads, write))
    return tuple(program)


@dataclass(frozen=True, slots=True)
class _Group:
    """A group as a program over registers, with the way to slice its operands."""

    program: tuple[_Member, ...]
    operands: tuple[_Operand, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    skipped: int
    """How many of the fused step's inputs are those of the source. The operands follow them."""

    def compute(self, arrays: Sequence[np.ndarray], whole: np.ndarray, index: Index) -> None:
        """Compute the tile ``index`` of the output ``whole``. ``arrays`` are the whole operands."""
        tile = whole[index]
        registers: list[Any] = [tile, *(o.part(a, index) for o, a in zip(self.operands, arrays))]
        for member in self.program:
            if member.write == len(registers):
                registers.append(scratch(_SCRATCH + len(registers), self.dtype, *tile.shape))
            target = registers[member.write]
            member.call(*[None if r is None else registers[r] for r in member.reads], out=target)

    def tiles(self, *arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The kernel of a group without a source. Returns ``out``, or a new array."""
        whole = np.empty(self.shape, self.dtype) if out is None else out
        fill = partial(self.compute, arrays, whole)
        each_block(fill, self.shape, self.dtype.itemsize, _TILE_BYTES, work=whole.nbytes, least=4 * _TILE_BYTES)
        return whole

    def after(self, source: Callable[..., Any]) -> Callable[..., Any]:
        """Return the kernel that runs ``source``, and the group on each tile that ``source`` reports."""

        def call(*arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            whole = np.empty(self.shape, self.dtype) if out is None else out
            on_tile_ready = partial(self.compute, arrays[self.skipped :], whole)
            return source(*arrays[: self.skipped], out=whole, on_tile_ready=on_tile_ready)

        return call
