"""Switch regions around convolutions to the channels-last layout (NHWC): batch, rows, columns, channels.

Inside a region, steps read and write values of rank 4 in this layout. A value that enters a region is copied. A step
outside reads a value of a region through a transposed view. Values of f16 and bf16 are f32 inside a region, because
numpy computes narrow floats one at a time; steps outside read a rounded copy. Outputs of the model are copied, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from irrun.inference.layer import infer
from irrun.inference.propagate import site
from irrun.kernels.copies import Reshaped, copy_to
from irrun.opdef import ORDER, Kernel, Op, Value
from irrun.planning import requests
from irrun.planning.flow import Context, Flow
from irrun.planning.steps import Step
from irrun.types import ELEMENT_TYPES, PartialShape

__all__ = ["Moving", "is_copied", "shown_first", "to_channels_last"]

_FIRST: Final = (0, 3, 1, 2)
"""The axes of a channels-last value in the order batch, channels, rows, columns."""

_TO_REGION: Final = "to channels last"
"""The name of the copy of a value that enters a region."""
_MIN_COMPUTED_PER_MOVED: Final = 4
"""The fewest elements computed inside regions for each element that is copied or viewed at their boundaries. With
fewer, the copies would cost what the layout saves."""
_SHORT_ROW_ELEMENTS: Final = 1 << 8
"""Elements in the last axis below which numpy is slow at broadcasting: its inner loops are then too short."""


def to_channels_last(flow: Flow, context: Context) -> Flow:
    """Switch regions to channels-last layout; keep the steps as they are if that does not pay."""
    known, held = len(context.values), set(context.constants)
    layout = _Layout(context)
    arranged = layout.arranged(flow)
    if 0 < layout.converted * _MIN_COMPUTED_PER_MOVED <= layout.computed:
        return arranged
    del context.values[known:]
    for slot in context.constants.keys() - held:
        del context.constants[slot]
    return flow


class _Layout:
    """One pass over the steps. ``last`` maps a slot to the slot that holds the same value in channels-last layout."""

    def __init__(self, context: Context) -> None:
        self.context, self.values, self.constants = context, context.values, context.constants
        self.last: dict[int, int] = {}
        self.fixed: dict[tuple[int, int], int] = {}  # the same for constants, by slot and number of repeats along a row
        # values that so far exist only in channels-last layout, keyed by slot, with the step that produces them
        self.only: dict[int, Step] = {}
        self.new: list[Step] = []
        self.converted = self.computed = 0  # elements at layout boundaries, and elements computed inside

    def arranged(self, flow: Flow) -> Flow:
        """Return the flow, in channels-last layout where possible, with steps that copy or view at the boundaries."""
        for step in flow.steps:
            kernel = self.kernel(step)
            if kernel is None:
                for slot in step.reads:
                    self.view(slot)
                self.new.append(step)
                continue
            reads = tuple(self.read(step, kernel, n) for n in range(len(step.reads)))
            for slot in step.writes:
                self.last[slot] = self.context.add(_permuted(_widened(self.values[slot])))
                self.only[slot] = step
                self.computed += _size(self.values[slot])
            writes = tuple(self.last[slot] for slot in step.writes)
            # not dynamic: all shapes are static, and no shape depends on the contents of a value of rank 4
            inside = replace(step, kernel=kernel, reads=reads, writes=writes, dynamic=False, own_inputs=False)
            self.new.append(inside)
        for slot in flow.results:
            self.view(slot, copied=True)
        return flow.replaced(self.new)

    def kernel(self, step: Step) -> Kernel | None:
        """Return the kernel of a step in channels-last layout, or None if the step stays outside."""
        inputs = [None if slot < 0 else self.values[slot] for slot in step.reads]
        outputs = [self.values[slot] for slot in step.writes]
        if not self.gains(step, inputs, outputs):
            return None
        narrow = any(v is not None and _is_narrow(v) for v in (*inputs, *outputs))
        if narrow:
            inputs = [None if value is None else _widened(value) for value in inputs]
        kernel = requests.kernel(step.op, inputs) if narrow and not step.kernel.flops else step.kernel
        if kernel.out != "elementwise":
            kernel = requests.channels_last_kernel(
                step.op, inputs, len(outputs), compiled=self.context.compiled, precision=step.precision
            )
            self.context.release_if_large(inputs)
        return None if kernel is None or (narrow and not _stays_wide(step, inputs, outputs)) else kernel

    def gains(self, step: Step, inputs: Sequence[Value | None], outputs: Sequence[Value]) -> bool:
        """Return whether a step may enter a region: its shapes are static, its outputs of rank 4, and it gains.

        Only convolutions and matrix products gain. Other steps just save copies between these, so that one of their
        inputs must be inside already.
        """
        static = all(v is None or v.shape.is_static for v in (*inputs, *outputs))
        if step.needed or not static or any(v.rank != 4 for v in outputs):
            return False
        inside = any(slot in self.last for slot in step.reads)
        return inside or (step.kernel.out != "elementwise" and step.kernel.flops > 0)

    def read(self, step: Step, kernel: Kernel, number: int) -> int:
        """Return the slot that a step inside a region reads as input ``number``; create it if necessary."""
        slot = step.reads[number]
        if slot < 0 or number in kernel.packing.inputs or (self.values[slot].rank != 4 and kernel.out != "elementwise"):
            return slot
        value = self.values[slot]
        if _size(value) == 1 and slot not in self.last and not _is_narrow(value):
            return slot
        if slot in self.constants:
            return self.constant(slot, self.values[step.writes[0]] if kernel.out == "elementwise" else None)
        if slot not in self.last:
            self.last[slot] = self.copied(slot, step)
        return self.last[slot]

    def constant(self, slot: int, reached: Value | None) -> int:
        """Return the slot of a constant in channels-last layout.

        ``reached`` is the output of the element-wise step that reads the constant, if it is one. Numpy is slow at
        broadcasting a few channels to it, so they are repeated for each column.
        """
        value = _widened(self.values[slot])
        array = _of_rank_4(self.constants[slot]).transpose(ORDER)
        columns = reached.shape.static[3] if reached is not None and reached.shape.static else 1
        count = columns if array.size == array.shape[3] < _SHORT_ROW_ELEMENTS else 1
        if (slot, count) not in self.fixed:
            array = np.ascontiguousarray(array.repeat(count, axis=2), value.type.dtype)
            self.fixed[slot, count] = self.context.add(Value.of(array, value.type), array)
        return self.fixed[slot, count]

    def copied(self, slot: int, step: Step) -> int:
        """Return a new slot for the channels-last copy of a value from outside, and append the step that copies it."""
        value = _permuted(_widened(self.values[slot]))
        self.converted += _size(value)
        added = self.context.add(value)
        shape = value.shape.static
        assert shape is not None
        is_same = 1 in (prod(shape[1:3]), shape[3]) and not _is_narrow(self.values[slot])
        kernel = Kernel(Reshaped(shape), _TO_REGION) if is_same else _copying(ORDER, value, _TO_REGION)
        self.new.append(_moving(step, slot, added, kernel, () if _is_narrow(self.values[slot]) else ORDER))
        return added

    def view(self, slot: int, copied: bool = False) -> None:
        """Append the step that fills a slot for consumers outside, if its value exists only in channels-last layout.

        The slot gets a transposed view; with ``copied``, and for f16 and bf16, a copy.
        """
        step = self.only.pop(slot, None)
        if step is None:
            return
        value = self.values[slot]
        self.converted += _size(value)
        copied = copied or _is_narrow(value)
        kernel = _copying(_FIRST, value, "from channels last") if copied else _VIEW
        self.new.append(_moving(step, self.last[slot], slot, kernel, () if _is_narrow(value) else _FIRST))


def is_copied(step: Step) -> bool:
    """Return whether a step copies a value from outside to a region."""
    return isinstance(step.op, Moving) and step.kernel.algorithm == _TO_REGION


def _moving(step: Step, read: int, write: int, kernel: Kernel, order: Sequence[int]) -> Step:
    """Return a step that converts a value between layouts. It counts for the layer of ``step``.

    ``order`` are the axes of the value in their new order; none if its element type changes.
    """
    op = Moving()
    op.order = order
    return replace(
        step, op=op, kernel=kernel, reads=(read,), writes=(write,), layers=(step.layer,), dynamic=False,
        own_inputs=False,
    )  # fmt: skip


def shown_first(step: Step, read: int, write: int, rank: int) -> Step:
    """Return a step that gives a view, with its channels first, of a value of a rank whose channels are last."""
    order = (0, rank - 1, *range(1, rank - 1))
    return _moving(step, read, write, Kernel(lambda array: array.transpose(order), _VIEW.algorithm), order)


class Moving(Op):
    """The operation of a step that converts a value between layouts. It has no name, because no file has it."""

    type = ""
    views = "strided"
    order: Sequence[int]

    def moves(self, inputs: Sequence[Value | None], /) -> bool:
        return bool(self.order)

    @property
    def first(self) -> bool:
        """Whether the channels are first in the new order."""
        return self.order == _FIRST

    def run(self, data: np.ndarray) -> np.ndarray:
        return (_of_rank_4(data) if len(self.order) == len(ORDER) else data).transpose(self.order)


def _of_rank_4(array: np.ndarray) -> np.ndarray:
    """Return the array with leading axes of size 1, so that its rank is 4."""
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def _copying(order: Sequence[int], value: Value, algorithm: str) -> Kernel:
    """Return the kernel that copies an array with its axes in this ``order``, to the element type of ``value``."""

    def call(array: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        transposed = _of_rank_4(array).transpose(order)
        out = np.empty(transposed.shape, value.type.dtype) if out is None else out
        copy_to(out, transposed)
        return out

    return Kernel(call, algorithm, out="whole")


_VIEW: Final = Kernel(lambda array: array.transpose(_FIRST), "view of channels last")


def _stays_wide(step: Step, inputs: Sequence[Value | None], outputs: Sequence[Value]) -> bool:
    """Return whether a step that reads widened inputs gives widened outputs."""
    inferred = infer(step.op, site(step.layer), inputs, {}, contents=False)
    return all(value.type is _widened(own).type for value, own in zip(inferred, outputs))


def _is_narrow(value: Value) -> bool:
    return value.type.name in ("f16", "bf16")


def _widened(value: Value) -> Value:
    """Return the Value that represents ``value`` inside a region: in f32 if it is f16 or bf16, else itself."""
    if not _is_narrow(value):
        return value
    data, f32 = value.exact, ELEMENT_TYPES["f32"]
    return Value(f32, value.shape, None if data is None else data.astype(np.float32))


def _permuted(value: Value) -> Value:
    """Return the Value in channels-last layout, of rank 4 and without contents."""
    dims = value.shape.static
    assert dims is not None
    dims = (1,) * (4 - len(dims)) + dims
    return value.reshaped(PartialShape.of([dims[axis] for axis in ORDER]))


def _size(value: Value) -> int:
    """Return the number of elements of a static Value."""
    return prod(value.shape.static or ())
