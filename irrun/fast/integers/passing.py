"""The pass of a plan that computes convolutions and products of levels in integers, and keeps the levels between them.

A FakeQuantize gives numbers for which levels stand, one byte each. A convolution of such numbers with filters that the
file holds as i8 is a sum of products of bytes. What follows it, up to the next FakeQuantize, is computed before its
results leave the registers, so that levels alone are written. Whatever else reads a value gets f32. The rows of a
matrix are windows of a single pixel, whose channels are the columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from irrun.fast.activations import numbered
from irrun.fast.integers.convolution import (
    UNLIMITED,
    After,
    IntegerFilters,
    convolution,
    joins_taps,
    padding,
    widening,
    widens,
)
from irrun.fast.integers.dots import DOT
from irrun.fast.integers.levels import Grid, decoding, encoding, padded
from irrun.fast.integers.pooling import JOINING, largest
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Kernel, Op, Value
from irrun.planning import requests
from irrun.planning.flow import Context, Flow, is_static
from irrun.planning.layout import shown_first
from irrun.planning.steps import UNCHOSEN, Step
from irrun.types import ELEMENT_TYPES, PartialShape

__all__ = ["to_integers"]

_LEADING: Final = {"Convolution": 0, "GroupConvolution": 1, "MatMul": 0}
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
    is_dense: bool = True
    """Whether an activation may follow: there is no kernel of depthwise convolutions with one."""


class _Integers:
    """One pass over the steps. A slot of f32 may exist as f32, as levels, or as both."""

    def __init__(self, flow: Flow, context: Context) -> None:
        self.flow, self.context, self.values = flow, context, context.values
        self.grids: dict[int, Grid] = {}  # of each slot that levels may stand for
        self.levels: dict[tuple[int, bool], int] = {}  # the slot of its levels of an image, or of rows
        self.wide: dict[int, int] = {}  # the slot of levels as i16, by that of levels
        self.late: dict[int, Step] = {}  # steps that are made when their f32 is read
        self.gone: set[int] = set()  # positions of steps that others compute
        self.new: list[Step] = []

    def computed(self) -> Flow:
        for position, step in enumerate(self.flow.steps):
            if position in self.gone:
                continue
            if grid := self.grid(step) or self.passed(step):
                self.grids[step.writes[0]] = grid
                self.late[step.writes[0]] = step
            elif self.scaling(step) is not None:
                self.late[step.writes[0]] = step
            elif not self.multiplied(position, step):
                self.keep(step)
        for slot in self.flow.results:
            self.read(slot)
        return self.flow.replaced(self.new)

    def keep(self, step: Step) -> None:
        """Append a step that reads f32."""
        for slot in step.reads:
            self.read(slot)
        if step.kernel is UNCHOSEN:
            inputs = [None if slot < 0 else self.values[slot] for slot in step.reads]
            step = replace(step, kernel=requests.kernel(step.op, inputs, len(step.writes), compiled=True))
            self.context.release_if_large(inputs)
        self.new.append(step)

    def read(self, slot: int) -> None:
        """Append the step that fills a slot with f32, if it does not exist."""
        step = self.late.pop(slot, None)
        if step is None:
            return
        known = [is_rows for is_rows in (False, True) if (slot, is_rows) in self.levels]
        if not known:
            self.keep(step)
            return
        is_rows, shape = known[0], self.values[slot].shape.static or ()
        kernel = decoding(self.grids[slot], shape if is_rows else self.shape(slot, False))
        decoded = _moving(step, self.levels[slot, is_rows], slot, kernel)
        if is_rows:
            self.new.append(decoded)
        else:
            self.append_shown(decoded, slot)

    def levels_of(self, slot: int, is_rows: bool) -> int:
        """Return the slot of the levels of a slot that has a grid. Append the step that fills it, if there is none."""
        if (slot, is_rows) in self.levels:
            return self.levels[slot, is_rows]
        step = self.flow.steps[self.flow.made[slot]]
        layers = (step.layer,)
        kernel = None if is_rows else self.of_levels(step)
        if kernel is not None:
            before = [self.levels_of(read, is_rows) for read in step.reads]
        else:
            source = step
            while is_rows and source.op.views == "reshaped" and source.reads[0] in self.late:
                source = self.flow.steps[self.flow.made[source.reads[0]]]
            # levels of it are the results of a step that computes the FakeQuantize, too
            known = {(source.writes[0], rows) for rows in (False, True)}
            is_first = source.op.type == "FakeQuantize" and known.isdisjoint(self.levels)
            before, grid = [source.reads[0] if is_first else slot], self.grids[slot]
            is_own = is_first and source is step
            if is_own and (scaled := self.late.get(before[0])) and (scaling := self.scaling(scaled)):
                before, grid, layers = [scaling[0]], grid.scaled(scaling[1]), (*scaled.layers, *layers)
            self.read(before[0])
            kernel = encoding(grid, self.shape(slot, is_rows), is_rows)
        moving = _moving(step, -1, self.new_levels(slot, is_rows), kernel)
        self.new.append(replace(moving, reads=tuple(before), layers=layers))
        return self.levels[slot, is_rows]

    def scaling(self, step: Step) -> tuple[int, np.ndarray] | None:
        """Return the slot that a step multiplies, and the number for each column.

        Return None for other steps, and unless a FakeQuantize of the rows of a matrix alone reads the product.
        """
        if step.kernel.joins.formula != ("multiply",) or len(step.reads) != 2 or not is_static(step, self.values):
            return None
        slot, reader = step.writes[0], self.flow.only_reader(step.writes[0])
        value = self.values[slot]
        if reader is None or value.rank == 4 or self.grid(self.flow.steps[reader]) is None:
            return None
        for data, other in (step.reads, step.reads[::-1]):
            factors = self.by_channel(other, value, True)
            if factors is not None and self.values[data].shape == value.shape and data not in self.grids:
                return data, factors.astype(np.float64)
        return None

    def passed(self, step: Step) -> Grid | None:
        """Return the grid of what a MaxPool, a Concat or a view makes of levels, or None for other steps."""
        grid = self.grids.get(step.reads[0]) if step.reads else None
        if grid is None or not is_static(step, self.values):
            return None
        return grid if (step.op.views and grid.is_single) or self.of_levels(step) else None

    def of_levels(self, step: Step) -> Kernel | None:
        """Return the kernel of a MaxPool or Concat of the levels of images, or None for other steps."""
        op: Any = step.op
        if op.type not in ("Concat", "MaxPool") or len(step.writes) != 1 or self.values[step.writes[0]].rank != 4:
            return None
        shapes = [self.shape(slot, False) for slot in step.reads]
        if op.type == "MaxPool":
            batch, *sizes, channels = shapes[0]
            return largest(op.axes(sizes, op.kernel), batch, padded(channels))
        grids = [self.grids.get(slot) for slot in step.reads]
        if op.axis not in (1, -3) or any(shape[3] != padded(shape[3]) for shape in shapes):
            return None
        return JOINING if all(grid is not None and grid.is_like(grids[0]) for grid in grids) else None

    def new_levels(self, slot: int, is_rows: bool) -> int:
        """Return a new slot for the levels of a slot."""
        *pixels, channels = self.shape(slot, is_rows)
        value = Value(ELEMENT_TYPES["u8"], PartialShape.of((*pixels, padded(channels))))
        self.levels[slot, is_rows] = self.context.add(value)
        return self.levels[slot, is_rows]

    def shape(self, slot: int, is_rows: bool) -> tuple[int, int, int, int]:
        """Return the shape (batch, rows, columns, channels) of an image, or of the rows of a matrix as pixels."""
        dims = (*(self.values[slot].shape.static or ()),)
        if is_rows:
            return 1, 1, math.prod(dims[:-1]), dims[-1]
        return dims[0], dims[2], dims[3], dims[1]

    def grid(self, step: Step) -> Grid | None:
        """Return the grid of a FakeQuantize of f32, or None for other steps. Only images have one for each channel."""
        op: Any = step.op
        if op.type != "FakeQuantize" or not is_static(step, self.values):
            return None
        value = self.values[step.reads[0]]
        if value.type.name != "f32" or (value.rank or 0) < 2 or 0 in (value.shape.static or ()):
            return None
        known = [self.by_channel(slot, value, value.rank != 4) for slot in step.reads[1:]]
        limits = [limit for limit in known if limit is not None]
        grid = Grid.of(op.levels, limits) if len(limits) == 4 and op.auto_broadcast == "numpy" else None
        return None if grid is None or (value.rank != 4 and not grid.is_single) else grid

    def by_channel(self, slot: int, value: Value, is_rows: bool) -> np.ndarray | None:
        """Return a constant that numpy broadcasts to a value as one number for each channel, or None."""
        array, shape = self.context.constants.get(slot), value.shape.static
        if array is None or shape is None or array.dtype != np.float32 or array.ndim > len(shape):
            return None
        own, channel = (1,) * (len(shape) - array.ndim) + array.shape, len(shape) - 1 if is_rows else 1
        if any(n != 1 for axis, n in enumerate(own) if axis != channel) or own[channel] not in (1, shape[channel]):
            return None
        return np.broadcast_to(array.ravel(), shape[channel : channel + 1])

    # -- convolutions and products ----------------------------------------------------------------

    def multiplied(self, position: int, step: Step) -> bool:
        """Append the step that computes a convolution or product in integers, and return whether there is one."""
        op: Any = step.op
        filters, is_rows = self.filters(step), op.type == "MatMul"
        grid = self.grids.get(step.reads[0]) if filters is not None and filters.fits else None
        if filters is None or grid is None or not (grid.is_single or filters.is_depthwise):
            return False
        end = self.end(position, step, is_rows, not filters.is_depthwise)
        batch, *sizes, _ = self.shape(step.reads[0], is_rows)
        axes = tuple(Axis(n, 1, 1, 1, 0, 0, n) for n in sizes) if is_rows else op.axes(sizes, filters.codes.shape[3:])
        kernel = convolution(filters, axes, batch, grid, end.after)
        self.context.release_if_large([self.values[step.reads[1]]])
        levels = self.levels_of(step.reads[0], is_rows)
        if joins_taps(filters, axes):
            pads, shape = padding(filters, axes, batch, grid)
            padded = self.context.add(Value(ELEMENT_TYPES["u8"], PartialShape.of(shape)))
            self.new.append(_moving(step, levels, padded, pads))
            levels = padded
        if widens(filters):
            levels = self.widened(step, levels)
        reads = (levels, step.reads[1])
        if end.residual is not None:
            reads = (*reads, self.levels_of(end.residual, is_rows))
        self.gone |= {self.flow.made[other.writes[0]] for other in end.steps}
        if end.after.grid is not None:
            self.grids[end.slot], self.late[end.slot] = end.after.grid, end.steps[-1]
        self.append(step, end, kernel, reads, is_rows)
        return True

    def widened(self, step: Step, levels: int) -> int:
        """Return the slot of levels as i16. Append the step that fills it, if there is none."""
        if levels not in self.wide:
            kernel, shape = widening(self.values[levels].shape.static or ())
            self.wide[levels] = self.context.add(Value(ELEMENT_TYPES["u8"], PartialShape.of(shape)))
            self.new.append(_moving(step, levels, self.wide[levels], kernel))
        return self.wide[levels]

    def append(self, step: Step, end: _End, kernel: Kernel, reads: tuple[int, ...], is_rows: bool) -> None:
        last = end.steps[-1] if end.steps else step
        layers = tuple(layer for member in (step, *end.steps) for layer in member.layers)
        known = replace(last, op=_Opaque(), kernel=kernel, reads=reads, layers=layers, dynamic=False, own_inputs=False)
        if end.after.grid is not None or is_rows:
            slot = end.slot if end.after.grid is None else self.new_levels(end.slot, is_rows)
            self.new.append(replace(known, writes=(slot,)))
            return
        self.append_shown(known, end.slot)

    def append_shown(self, step: Step, slot: int) -> None:
        """Append a step that fills a value whose channels are last, and one that gives a slot as a view of it."""
        whole = self.context.add(self.values[slot].reshaped(PartialShape.of(self.shape(slot, False))))
        self.new.append(replace(step, writes=(whole,)))
        self.new.append(shown_first(step, whole, slot, 4))

    def filters(self, step: Step) -> IntegerFilters | None:
        """Return the filters or the matrix that the file holds as i8, with a scale for each channel of the output."""
        op: Any = step.op
        leading = _LEADING.get(op.type)
        if leading is None or not is_static(step, self.values):
            return None
        value, data = self.values[step.reads[1]], self.values[step.reads[0]]
        stored, shape = value.stored, value.shape.static
        if stored is None or shape is None or stored.type.name != "i8" or stored.zeros is not None:
            return None
        codes, scales = stored.codes.reshape(shape), np.ones((1, 1)) if stored.scales is None else stored.scales
        if op.type == "MatMul":
            codes, scales = (codes, scales) if op.transpose_b else (codes.T, scales.T)
            codes = codes.reshape(1, *codes.shape, 1, 1)
            if op.transpose_a or (data.rank or 0) < 2:
                return None
        elif data.rank != 4:
            return None
        else:
            codes = codes.reshape((1,) * (1 - leading) + shape)
        scales = scales.astype(np.float64) if leading else scales.astype(np.float64).T
        if any(n not in (1, of) for n, of in zip(scales.shape, codes.shape)):
            return None
        return IntegerFilters(codes, np.broadcast_to(scales, codes.shape[:2]).ravel())

    def end(self, position: int, step: Step, is_rows: bool, is_dense: bool) -> _End:
        """Return the last of the ends of what follows a convolution that gives levels, or else f32."""
        channels = self.shape(step.writes[0], is_rows)[3]
        end = best = _End(After(np.zeros(channels)), step.writes[0], (), None, is_dense)
        while (following := self.following(position, end, is_rows)) is not None:
            end = following
            is_f32 = end.after.grid is None and end.after.change is None and best.after.grid is None
            best = end if is_f32 or end.after.grid is not None else best
        after = best.after
        is_plain = after.first is None and after.residual is None and after.change is None
        if after.grid is None or not is_plain or self.takes_levels(best.slot):
            return best
        # f32 of the levels
        return replace(best, after=After(after.bias, after.limits, after.grid))

    def takes_levels(self, slot: int) -> bool:
        """Return whether a step may read a slot as levels."""
        readers = (self.flow.steps[n] for n in self.flow.readers.get(slot, ()) if n < self.flow.end)
        return any(
            step.op.type in (*_LEADING, "Add", "Concat", "MaxPool")
            or (step.op.views and any(map(self.takes_levels, step.writes)))
            for step in readers
        )

    def following(self, position: int, end: _End, is_rows: bool) -> _End | None:
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
            fits = then.reads[0] == end.slot and after.grid is None and (grid.is_single or not is_rows)
            return _gridded(longer, grid) if fits else None
        if numbered(then.kernel.joins.change) is not None:
            fits = end.is_dense and after.grid is None and after.residual is None and after.change is None
            return replace(longer, after=replace(after, change=then.kernel.joins.change)) if fits else None
        kind, *limits = then.kernel.joins.formula or ("",)
        if after.change is not None:
            return self.multiplied_by(longer, then, end.slot, is_rows) if kind == "multiply" else None
        if kind == "clamp" and after.grid is None:
            low, high = max(after.limits[0], limits[0]), min(after.limits[1], limits[1])
            return replace(longer, after=replace(after, limits=(low, high))) if low <= high else None
        if kind != "add" or len(then.reads) != 2:
            return None
        other = then.reads[1 - then.reads.index(end.slot)]
        bias = self.by_channel(other, value, is_rows)
        if bias is not None:
            plain = after.limits == UNLIMITED and after.residual is None and after.grid is None
            return replace(longer, after=replace(after, bias=after.bias + bias)) if plain else None
        return self.with_residual(position, longer, other, is_rows)

    def multiplied_by(self, end: _End, step: Step, slot: int, is_rows: bool) -> _End | None:
        """Return an end whose step multiplies a slot by a number for each channel, or None for other products."""
        other = step.reads[1 - step.reads.index(slot)]
        factors = self.by_channel(other, self.values[slot], is_rows)
        if factors is None or end.after.grid is not None:
            return None
        return replace(end, after=replace(end.after, factors=end.after.factors * factors.astype(np.float64)))

    def with_residual(self, position: int, end: _End, other: int, is_rows: bool) -> _End | None:
        """Return an end that adds a slot which exists as levels before the convolution at a position, or None."""
        grid, after = self.grids.get(other), end.after
        if grid is None or after.residual is not None or self.flow.made[other] > position:
            return None
        if self.values[other].shape != self.values[end.slot].shape or (is_rows and (other, True) not in self.levels):
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
    given = {"reads": (read,), "writes": (write,), "layers": (step.layer,), "dynamic": False, "own_inputs": False}
    return replace(step, op=_Opaque(), kernel=kernel, **given)
