"""Poolings of channels-last data in one compiled pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from irrun.fast.convolution.stage import Stage
from irrun.fast.convolution.window_block import AVERAGE, MAXIMUM, window_block
from irrun.fast.convolution.windows import each_table, geometry_of
from irrun.fast.functions import contracted
from irrun.fast.machine.memory import address_of
from irrun.fast.machine.processor import ROWS, compiled
from irrun.fast.machine.sharing import share_call
from irrun.fast.panels import WIDTH, in_vectors
from irrun.fast.precision.tiles import holds_pairs
from irrun.kernels.blocks import report_in_blocks
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Call, Calls, Joins, Kernel, OnTileReady, Request, ignore_tile

__all__ = ["largest", "offer", "pooling"]


_MAX_TAPS: Final = 49
"""The most taps of a window for which one compiled pass over all of them is faster than a pass for each axis."""


class _Pooling(Protocol):
    type: str
    kernel: tuple[int, ...]

    def axes(self, sizes: Sequence[int], kernel: Sequence[int], /) -> tuple[Axis, ...]: ...

    def divisors(self, axes: tuple[Axis, ...], /) -> np.ndarray: ...


def offer(op: _Pooling, request: Request) -> Kernel | None:
    """Return the kernel of MaxPool without indices, or of AvgPool, for channels-last f32; None for others."""
    (data,) = request.inputs
    shape = None if data is None else data.shape.static
    if not request.channels_last or data is None or data.type.name != "f32" or shape is None or 0 in shape:
        return None
    if request.outputs > 1 or math.prod(op.kernel) > _MAX_TAPS:
        return None
    axes = op.axes(shape[2:], op.kernel)
    return pooling(axes, shape[0], shape[1], op.divisors(axes) if op.type == "AvgPool" else None)


def pooling(axes: tuple[Axis, ...], batch: int, channels: int, counts: np.ndarray | None) -> Kernel:
    """Return the kernel for f32 that finds the largest element of each window, or its mean.

    ``counts`` [rows, columns] are the divisors of the means of an image, None for the largest elements.
    """
    shape = batch, axes[0].out, axes[1].out, channels
    geometry = geometry_of(axes[0], axes[1])
    factors = None if counts is None else (1 / counts).astype(np.float32).ravel()
    work = math.prod(shape) * 4 * axes[0].kernel
    stages = (Stage(axes, _NOTHING, 1, 0, channels, channels, _NOTHING, _NOTHING, 0),) if counts is None else ()

    def calls(data: np.ndarray, *, out: np.ndarray, spare: np.ndarray | None = None) -> Calls:
        seen = np.ascontiguousarray(data)
        if factors is None:
            return [largest(geometry, seen, out)]
        return [Call(_average, (seen, out, geometry, factors), math.prod(shape[:3]), ROWS)]

    def call(
        data: np.ndarray, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
    ) -> np.ndarray:
        whole = np.empty(shape, np.float32) if out is None else out
        for one in calls(data, out=whole):
            share_call(one, work)
        report_in_blocks(whole, on_tile_ready)
        return whole

    return Kernel(call, "compiled, channels last", out="tiles", joins=Joins(calls=calls, stages=stages))


_NOTHING: Final = np.empty(0, np.float32)
_FORMS: Final = np.empty(0, np.float32), np.empty(0, np.uint32)
"""The forms of data: numbers, or pairs of bf16."""


def largest(
    geometry: np.ndarray,
    data: np.ndarray,
    out: np.ndarray,
    *,
    keeps: bool = True,
    rounded: int = 0,
    in_bf16: bool = False,
) -> Call:
    """Return the call that fills ``out`` with the largest element of each window and channel, or NaN if there is one.

    See ``windows.convolve`` for the arguments. If ``in_bf16``, the data is rounded: the largest of rounded elements is
    what the largest element is rounded to.
    """
    windows = math.prod((len(out), *geometry[8:10].tolist()))
    return Call(_maximum, (data, _FORMS[in_bf16], out, geometry, keeps, rounded), windows, ROWS)


@compiled
def _maximum(
    data: np.ndarray,
    form: np.ndarray,
    out: np.ndarray,
    geometry: np.ndarray,
    keeps: bool,
    rounded: int,
    first: int,
    last: int,
) -> None:
    """Fill the windows ``first`` to ``last``: see ``largest``. Windows that see only pads give -Inf."""
    nothing = np.empty(data.shape[3], np.uint32)
    for n in range(len(nothing)):
        nothing[n] = _PAIR_OF_LEAST if holds_pairs(form) else _LEAST
    more = form, keeps, rounded != 0
    each_table(_pool_largest, data, nothing, out, out, geometry, first, last, more, (rounded, False))


_LEAST: Final = np.uint32(0xFF80_0000)
_PAIR_OF_LEAST: Final = np.uint32(0xFF80_FF80)
"""The bits of -Inf, in f32 and as a pair of bf16."""


@contracted
def _pool_largest(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, more: Any
) -> None:
    """Find the largest elements of the windows of a table."""
    (form, keeps, rounds), zero, taps = more, np.float32(0), table.shape[1]
    for block in range(-(-count // ROWS)):
        entries = address_of(table) + block * table.strides[0]
        rows = address_of(targets) + block * targets.strides[0]
        for c in range(0, out.shape[3], WIDTH):
            vectors, tail = in_vectors(min(WIDTH, out.shape[3] - c))
            shift = 2 * c if holds_pairs(form) else 4 * c
            window_block(
                MAXIMUM, vectors, ROWS, form, entries, taps, 1, 0, rows, shift, 4 * c, tail, 0, 0, 0, zero, zero, keeps,
                rounds, 0, 0,
            )  # fmt: skip


@compiled
def _average(
    data: np.ndarray, out: np.ndarray, geometry: np.ndarray, factors: np.ndarray, first: int, last: int
) -> None:
    """Fill the windows ``first`` to ``last`` of ``out`` with the sum of each channel times the window's factor.

    ``factors`` has one for each window of an image.
    """
    nothing = np.zeros(data.shape[3], np.float32)
    each_table(_pool_average, data, nothing, out, out, geometry, first, last, factors)


@contracted
def _pool_average(
    data: np.ndarray, out: np.ndarray, table: np.ndarray, targets: np.ndarray, top: int, count: int, factors: np.ndarray
) -> None:
    """Find the means of the windows of a table."""
    zero, taps = np.float32(0), table.shape[1]
    for block in range(-(-count // ROWS)):
        for row in range(ROWS):
            window = (top + block * ROWS + row) % len(factors)
            targets[block, row, 2] = address_of(factors) + 4 * window
        entries = address_of(table) + block * table.strides[0]
        rows = address_of(targets) + block * targets.strides[0]
        for c in range(0, out.shape[3], WIDTH):
            vectors, tail = in_vectors(min(WIDTH, out.shape[3] - c))
            window_block(
                AVERAGE, vectors, ROWS, data, entries, taps, 1, 0, rows, 4 * c, 4 * c, tail, 0, 0, 0, zero, zero, 1,
                0, 0, 0,
            )  # fmt: skip
