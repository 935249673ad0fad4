"""Join steps that compute each row of their results from the same row of their inputs.

Between two attentions, a transformer has nothing else: matrix products, normalisations and element-wise steps. As one
step, they compute one block of rows after the other, so that what is between them stays in the cache. Threads share the
rows of the whole group, and wait for each other once instead of at each step.

With few rows, such as that of a token, threads share the columns of each product in turn: see ``turns``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

import numpy as np

from irrun.kernels.blocks import BLOCK_BYTES, blocks, each_block, placed, scratch
from irrun.opdef import FEW_ROWS, Call, Calls, Index, Joins, Kernel, Packing, Value
from irrun.planning.flow import Context, Flow
from irrun.planning.steps import Step

__all__ = ["alone", "join_rows"]

_MAX_BLOCK_ROWS: Final = 192
"""Rows of a block whose intermediate values take more than ``BLOCK_BYTES``: each block reads all constant matrices
again."""
_MIN_SHARED_ROWS: Final = 48
"""The fewest rows of a block, where threads share them."""
_MAX_SHARED_BYTES: Final = 1 << 24
"""The most bytes of an intermediate value, if all steps are machine code. It is shared by the threads, and the part of
it that a thread computes at a time stays in the cache."""
_F32: Final = np.dtype(np.float32)
_FIRST_SCRATCH: Final = 3
"""The first number of scratch memory that kernels do not use (see ``irrun.kernels.blocks``)."""


def join_rows(flow: Flow, context: Context) -> Flow:
    """Replace each group of steps that compute row by row by one step.

    A group has a matrix product and, unless its rows are few, at least one more product or normalisation.
    """
    rows = [_rows(step, context.values) for step in flow.steps]
    while True:
        groups = _Groups(flow, rows)
        dropped = groups.too_small(context.values)
        if not dropped:
            return groups.joined(context.values)
        rows = [0 if position in dropped else count for position, count in enumerate(rows)]


def alone(step: Step, values: Sequence[Value]) -> Step:
    """Return the step of a group of one element-wise step, if it has calls for its rows; else the step itself."""
    has_calls = _rows(step, values) > 0 and _native(step, values) is not None
    return _joined([step], step.writes, values) if has_calls else step


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

    def too_small(self, values: Sequence[Value]) -> set[int]:
        """Return the members of groups that are not worth a step: a group without numpy is, if it gains calls."""
        small: set[int] = set()
        for group in self.group.values():
            steps = [self.flow.steps[position] for position in group]
            kernels = [
                step.kernel for step in steps if step.kernel.joins.row_calls and step.kernel.out != "elementwise"
            ]
            gains_calls = len(steps) > 1 or not kernels or kernels[0].joins.calls is None
            if kernels and gains_calls and all(_native(step, values) is not None for step in steps):
                continue
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
    if (
        not shape
        or 0 in shape
        or any(values[slot].type.name != "f32" or not values[slot].shape.is_static for slot in slots)
    ):
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
    name = "by rows" if len(members) > 1 else members[0].kernel.algorithm
    kernel = Kernel(group.call, name, out="whole", flops=group.flops, packing=packing, joins=group.joins())
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

    def call(self, *arrays: np.ndarray, out: Any = None) -> Any:
        """The kernel of the group. Inputs after the operands are matrices that its members hold packed.

        Each thread computes all members on some blocks of rows.
        """
        if out is None:
            wholes = [np.empty(shape, np.float32) for shape in self.shapes]
        else:
            wholes = [out] if len(self.shapes) == 1 else list(out)
        inputs, results = self.rows(arrays, wholes)

        def fill(index: Index) -> None:
            rows = index[0].stop - index[0].start
            inner = [scratch(_FIRST_SCRATCH + n, _F32, rows, width) for n, width in enumerate(self.widths)]
            registers = self.registers(inputs, inner, results, index[0])
            for member in self.program:
                member.compute(registers)

        block_bytes = max(BLOCK_BYTES, _MAX_BLOCK_ROWS * self.row_bytes)
        least = _MIN_SHARED_ROWS * self.row_bytes
        each_block(fill, (len(results[0]),), self.row_bytes, block_bytes, work=self.flops, least=least)
        return wholes[0] if len(wholes) == 1 else tuple(wholes)

    def joins(self) -> Joins:
        """Return the calls of the group, if all of its members have calls."""
        if not all(member.rows is not None for member in self.program):
            return Joins()
        most = max(rows.stop - rows.start for rows in self.parts())
        return Joins(calls=self.calls, spare_bytes=_placed(most, self.widths)[1])

    def calls(self, *arrays: np.ndarray, out: Any, spare: np.ndarray) -> Calls:
        """Return the calls that fill ``out``: see ``Joins.calls``."""
        from irrun.fast.machine.sharing import in_blocks

        inputs, results = self.rows(arrays, [out] if len(self.shapes) == 1 else list(out))
        made: list[Call] = []
        for rows in self.parts():
            high = rows.stop - rows.start
            inner = [
                spare[begin : begin + 4 * high * width].view(_F32).reshape(high, width)
                for begin, width in zip(_placed(high, self.widths)[0], self.widths)
            ]
            registers = self.registers(inputs, inner, results, rows)
            own = [call for member in self.program for call in member.calls(registers)]
            made += own if len(results[0]) < FEW_ROWS else [in_blocks(own, high, self.most)]
        return made

    def rows(
        self, arrays: Sequence[np.ndarray], wholes: Sequence[np.ndarray]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return inputs and outputs as matrices, whose rows are contiguous."""
        inputs = [np.ascontiguousarray(array) for array in arrays[: len(self.operands)]]
        return inputs, [whole.reshape(-1, whole.shape[-1]) for whole in wholes]

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of the widest register."""
        return max(*(shape[-1] for shape in self.shapes), *self.widths, 0) * _F32.itemsize

    @property
    def most(self) -> int:
        """The most rows of a block."""
        return max(BLOCK_BYTES // self.row_bytes, _MAX_BLOCK_ROWS)

    def parts(self) -> list[slice]:
        """Return the rows whose intermediate values are in memory together, for each part of the calls."""
        most_bytes = max(_MAX_SHARED_BYTES, _MAX_BLOCK_ROWS * self.row_bytes)
        return [rows for (rows,) in blocks((prod(self.shapes[0][:-1]),), self.row_bytes, most_bytes)]

    def registers(
        self, inputs: Sequence[np.ndarray], inner: Sequence[np.ndarray], results: Sequence[np.ndarray], rows: slice
    ) -> list[np.ndarray]:
        """Return the registers of a block of rows: inputs, ``inner`` scratch memory for these rows, and results."""
        given = [operand.of_block(array, rows) for operand, array in zip(self.operands, inputs)]
        return [*given, *inner, *(result[rows] for result in results)]


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
    """Return ``Joins.row_calls`` of a step, or the same for limits, or a sum or product of two inputs.

    The rows of one of the factors of a product may be a single number.
    """
    joins, formula = step.kernel.joins, step.kernel.joins.formula
    if joins.row_calls is not None or formula is None or formula[0] not in ("add", "multiply", "clamp"):
        return joins.row_calls
    if formula[0] == "clamp":
        from irrun.fast.arithmetic import clamped

        return lambda x, *_, out: clamped(x, out, *formula[1:])
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
