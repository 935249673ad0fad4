"""Winograd's F(4×4, 3×3): 36 products for a tile of 16 windows instead of 144.

Its error is about eight times that of the plain sum of products: about 2e-5 on outputs of unit variance.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.base.processor import may_use_tiles
from irrun.kernels.blocks import BLOCK_BYTES, blocks, scratch
from irrun.kernels.convolution.planes import Filters, convolve, limit_of
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.matmul import matmul
from irrun.opdef import OnTileReady

_one, _other = (functools.partial(scratch, n, np.dtype(np.float32)) for n in range(2))
"""Two scratch buffers: each step reads from one and writes to the other."""


def is_plain_3x3(filters: Filters, axes: tuple[Axis, ...]) -> bool:
    """Return whether the kernels are 3×3 over f32, with strides and dilations of 1."""
    steps = {(axis.stride, axis.dilation) for axis in axes}
    return filters.kernel == [3, 3] and steps == {(1, 1)} and filters.dtype == np.float32


def suits(filters: Filters, axes: tuple[Axis, ...], batch: int) -> bool:
    """Return whether Winograd's method is the fastest for these filters and this geometry."""
    tiles = batch * math.prod(-(-axis.out // 4) for axis in axes)
    return is_plain_3x3(filters, axes) and min(filters.outs, filters.ins) >= 32 and tiles >= 16


def outruns_bf16(outs: int, ins: int, axes: Sequence[Axis], batch: int) -> bool:
    """Return whether F(4×4, 3×3) in f32 takes less time than the plain sum of products in bf16, for a single group.

    It has a quarter of the products. Each takes twice as long as in bf16, and 16 times as long as in the tiles of AMX.
    All processors without tiles round the same numbers in a run in bf16.
    """
    if may_use_tiles():
        return False
    steps = {(axis.kernel, axis.stride, axis.dilation) for axis in axes}
    tiles = batch * math.prod(-(-axis.out // 4) for axis in axes)
    if len(axes) != 2 or steps != {(3, 1, 1)} or tiles < _MIN_TILES:
        return False
    if tiles * outs * ins < _MIN_WORK or outs * ins > _MAX_PAIRS:
        return False
    return min(outs, ins) >= _MIN_CHANNELS and not (outs % _CHANNELS or ins % _CHANNELS)


_MIN_TILES: Final = 64
"""The fewest tiles that are worth reading the transformed filters, which are eight times as large as those in bf16."""
_MIN_WORK: Final = 1 << 20
"""The least tiles times pairs of channels: smaller convolutions take less time in a sequence of them in bf16."""
_MAX_PAIRS: Final = 1 << 15
"""The most pairs of channels: the transformed filters take 4.5 MiB."""
_MIN_CHANNELS: Final = 32
"""The fewest channels: with fewer, transforms take more time than products."""
_CHANNELS: Final = 16
"""Channels of the widest vector, of which compiled transforms compute no part."""


def transformed_bytes(filters: Filters) -> int:
    """Return the bytes of the transformed filters: 36 numbers for each 3×3 kernel."""
    return filters.array.nbytes * 4


def packed(filters: Filters) -> np.ndarray:
    """Return the transformed filters (groups, 36, out, in): a matrix for each element of a transformed tile."""
    matrices = np.empty((filters.groups, 36, filters.outs, filters.ins), np.float32)
    for group, some in blocks((filters.groups, filters.outs), filters.ins * 36 * 8, 4 * BLOCK_BYTES):
        taps = filters.array[group, some]
        spread = _FILTER @ taps.reshape(-1, 9).T.astype(np.float64)
        matrices[group, :, some] = spread.reshape(36, *taps.shape[:3]).swapaxes(0, 1)
    return matrices


def winograd(
    filters: Filters,
    packs: Callable[[], np.ndarray],
    axes: tuple[Axis, ...],
    data: np.ndarray,
    out: np.ndarray,
    on_tile_ready: OnTileReady,
) -> None:
    """Convolve with 3×3 kernels over f32, strides and dilations of 1. ``packs()`` returns the result of ``packed``."""
    matrices = packs()
    (batch, groups, ins), outs, (high, broad) = data.shape[:3], filters.outs, out.shape[3:]
    across, line = -(-broad // 4), replace(axes[1], out=-(-broad // 4) * 4)
    cuts = blocks((batch, -(-high // 4)), 36 * max(ins, outs) * across * data.itemsize, limit_of(matrices[0]))
    for group, (images, strips) in itertools.product(range(groups), cuts):
        lead = images.stop - images.start, strips.stop - strips.start
        block = data[images, group]
        seen = _six_rows(block, axes[0], strips, line)
        sums = matmul(_DATA, seen.reshape(6, -1), out=_other(6, seen[0].size))  # transform down the columns
        # gather the six columns of every tile, two f32 at a time, and transform across the rows
        pairs, tiles = sums.view(np.float64).reshape(6, ins, *lead, -1), _one(6, ins, *lead, across, 6)
        for n in range(3):
            tiles.view(np.float64)[..., n] = pairs[..., n : n + 2 * across - 1 : 2]
        spread = matmul(_DATA, tiles.reshape(-1, 6).T, out=_other(6, tiles.size // 6)).reshape(36, ins, -1)
        products = matmul(matrices[group], spread, out=_one(36, outs, spread.shape[-1]))
        results = matmul(products.reshape(36, -1).T, _OUT, out=_other(products[0].size, 16))
        windows = slice(4 * strips.start, min(4 * strips.stop, high))
        if math.isfinite(np.vdot(results, results)):
            # each tile has four rows of four f32, which are copied as one complex128
            rows = _one(outs, *lead, 4, 4 * across)
            fours = results.view(np.complex128).reshape(outs, *lead, across, 4)
            rows.view(np.complex128)[...] = fours.swapaxes(-1, -2)
            whole = rows.reshape(outs, lead[0], 4 * lead[1], 4 * across)
            result = whole[:, :, : windows.stop - windows.start, :broad].swapaxes(0, 1)
        else:  # an infinity or NaN would spread over its whole tile
            first, elements = axes[0].part(windows)
            result = convolve(block[:, :, elements], filters.array[group : group + 1], (first, axes[1]))
        out[images, group, :, windows] = result
        on_tile_ready((images, slice(group, group + 1), slice(0, outs), windows, slice(0, broad)))


def _six_rows(data: np.ndarray, axis: Axis, strips: slice, line: Axis) -> np.ndarray:
    """Return the six rows that each tile in ``strips`` sees, with zeros for the pads: (6, in, batch, strips, columns).

    ``data`` is (batch, in, …).
    """
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
    """Return the matrix that evaluates polynomials of ``columns`` coefficients at the six points of Winograd's method.

    The points are five numbers and infinity.
    """
    points = np.array([0, 1, -1, 1 / 2, -2])  # these points keep the error small
    return np.vstack([points[:, np.newaxis] ** np.arange(columns), np.eye(columns)[-1]])


def _both(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix that applies ``matrix`` down and across at once.

    It has a row for each pair of rows of ``matrix``, the first of which is the one that is applied across.
    """
    return np.einsum("ay,bx->bayx", matrix, matrix).reshape(len(matrix) ** 2, -1)


_FILTER = _both(_vandermonde(3))
_DATA = np.linalg.inv(_vandermonde(6)).T.astype(np.float32)
_OUT = _both(_vandermonde(4)).astype(np.float32)
