"""Winograd's method on channels-last data, for 3×3 kernels: F(4×4, 3×3) and F(2×2, 3×3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from irrun.kernels.blocks import blocks, scratch
from irrun.kernels.convolution.planes import Filters, convolve, limit_of
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.convolution.winograd import is_plain_3x3
from irrun.kernels.matmul import matmul
from irrun.kernels.threads import each, fill, shares
from irrun.opdef import OnTileReady


def best_form(filters: Filters, axes: tuple[Axis, ...], batch: int) -> Form | None:
    """Return the form of Winograd's method with the least work, or None if another method is faster."""
    channels = min(filters.outs, filters.ins)
    if not is_plain_3x3(filters, axes) or channels < 32:
        return None
    fours, twos = (batch * math.prod(-(-axis.out // form.tile) for axis in axes) for form in (_FOUR, _TWO))
    # with few tiles, most of the time goes into reading the transformed filters
    if fours >= 32 and _FOUR.values**2 * filters.matrix.size // 9 <= _MAX_FOUR_ELEMENTS:
        return _FOUR
    return _TWO if twos >= 16 and channels >= 128 else None


def winograd(
    form: Form,
    matrices: np.ndarray,
    filters: Filters,
    axes: tuple[Axis, ...],
    data: np.ndarray,
    out: np.ndarray,
    on_tile_ready: OnTileReady,
) -> None:
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
class Form:
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
        return matmul(spread, filters.channels_last().reshape(9, -1)).reshape(-1, filters.ins, filters.outs)


# the points are 0, 1, -1, 2, -2 and infinity
_FOUR: Final = Form(
    4,
    np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24,
    _evaluate_six,
    _interpolate_six,
)
# the points are 0, 1, -1 and infinity
_TWO: Final = Form(2, np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]) / 2, _evaluate_four, _interpolate_four)


_MAX_FOUR_ELEMENTS: Final = 1 << 21
"""The most elements of transformed filters for F(4×4, 3×3). Beyond that, F(2×2, 3×3) saves much memory, because it has
less than half as many."""
