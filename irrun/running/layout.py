"""Channels last: convolutions, and what stands between them, on values (batch, rows, columns, channels).

Where it pays, such steps take and give values of rank 4 in this order. A value is copied where it comes in from other
steps; to those that read it outside it is a view. What is of f16 or bf16 is f32 among them, and rounded for those that
read it outside: numpy computes narrow floats one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from irrun.inference.layer import infer
from irrun.inference.propagate import site
from irrun.kernels.copies import copy_to
from irrun.opdef import ORDER, Kernel, Op, Value
from irrun.running.steps import Step
from irrun.types import ELEMENT_TYPES, PartialShape

__all__ = ["channels_last"]

_FIRST: Final = (0, 3, 1, 2)

_SHARE: Final = 4
"""What is copied or viewed at the borders may be one in so many of the elements that are computed inside."""
_ROW: Final = 1 << 8
"""Elements in a row below which numpy is slow at broadcasting it."""


Packed = Callable[[Sequence[Value | None]], None]
"""Is told the inputs of each kernel that is made."""


def channels_last(
    steps: Sequence[Step], values: list[Value], constants: dict[int, np.ndarray], results: Sequence[int], packed: Packed
) -> Sequence[Step]:
    """The steps with those on values with channels last that gain by it. New slots are added to ``values``."""
    known, held = len(values), set(constants)
    layout = _Layout(values, constants, packed)
    arranged = layout.arranged(steps, results)
    if 0 < layout.moved * _SHARE <= layout.computed:
        return arranged
    del values[known:]
    for slot in constants.keys() - held:
        del constants[slot]
    return steps


class _Layout:
    """Goes through steps once. ``last`` tells in which slot a value stands with its channels last."""

    def __init__(self, values: list[Value], constants: dict[int, np.ndarray], packed: Packed) -> None:
        self.values, self.constants, self.packed = values, constants, packed
        self.last: dict[int, int] = {}
        self.fixed: dict[tuple[int, int], int] = {}  # the same of constants, by how often they repeat along a row
        self.only: dict[int, Step] = {}  # slots that no step has filled yet, by the step that gives their value
        self.new: list[Step] = []
        self.moved = self.computed = 0

    def arranged(self, steps: Sequence[Step], results: Sequence[int]) -> list[Step]:
        for step in steps:
            kernel = self.kernel(step)
            if kernel is None:
                for slot in step.reads:
                    self.view(slot)
                self.new.append(step)
                continue
            reads = tuple(self.read(step, kernel, n) for n in range(len(step.reads)))
            for slot in step.writes:
                self.last[slot] = self.add(_permuted(_widened(self.values[slot])))
                self.only[slot] = step
                self.computed += _size(self.values[slot])
            writes = tuple(self.last[slot] for slot in step.writes)
            # not dynamic: all shapes are known, and no shape follows from what stands in a value of rank 4
            inside = replace(step, kernel=kernel, reads=reads, writes=writes, dynamic=False, own_inputs=False)
            self.new.append(inside)
        for slot in results:
            self.view(slot, copied=True)
        return self.new

    def kernel(self, step: Step) -> Kernel | None:
        """How a step is computed on values with channels last; None where it is not."""
        values = [None if slot < 0 else self.values[slot] for slot in step.reads]
        results = [self.values[slot] for slot in step.writes]
        known = all(v is None or v.shape.is_static for v in (*values, *results))
        if step.needed or not known or any(v.rank != 4 for v in results):
            return None
        inside = [slot for slot in step.reads if slot in self.last]
        # products are what gains by it; the others only save copies
        if not inside and (step.kernel.elementwise or not step.kernel.flops):
            return None
        narrow = any(v is not None and _is_narrow(v) for v in (*values, *results))
        if narrow:
            values = [None if value is None else _widened(value) for value in values]
        kernel = step.op.prepare(*values) if narrow and not step.kernel.flops else step.kernel
        if not kernel.elementwise:
            kernel = step.op.prepare_channels_last(*values)
            self.packed(values)
        if kernel is None or (kernel.out and len(results) > 1):  # which gives the first alone
            return None
        if narrow:
            found = infer(step.op, site(step.layer), values, {}, contents=False)
            if any(value.type is not _widened(own).type for value, own in zip(found, results)):
                return None
        return kernel

    def read(self, step: Step, kernel: Kernel, number: int) -> int:
        """The slot that a step reads instead of its own."""
        slot = step.reads[number]
        if slot < 0 or number in kernel.ignores or (self.values[slot].rank != 4 and not kernel.elementwise):
            return slot
        value = self.values[slot]
        if _size(value) == 1 and slot not in self.last and not _is_narrow(value):
            return slot
        if slot in self.constants:
            return self.constant(slot, self.values[step.writes[0]] if kernel.elementwise else None)
        if slot not in self.last:
            self.last[slot] = self.copied(slot, step)
        return self.last[slot]

    def constant(self, slot: int, reached: Value | None) -> int:
        """A slot with a constant; what numpy broadcasts to ``reached`` along short rows is repeated there."""
        value = _widened(self.values[slot])
        array = _of_rank_4(self.constants[slot]).transpose(ORDER)
        columns = reached.shape.static[3] if reached is not None and reached.shape.static else 1
        count = columns if array.size == array.shape[3] < _ROW else 1
        if (slot, count) not in self.fixed:
            array = np.ascontiguousarray(array.repeat(count, axis=2), value.type.dtype)
            found = self.fixed[slot, count] = self.add(Value.of(array, value.type))
            self.constants[found] = array
        return self.fixed[slot, count]

    def copied(self, slot: int, step: Step) -> int:
        """A slot with a value that comes from outside."""
        value = _permuted(_widened(self.values[slot]))
        self.moved += _size(value)
        found = self.add(value)
        self.new.append(_moving(step, slot, found, _copying(ORDER, value, "to channels last")))
        return found

    def view(self, slot: int, copied: bool = False) -> None:
        """Fill a slot that is read outside."""
        step = self.only.pop(slot, None)
        if step is None:
            return
        value = self.values[slot]
        self.moved += _size(value)
        copied = copied or _is_narrow(value)
        kernel = _copying(_FIRST, value, "from channels last") if copied else _VIEW
        self.new.append(_moving(step, self.last[slot], slot, kernel))

    def add(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1


def _moving(step: Step, read: int, write: int, kernel: Kernel) -> Step:
    """A step that brings a value of, or for, another step into the other order."""
    return replace(
        step, op=_Moving(), kernel=kernel, reads=(read,), writes=(write,), layers=(step.layer,), dynamic=False,
        own_inputs=False,
    )  # fmt: skip


class _Moving(Op):
    """What stands for the layer of such a step."""

    views = "strided"


def _of_rank_4(array: np.ndarray) -> np.ndarray:
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def _copying(order: Sequence[int], value: Value, algorithm: str) -> Kernel:
    """The kernel that copies the axes of an array in this order, to what is of the type of ``value``."""

    def call(array: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        turned = _of_rank_4(array).transpose(order)
        out = np.empty(turned.shape, value.type.dtype) if out is None else out
        copy_to(out, turned)
        return out

    return Kernel(call, algorithm, out=True)


_VIEW: Final = Kernel(lambda array: array.transpose(_FIRST), "view of channels last")


def _is_narrow(value: Value) -> bool:
    return value.type.name in ("f16", "bf16")


def _widened(value: Value) -> Value:
    """What stands inside for a value: itself, or if it is narrow the same in f32."""
    if not _is_narrow(value):
        return value
    data, f32 = value.exact, ELEMENT_TYPES["f32"]
    return Value(f32, value.shape, None if data is None else data.astype(np.float32))


def _permuted(value: Value) -> Value:
    dims = value.shape.static
    assert dims is not None
    dims = (1,) * (4 - len(dims)) + dims
    return value.reshaped(PartialShape.of([dims[axis] for axis in ORDER]))


def _size(value: Value) -> int:
    return prod(value.shape.static or ())
