"""Convolutions on channels-first data: the direct kernel, and methods for constant filters and a known geometry.

The methods take filters as (groups, out, in, …) and data as (batch, groups, in, …), where … stands for the spatial
axes.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np

from irrun.kernels.blocks import BLOCK_BYTES, blocks, scratch, within
from irrun.kernels.convolution.windows import Axis, taps
from irrun.kernels.copies import copy_to
from irrun.kernels.matmul import matmul, narrow, wide
from irrun.opdef import Index, OnTileReady

Method = Callable[[np.ndarray, np.ndarray, OnTileReady], None]
"""``method(data, out, on_tile_ready)`` fills ``out`` (batch, groups, out, …), which is C-contiguous, from ``data``
(batch, groups, in, …). Both have the dtype in which sums are accumulated."""


def convolve(data: np.ndarray, filters: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """Return the convolution of ``data`` (batch, groups * in, …), computed with one matrix product for each tap.

    The result is (batch, groups * out, …), of the dtype of ``data``.
    """
    batch, (groups, outs, ins) = len(data), filters.shape[:3]
    work = wide(data.dtype)
    split = data.reshape(batch, groups, ins, *data.shape[2:]).astype(work, copy=False)
    out = np.zeros((batch, groups, outs, *(axis.out for axis in axes)), work)
    _add_products(filters, axes, split, out)
    return narrow(out.reshape(batch, groups * outs, *out.shape[3:]), data.dtype)


def _add_products(filters: np.ndarray, axes: Sequence[Axis], data: np.ndarray, out: np.ndarray) -> None:
    """Add to ``out`` (batch, groups, out, …) the product of each tap of ``filters`` with the elements that it sees."""
    for tap, windows, elements in taps(axes):
        seen = data[(..., *elements)]
        matrix = seen.reshape(*data.shape[:3], math.prod(seen.shape[3:]))
        product = matmul(filters[(..., *tap)].astype(out.dtype, copy=False), matrix)
        out[(..., *windows)] += product.reshape(*out.shape[:3], *seen.shape[3:])


class Filters:
    """Constant filters (groups, out, in, …).

    ``source`` are the filters as they were passed, ``array`` in the dtype in which sums are accumulated.
    """

    def __init__(self, source: np.ndarray) -> None:
        self.groups, self.outs, self.ins, *self.kernel = source.shape
        self.source, self.size, self.dtype = source, source.size, wide(source.dtype)
        self.copied = 0 if source.dtype == self.dtype else self.size * self.dtype.itemsize
        """The bytes of ``array``; 0 if it is ``source``."""

    @cached_property
    def array(self) -> np.ndarray:
        return self.source.astype(self.dtype, copy=False)

    @cached_property
    def matrix(self) -> np.ndarray:
        return self.array.reshape(self.groups, self.outs, self.ins * math.prod(self.kernel))

    @cached_property
    def is_finite(self) -> bool:
        """Whether the filters hold neither NaN nor Inf."""
        if self.source.dtype.itemsize == 2:  # numpy compares such floats one by one
            exponent = 0x7C00 if self.source.dtype == np.float16 else 0x7F80
            return not bool(((self.source.view(np.uint16) & exponent) == exponent).any())
        return bool(np.isfinite(self.source.min()) and np.isfinite(self.source.max()))

    def allow_pads(self, axes: Sequence[Axis]) -> bool:
        """Return whether the filters may be multiplied by the zeros of the pads: NaN or Inf would give NaN."""
        return not any(axis.begin or axis.end for axis in axes) or self.is_finite

    def channels_last(self) -> np.ndarray:
        """Return the filters of the only group as (rows, columns, in, out), in C order."""
        transposed = self.array[0].transpose(2, 3, 1, 0)
        contiguous = np.empty(transposed.shape, transposed.dtype)
        copy_to(contiguous, transposed)
        return contiguous


def tiles_ready(out: np.ndarray, on_tile_ready: OnTileReady) -> None:
    """Report the tiles of ``out`` (batch, groups, out, …), all of which are filled."""
    sizes = out.shape[3:]
    for lead in blocks(out.shape[:3], math.prod(sizes) * out.itemsize):
        on_tile_ready((*lead, *map(slice, sizes)))


def limit_of(filters: np.ndarray) -> int:
    """Return how many bytes of data to multiply by ``filters`` at once.

    Each product reads all filters again. The larger they are, the more data a product needs to pay off.
    """
    return max(4 * BLOCK_BYTES, min(filters.nbytes, 32 * BLOCK_BYTES))


def pointwise(
    filters: Filters, axes: tuple[Axis, ...], data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady
) -> None:
    """Convolve with kernels of one element and without pads: matrix products.

    The data is copied only where strides skip elements.
    """
    seen = data[(..., *(slice(0, (axis.out - 1) * axis.stride + 1, axis.stride) for axis in axes))]
    (batch, groups, outs), windows = out.shape[:3], out.shape[3:]
    width = math.prod(windows)
    matrix, target = seen.reshape(*data.shape[:3], width), out.reshape(batch, groups, outs, width)
    # large products, because BLAS packs the matrix that they share again for each of them
    for images, some, rows in blocks((batch, groups, outs), width * out.itemsize, 16 * BLOCK_BYTES):
        matmul(filters.matrix[some, rows], matrix[images, some], out=target[images, some, rows])
        for index in within((images, some, rows), width * out.itemsize):
            on_tile_ready((*index, *map(slice, windows)))


def by_taps(
    filters: Filters, axes: tuple[Axis, ...], data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady
) -> None:
    """Convolve as ``convolve`` does, for windows that see so few elements that padding the data would not pay off."""
    out[...] = 0
    _add_products(filters.array, axes, data, out)
    tiles_ready(out, on_tile_ready)


def columns(
    filters: Filters, axes: tuple[Axis, ...], data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady
) -> None:
    """Convolve by im2col: copy the elements that each tap sees into a row of a matrix, and multiply the filters by it.

    The matrix is filled and multiplied block by block.
    """
    (batch, groups, outs, rows, *rest), width, height = out.shape, math.prod(out.shape[4:]), filters.matrix.shape[-1]
    target = out.reshape(*out.shape[:3], rows * width)
    disjoint = filters.kernel[-1] >= 8 and all(axis.stride == axis.kernel and axis.dilation == 1 for axis in axes)
    fill = _patches if disjoint and not any(axis.begin or axis.end for axis in axes) else _windows
    size, limit = height * width * data.itemsize, limit_of(filters.matrix[0])
    for images, some, part in blocks((batch, groups, rows), size, limit):
        first, elements = axes[0].part(part)
        matrix = fill(data[images, some, :, elements], (first, *axes[1:]))
        matmul(filters.matrix[some], matrix, out=target[images, some, :, part.start * width : part.stop * width])
        on_tile_ready((images, some, slice(0, outs), part, *map(slice, rest)))


def _windows(data: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """Return the im2col matrix (batch, groups, in * taps, windows).

    It has a row for each tap of each channel, and a column for each window.
    """
    *others, last = axes
    step, lead, kernel, windows = last.stride, data.shape[:3], [a.kernel for a in axes], [a.out for a in axes]
    # pad with zeros, and bring every ``step``-th element along the last axis together
    padded = scratch(1, data.dtype, *lead, step, *(axis.reach for axis in others), -(-last.reach // step))
    padded.fill(0)
    inside, kept = zip(*(axis.inside for axis in others)) if others else ((), ())
    for phase in range(step):
        places, elements = last.phase(phase, padded.shape[-1])
        padded[(*(slice(None),) * 3, phase, *inside, places)] = data[(..., *kept, elements)]
    matrix, (*places, one) = scratch(0, data.dtype, *lead, *kernel, *windows), padded.strides[4:]
    strides = [axis.dilation * place for axis, place in zip(axes, (*places, one))]
    strides += [axis.stride * place for axis, place in zip(others, places)]
    # taps of the last axis that are ``step`` apart see the same elements, shifted: one view fills the rows of them all
    for first in range(min(step, last.kernel)):
        shift, phase = divmod(first * last.dilation, step)
        rows = matrix[(..., slice(first, None, step), *(slice(None) for _ in axes))]
        offset = phase * padded.strides[3] + shift * one
        rows[...] = np.ndarray(rows.shape, data.dtype, padded, offset, (*padded.strides[:3], *strides, one))
    return matrix.reshape(*lead[:2], lead[2] * math.prod(kernel), math.prod(windows))


def _patches(data: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """Return the im2col matrix for windows that neither overlap nor leave gaps.

    The elements of a window are contiguous in memory: the result is a transposed view of scratch memory.
    """
    count = len(axes)
    cut = data[(..., *(slice(axis.out * axis.kernel) for axis in axes))]
    split = cut.reshape(*data.shape[:3], *(n for axis in axes for n in (axis.out, axis.kernel)))
    windows, within = range(3, 3 + 2 * count, 2), range(4, 4 + 2 * count, 2)
    seen = split.transpose(0, 1, *windows, 2, *within)
    matrix = scratch(0, data.dtype, *seen.shape)
    np.copyto(matrix, seen)
    height = data.shape[2] * math.prod(axis.kernel for axis in axes)
    return matrix.reshape(*data.shape[:2], math.prod(axis.out for axis in axes), height).swapaxes(-1, -2)


def planes(
    filters: Filters, axes: tuple[Axis, ...], data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady
) -> None:
    """Convolve with few filters per group: each row of the im2col matrix is a whole plane, shifted by its tap.

    The planes are padded with zeros. With strides above 1, each plane is split into one plane for each phase, which is
    the position of an element modulo the stride. A row of the matrix is then one contiguous copy. The products also
    cover columns between the windows, which are dropped at the end. Where the planes are large and a group has a single
    filter and channel, nothing is copied: the taps are added one after the other.
    """
    (batch, groups, outs), windows, (ins, *kernel) = out.shape[:3], out.shape[3:], filters.array.shape[2:]
    steps, sizes, places, length, inside = _planes_of(axes)
    whole, height, direct = (
        windows[0] * places[0],
        ins * math.prod(kernel),
        outs == ins == 1 and length >= _MIN_ADDED_PLANE_ELEMENTS,
    )
    size = ins * math.prod(steps) * math.prod(sizes) + (outs + direct) * whole + (not direct) * height * length
    parts = blocks((batch, groups), size * data.itemsize, 4 * BLOCK_BYTES)
    if not parts:
        return
    lead = [part.stop - part.start for part in parts[0]]  # the first block is the largest
    padded = scratch(0, data.dtype, *lead, ins, *steps, *sizes)
    padded.fill(0)
    product = scratch(1, data.dtype, *lead, outs, whole)
    # the direct way needs one row instead of the matrix
    matrix = scratch(2, data.dtype, *lead, outs, whole) if direct else scratch(2, data.dtype, *lead, height, length)
    views = [_shifted(padded, axes, first, places, length) for first in np.ndindex(*map(min, steps, kernel))]
    for images, some in parts:
        here = slice(images.stop - images.start), slice(some.stop - some.start)
        for phase, target, elements in inside:
            padded[(*here, slice(None), *phase, *target)] = data[(images, some, slice(None), *elements)]
        result = product[here]
        if direct:
            _add_taps(filters.array[some, 0, 0], views, here, result[:, :, 0, :length], matrix[here][:, :, 0, :length])
        else:
            rows = matrix[here].reshape(*result.shape[:2], ins, *kernel, length)
            for seeing, view in views:
                rows[(slice(None),) * 3 + seeing] = view[here]
            matmul(filters.matrix[some], matrix[here], out=result[..., :length])
        seen = result.reshape(*result.shape[:3], windows[0], *sizes[1:])
        out[images, some] = seen[(..., *map(slice, windows))]
        on_tile_ready((images, some, slice(0, outs), *map(slice, windows)))


@lru_cache
def _planes_of(axes: tuple[Axis, ...]) -> tuple[list[int], list[int], list[int], int, list[Any]]:
    """Return the geometry of the planes.

    - the strides
    - the sizes of a padded plane
    - the distance between neighbouring elements along each axis, in elements
    - the number of elements from the first window to the last
    - for each plane its phase, the slices of the plane that hold data, and the slices of this data
    """
    steps = [axis.stride for axis in axes]
    sizes = [axis.out + (axis.kernel - 1) * axis.dilation // axis.stride for axis in axes]
    places = [math.prod(sizes[n:]) for n in range(1, len(sizes) + 1)]
    length = 1 + sum((axis.out - 1) * place for axis, place in zip(axes, places))
    inside = [(n, *zip(*(axis.phase(*row) for axis, *row in zip(axes, n, sizes)))) for n in np.ndindex(*steps)]
    return steps, sizes, places, length, inside


_MIN_ADDED_PLANE_ELEMENTS: Final = 1 << 11
"""The fewest elements of a plane for which adding its taps one after the other is faster than copying them for a matrix
product."""

View = tuple[tuple[slice, ...], np.ndarray]
"""A group of taps, as an index into the kernel, and the elements that they see: (batch, groups, in, taps, windows)."""


def _shifted(padded: np.ndarray, axes: Sequence[Axis], first: tuple[int, ...], places: list[int], length: int) -> View:
    """Return the taps that are ``stride`` apart from ``first`` on, and the elements that they see, all in one plane."""
    seeing = tuple(slice(n, None, axis.stride) for n, axis in zip(first, axes))
    counts = [len(range(n, axis.kernel, axis.stride)) for n, axis in zip(first, axes)]
    shifts, phases = zip(*(divmod(n * axis.dilation, axis.stride) for n, axis in zip(first, axes)))
    offset = sum(map(math.prod, zip((*phases, *shifts), padded.strides[3:])))
    strides = *padded.strides[:3], *(axis.dilation * place * padded.itemsize for axis, place in zip(axes, places))
    shape = *padded.shape[:3], *counts, length
    return seeing, np.ndarray(shape, padded.dtype, padded, offset, (*strides, padded.itemsize))


def _add_taps(filters: np.ndarray, views: Sequence[View], here: Index, out: np.ndarray, more: np.ndarray) -> None:
    """Fill ``out`` (batch, groups, windows) with the sums over all taps of ``filters`` (groups, …).

    ``more`` is working memory of the shape of ``out``.
    """
    batch, groups, windows, *kernel = range(2 + filters.ndim)
    for number, (some, view) in enumerate(views):
        target, seen = more if number else out, view[here][:, :, 0]
        # in Fortran order, the innermost loop runs over the windows of a plane and the outermost over its taps
        np.einsum(
            filters[(slice(None), *some)], [groups, *kernel], seen, [batch, groups, *kernel, windows],
            [windows, groups, batch], out=target.transpose(2, 1, 0), order="F",
        )  # fmt: skip
        if number:
            np.add(out, more, out=out)
