"""Join steps that compute each row of their results from the same row of their inputs.

Between two attentions, a transformer has nothing else: matrix products, normalisations and element-wise steps. As one
step, they compute one block of rows after the other, so that what is between them stays in the cache. Threads share the
rows of the whole group, and wait for each other once instead of at each step.

With few rows, such as that of a token, threads share the columns of each product in turn: see ``turns``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from threading import local
from typing import Any, Final

import numpy as np

from irrun.kernels.blocks import BLOCK_BYTES, blocks, each_block, placed, scratch
from irrun.opdef import FEW_ROWS, Calls, Index, Joins, Kernel, Packing, Value
from irrun.planning.flow import Context, Flow
from irrun.planning.steps import Step

__all__ = ["join_rows"]

_MAX_BLOCK_ROWS: Final = 192
"""Rows of a block whose intermediate values take more than ``BLOCK_BYTES``: each block reads all constant matrices
again."""
_MIN_SHARED_ROWS: Final = 48
"""The fewest rows of a block, where threads share them."""
_MAX_SHARED_BYTES: Final = 1 << 24
"""The most bytes of an intermediate value, if all steps are machine code. It is shared by the threads, and the part of
it that a thread computes at a time stays in the cache."""
_MOST_PLACES: Final = 4
"""Places of a block whose calls stay prepared. Memory of values that are not needed any more is taken in turn."""
_FIRST_SCRATCH: Final = 3
"""The first number of scratch memory that kernels do not use (see ``irrun.kernels.blocks``)."""


def join_rows(flow: Flow, context: Context) -> Flow:
    """Replace each group of steps that compute row by row by one step.

    A group has a matrix product and, unless its rows are few, at least one more product or normalisation.
    """
    rows = [_rows(step, context.values) for step in flow.steps]
    while True:
        groups = _Groups(flow, rows)
        dropped = groups.too_small()
        if not dropped:
            return groups.joined(context.values)
        rows = [0 if position in dropped else count for position, count in enumerate(rows)]


class _Groups:
    """Groups of steps with equal row counts. A group is a set of positions in ``flow``.

    ``rows`` is the number of rows of each step, or 0 for one that belongs to no group.
    """

    def __init__(self, flow: Flow, rows: Sequence[int]) -> None:
        self.flow, self.rows = flow, rows
        self.group: dict[int, set[int]] = {}
        self.at = list(range(flow.end + 1))
        """The position at which each step will run."""
        for position, step in enumerate(flow.steps):
            if not rows[position]:
                continue
            self.group[position] = {position}
            near = {flow.made.get(slot, -1) for slot in _read(step)}
            near |= {reader for slot in _read(step) for reader in flow.readers[slot] if reader < position}
            for other in sorted(near, reverse=True):
                if other in self.group and rows[other] == rows[position]:
                    self.join(self.group[other], self.group[position])

    def join(self, first: set[int], second: set[int]) -> None:
        """Make one group of two, if there is a place for it."""
        both = first | second
        if first is not second and (place := self.place(both)) is not None:
            for position in both:
                self.group[position], self.at[position] = both, place

    def outputs(self, group: set[int]) -> list[int]:
        """Return the slots that steps outside the group read, in the order of the steps that fill them."""
        written = [self.flow.steps[position].writes[0] for position in sorted(group)]
        return [slot for slot in written if not group.issuperset(self.flow.readers.get(slot, ()))]

    def place(self, group: set[int]) -> int | None:
        """Return a member's position after all inputs of the group are made and before its outputs are read, or None.

        There may be several such positions; the last one is returned.
        """
        flow = self.flow
        makers = {flow.made[slot] for member in group for slot in flow.steps[member].reads if slot in flow.made}
        readers = {reader for slot in self.outputs(group) for reader in flow.readers[slot]}
        after = max((self.at[position] for position in makers - group), default=-1)
        before = min((self.at[position] for position in readers - group), default=flow.end)
        return max((position for position in group if after < position < before), default=None)

    def too_small(self) -> set[int]:
        """Return the members of groups that are not worth a step."""
        small: set[int] = set()
        for group in self.group.values():
            kernels = [self.flow.steps[position].kernel for position in group]
            kernels = [kernel for kernel in kernels if kernel.joins.row_calls and kernel.out != "elementwise"]
            is_alone = len(kernels) < 2 and self.rows[min(group)] >= FEW_ROWS
            if is_alone or not any(kernel.flops for kernel in kernels):
                small |= group
        return small

    def joined(self, values: Sequence[Value]) -> Flow:
        """Return the flow with one step for each group, in its place."""
        new = {position: step for position, step in enumerate(self.flow.steps) if position not in self.group}
        for position, group in self.group.items():
            if position == self.at[position]:
                members = [self.flow.steps[member] for member in sorted(group)]
                new[position] = _joined(members, self.outputs(group), values)
        return self.flow.replaced([new[position] for position in sorted(new)])


def _rows(step: Step, values: Sequence[Value]) -> int:
    """Return the number of rows that a step computes one by one, or 0 if it is no such step."""
    is_by_row = step.kernel.joins.row_calls is not None
    if len(step.writes) != 1 or step.needed or not (is_by_row or step.kernel.out == "elementwise"):
        return 0
    slots = (*_read(step), *step.writes)
    shape = values[step.writes[0]].shape.static
    if not shape or any(values[slot].type.name != "f32" or not values[slot].shape.is_static for slot in slots):
        return 0
    whole = [_Operand.of(values[slot], shape) for slot in _read(step)]
    if any(operand is None or (is_by_row and not operand.rows) for operand in whole):
        return 0
    count = prod(shape[:-1])
    return 0 if count < FEW_ROWS and _native(step, values) is None else count


def _read(step: Step) -> list[int]:
    """Return the slots of the inputs whose contents the kernel reads."""
    joins = step.kernel.joins
    numbers = joins.row_inputs if joins.row_calls is not None else range(len(step.reads))
    return [step.reads[number] for number in numbers if number < len(step.reads) and step.reads[number] >= 0]


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
        for call in self.calls(registers):
            call.function(*call.arguments, 0, call.size)

    def given(self, registers: Sequence[np.ndarray | None]) -> tuple[list[np.ndarray | None], np.ndarray]:
        """Return the inputs, and the array to fill."""
        out = registers[self.write]
        assert out is not None
        return [None if register is None else registers[register] for register in self.reads], out


def _joined(members: Sequence[Step], outputs: Sequence[int], values: Sequence[Value]) -> Step:
    """Return one step that computes the members on one block of rows after the other, and returns ``outputs``."""
    inner = {step.writes[0] for step in members}
    operands: dict[int, _Operand] = {}
    for step in members:
        shape = values[step.writes[0]].shape.static or ()
        for slot in _read(step):
            if slot not in inner and (operand := _Operand.of(values[slot], shape)) is not None:
                operands.setdefault(slot, operand)
    packed = dict.fromkeys(slot for step in members for slot in step.reads if slot >= 0)
    reads = (*operands, *(slot for slot in packed if slot not in inner and slot not in operands))
    program, widths = _program(members, tuple(operands), outputs, values)
    group = _Group(
        program,
        tuple(operands.values()),
        tuple(values[slot].shape.static or () for slot in outputs),
        widths,
        sum(step.kernel.flops for step in members),
    )
    packing = Packing(tuple(range(len(operands), len(reads))), sum(step.kernel.packing.bytes for step in members))
    rows = prod(group.shapes[0][:-1])
    joins = Joins(calls=group.in_turn, spare_bytes=_placed(rows, widths)[1]) if rows < FEW_ROWS else Joins()
    name = "by rows" if len(members) > 1 else members[0].kernel.algorithm
    kernel = Kernel(group.call, name, out="whole", flops=group.flops, packing=packing, joins=joins)
    layers = tuple(layer for step in members for layer in step.layers)
    return replace(
        members[-1],
        kernel=kernel,
        reads=reads,
        writes=tuple(outputs),
        layers=layers,
        dynamic=False,
        own_inputs=False,
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """A group as a program over registers: its inputs, scratch memory and its outputs, in this order."""

    program: tuple[_Member, ...]
    operands: tuple[_Operand, ...]
    shapes: tuple[tuple[int, ...], ...]
    """The shapes of the outputs."""
    widths: tuple[int, ...]
    """The columns of each register of scratch memory."""
    flops: int
    kept: local = field(default_factory=local, compare=False)
    """Of each thread, ``places``: the prepared calls of the last blocks by their places, the addresses of all
    registers."""

    def call(self, *arrays: np.ndarray, out: Any = None) -> Any:
        """The kernel of the group. Inputs after the operands are matrices that its members hold packed."""
        if out is None:
            wholes = [np.empty(shape, np.float32) for shape in self.shapes]
        else:
            wholes = [out] if len(self.shapes) == 1 else list(out)
        inputs = [np.ascontiguousarray(array) for array in arrays[: len(self.operands)]]
        results = [whole.reshape(-1, whole.shape[-1]) for whole in wholes]
        if not all(member.rows is not None for member in self.program):
            self.compute(inputs, results)
        else:
            self.share(inputs, results)
        return wholes[0] if len(wholes) == 1 else tuple(wholes)

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of the widest register."""
        return max(*(shape[-1] for shape in self.shapes), *self.widths, 0) * np.dtype(np.float32).itemsize

    def in_turn(self, *arrays: np.ndarray, out: Any, spare: np.ndarray) -> Calls:
        """Return the calls of machine code for all rows, which are few: see ``Joins.calls``."""
        wholes = [out] if len(self.shapes) == 1 else list(out)
        results = [whole.reshape(-1, whole.shape[-1]) for whole in wholes]
        inputs = [operand.of_block(array, slice(None)) for operand, array in zip(self.operands, arrays)]
        rows = len(results[0])
        scratch = [
            spare[begin : begin + 4 * rows * width].view(np.float32).reshape(rows, width)
            for begin, width in zip(_placed(rows, self.widths)[0], self.widths)
        ]
        return self.calls([*inputs, *scratch, *results])

    def calls(self, registers: Sequence[np.ndarray]) -> Calls:
        """Return the calls of machine code that compute a block."""
        return [call for member in self.program for call in member.calls(registers)]

    def share(self, inputs: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Have the threads share the machine code of all members.

        The calls of a block are prepared again only if it lies elsewhere than the last ones.
        """
        from irrun.fast.machine.memory import data_address
        from irrun.fast.machine.sharing import InBlocks

        count, row_bytes = len(results[0]), self.row_bytes
        most = max(BLOCK_BYTES // row_bytes, _MAX_BLOCK_ROWS)
        for (rows,) in blocks((count,), row_bytes, max(_MAX_SHARED_BYTES, _MAX_BLOCK_ROWS * row_bytes)):
            high = rows.stop - rows.start
            memory = (*inputs, *self.scratch(high), *results)
            place = rows.start, high, *map(data_address, memory)
            known = self.kept.__dict__.setdefault("places", {})
            if place not in known:
                calls = self.calls(self.registers(inputs, results, rows))
                while len(known) >= _MOST_PLACES:
                    del known[next(iter(known))]
                known[place] = InBlocks(calls, self.flops * high // count, most)
            known[place](high)

    def compute(self, inputs: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Have each thread compute all members on some blocks of rows."""

        def fill(index: Index) -> None:
            registers = self.registers(inputs, results, index[0])
            for member in self.program:
                member.compute(registers)

        count, row_bytes = len(results[0]), self.row_bytes
        block_bytes = max(BLOCK_BYTES, _MAX_BLOCK_ROWS * row_bytes)
        each_block(fill, (count,), row_bytes, block_bytes, work=self.flops, least=_MIN_SHARED_ROWS * row_bytes)

    def registers(self, inputs: Sequence[np.ndarray], results: Sequence[np.ndarray], rows: slice) -> list[np.ndarray]:
        """Return the registers of a block of rows."""
        high = rows.stop - rows.start
        return [
            *(operand.of_block(array, rows) for operand, array in zip(self.operands, inputs)),
            *self.scratch(high),
            *(result[rows] for result in results),
        ]

    def scratch(self, rows: int) -> list[np.ndarray]:
        """Return the registers of scratch memory for so many rows."""
        return [scratch(_FIRST_SCRATCH + n, np.dtype(np.float32), rows, width) for n, width in enumerate(self.widths)]


def _placed(rows: int, widths: Sequence[int]) -> tuple[list[int], int]:
    """Return where registers of so many rows begin in memory for all of them, and its size, in bytes."""
    return placed([(4 * rows * width, 0, 0) for width in widths])


def _program(
    members: Sequence[Step], outer: Sequence[int], outputs: Sequence[int], values: Sequence[Value]
) -> tuple[tuple[_Member, ...], tuple[int, ...]]:
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
    return tuple(program), tuple(widths)


def _native(step: Step, values: Sequence[Value]) -> Callable[..., Calls] | None:
    """Return ``Joins.row_calls`` of a step, or the same for a sum or product of two inputs.

    The rows of one of the factors of a product may be a single number.
    """
    joins, formula = step.kernel.joins, step.kernel.joins.formula
    if joins.row_calls is not None or formula is None or formula[0] not in ("add", "multiply"):
        return joins.row_calls
    columns = [*(values[step.writes[0]].shape.static or ())][-1:]
    widths = [[*(values[slot].shape.static or ())][-1:] for slot in step.reads]
    first_is_factor, second_is_factor = (prod(width) == 1 for width in widths)
    if formula[0] == "multiply" and columns in widths and first_is_factor != second_is_factor:
        from irrun.fast.arithmetic import scaled

        return lambda a, b, *, out: scaled(b, a, out) if first_is_factor else scaled(a, b, out)
    if any(width != columns for width in widths):
        return None
    from irrun.fast.arithmetic import add, combined, multiply

    combine = add if formula[0] == "add" else multiply
    return lambda a, b, *, out: combined(combine, a, b, out)
