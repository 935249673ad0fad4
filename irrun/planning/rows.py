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

from irrun.kernels.blocks import BLOCK, blocks, each_block, scratch
from irrun.opdef import Calls, Index, Kernel, Packing, Value
from irrun.planning.steps import Step

__all__ = ["by_rows"]

_MOST: Final = 192
"""Rows of a block whose intermediate values take more than ``BLOCK``: each block reads all constant matrices again."""
_LEAST: Final = 48
"""The fewest rows of a block, where threads share them."""
_FEW: Final = 64
"""The fewest rows of a group. With fewer, threads share the columns of a product."""
_TOGETHER: Final = 1 << 24
"""The most bytes of an intermediate value, if all steps are machine code. It is shared by the threads, and the part of
it that a thread computes at a time stays in the cache."""
_SCRATCH: Final = 3
"""The first number of scratch memory that kernels do not use (see ``irrun.kernels.blocks``)."""


def by_rows(steps: Sequence[Step], values: Sequence[Value], results: Sequence[int]) -> list[Step]:
    """Return the steps with each group replaced by one step.

    ``values`` holds the Value of each slot, ``results`` the slots of the model's outputs. A group has a matrix product
    and at least one more product or normalisation.
    """
    rows = [_rows(step, values) for step in steps]
    while True:
        groups = _Groups(steps, results, rows)
        left = groups.left()
        if not left:
            return groups.joined(values)
        rows = [0 if position in left else count for position, count in enumerate(rows)]


class _Groups:
    """Groups of steps that compute as many rows, as sets of positions in ``steps``.

    ``rows`` is the number of rows of each step, or 0 for one that belongs to no group.
    """

    def __init__(self, steps: Sequence[Step], results: Sequence[int], rows: Sequence[int]) -> None:
        self.steps, self.results = steps, set(results)
        self.made = {slot: position for position, step in enumerate(steps) for slot in step.writes}
        self.readers: dict[int, list[int]] = {}
        for position, step in enumerate(steps):
            for slot in step.reads:
                self.readers.setdefault(slot, []).append(position)
        self.group: dict[int, set[int]] = {}
        self.at = list(range(len(steps)))
        """Where each step will run: at the place of its group, or where it is."""
        for position, step in enumerate(steps):
            if rows[position] < _FEW:
                continue
            self.group[position] = {position}
            near = [self.made.get(slot, -1) for slot in _read(step)]
            near += [reader for slot in _read(step) for reader in self.readers[slot] if reader < position]
            for other in sorted({*near}, reverse=True):
                if other in self.group and rows[other] == rows[position]:
                    self.join(self.group[other], self.group[position])

    def join(self, first: set[int], second: set[int]) -> None:
        """Make one group of two, if there is a place for it."""
        both = first | second
        if first is not second and (place := self.place(both)) is not None:
            for position in both:
                self.group[position], self.at[position] = both, place

    def outputs(self, group: set[int]) -> list[int]:
        """Return the slots that others read, in the order of the steps."""
        written = [self.steps[position].writes[0] for position in sorted(group)]
        return [slot for slot in written if slot in self.results or not group.issuperset(self.readers.get(slot, ()))]

    def place(self, group: set[int]) -> int | None:
        """Return the position at which all inputs of a group are there, and none of its outputs has been read yet.

        Return None if there is none among those of its members.
        """
        inputs = [self.made[slot] for member in group for slot in self.steps[member].reads if slot in self.made]
        after = max((self.at[position] for position in inputs if position not in group), default=-1)
        readers = [reader for slot in self.outputs(group) for reader in self.readers.get(slot, ())]
        before = min((self.at[position] for position in readers if position not in group), default=len(self.steps))
        return max((position for position in group if after < position < before), default=None)

    def left(self) -> set[int]:
        """Return the members of groups that are not worth a step."""
        left: set[int] = set()
        for group in self.group.values():
            kernels = [self.steps[position].kernel for position in group]
            kernels = [
                kernel for kernel in kernels if kernel.joins.row_calls is not None and kernel.out != "elementwise"
            ]
            if len(kernels) < 2 or not any(kernel.flops for kernel in kernels):
                left |= group
        return left

    def joined(self, values: Sequence[Value]) -> list[Step]:
        """Return the steps, with those of a group in one place."""
        new = {position: step for position, step in enumerate(self.steps) if position not in self.group}
        for position, group in self.group.items():
            if position == self.at[position]:
                members = [self.steps[member] for member in sorted(group)]
                new[position] = _joined(members, self.outputs(group), values)
        return [new[position] for position in sorted(new)]


def _rows(step: Step, values: Sequence[Value]) -> int:
    """Return the number of rows that a step computes one by one, or 0 if it is no such step."""
    if len(step.writes) != 1 or step.needed or not (step.kernel.joins.row_calls or step.kernel.out == "elementwise"):
        return 0
    slots = (*_read(step), *step.writes)
    shape = values[step.writes[0]].shape.static
    if not shape or any(values[slot].type.name != "f32" or not values[slot].shape.is_static for slot in slots):
        return 0
    whole = [_Operand.of(values[slot], shape) for slot in _read(step)]
    if any(operand is None or (step.kernel.joins.row_calls and not operand.rows) for operand in whole):
        return 0
    return prod(shape[:-1])


def _read(step: Step) -> list[int]:
    """Return the slots of the inputs whose contents the kernel reads."""
    needed = step.kernel.joins.row_inputs if step.kernel.joins.row_calls else range(len(step.reads))
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
    """One step of a group: it reads registers (None for an input that it does not need), and fills one.

    ``rows`` is that of its kernel (see ``Joins.row_calls``). Without it, ``call`` is a function of numpy for a block.
    """

    call: Callable[..., object]
    rows: Callable[..., Calls] | None
    reads: tuple[int | None, ...]
    write: int

    def calls(self, registers: Sequence[np.ndarray | None]) -> Calls:
        """Return the calls of machine code that compute a block."""
        given, out = self.given(registers)
        return () if self.rows is None else self.rows(*given, out=out)

    def compute(self, registers: Sequence[np.ndarray | None]) -> None:
        """Compute a block."""
        given, out = self.given(registers)
        if self.rows is None:
            self.call(*given, out=out)
        for function, arguments in self.calls(registers):
            function(*arguments, 0, len(out))

    def given(self, registers: Sequence[np.ndarray | None]) -> tuple[list[np.ndarray | None], np.ndarray]:
        """Return the inputs, and the array to fill."""
        out = registers[self.write]
        assert out is not None
        return [None if register is None else registers[register] for register in self.reads], out


def _joined(members: Sequence[Step], outputs: Sequence[int], values: Sequence[Value]) -> Step:
    """Return one step that computes the members on one block of rows after the other, and returns ``outputs``."""
    shapes: list[tuple[int, ...]] = [values[slot].shape.static or () for slot in outputs]
    shape, last = shapes[0], members[-1]
    inner = {step.writes[0] for step in members}
    outer = tuple(dict.fromkeys(slot for step in members for slot in _read(step) if slot not in inner))
    held = tuple(dict.fromkeys(slot for step in members for slot in step.reads if slot >= 0))
    reads = (*outer, *(slot for slot in held if slot not in inner and slot not in outer))
    operands = [_Operand.of(values[slot], shape) for slot in outer]
    program, widths = _program(members, outer, outputs, values)
    most = max((*(shape[-1] for shape in shapes), *widths)) * np.dtype(np.float32).itemsize
    flops = sum(step.kernel.flops for step in members)
    native = all(member.rows is not None for member in program)

    def call(*arrays: np.ndarray, out: Any = None) -> Any:
        wholes = [np.empty(shape, np.float32) for shape in shapes] if out is None else [out] if len(shapes) < 2 else out
        inputs = [np.ascontiguousarray(array) for array in arrays[: len(outer)]]
        results = [whole.reshape(-1, whole.shape[-1]) for whole in wholes]

        count = len(results[0])

        def registers(rows: slice) -> list[np.ndarray]:
            high = rows.stop - rows.start
            return [
                *(operand.of_block(array, rows) for operand, array in zip(operands, inputs) if operand),
                *(scratch(_SCRATCH + n, results[0].dtype, high, width) for n, width in enumerate(widths)),
                *(result[rows] for result in results),
            ]

        def fill(index: Index) -> None:
            given = registers(index[0])
            for member in program:
                member.compute(given)

        if native:
            from irrun.fast.machine.sharing import share_rows

            for (rows,) in blocks((count,), most, max(_TOGETHER, _MOST * most)):
                given, high = registers(rows), rows.stop - rows.start
                calls = [call for member in program for call in member.calls(given)]
                share_rows(calls, high, flops * high // count, max(BLOCK // most, _MOST))
        else:
            each_block(fill, (count,), most, max(BLOCK, _MOST * most), work=flops, least=_LEAST * most)
        return wholes[0] if len(wholes) < 2 else tuple(wholes)

    packing = Packing(tuple(range(len(outer), len(reads))), sum(step.kernel.packing.bytes for step in members))
    kernel = Kernel(call, "by rows", out="whole", flops=flops, packing=packing)
    layers = tuple(layer for step in members for layer in step.layers)
    return replace(
        last, kernel=kernel, reads=reads, writes=tuple(outputs), layers=layers, dynamic=False, own_inputs=False
    )


def _program(
    members: Sequence[Step], outer: Sequence[int], outputs: Sequence[int], values: Sequence[Value]
) -> tuple[tuple[_Member, ...], list[int]]:
    """Return the members with registers in place of slots, and the columns of each register of scratch memory.

    The registers are those of the inputs ``outer``, those of scratch memory, and those of the ``outputs``, which count
    from the end. An element-wise member may overwrite registers of scratch memory that it reads.
    """
    returned = {slot: number - len(outputs) for number, slot in enumerate(outputs)}
    register = {slot: number for number, slot in enumerate(outer)}
    last_read = {slot: number for number, step in enumerate(members) for slot in _read(step)}
    widths: list[int] = []
    free: list[int] = []
    program: list[_Member] = []
    for number, step in enumerate(members):
        kernel, read = step.kernel, _read(step)
        reads = [register[slot] if slot in read else None for slot in step.reads]
        over = [register[slot] for slot in {*read} if last_read[slot] == number and register[slot] >= len(outer)]
        if kernel.out == "elementwise":
            free += over
        columns = [*(values[step.writes[0]].shape.static or ())][-1]
        fitting = [n for n in free if widths[n - len(outer)] == columns]
        if step.writes[0] in returned:
            write = returned[step.writes[0]]
        elif fitting:
            write = fitting[0]
            free.remove(write)
        else:
            write = len(outer) + len(widths)
            widths.append(columns)
        if kernel.out != "elementwise":
            free += over
        register[step.writes[0]] = write
        program.append(_Member(kernel.call, _native(step, values), tuple(reads), write))
    return tuple(program), widths


def _native(step: Step, values: Sequence[Value]) -> Callable[..., Calls] | None:
    """Return ``Joins.row_calls`` of a step, or the same for the formula of an element-wise step."""
    joins, formula = step.kernel.joins, step.kernel.joins.formula
    if joins.row_calls is not None or formula is None or formula[0] not in ("add", "multiply"):
        return joins.row_calls
    columns = [*(values[step.writes[0]].shape.static or ())][-1:]
    if any([*(values[slot].shape.static or ())][-1:] != columns for slot in step.reads):
        return None
    from irrun.fast.arithmetic import add, combined, multiply

    combine = add if formula[0] == "add" else multiply
    return lambda a, b, *, out: combined(combine, a, b, out)
