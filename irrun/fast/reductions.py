"""Sums and means along neighbouring axes."""

from __future__ import annotations

import math
from typing import Final, Protocol

import numpy as np

from irrun.fast.functions import contracted, summing
from irrun.fast.machine.calls import in_calls
from irrun.fast.machine.memory import address_of, row_at
from irrun.fast.machine.processor import compiled
from irrun.opdef import Call, Calls, Kernel, Packing, Request, Site, Value

__all__ = ["offer"]

_COLUMNS: Final = 512
"""Columns that are summed at once: their sums of f64 stay in the first-level cache."""


class _Reduce(Protocol):
    mean: bool

    def infer(self, at: Site, data: Value, axes: Value, /) -> Value: ...


def offer(op: _Reduce, request: Request) -> Kernel | None:
    """Return the kernel of ReduceSum and ReduceMean for f32 along neighbouring axes, or None for others."""
    data, axes = request.inputs
    numbers = None if axes is None else axes.exact
    shape = None if data is None else data.shape.static
    if data is None or axes is None or data.type.name != "f32" or numbers is None or not shape or 0 in shape:
        return None
    places = sorted({int(axis) % len(shape) for axis in numbers.flat})
    if not places or places != list(range(places[0], places[-1] + 1)):
        return None
    filled = op.infer(Site(), data, axes).shape.static
    assert filled is not None
    count, inner = math.prod(shape[places[0] : places[-1] + 1]), math.prod(shape[places[-1] + 1 :])
    factor = 1.0 / count if op.mean else 1.0

    def turned(array: np.ndarray) -> np.ndarray:
        """Return a view in which the axis before those to add up is the last one."""
        return np.moveaxis(array, places[0] - 1, -1)

    def reads_view(number: int, array: np.ndarray) -> bool:
        """Return whether the last axes are added up, and lie before the axis before them in memory."""
        return number == 0 and places[0] > 0 and inner == 1 and turned(array).flags.c_contiguous

    def calls(x: np.ndarray, _: np.ndarray | None = None, *, out: np.ndarray, spare: np.ndarray) -> Calls:
        is_turned = not x.flags.c_contiguous and reads_view(0, x)
        source, columns = (turned(x), shape[places[0] - 1]) if is_turned else (np.ascontiguousarray(x), inner)
        target = out.reshape(-1)
        return [Call(_add_up, (source.reshape(-1), count, columns, factor, target), target.size)]

    return in_calls(
        "compiled", calls, filled, np.float32, math.prod(shape), packing=Packing((1,)), reads_view=reads_view
    )


@compiled
def _add_up(x: np.ndarray, count: int, inner: int, factor: float, out: np.ndarray, first: int, last: int) -> None:
    """Fill the numbers from ``first`` to ``last`` with sums of x [outer, count, inner] in f64, times a factor."""
    sums, position = np.empty(_COLUMNS, np.float64), first
    while position < last:
        image, column = divmod(position, inner)
        begin = address_of(x) + 4 * (image * count * inner + column)
        if inner == 1:
            sums[0], size = _sum(begin, count), 1
        else:
            size = min(_COLUMNS, inner - column, last - position)
            _sum_columns(begin, count, inner, sums[:size])
        for j in range(size):
            out[position + j] = np.float32(sums[j] * factor)
        position += size


@summing
def _sum(address: int, count: int) -> float:
    """Return the sum of neighbouring numbers."""
    row, total = row_at(address, count), 0.0
    for j in range(count):
        total += np.float64(row[j])
    return total


@contracted
def _sum_columns(address: int, count: int, apart: int, sums: np.ndarray) -> None:
    """Fill the sums of columns. The rows are so many numbers apart."""
    sums[:] = 0
    for k in range(count):
        row = row_at(address + 4 * k * apart, len(sums))
        for j in range(len(sums)):
            sums[j] += np.float64(row[j])
