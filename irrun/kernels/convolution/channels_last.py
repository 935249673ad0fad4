"""Convolutions on channels-last data (NHWC): (batch, rows, columns, channels).

BLAS multiplies such data without a copy, and element-wise work runs over long rows of channels even where the planes
are small. Like the methods in ``planes``, these methods need constant filters and a known geometry.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.kernels.blocks import BLOCK_BYTES, each_block, scratch, within
from irrun.kernels.convolution.planes import Filters, limit_of
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.convolution.winograd_channels_last import best_form, winograd
from irrun.kernels.matmul import matmul
from irrun.kernels.threads import fill
from irrun.opdef import Index, OnTileReady

Method = Callable[[np.ndarray, np.ndarray, OnTileReady], None]
"""``method(data, out, on_tile_ready)`` fills ``out`` (batch, rows, columns, out channels), which is C-contiguous, from
``data`` (batch, rows, columns, in channels) of the same dtype."""


def choose(filters: Filters, axes: tuple[Axis, ...], batch: int) -> tuple[str, Method, int] | None:
    """Return the name of the fastest method for these filters and this geometry, the method, and the bytes it holds.

    Return None where channels-first data is faster: for grouped filters that are not depthwise.
    """
    if filters.ins == filters.outs == 1:
        count = _together(axes[1], filters.groups)
        taps = np.ascontiguousarray(np.tile(filters.array[:, 0, 0].transpose(1, 2, 0), count))
        return "depthwise", functools.partial(depthwise, taps, axes), taps.nbytes
    if filters.groups > 1:
        return None
    form = best_form(filters, axes, batch)
    if form is not None:
        transformed = form.transformed(filters)
        method = functools.partial(winograd, form, transformed, filters, axes)
        return f"Winograd F({form.tile}×{form.tile}, 3×3)", method, transformed.nbytes
    matrix = filters.channels_last().reshape(-1, filters.outs)
    if filters.kernel == [1, 1] and not any(axis.begin or axis.end for axis in axes):
        return "matmul", functools.partial(pointwise, matrix, axes), matrix.nbytes
    return "im2col", functools.partial(columns, matrix, axes), matrix.nbytes


def pointwise(
    matrix: np.ndarray, axes: tuple[Axis, ...], data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady
) -> None:
    """Convolve with kernels of one element and without pads: a matrix product with ``matrix`` (in, out).

    The data is copied only where strides skip elements.
    """
    rows, line = (slice(0, (axis.out - 1) * axis.stride + 1, axis.stride) for axis in axes)
    seen, (ins, outs), broad = data[:, rows, line], matrix.shape, out.shape[2]

    def fill(index: Index) -> None:
        images, part = index
        block = seen[images, part]
        if not block.flags.c_contiguous:
            block = scratch(0, data.dtype, *block.shape)
            np.copyto(block, seen[images, part])
        matmul(block.reshape(-1, ins), matrix, out=out[images, part].reshape(-1, outs))
        on_tile_ready((images, part, slice(0, broad), slice(0, outs)))

    _each_rows(fill, out, matrix, outs)


def columns(
    matrix: np.ndarray, axes: tuple[Axis, ...], data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady
) -> None:
    """Convolve by im2col: copy the elements of each window into a row of a matrix, and multiply it by the filters.

    The matrix is filled and multiplied block by block. ``matrix`` holds the filters as (rows * columns * in, out).
    """
    (broad, outs), (rows, line), ins = out.shape[2:], axes, data.shape[-1]
    height = len(matrix)

    def some(index: Index) -> None:
        images, part = index
        first, elements = rows.part(part)
        padded = with_pads(data[images, elements], first, line)
        image, row, place, one = padded.strides
        strides = image, rows.stride * row, line.stride * place, rows.dilation * row, line.dilation * place, one
        shape = len(padded), first.out, broad, rows.kernel, line.kernel, ins
        seen = scratch(0, data.dtype, *shape)
        fill(seen, np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False))
        matmul(seen.reshape(-1, height), matrix, out=out[images, part].reshape(-1, outs))
        on_tile_ready((images, part, slice(0, broad), slice(0, outs)))

    _each_rows(some, out, matrix, height)


def _each_rows(function: Callable[[Index], object], out: np.ndarray, matrix: np.ndarray, width: int) -> None:
    """Call ``function`` with the index of each block of rows of ``out``, each of which is one product with ``matrix``.

    ``width`` is the number of elements of working memory per window.
    """
    (batch, high, broad, _), place = out.shape, width * out.itemsize
    flops = 2 * out.size * len(matrix)
    each_block(function, (batch, high), broad * place, limit_of(matrix), work=flops, least=_MIN_SHARED_ROWS * place)


def spread(filters: np.ndarray, data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady) -> None:
    """Fill ``out`` with a transposed convolution whose strides equal the kernel size, without pads.

    ``filters`` is (in, rows, columns, out).
    """
    (batch, high, broad, ins), (_, rows, line, outs) = data.shape, filters.shape
    matrix = filters.reshape(ins, -1)
    target = out.reshape(batch, high, rows, broad, line, outs)

    def fill(index: Index) -> None:
        images, part = index
        seen = data[images, part]
        products = scratch(0, data.dtype, *seen.shape[:3], rows, line, outs)
        matmul(seen.reshape(-1, ins), matrix, out=products.reshape(-1, matrix.shape[1]))
        target[images, part] = products.transpose(0, 1, 3, 2, 4, 5)
        lines = slice(part.start * rows, part.stop * rows)
        for part in within((images, lines), broad * line * outs * data.itemsize):
            on_tile_ready((*part, slice(0, broad * line), slice(0, outs)))

    size, flops = broad * matrix.shape[1] * data.itemsize, 2 * data.size * matrix.shape[1]
    each_block(fill, (batch, high), size, 4 * BLOCK_BYTES, work=flops, least=BLOCK_BYTES // 2)


def depthwise(
    taps: np.ndarray, axes: tuple[Axis, ...], data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady
) -> None:
    """Convolve each channel with a filter of its own.

    ``taps`` is (rows, columns, channels), where the channels are repeated once for each of the output columns that are
    computed together (see ``_together``).
    """
    (batch, high, broad, channels), (rows, line), length = out.shape, axes, taps.shape[-1]
    count = length // channels

    def fill(index: Index) -> None:
        images, part = index
        first, elements = rows.part(part)
        padded = with_pads(data[images, elements], first, line)
        image, row, place, one = padded.strides
        shape = len(padded), first.out, rows.kernel, line.kernel, broad // count, length
        strides = image, rows.stride * row, rows.dilation * row, line.dilation * place, count * line.stride * place, one
        seen = np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)
        target = out[images, part].reshape(len(padded), first.out, broad // count, length)
        np.einsum("nhijwc,ijc->nhwc", seen, taps, out=target)
        on_tile_ready((images, part, slice(0, broad), slice(0, channels)))

    size, effort = rows.stride * line.reach * channels * data.itemsize, out.nbytes * rows.kernel * line.kernel
    each_block(fill, (batch, high), size, 4 * BLOCK_BYTES, work=effort, least=BLOCK_BYTES // 2)


_MIN_SHARED_ROWS: Final = 64
"""The fewest rows of a matrix product when the work is divided among threads. Each product reads the whole matrix of
filters, which does not pay off for fewer rows."""
_MAX_ROW_ELEMENTS: Final = 1 << 12
"""The most elements in a row of a depthwise convolution, so that several rows stay in the first-level cache."""


def with_pads(data: np.ndarray, rows: Axis, line: Axis) -> np.ndarray:
    """Return the elements that all windows see, with zeros for the pads, each row contiguous in memory.

    May return ``data`` itself.
    """
    whole = rows.reach == data.shape[1] and line.reach == data.shape[2] and not (rows.begin or line.begin)
    if whole and data.strides[2:] == (data.shape[3] * data.itemsize, data.itemsize):
        return data
    padded = scratch(1, data.dtype, len(data), rows.reach, line.reach, data.shape[3])
    (high, kept_rows), (broad, kept) = rows.inside, line.inside
    padded[:, : high.start], padded[:, high.stop :] = 0, 0
    padded[:, high, : broad.start], padded[:, high, broad.stop :] = 0, 0
    padded[:, high, broad] = data[:, kept_rows, kept]
    return padded


def _together(line: Axis, channels: int) -> int:
    """Return how many columns a depthwise convolution computes at once.

    The number divides the output columns. It makes the rows long, but short enough to stay in the cache.
    """
    if line.stride > 1:
        return 1
    return max(
        (n for n in range(1, line.out + 1) if line.out % n == 0 and n * channels <= _MAX_ROW_ELEMENTS), default=1
    )
