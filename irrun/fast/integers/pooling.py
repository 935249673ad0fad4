"""MaxPool of levels, the largest byte of each channel of a window, and Concat."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from irrun.fast.convolution.windows import each_table, geometry_of
from irrun.fast.functions import contracted
from irrun.fast.integers.dots import BYTES
from irrun.fast.integers.windows import MIN_PIECE_WINDOWS
from irrun.fast.machine.calls import in_calls
from irrun.fast.machine.emitting import at, equal, int64
from irrun.fast.machine.late import cgutils, emitted, ir, types
from irrun.fast.machine.memory import address_of
from irrun.fast.machine.processor import ROWS, VECTOR, compiled
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Call, Calls, Kernel

__all__ = ["JOINING", "largest"]


def _join(*levels: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.concatenate(levels, axis=3, out=out)


JOINING: Final = Kernel(_join, "integers", out="whole")
"""The kernel of a Concat of the channels of levels, none of which are padded."""


def largest(axes: tuple[Axis, ...], batch: int, channels: int) -> Kernel | None:
    """Return the kernel for levels u8 [batch, rows, columns, channels], or None if a window may see pads alone.

    ``channels`` are those with padding. A pad holds the lowest level.
    """
    for axis in axes:
        if axis.dilation > 1 or axis.begin >= axis.kernel or (axis.out - 1) * axis.stride - axis.begin >= axis.size:
            return None
    shape, geometry = (batch, axes[0].out, axes[1].out, channels), geometry_of(axes[0], axes[1])
    windows, work = math.prod(shape[:3]), math.prod(shape) * axes[0].kernel * axes[1].kernel

    def calls(data: np.ndarray, *, out: np.ndarray, spare: np.ndarray) -> Calls:
        return [Call(_largest, (data, out, geometry), windows, MIN_PIECE_WINDOWS)]

    return in_calls("integers", calls, shape, np.uint8, work)


@compiled
def _largest(data: np.ndarray, out: np.ndarray, geometry: np.ndarray, first: int, last: int) -> None:
    """Fill the windows ``first`` to ``last`` of ``out`` with the largest byte of each channel."""
    each_table(_largest_table, data, np.zeros(data.shape[3], np.uint8), out, out, geometry, first, last, 0)


@contracted
def _largest_table(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, more: Any
) -> None:
    """Reduce the windows of a table."""
    for block in range(-(-count // ROWS)):
        for row in range(ROWS):
            entries = address_of(table) + block * table.strides[0] + 8 * row
            _reduce(entries, table.shape[1], targets[block, row, 0], data.shape[3])


def _largest_of_taps(context: Any, entries: Any, taps: Any, target: Any, count: Any) -> Any:
    """Store the largest of each of ``count`` bytes at the address ``target``. ``count`` is a multiple of ``BYTES``.

    ``entries`` is the address of the address of the bytes of the first of ``taps`` > 0 taps. The next one is ``ROWS``
    numbers further.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _, _, _, count = arguments
        wide = int64(BYTES * VECTOR)
        whole = builder.mul(builder.sdiv(count, wide), wide)
        _reduced(builder, BYTES * VECTOR, arguments, int64(0), whole)
        _reduced(builder, BYTES, arguments, whole, count)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


_reduce: Final = cast(Callable[[int, int, int, int], None], emitted(_largest_of_taps))


def _reduced(builder: Any, size: int, arguments: Sequence[ir.Value], first: ir.Value, last: ir.Value) -> None:
    """Reduce the bytes from ``first`` to ``last``, ``size`` at a time."""
    entries, taps, target, _ = arguments
    bytes, integer = ir.VectorType(ir.IntType(8), size), ir.IntType(64)
    best = cgutils.alloca_once(builder, bytes)
    with cgutils.for_range_slice(builder, first, last, int64(size)) as (c, _):
        builder.store(equal(bytes, 0), best)
        with cgutils.for_range(builder, taps) as tap:
            entry = builder.load(at(builder, entries, builder.mul(tap.index, int64(8 * ROWS)), integer))
            element, before = builder.load(at(builder, entry, c, bytes), align=1), builder.load(best)
            builder.store(builder.select(builder.icmp_unsigned(">", element, before), element, before), best)
        builder.store(builder.load(best), at(builder, target, c, bytes), align=1)
