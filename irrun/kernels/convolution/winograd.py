"""Winograd's F(4×4, 3×3): 36 products for a tile of 16 windows in place of 144.

Its error is about eight times that of the plain sum of products, some 2e-5 on outputs of unit variance.
"""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from irrun.kernels.blocks import BLOCK, Done, blocks, scratch
from irrun.kernels.convolution.planes import Filters, convolve, limit_of
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.matmul import matmul

_one, _other = (functools.partial(scratch, n, np.dtype(np.float32)) for n in range(2))
"""Each step reads one and fills the other."""


def is_plain_3x3(filters: Filters, axes: tuple[Axis, ...]) -> bool:
    """Whether these are kernels of 3×3 over f32, without strides and dilations."""
    steps = {(axis.stride, axis.dilation) for axis in axes}
    return filters.kernel == [3, 3] and steps == {(1, 1)} and filters.array.dtype == np.float32


def suits(filters: Filters, axes: tuple[Axis, ...], batch: int) -> bool:
    """Whether filters and geometry are such that this is the fastest method."""
    tiles = batch * math.prod(-(-axis.out // 4) for axis in axes)
    return is_plain_3x3(filters, axes) and min(filters.outs, filters.ins) >= 32 and tiles >= 16


def packed(filters: Filters) -> np.ndarray:
    """What the tiles are multiplied with: (groups, 36, out, in), a matrix for each of their elements."""
    found = np.empty((filters.groups, 36, filters.outs, filters.ins), np.float32)
    for group, some in blocks((filters.groups, filters.outs), filters.ins * 36 * 8, 4 * BLOCK):
        taps = filters.array[group, some]
        spread = _FILTER @ taps.reshape(-1, 9).T.astype(np.float64)
        found[group, :, some] = spread.reshape(36, *taps.shape[:3]).swapaxes(0, 1)
    return found


def winograd(
    filters: Filters, packs: Callable[[], np.ndarray], axes: tuple[Axis, ...],
    data: np.ndarray, out: np.ndarray, done: Done,
) -> None:  # fmt: skip
    """Kernels of 3×3 over f32, without strides and dilations; ``packs`` gives what ``packed`` does."""
    matrices = packs()
    (batch, groups, ins), outs, (high, broad) = data.shape[:3], filters.outs, out.shape[3:]
    across, line = -(-broad // 4), replace(axes[1], out=-(-broad // 4) * 4)
    cuts = blocks((batch, -(-high // 4)), 36 * max(ins, outs) * across * data.itemsize, limit_of(matrices[0]))
    for group, (images, strips) in itertools.product(range(groups), cuts):
        lead = images.stop - images.start, strips.stop - strips.start
        given = data[images, group]
        seen = _six_rows(given, axes[0], strips, line)
        sums = matmul(_DATA, seen.reshape(6, -1), out=_other(6, seen[0].size))  # down
        # six elements of each for every tile, in pairs, and their sums across
        pairs, tiles = sums.view(np.float64).reshape(6, ins, *lead, -1), _one(6, ins, *lead, across, 6)
        for n in range(3):
            tiles.view(np.float64)[..., n] = pairs[..., n : n + 2 * across - 1 : 2]
        spread = matmul(_DATA, tiles.reshape(-1, 6).T, out=_other(6, tiles.size // 6)).reshape(36, ins, -1)
        products = matmul(matrices[group], spread, out=_one(36, outs, spread.shape[-1]))
        found = matmul(products.reshape(36, -1).T, _OUT, out=_other(products[0].size, 16))
        windows = slice(4 * strips.start, min(4 * strips.stop, high))
        if math.isfinite(np.vdot(found, found)):
            # each tile has four rows of four elements, which move together
            rows = _one(outs, *lead, 4, 4 * across)
            fours = found.view(np.complex128).reshape(outs, *lead, across, 4)
            rows.view(np.complex128)[...] = fours.swapaxes(-1, -2)
            whole = rows.reshape(outs, lead[0], 4 * lead[1], 4 * across)
            result = whole[:, :, : windows.stop - windows.start, :broad].swapaxes(0, 1)
        else:  # an infinity or NaN spoils its whole tile
            first, elements = axes[0].part(windows)
            result = convolve(given[:, :, elements], filters.array[group : group + 1], (first, axes[1]))
        out[images, group, :, windows] = result
        done((images, slice(group, group + 1), slice(0, outs), windows, slice(0, broad)))


def _six_rows(data: np.ndarray, axis: Axis, strips: slice, line: Axis) -> np.ndarray:
    """The rows of (batch, in, …) that tiles in ``strips`` see, and pads: (6, in, batch, strips, columns)."""
    block, elements = Axis(axis.size, 6, 4, 1, axis.begin, 0, strips.stop).part(strips)
    seen = _one(6, data.shape[1], len(data), block.out, line.reach)
    inside, kept = line.inside
    seen[..., : inside.start], seen[..., inside.stop :] = 0, 0
    lines = data[:, :, elements, kept].swapaxes(0, 1)
    for n, row in enumerate(seen):
        windows, taken = block.span(n)
        row[:, :, : windows.start], row[:, :, windows.stop :] = 0, 0
        row[:, :, windows, inside] = lines[:, :, taken]
    return seen


def _vandermonde(columns: int) -> np.ndarray:
    """The powers of five points, and of infinity: what the polynomials of Winograd's method are evaluated at."""
    points = np.array([0, 1, -1, 1 / 2, -2])  # these keep the error small
    return np.vstack([points[:, np.newaxis] ** np.arange(columns), np.eye(columns)[-1]])


def _both(matrix: np.ndarray) -> np.ndarray:
    """Down and across at once: a row for each two of its rows, of which the first is that for across."""
    return np.einsum("ay,bx->bayx", matrix, matrix).reshape(len(matrix) ** 2, -1)


_FILTER = _both(_vandermonde(3))
_DATA = np.linalg.inv(_vandermonde(6)).T.astype(np.float32)
_OUT = _both(_vandermonde(4)).astype(np.float32)
