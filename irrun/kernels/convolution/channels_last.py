"""Convolutions on channels-last data (NHWC): (batch, rows, columns, channels).

BLAS multiplies such data without a copy, and element-wise work runs over long rows of channels even where the planes
are small. Like the methods in ``planes``, these methods need constant filters and a known geometry.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from irrun.kernels.blocks import BLOCK, blocks, each_block, scratch, within
from irrun.kernels.convolution.planes import Filters, convolve, limit_of
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.convolution.winograd import is_plain_3x3
from irrun.kernels.copies import copy_to
from irrun.kernels.matmul import matmul
from irrun.kernels.threads import each, fill, shares
from irrun.opdef import Index, OnTileReady

Method = Callable[[np.ndarray, np.ndarray, OnTileReady], None]
"""``method(data, out, on_tile_ready)`` fills ``out`` (batch, rows, columns, out channels), which is C-contiguous, from
``data`` (batch, rows, columns, in channels) of the same dtype."""


def choose(filters: Filters, axes: tuple[Axis, ...], batch: int) -> tuple[str, Method] | None:
    """Return the name of the fastest method for these filters and this geometry, and the method.

    Return None where channels-first data is faster: for grouped filters that are not depthwise.
    """
    if filters.ins == filters.outs == 1:
        count = _together(axes[1], filters.groups)
        taps = np.ascontiguousarray(np.tile(filters.array[:, 0, 0].transpose(1, 2, 0), count))
        return "depthwise", functools.partial(depthwise, taps, axes)
    if filters.groups > 1:
        return None
    form = _form(filters, axes, batch)
    if form is not None:
        method = functools.partial(winograd, form, form.transformed(filters), filters, axes)
        return f"Winograd F({form.tile}×{form.tile}, 3×3)", method
    matrix = _transposed(filters).reshape(-1, filters.outs)
    if filters.kernel == [1, 1] and not any(axis.begin or axis.end for axis in axes):
        return "matmul", functools.partial(pointwise, matrix, axes)
    return "im2col", functools.partial(columns, matrix, axes)


def _transposed(filters: Filters) -> np.ndarray:
    """Return the filters of the only group, transposed to (rows, columns, in, out) and in C order."""
    view = filters.array[0].transpose(2, 3, 1, 0)
    contiguous = np.empty(view.shape, view.dtype)
    copy_to(contiguous, view)
    return contiguous


def _form(filters: Filters, axes: tuple[Axis, ...], batch: int) -> _Form | None:
    """Return the form of Winograd's method with the least work, or None if another method is faster."""
    channels = min(filters.outs, filters.ins)
    if not is_plain_3x3(filters, axes) or channels < 32:
        return None
    fours, twos = (batch * math.prod(-(-axis.out // form.tile) for axis in axes) for form in (_FOUR, _TWO))
    # with few tiles, most of the time goes into reading the transformed filters
    if fours >= 32 and _FOUR.values**2 * filters.matrix.size // 9 <= _MOST:
        return _FOUR
    return _TWO if twos >= 16 and channels >= 128 else None


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
        padded = _padded(data[images, elements], first, line)
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
    each_block(function, (batch, high), broad * place, limit_of(matrix), work=flops, least=_LEAST * place)


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
    each_block(fill, (batch, high), size, 4 * BLOCK, work=flops, least=BLOCK // 2)


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
        padded = _padded(data[images, elements], first, line)
        image, row, place, one = padded.strides
        shape = len(padded), first.out, rows.kernel, line.kernel, broad // count, length
        strides = image, rows.stride * row, rows.dilation * row, line.dilation * place, count * line.stride * place, one
        seen = np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)
        target = out[images, part].reshape(len(padded), first.out, broad // count, length)
        np.einsum("nhijwc,ijc->nhwc", seen, taps, out=target)
        on_tile_ready((images, part, slice(0, broad), slice(0, channels)))

    size, effort = rows.stride * line.reach * channels * data.itemsize, out.nbytes * rows.kernel * line.kernel
    each_block(fill, (batch, high), size, 4 * BLOCK, work=effort, least=BLOCK // 2)


def winograd(
    form: _Form, matrices: np.ndarray, filters: Filters, axes: tuple[Axis, ...],
    data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady,
) -> None:  # fmt: skip
    """Convolve with 3×3 kernels over f32, strides and dilations of 1.

    ``matrices`` is the result of ``form.transformed``.

    This is the method of the module ``winograd``, but with evaluation points that come in pairs p and -p, so that the
    terms which both points have in common are computed once.
    """
    (batch, high, broad, outs), (rows, line), ins, tile, count = out.shape, axes, data.shape[-1], form.tile, form.values
    across = -(-broad // tile)
    size = count * count * max(ins, outs) * across * data.itemsize
    # one block after the other: the steps of a block share their own work among threads
    for images, strips in blocks((batch, -(-high // tile)), size, limit_of(matrices)):
        part = slice(tile * strips.start, min(tile * strips.stop, high))
        block, elements = rows.part(slice(tile * strips.start, tile * strips.stop))
        target, tiles = out[images, part], (images.stop - images.start, strips.stop - strips.start, across)
        # transform each tile across its `count` rows first, then across the `count` elements of each row
        seen = _by_phases(data[images, elements], block, line, tile, across + 1)
        lines = _scratch(1, count, *tiles[:2], *seen.shape[2:])
        _on_strips(form.evaluate, [seen[:, n : n + tile * (tiles[1] - 1) + 1 : tile] for n in range(count)], lines, 3)
        places = [lines[:, :, :, n % tile, n // tile : n // tile + across] for n in range(count)]
        values = _scratch(0, count, count, *tiles, ins)
        _on_strips(form.evaluate, places, values.swapaxes(0, 1))
        products = _scratch(1, count * count, math.prod(tiles), outs)
        matmul(values.reshape(count * count, -1, ins), matrices, out=products)
        sums = _scratch(0, tile, count, *tiles, outs)
        _on_strips(form.interpolate, list(products.reshape(count, count, *tiles, outs)), sums)
        results = _scratch(1, tile, tile, *tiles, outs)
        _on_strips(form.interpolate, list(sums.swapaxes(0, 1)), results)
        _into_rows(results, target)
        if not math.isfinite(np.vdot(target, target)):  # an infinity or NaN would spread over its whole tile
            first, elements = rows.part(part)
            plain = convolve(np.moveaxis(data[images, elements], -1, 1), filters.array, (first, line))
            target[...] = np.moveaxis(plain, 1, -1)
        on_tile_ready((images, part, slice(0, broad), slice(0, outs)))


def _scratch(number: int, *shape: int) -> np.ndarray:
    """Return an f32 array in scratch memory."""
    return scratch(number, np.dtype(np.float32), *shape)


def _by_phases(data: np.ndarray, rows: Axis, line: Axis, step: int, count: int) -> np.ndarray:
    """Return the elements that all windows see, with zeros for the pads: (batch, rows, step, count, in).

    Column ``n`` of the padded data is at ``[:, :, n % step, n // step]``.
    """
    padded = _scratch(0, len(data), rows.reach, step, count, data.shape[-1])
    high, kept = rows.inside
    padded[:, : high.start], padded[:, high.stop :] = 0, 0
    for phase in range(step):
        places, elements = replace(line, stride=step).phase(phase, count)
        row = padded[:, high, phase]
        row[:, :, : places.start], row[:, :, places.stop :] = 0, 0
        row[:, :, places] = data[:, kept, elements]
    return padded


def _on_strips(form: _Transform, data: Sequence[np.ndarray], out: np.ndarray, behind: int = 2) -> None:
    """Apply the transform ``form``, shared among threads along the axis of strips.

    ``behind`` axes follow this axis.
    """
    after = (slice(None),) * behind

    def some(cut: slice) -> None:
        index = (..., cut, *after)
        form([array[index] for array in data], out[index])

    each(some, shares(out.shape[-1 - behind], out.nbytes), out.nbytes)


def _into_rows(results: np.ndarray, out: np.ndarray) -> None:
    """Copy the results of all tiles to ``out`` (batch, rows, columns, channels).

    ``results`` is (columns of a tile, rows of a tile, batch, strips, tiles, channels). Results of the last tiles that
    lie beyond the edge of ``out`` are dropped.
    """
    across, down, batch, strips, tiles, channels = results.shape
    whole = out.shape[1:3] == (down * strips, across * tiles)
    target = out if whole else _scratch(0, batch, down * strips, across * tiles, channels)
    split = target.reshape(batch, strips, down, tiles, across, channels)
    fill(split, results.transpose(2, 3, 1, 4, 0, 5))
    if not whole:
        out[...] = target[:, : out.shape[1], : out.shape[2]]


def _evaluate_six(data: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Fill ``out`` with the data transform of F(4×4, 3×3): values at six points from each tile's six elements."""
    a, b, c, d, e, f = data
    even, odd = _scratch(2, 2, *a.shape)
    for first, middle, last, value in ((a, c, e, out[0]), (b, d, f, out[5])):
        np.multiply(first, 4, value)
        np.add(value, last, value)
        np.multiply(middle, 5, even)
        np.subtract(value, even, value)
    np.multiply(c, 4, even)
    np.subtract(e, even, even)
    np.multiply(b, 4, odd)
    np.subtract(d, odd, odd)
    np.add(even, odd, out[1])
    np.subtract(even, odd, out[2])
    np.subtract(e, c, even)
    np.subtract(d, b, odd)
    np.add(odd, odd, odd)
    np.add(even, odd, out[3])
    np.subtract(even, odd, out[4])


def _interpolate_six(values: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Fill ``out`` with the output transform of F(4×4, 3×3): four sums of each tile from its six values."""
    a, b, c, d, e, f = values
    near, far = _scratch(2, 2, *a.shape)
    np.add(b, c, near)
    np.add(d, e, far)
    np.add(near, far, out[0])
    np.add(out[0], a, out[0])
    np.multiply(far, 4, far)
    np.add(near, far, out[2])
    np.subtract(b, c, near)
    np.subtract(d, e, far)
    np.add(far, far, far)
    np.add(near, far, out[1])
    np.multiply(far, 4, far)
    np.add(near, far, out[3])
    np.add(out[3], f, out[3])


def _evaluate_four(data: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Fill ``out`` with the data transform of F(2×2, 3×3): values at four points from each tile's four elements."""
    a, b, c, d = data
    np.subtract(a, c, out[0])
    np.add(b, c, out[1])
    np.subtract(c, b, out[2])
    np.subtract(d, b, out[3])


def _interpolate_four(values: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Fill ``out`` with the output transform of F(2×2, 3×3): two sums of each tile from its four values."""
    a, b, c, d = values
    np.add(b, c, out[0])
    np.add(out[0], a, out[0])
    np.subtract(b, c, out[1])
    np.add(out[1], d, out[1])


_Transform = Callable[[Sequence[np.ndarray], np.ndarray], None]
"""``transform(data, out)`` fills ``out`` with the transform of the arrays in ``data``, one for each element of a
tile."""


@dataclass(frozen=True, slots=True)
class _Form:
    """One size of Winograd's method, F(tile × tile, 3×3)."""

    tile: int
    """The number of outputs of a tile along each axis."""
    filter: np.ndarray
    """The filter transform. Each row evaluates a polynomial of three coefficients at one point, the last of which is
    infinity, scaled to match ``evaluate``."""
    evaluate: _Transform
    interpolate: _Transform

    @property
    def values(self) -> int:
        """Return the number of transformed values of a tile along each axis."""
        return self.tile + 2

    def transformed(self, filters: Filters) -> np.ndarray:
        """Return the transformed filters, by which the transformed tiles are multiplied: (values * values, in, out)."""
        spread = np.einsum("ay,bx->abyx", self.filter, self.filter).reshape(-1, 9).astype(np.float32)
        return matmul(spread, _transposed(filters).reshape(9, -1)).reshape(-1, filters.ins, filters.outs)


# the points are 0, 1, -1, 2, -2 and infinity
_FOUR: Final = _Form(
    4,
    np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24,
    _evaluate_six,
    _interpolate_six,
)
# the points are 0, 1, -1 and infinity
_TWO: Final = _Form(
    2, np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]) / 2, _evaluate_four, _interpolate_four
)  # fmt: skip


_MOST: Final = 1 << 21
"""The most elements of transformed filters for F(4×4, 3×3). Beyond that, F(2×2, 3×3) saves much memory, because it has
less than half as many."""
_LEAST: Final = 64
"""The fewest rows of a matrix product when the work is divided among threads. Each product reads the whole matrix of
filters, which does not pay off for fewer rows."""
_LENGTH: Final = 1 << 12
"""The most elements in a row of a depthwise convolution, so that several rows stay in the first-level cache."""


def _padded(data: np.ndarray, rows: Axis, line: Axis) -> np.ndarray:
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
    return max((n for n in range(1, line.out + 1) if line.out % n == 0 and n * channels <= _LENGTH), default=1)
