"""Poolings: the largest element, or the mean, of each window that slides over the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from irrun.kernels.blocks import BLOCK_BYTES, each_block, reporting, scratch
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Index, Kernel, OnTileReady, ignore_tile

__all__ = ["Reduction", "pooling", "pooling_channels_last"]


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a pooling makes of each window, for f32 and f64."""

    merge: np.ufunc
    """Merges two elements of a window."""
    nothing: float
    """The result of a window that sees only pads."""
    divisors: Callable[[tuple[Axis, ...]], np.ndarray] | None = None
    """Returns the number by which the result of each window is divided, [windows, ...]; None for no division."""


def pooling(reduction: Reduction, axes_of: Callable[[tuple[int, ...]], tuple[Axis, ...]]) -> Kernel:
    """Return the kernel for channels-first data of any shape.

    ``axes_of`` returns the windows over data with these spatial sizes.
    """
    known = lru_cache(axes_of)
    divisors = None if reduction.divisors is None else lru_cache(reduction.divisors)

    def call(
        data: np.ndarray, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
    ) -> np.ndarray:
        axes = known(data.shape[2:])
        whole = np.empty((*data.shape[:2], *(axis.out for axis in axes)), data.dtype) if out is None else out

        def fill(index: Index) -> None:
            part = whole[index]
            _reduce(reduction, data[index], axes, part, first=2)
            if divisors is not None:
                np.divide(part, divisors(axes).astype(part.dtype), out=part)

        report = reporting(fill, whole, on_tile_ready)
        each_block(report, data.shape[:2], math.prod(data.shape[2:]) * data.itemsize, 2 * BLOCK_BYTES, work=data.nbytes)
        return whole

    return Kernel(call, "in blocks", out="tiles")


def pooling_channels_last(reduction: Reduction, axes: tuple[Axis, ...], channels: int, itemsize: int) -> Kernel:
    """Return the kernel for channels-last data (batch, rows, columns, channels) of a known size.

    An element takes ``itemsize`` bytes. ``axes`` are the windows along rows and columns.
    """
    rows, line = axes
    size = rows.stride * line.size * channels * itemsize
    divisors = None if reduction.divisors is None else reduction.divisors(axes)[:, :, np.newaxis]

    def call(
        data: np.ndarray, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
    ) -> np.ndarray:
        whole = np.empty((len(data), rows.out, line.out, channels), data.dtype) if out is None else out

        def fill(index: Index) -> None:
            images, windows = index
            first, elements = rows.part(windows)
            part = whole[index]
            _reduce(reduction, data[images, elements], (first, line), part, first=1)
            if divisors is not None:
                np.divide(part, divisors[windows].astype(part.dtype), out=part)

        report = reporting(fill, whole, on_tile_ready)
        each_block(report, (len(data), rows.out), size, BLOCK_BYTES // 2, work=data.nbytes)
        return whole

    return Kernel(call, "in blocks, channels last", out="tiles")


def _reduce(reduction: Reduction, data: np.ndarray, axes: Sequence[Axis], out: np.ndarray, first: int) -> None:
    """Fill ``out`` with the merged elements of each window, one spatial axis after the other.

    The spatial axes of ``data`` are those from ``first`` on.
    """
    merge, nothing = reduction.merge, reduction.nothing
    for number, axis in enumerate(axes, 1):
        shape = (*out.shape[: first + number], *data.shape[first + number :])
        target = out if number == len(axes) else scratch(number % 2, data.dtype, *shape)
        before = (slice(None),) * (first - 1 + number)
        full, partly = _spans(axis)
        taken = [data[(*before, elements)] for elements in full]
        if len(taken) > 1:
            merge(taken[0], taken[1], out=target)
        else:
            np.copyto(target, taken[0] if taken else nothing)
        for elements in taken[2:]:
            merge(target, elements, out=target)
        for windows, elements in partly:
            part = target[(*before, windows)]
            merge(part, data[(*before, elements)], out=part)
        data = target


@lru_cache
def _spans(axis: Axis) -> tuple[list[slice], list[tuple[slice, slice]]]:
    """Return the spans of all taps in two lists.

    The first holds the elements of the taps through which every window sees an element, the second the spans of the
    remaining taps.
    """
    spans = [axis.span(tap) for tap in axis.seeing]
    every = slice(0, axis.out)
    return [seen for seeing, seen in spans if seeing == every], [span for span in spans if span[0] != every]
