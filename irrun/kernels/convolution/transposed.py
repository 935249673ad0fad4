"""Transposed convolutions: each element of the data is a window, and adds its products with filters to the output."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from irrun.kernels.blocks import blocks, scratch
from irrun.kernels.convolution.methods import choose
from irrun.kernels.convolution.planes import Filters, Method, tiles_ready
from irrun.kernels.convolution.windows import Axis, taps
from irrun.kernels.convolution.winograd import packed
from irrun.kernels.matmul import matmul, narrow, wide
from irrun.opdef import OnTileReady, ignore_tile


def spread(data: np.ndarray, filters: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """Return the transposed convolution of ``data`` (batch, groups * in, …) with ``filters`` (groups, in, out, …).

    ``axes`` are those of ``axes_to``. The result is of the dtype of ``data``.
    """
    batch, (groups, ins, outs) = len(data), filters.shape[:3]
    work, sizes = wide(data.dtype), data.shape[2:]
    matrix = data.astype(work, copy=False).reshape(batch, groups, ins, int(np.prod(sizes)))
    out = np.zeros((batch, groups, outs, *(axis.size for axis in axes)), work)
    for tap, windows, elements in taps(axes):
        product = matmul(filters[(..., *tap)].astype(work, copy=False).swapaxes(1, 2), matrix)
        out[(..., *elements)] += product.reshape(batch, groups, outs, *sizes)[(..., *windows)]
    return narrow(out.reshape(batch, groups * outs, *out.shape[3:]), data.dtype)


class Transposed:
    """Constant filters (groups, in, out, …) of a transposed convolution, packed once for each method that uses them."""

    def __init__(self, array: np.ndarray) -> None:
        self.filters = Filters(array.swapaxes(1, 2))
        self._packed: dict[tuple[int, ...], tuple[Filters, Callable[[], np.ndarray]]] = {}

    def method(self, axes: tuple[Axis, ...], batch: int) -> tuple[str, Method]:
        """Return the name of the fastest method, and the method.

        ``axes`` are those of the convolution that leads from the output back to the data.
        """
        if all(map(is_disjoint, axes)):
            return "matmul", functools.partial(disjoint, self._spread)
        parts: list[tuple[tuple[slice, ...], Method]] = []
        names: list[str] = []
        for phase in phases(axes):
            places = tuple(slice(n, None, axis.stride) for n, axis in zip(phase.firsts, axes))
            name, method = choose(*self._some(phase.taps), phase.axes, batch)
            names.append(name)
            parts.append((places, method))
        is_whole = len(parts) == math.prod(min(axis.stride, axis.size) for axis in axes)
        if is_whole and len(parts) == 1:
            return names[0], parts[0][1]
        return " and ".join(dict.fromkeys(names)), functools.partial(by_phases, parts, is_whole)

    @functools.cached_property
    def _spread(self) -> np.ndarray:
        """The filters as (groups, out, …, in)."""
        return np.ascontiguousarray(np.moveaxis(self.filters.array, 2, -1))

    def _some(self, taps: tuple[slice, ...]) -> tuple[Filters, Callable[[], np.ndarray]]:
        """Return the filters of these taps in reverse order, and a function that packs them for Winograd's method."""
        key = tuple(tap.start for tap in taps)
        if key not in self._packed:
            reverse = (slice(None, None, -1),) * len(taps)
            filters = Filters(np.ascontiguousarray(self.filters.array[(..., *taps)][(..., *reverse)]))
            self._packed[key] = filters, functools.cache(lambda: packed(filters))
        return self._packed[key]


@dataclass(frozen=True, slots=True)
class Phase:
    """The elements of the output that are whole strides apart, and the convolution of the data that computes them."""

    firsts: tuple[int, ...]
    """The place of the first element in the output, along each axis."""
    axes: tuple[Axis, ...]
    """The windows of the convolution over the data."""
    taps: tuple[slice, ...]
    """The taps of the filters that the convolution has, in reverse order."""


def phases(axes: Sequence[Axis]) -> Iterator[Phase]:
    """Yield the phases of the output that a tap of the filters reaches.

    ``axes`` are those of the convolution that leads from the output back to the data. Strides may be far larger than
    the filters, so that most phases have no tap.
    """
    if not all(axis.out for axis in axes):
        return
    for firsts in itertools.product(*map(_firsts, axes)):
        own, taps = zip(*(_phase(axis, first) for axis, first in zip(axes, firsts)))
        yield Phase(firsts, own, taps)


def _firsts(axis: Axis) -> list[int]:
    """Return the places of the first elements of the phases along one axis."""
    firsts = ((tap - axis.begin) % axis.stride for tap in range(min(axis.kernel, axis.stride)))
    return sorted(first for first in firsts if first < axis.size)


def _phase(axis: Axis, first: int) -> tuple[Axis, slice]:
    """Return the convolution for every ``stride``-th element of the output from ``first`` on, and its taps."""
    tap = (first + axis.begin) % axis.stride
    kernel, count = len(range(tap, axis.kernel, axis.stride)), len(range(first, axis.size, axis.stride))
    begin = (kernel - 1) * axis.dilation - (first + axis.begin - tap) // axis.stride
    end = count + (kernel - 1) * axis.dilation - begin - axis.out
    return Axis(axis.out, kernel, 1, axis.dilation, begin, end, count), slice(tap, None, axis.stride)


def by_phases(
    parts: Sequence[tuple[tuple[slice, ...], Method]],
    is_whole: bool,
    data: np.ndarray,
    out: np.ndarray,
    on_tile_ready: OnTileReady,
) -> None:
    """Fill ``out`` (batch, groups, out, …) with one convolution for each phase: its places in ``out``, and the method.

    Unless they are the whole output, the elements between them are 0.
    """
    if not is_whole:
        out[...] = 0
    for places, method in parts:
        part = out[(..., *places)]
        if part.size:
            result = np.empty(part.shape, part.dtype)
            method(data, result, ignore_tile)
            part[...] = result
    tiles_ready(out, on_tile_ready)


def is_disjoint(axis: Axis) -> bool:
    """Return whether each output element depends on one element only: strides equal the kernel size, without pads."""
    return axis == Axis(axis.out * axis.kernel, axis.kernel, axis.kernel, 1, 0, 0, axis.out)


def disjoint(filters: np.ndarray, data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady) -> None:
    """Fill ``out`` with a transposed convolution whose strides equal the kernel size, without pads.

    ``filters`` is (groups, out, …, in). Each output element is one product.
    """
    (batch, groups, ins, rows, *rest), (outs, *kernel) = data.shape, filters.shape[1:-1]
    width, height = math.prod(rest), outs * math.prod(kernel)
    matrix, spread = data.reshape(*data.shape[:3], rows * width), filters.reshape(groups, height, ins)
    for images, some, part in blocks((batch, groups, rows), height * width * out.itemsize):
        seen = matrix[images, some, :, part.start * width : part.stop * width]
        products = scratch(0, out.dtype, *seen.shape[:2], height, seen.shape[-1])
        matmul(spread[some], seen, out=products)
        products = products.reshape(*seen.shape[:2], outs, *kernel, part.stop - part.start, *rest)
        lines = slice(part.start * kernel[0], part.stop * kernel[0])
        target = out[images, some, :, lines]
        for tap in np.ndindex(*kernel):
            places = (slice(n, None, step) for n, step in zip(tap, kernel))
            target[(..., *places)] = products[(slice(None),) * 3 + tap]
        on_tile_ready((images, some, slice(0, outs), lines, *map(slice, out.shape[4:])))
