"""Convolutions of data (batch, rows, columns, channels), whose channels are the last axis.

Matrix products take such data as it is, and what is done for every channel is done on long rows, however small the
planes are. Constant filters and a known geometry, as for the methods of ``_correlation``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from irrun.kernels.blocks import BLOCK, Done, Index, blocks, each_block, scratch, within
from irrun.kernels.convolution.planes import Filters, convolve, limit_of
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.convolution.winograd import is_plain_3x3
from irrun.kernels.copies import copy_to
from irrun.kernels.matmul import matmul
from irrun.kernels.threads import each, fill, shares

Method = Callable[[np.ndarray, np.ndarray, Done], None]
"""Fills (batch, rows, columns, out), which is C-contiguous, from (batch, rows, columns, in), both of one type; parts
are disjoint and cover the output."""


def choose(filters: Filters, axes: tuple[Axis, ...], batch: int) -> tuple[str, Method] | None:
    """The fastest method for these filters and this geometry, and its name; None where planes are the better way."""
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
    matrix = _turned(filters).reshape(-1, filters.outs)
    if filters.kernel == [1, 1] and not any(axis.begin or axis.end for axis in axes):
        return "matmul", functools.partial(pointwise, matrix, axes)
    return "im2col", functools.partial(columns, matrix, axes)


def _turned(filters: Filters) -> np.ndarray:
    """The filters of one group as (rows, columns, in, out)."""
    turned = filters.array[0].transpose(2, 3, 1, 0)
    found = np.empty(turned.shape, turned.dtype)
    copy_to(found, turned)
    return found


def _form(filters: Filters, axes: tuple[Axis, ...], batch: int) -> _Form | None:
    """Winograd's method of the size that has the least to do, if it is the fastest method."""
    channels = min(filters.outs, filters.ins)
    if not is_plain_3x3(filters, axes) or channels < 32:
        return None
    fours, twos = (batch * math.prod(-(-axis.out // form.tile) for axis in axes) for form in (_FOUR, _TWO))
    # with few tiles, reading the filters is most of it
    if fours >= 32 and _FOUR.values**2 * filters.matrix.size // 9 <= _MOST:
        return _FOUR
    return _TWO if twos >= 16 and channels >= 128 else None


def pointwise(matrix: np.ndarray, axes: tuple[Axis, ...], data: np.ndarray, out: np.ndarray, done: Done) -> None:
    """Kernels of one element and no pads: a matrix product, without a copy unless strides leave elements out."""
    rows, line = (slice(0, (axis.out - 1) * axis.stride + 1, axis.stride) for axis in axes)
    seen, (ins, outs), broad = data[:, rows, line], matrix.shape, out.shape[2]

    def fill(index: Index) -> None:
        images, part = index
        given = seen[images, part]
        if not given.flags.c_contiguous:
            given = scratch(0, data.dtype, *given.shape)
            np.copyto(given, seen[images, part])
        matmul(given.reshape(-1, ins), matrix, out=out[images, part].reshape(-1, outs))
        done((images, part, slice(0, broad), slice(0, outs)))

    _each_rows(fill, out, matrix, outs)


def columns(matrix: np.ndarray, axes: tuple[Axis, ...], data: np.ndarray, out: np.ndarray, done: Done) -> None:
    """Copy what each window sees into a row of a matrix, block by block, and multiply it with the filters."""
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
        done((images, part, slice(0, broad), slice(0, outs)))

    _each_rows(some, out, matrix, height)


def _each_rows(function: Callable[[Index], object], out: np.ndarray, matrix: np.ndarray, width: int) -> None:
    """Call ``function`` with blocks of rows of ``out``: each is one product with the matrix, ``width`` for a place."""
    (batch, high, broad, _), place = out.shape, width * out.itemsize
    flops = 2 * out.size * len(matrix)
    each_block(function, (batch, high), broad * place, limit_of(matrix), work=flops, least=_LEAST * place)


def spread(filters: np.ndarray, data: np.ndarray, out: np.ndarray, done: Done) -> None:
    """A transposed convolution whose strides are as long as the kernel of ``filters`` (in, rows, columns, out)."""
    (batch, high, broad, ins), (_, rows, line, outs) = data.shape, filters.shape
    matrix = filters.reshape(ins, -1)
    target = out.reshape(batch, high, rows, broad, line, outs)

    def fill(index: Index) -> None:
        images, part = index
        seen = data[images, part]
        found = scratch(0, data.dtype, *seen.shape[:3], rows, line, outs)
        matmul(seen.reshape(-1, ins), matrix, out=found.reshape(-1, matrix.shape[1]))
        target[images, part] = found.transpose(0, 1, 3, 2, 4, 5)
        lines = slice(part.start * rows, part.stop * rows)
        for part in within((images, lines), broad * line * outs * data.itemsize):
            done((*part, slice(0, broad * line), slice(0, outs)))

    size, flops = broad * matrix.shape[1] * data.itemsize, 2 * data.size * matrix.shape[1]
    each_block(fill, (batch, high), size, 4 * BLOCK, work=flops, least=BLOCK // 2)


def depthwise(taps: np.ndarray, axes: tuple[Axis, ...], data: np.ndarray, out: np.ndarray, done: Done) -> None:
    """A filter of its own for every channel: sums over ``taps`` (rows, columns, channels of some places)."""
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
        done((images, part, slice(0, broad), slice(0, channels)))

    size, effort = rows.stride * line.reach * channels * data.itemsize, out.nbytes * rows.kernel * line.kernel
    each_block(fill, (batch, high), size, 4 * BLOCK, work=effort, least=BLOCK // 2)


def winograd(
    form: _Form, matrices: np.ndarray, filters: Filters, axes: tuple[Axis, ...],
    data: np.ndarray, out: np.ndarray, done: Done,
) -> None:  # fmt: skip
    """Kernels of 3×3 over f32, without strides and dilations; ``matrices`` are what ``transformed`` gives.

    As ``_winograd``, but evaluated at points that come in pairs: what both have in common is computed once.
    """
    (batch, high, broad, outs), (rows, line), ins, tile, count = out.shape, axes, data.shape[-1], form.tile, form.values
    across = -(-broad // tile)
    size = count * count * max(ins, outs) * across * data.itemsize
    # in turn: its steps are too short for threads, its products are shared
    for images, strips in blocks((batch, -(-high // tile)), size, limit_of(matrices)):
        part = slice(tile * strips.start, min(tile * strips.stop, high))
        block, elements = rows.part(slice(tile * strips.start, tile * strips.stop))
        target, tiles = out[images, part], (images.stop - images.start, strips.stop - strips.start, across)
        # of each tile so many rows, and of these so many elements
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
        if not math.isfinite(np.vdot(target, target)):  # an infinity or NaN spoils its whole tile
            first, elements = rows.part(part)
            found = convolve(np.moveaxis(data[images, elements], -1, 1), filters.array, (first, line))
            target[...] = np.moveaxis(found, 1, -1)
        done((images, part, slice(0, broad), slice(0, outs)))


def _scratch(number: int, *shape: int) -> np.ndarray:
    return scratch(number, np.dtype(np.float32), *shape)


def _by_phases(data: np.ndarray, rows: Axis, line: Axis, step: int, count: int) -> np.ndarray:
    """What all windows see, among zeros, every ``step``-th place of a row together: (batch, rows, step, count, in)."""
    found = _scratch(0, len(data), rows.reach, step, count, data.shape[-1])
    high, kept = rows.inside
    found[:, : high.start], found[:, high.stop :] = 0, 0
    for phase in range(step):
        places, elements = replace(line, stride=step).phase(phase, count)
        row = found[:, high, phase]
        row[:, :, : places.start], row[:, :, places.stop :] = 0, 0
        row[:, :, places] = data[:, kept, elements]
    return found


def _on_strips(form: _Transform, data: Sequence[np.ndarray], out: np.ndarray, behind: int = 2) -> None:
    """A transform, shared among the threads by strips, an axis that has so many ``behind`` it."""
    after = (slice(None),) * behind

    def some(cut: slice) -> None:
        index = (..., cut, *after)
        form([array[index] for array in data], out[index])

    each(some, shares(out.shape[-1 - behind], out.nbytes), out.nbytes)


def _into_rows(results: np.ndarray, out: np.ndarray) -> None:
    """Bring (columns of a tile, its rows, batch, strips, tiles, channels) to their places."""
    across, down, batch, strips, tiles, channels = results.shape
    whole = out.shape[1:3] == (down * strips, across * tiles)
    target = out if whole else _scratch(0, batch, down * strips, across * tiles, channels)
    split = target.reshape(batch, strips, down, tiles, across, channels)
    fill(split, results.transpose(2, 3, 1, 4, 0, 5))
    if not whole:
        out[...] = target[:, : out.shape[1], : out.shape[2]]


def _evaluate_six(data: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Six elements of each tile as values at the six points."""
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
    """Four sums of each tile from its values at the six points."""
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
    """Four elements of each tile as values at the four points."""
    a, b, c, d = data
    np.subtract(a, c, out[0])
    np.add(b, c, out[1])
    np.subtract(c, b, out[2])
    np.subtract(d, b, out[3])


def _interpolate_four(values: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Two sums of each tile from its values at the four points."""
    a, b, c, d = values
    np.add(b, c, out[0])
    np.add(out[0], a, out[0])
    np.subtract(b, c, out[1])
    np.add(out[1], d, out[1])


_Transform = Callable[[Sequence[np.ndarray], np.ndarray], None]


@dataclass(frozen=True, slots=True)
class _Form:
    """Winograd's F(tile × tile, 3×3)."""

    tile: int
    filter: np.ndarray
    """The values of a polynomial of three coefficients at the points, the last of which is infinity, scaled for
    ``evaluate``."""
    evaluate: _Transform
    interpolate: _Transform

    @property
    def values(self) -> int:
        """How many there are of a tile along each axis."""
        return self.tile + 2

    def transformed(self, filters: Filters) -> np.ndarray:
        """What the values are multiplied with: (values * values, in, out)."""
        spread = np.einsum("ay,bx->abyx", self.filter, self.filter).reshape(-1, 9).astype(np.float32)
        return matmul(spread, _turned(filters).reshape(9, -1)).reshape(-1, filters.ins, filters.outs)


# at 0, 1, -1, 2, -2
_FOUR: Final = _Form(
    4,
    np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24,
    _evaluate_six,
    _interpolate_six,
)
# at 0, 1, -1
_TWO: Final = _Form(
    2, np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]) / 2, _evaluate_four, _interpolate_four
)  # fmt: skip


_MOST: Final = 1 << 21
"""Elements of transformed filters, beyond which the small form, whose are less than half as many, saves much memory."""
_LEAST: Final = 64
"""Rows of a product below which it is not worth its while, as each reads the whole of the other matrix."""
_LENGTH: Final = 1 << 12
"""Elements in a row, of which several shall stay in the first cache."""


def _padded(data: np.ndarray, rows: Axis, line: Axis) -> np.ndarray:
    """The places that all windows see, rows in one piece: zeros around ``data``."""
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
    """How many places of a row to do at once: a divisor of their number, so that rows are long, but stay in cache."""
    if line.stride > 1:
        return 1
    return max((n for n in range(1, line.out + 1) if line.out % n == 0 and n * channels <= _LENGTH), default=1)
