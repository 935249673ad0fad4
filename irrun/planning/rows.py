"""Join steps that compute each row of their results from the same row of their inputs.

Between two attentions, a transformer has nothing else: matrix products, normalisations and element-wise steps. As one
step, they compute one block of rows after the other, so that what is between them stays in the cache. Threads share the
rows of the whole group, and wait for each other once instead of at each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

import numpy as np

from irrun.kernels.blocks import BLOCK, each_block, scratch
from irrun.opdef import Index, Kernel, Value
from irrun.planning.steps import Step

__all__ = ["by_rows"]

_MOST: Final = 192
"""Rows of a block whose intermediate values take more than ``BLOCK``: each block reads all constant matrices again."""
_LEAST: Final = 48
"""The fewest rows of a block, where threads share them."""
_FEW: Final = 64
"""The fewest rows of a group. With fewer, threads share the columns of a product."""
_SCRATCH: Final = 3
"""The first number of scratch memory that kernels do not use (see ``irrun.kernels.blocks``)."""


def by_rows(steps: Sequence[Step], values: Sequence[Value], results: Sequence[int]) -> list[Step]:
    """Return the steps with each group replaced by one step, in the place of the group's last step.

    ``values`` holds the Value of each slot, ``results`` the slots of the model's outputs. Only the result of the last
    step is read outside of a group, which has a matrix product and at least one more product or normalisation.
    """
    made = {slot: position for position, step in enumerate(steps) for slot in step.writes}
    readers: dict[int, set[int]] = {slot: {-1} for slot in results}
    for position, step in enumerate(steps):
        for slot in step.reads:
            readers.setdefault(slot, set()).add(position)
    rows = [_rows(step, values) for step in steps]
    taken: set[int] = set()
    joined: dict[int, Step] = {}
    for last in reversed(range(len(steps))):
        if rows[last] < _FEW or last in taken:
            continue
        group, waiting = {last}, [last]
        while waiting:
            for slot in steps[waiting.pop()].reads:
                position = made.get(slot, -1)
                if position in group | taken | {-1} or rows[position] != rows[last] or not readers[slot] <= group:
                    continue
                group.add(position)
                waiting.append(position)
        members = [steps[position] for position in sorted(group)]
        kernels = [step.kernel for step in members if step.kernel.rows is not None]
        if len(kernels) > 1 and any(kernel.flops for kernel in kernels):
            joined[last] = _joined(members, values)
            taken |= group
    return [joined.get(p, step) for p, step in enumerate(steps) if p in joined or p not in taken]


def _rows(step: Step, values: Sequence[Value]) -> int:
    """Return the number of rows that a step computes one by one, or 0 if it is no such step."""
    if len(step.writes) != 1 or step.needed or not (step.kernel.rows or step.kernel.out == "elementwise"):
        return 0
    slots = (*_read(step), *step.writes)
    shape = values[step.writes[0]].shape.static
    if not shape or any(values[slot].type.name != "f32" or not values[slot].shape.is_static for slot in slots):
        return 0
    whole = [_Operand.of(values[slot], shape) for slot in _read(step)]
    if any(operand is None or (step.kernel.rows and not operand.rows) for operand in whole):
        return 0
    return prod(shape[:-1])


def _read(step: Step) -> list[int]:
    """Return the slots of the inputs whose contents the kernel reads."""
    needed = step.kernel.row_inputs if step.kernel.rows else range(len(step.reads))
    return [step.reads[number] for number in needed if number < len(step.reads) and step.reads[number] >= 0]


@dataclass(frozen=True, slots=True)
class _Operand:
    """An input of a group: whether it has a row for each row of the results, and the size of its last axis."""

    rows: bool
    columns: int

    @staticmethod
    def of(value: Value, shape: tuple[int, ...]) -> _Operand | None:
        """Return how a Value is read for results of ``shape``, or None if it has no such rows."""
        own = value.shape.static or ()
        columns = own[-1] if own else 1
        if len(own) == len(shape) and own[:-1] == shape[:-1]:
            return _Operand(True, columns)
        return _Operand(False, columns) if prod(own[:-1]) == 1 and len(own) <= len(shape) else None

    def of_block(self, array: np.ndarray, rows: slice) -> np.ndarray:
        """Return the rows of a block, or all that is the same for each row."""
        return array.reshape(-1, self.columns)[rows] if self.rows else array.reshape(-1)


@dataclass(frozen=True, slots=True)
class _Member:
    """One step of a group: ``call`` reads registers (None for an input that it does not need), and fills one."""

    call: Callable[..., object]
    reads: tuple[int | None, ...]
    write: int


def _joined(members: Sequence[Step], values: Sequence[Value]) -> Step:
    """Return one step that computes the members on one block of rows after the other."""
    last = members[-1]
    shape = values[last.writes[0]].shape.static
    assert shape is not None
    inner = {step.writes[0] for step in members}
    outer = tuple(dict.fromkeys(slot for step in members for slot in _read(step) if slot not in inner))
    held = tuple(dict.fromkeys(slot for step in members for slot in step.reads if slot >= 0))
    reads = (*outer, *(slot for slot in held if slot not in inner and slot not in outer))
    operands = [_Operand.of(values[slot], shape) for slot in outer]
    program, widths = _program(members, outer, values)
    most = max((shape[-1], *widths)) * np.dtype(np.float32).itemsize
    flops = sum(step.kernel.flops for step in members)

    def call(*arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        whole = np.empty(shape, np.float32) if out is None else out
        inputs = [np.ascontiguousarray(array) for array in arrays[: len(outer)]]
        results = whole.reshape(-1, shape[-1])

        def fill(index: Index) -> None:
            (rows,) = index
            count = rows.stop - rows.start
            registers: list[Any] = [operand.of_block(a, rows) for operand, a in zip(operands, inputs) if operand]
            registers += [scratch(_SCRATCH + n, whole.dtype, count, width) for n, width in enumerate(widths)]
            registers.append(results[rows])
            for member in program:
                given = [None if register is None else registers[register] for register in member.reads]
                member.call(*given, out=registers[member.write])

        each_block(fill, (len(results),), most, max(BLOCK, _MOST * most), work=flops, least=_LEAST * most)
        return whole

    kernel = Kernel(
        call, "by rows", out="whole", flops=flops, packed=sum(step.kernel.packed for step in members),
        prepacked=tuple(range(len(outer), len(reads))),
    )  # fmt: skip
    layers = tuple(layer for step in members for layer in step.layers)
    return replace(last, kernel=kernel, reads=reads, layers=layers, dynamic=False, own_inputs=False)


def _program(
    members: Sequence[Step], outer: Sequence[int], values: Sequence[Value]
) -> tuple[tuple[_Member, ...], list[int]]:
    """Return the members with registers in place of slots, and the columns of each register of scratch memory.

    The registers are those of the inputs ``outer``, those of scratch memory, and that of the results. An element-wise
    member may overwrite its inputs.
    """
    register = {slot: number for number, slot in enumerate(outer)}
    last_read = {slot: number for number, step in enumerate(members) for slot in _read(step)}
    widths: list[int] = []
    free: list[int] = []
    program: list[tuple[Callable[..., object], list[int | None], int]] = []
    for number, step in enumerate(members):
        kernel, read = step.kernel, _read(step)
        reads = [register[slot] if slot in read else None for slot in step.reads]
        over = [register[slot] for slot in {*read} if last_read[slot] == number and register[slot] >= len(outer)]
        if kernel.rows is None:
            free += over
        columns = (values[step.writes[0]].shape.static or (1,))[-1]
        fitting = [n for n in free if widths[n - len(outer)] == columns]
        if number == len(members) - 1:
            write = -1
        elif fitting:
            write = fitting[0]
            free.remove(write)
        else:
            write = len(outer) + len(widths)
            widths.append(columns)
        if kernel.rows is not None:
            free += over
        register[step.writes[0]] = write
        program.append((kernel.rows or kernel.call, reads, write))
    return tuple(_Member(call, tuple(reads), write) for call, reads, write in program), widths
