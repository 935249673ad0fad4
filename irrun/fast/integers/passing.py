"""The pass of a plan that computes convolutions of levels in integers, and keeps the levels between them.

A FakeQuantize gives numbers for which levels stand, one byte each. A convolution of such numbers with filters that the
file holds as i8 is a sum of products of bytes. What follows it, up to the next FakeQuantize, is computed before its
results leave the registers, so that levels alone are written. Whatever else reads a value gets f32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from irrun.fast.integers.convolution import UNLIMITED, After, IntegerFilters, convolution
from irrun.fast.integers.dots import DOT
from irrun.fast.integers.levels import Grid, decoding, encoding, padded
from irrun.fast.integers.pooling import largest
from irrun.opdef import Kernel, Op, Value
from irrun.planning.flow import Context, Flow, is_static
from irrun.planning.steps import Step
from irrun.types import ELEMENT_TYPES, PartialShape

__all__ = ["to_integers"]

_CONVOLUTIONS: Final = {"Convolution": 0, "GroupConvolution": 1}
"""The operations that are computed in integers, each with the axis of its filters that counts the output channels."""


def to_integers(flow: Flow, context: Context) -> Flow:
    """Compute in integers where the file rounds to integers; keep the flow if the processor has no form for it."""
    return flow if DOT is None else _Integers(flow, context).computed()


class _Opaque(Op):
    """The operation of a step that reads or writes levels: no other pass knows it."""


@dataclass(frozen=True)
class _End:
    """Where what follows a convolution may end: the slot that is written, and how many steps are computed."""

    after: After
    slot: int
    steps: tuple[Step, ...]
    residual: int | None = None
    """The slot that is added, as the steps read it."""


class _Integers:
    """One pass over the steps. A slot of f32 may exist as f32, as levels, or as both."""

    def __init__(self, flow: Flow, context: Context) -> None:
        self.flow, self.context, self.values = flow, context, context.values
        self.grids: dict[int, Grid] = {}  # of each slot that levels may stand for
        self.levels: dict[int, int] = {}  # the slot of its levels, as soon as a step fills it
        self.late: dict[int, Step] = {}  # steps that are made when their f32 is read
        self.gone: set[int] = set()  # positions of steps that others compute
        self.new: list[Step] = []

    def computed(self) -> Flow:
        for position, step in enumerate(self.flow.steps):
            if position in self.gone:
                continue
            if grid := self.grid(step) or self.pooled(step):
                self.grids[step.writes[0]] = grid
                self.late[step.writes[0]] = step
            elif not self.convolved(position, step):
                self.keep(step)
        for slot in self.flow.results:
            self.read(slot)
        return self.flow.replaced(self.new)

    def keep(self, step: Step) -> None:
        """Append a step that reads f32."""
        for slot in step.reads:
            self.read(slot)
        self.new.append(step)

    def read(self, slot: int) -> None:
        """Append the step that fills a slot with f32, if it does not exist."""
        step = self.late.pop(slot, None)
        if step is None:
            return
        if slot not in self.levels:
            self.keep(step)
            return
        channels = self.shape(slot)[1]
        self.new.append(_moving(step, self.levels[slot], slot, decoding(self.grids[slot], channels)))

    def levels_of(self, slot: int) -> int:
        """Return the slot of the levels of a slot that has a grid. Append the step that fills it, if there is none."""
        if slot not in self.levels:
            step = self.flow.steps[self.flow.made[slot]]
            before = step.reads[0]
            kernel = self.pooling(step)
            if kernel is None:
                self.read(before)
                kernel = encoding(self.grids[slot], self.shape(slot))
            else:
                before = self.levels_of(before)
            self.new.append(_moving(step, before, self.new_levels(slot), kernel))
        return self.levels[slot]

    def pooled(self, step: Step) -> Grid | None:
        """Return the grid of a MaxPool of levels, or None for other steps."""
        return None if self.pooling(step) is None else self.grids[step.reads[0]]

    def pooling(self, step: Step) -> Kernel | None:
        """Return the kernel of a MaxPool of levels, or None for other steps."""
        op: Any = step.op
        if op.type != "MaxPool" or len(step.writes) > 1 or step.reads[0] not in self.grids:
            return None
        batch, channels, *sizes = self.shape(step.reads[0])
        return largest(op.axes(sizes, op.kernel), batch, padded(channels))

    def new_levels(self, slot: int) -> int:
        """Return a new slot for the levels of a slot."""
        batch, channels, high, broad = self.shape(slot)
        value = Value(ELEMENT_TYPES["u8"], PartialShape.of((batch, high, broad, padded(channels))))
        self.levels[slot] = self.context.add(value)
        return self.levels[slot]

    def shape(self, slot: int) -> tuple[int, int, int, int]:
        """Return the shape of a static value of rank 4."""
        batch, channels, high, broad = self.values[slot].shape.static or (0, 0, 0, 0)
        return batch, channels, high, broad

    def grid(self, step: Step) -> Grid | None:
        """Return the grid of a FakeQuantize of images of f32, or None for other steps."""
        op: Any = step.op
        if op.type != "FakeQuantize" or not is_static(step, self.values):
            return None
        value = self.values[step.reads[0]]
        if (
            value.type.name != "f32"
            or value.rank != 4
            or op.auto_broadcast != "numpy"
            or 0 in self.shape(step.reads[0])
        ):
            return None
        limits = [self.by_channel(slot, value) for slot in step.reads[1:]]
        known = [limit for limit in limits if limit is not None]
        return Grid.of(op.levels, known) if len(known) == 4 else None

    def by_channel(self, slot: int, value: Value) -> np.ndarray | None:
        """Return a constant that numpy broadcasts to a value of rank 4 as one number for each channel, or None."""
        array, shape = self.context.constants.get(slot), value.shape.static
        if array is None or shape is None or array.dtype != np.float32 or array.ndim > len(shape):
            return None
        own = (1,) * (len(shape) - array.ndim) + array.shape
        if any(n != 1 for axis, n in enumerate(own) if axis != 1) or own[1] not in (1, shape[1]):
            return None
        return np.broadcast_to(array.ravel(), shape[1:2])

    # -- convolutions -----------------------------------------------------------------------------

    def convolved(self, position: int, step: Step) -> bool:
        """Append the step that computes a convolution in integers, if it can be, and return whether it can."""
        op: Any = step.op
        filters = self.filters(step)
        if filters is None or not filters.fits:
            return False
        grid, shape = self.grids.get(step.reads[0]), self.shape(step.reads[0])
        if grid is None or not (grid.is_single or filters.is_depthwise):
            return False
        end = self.end(position, step)
        axes = op.axes(shape[2:], filters.codes.shape[3:])
        kernel = convolution(filters, axes, shape[0], grid, end.after)
        self.context.release_if_large([self.values[step.reads[1]]])
        reads = (self.levels_of(step.reads[0]), step.reads[1])
        if end.residual is not None:
            reads = (*reads, self.levels_of(end.residual))
        self.gone |= {self.flow.made[other.writes[0]] for other in end.steps}
        if end.after.grid is not None:
            self.grids[end.slot], self.late[end.slot] = end.after.grid, end.steps[-1]
        self.append(step, end, kernel, reads)
        return True

    def append(self, step: Step, end: _End, kernel: Kernel, reads: tuple[int, ...]) -> None:
        last = end.steps[-1] if end.steps else step
        layers = tuple(layer for member in (step, *end.steps) for layer in member.layers)
        known = replace(last, op=_Opaque(), layers=layers, dynamic=False, own_inputs=False)
        if end.after.grid is not None:
            self.new.append(replace(known, kernel=kernel, reads=reads, writes=(self.new_levels(end.slot),)))
            return
        batch, channels, high, broad = self.shape(end.slot)
        value = self.values[end.slot].reshaped(PartialShape.of((batch, high, broad, channels)))
        whole = self.context.add(value)
        self.new.append(replace(known, kernel=kernel, reads=reads, writes=(whole,)))
        self.new.append(_moving(last, whole, end.slot, _VIEW))

    def filters(self, step: Step) -> IntegerFilters | None:
        """Return the filters of a convolution that the file holds as i8 with a scale for each output channel."""
        leading = _CONVOLUTIONS.get(step.op.type)
        if leading is None or not is_static(step, self.values) or self.values[step.reads[0]].rank != 4:
            return None
        value = self.values[step.reads[1]]
        stored, shape = value.stored, value.shape.static
        if stored is None or shape is None or stored.type.name != "i8" or stored.zeros is not None:
            return None
        codes = stored.codes.reshape((1,) * (1 - leading) + shape)
        outs = codes.shape[0] * codes.shape[1]
        scales = np.ones((1, 1)) if stored.scales is None else stored.scales.astype(np.float64)
        try:
            spread = np.broadcast_to(scales.reshape(scales.size if leading == 0 else scales.shape), codes.shape[:2])
        except ValueError:
            return None
        return IntegerFilters(codes, spread.reshape(outs))

    def end(self, position: int, step: Step) -> _End:
        """Return the last of the ends of what follows a convolution that gives levels, or else f32."""
        channels = self.shape(step.writes[0])[1]
        end = best = _End(After(np.zeros(channels)), step.writes[0], ())
        while (following := self.following(position, end)) is not None:
            end = following
            best = end if end.after.grid is not None or best.after.grid is None else best
        return best

    def following(self, position: int, end: _End) -> _End | None:
        """Return the end that lies one step further, or None if that cannot be computed."""
        reader = self.flow.only_reader(end.slot)
        then = None if reader is None or reader in self.gone else self.flow.steps[reader]
        if then is None or not is_static(then, self.values):
            return None
        slot, after = then.writes[0], end.after
        value, result = self.values[end.slot], self.values[slot]
        if result.type is not value.type or result.shape != value.shape:
            return None
        longer = replace(end, slot=slot, steps=(*end.steps, then))
        if grid := self.grid(then):
            return None if then.reads[0] != end.slot or after.grid is not None else _gridded(longer, grid)
        kind, *limits = then.kernel.joins.formula or ("",)
        if kind == "clamp" and after.grid is None:
            low, high = max(after.limits[0], limits[0]), min(after.limits[1], limits[1])
            return replace(longer, after=replace(after, limits=(low, high))) if low <= high else None
        if kind != "add" or len(then.reads) != 2:
            return None
        other = then.reads[1 - then.reads.index(end.slot)]
        bias = self.by_channel(other, value)
        if bias is not None:
            plain = after.limits == UNLIMITED and after.residual is None and after.grid is None
            return replace(longer, after=replace(after, bias=after.bias + bias)) if plain else None
        return self.with_residual(position, longer, other)

    def with_residual(self, position: int, end: _End, other: int) -> _End | None:
        """Return an end that adds a slot which exists as levels before the convolution at a position, or None."""
        grid, after = self.grids.get(other), end.after
        if grid is None or after.residual is not None or self.flow.made[other] > position:
            return None
        if self.values[other].shape != self.values[end.slot].shape:
            return None
        if after.grid is None and after.limits == UNLIMITED:
            return replace(end, after=replace(after, residual=grid), residual=other)
        if after.grid is None:
            return None
        made = After(after.bias, after.limits, after.grid, grid)
        return replace(end, after=made, residual=other)


def _gridded(end: _End, grid: Grid) -> _End:
    return replace(end, after=replace(end.after, grid=grid))


def _moving(step: Step, read: int, write: int, kernel: Kernel) -> Step:
    """Return a step that converts a value. It counts for the layer of ``step``."""
    return replace(
        step,
        op=_Opaque(),
        kernel=kernel,
        reads=(read,),
        writes=(write,),
        layers=(step.layer,),
        dynamic=False,
        own_inputs=False,
    )


_VIEW: Final = Kernel(lambda array: array.transpose(0, 3, 1, 2), "view of channels last")
