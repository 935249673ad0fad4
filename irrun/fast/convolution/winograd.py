"""Winograd's method on channels-last data, for 3×3 kernels with strides and dilations of 1."""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.base.memory import lasting_zeros
from irrun.fast.convolution.windows import multiply_windows
from irrun.fast.convolution.winograd_block import FILTERS, evaluate_tile, interpolate_tile
from irrun.fast.machine.memory import address_of
from irrun.fast.machine.processor import ROWS, VECTOR, compiled
from irrun.fast.panels import WIDTH
from irrun.kernels.matmul import ConstantForm

__all__ = ["TransformedFilters", "convolve_3x3"]

_MAX_HELD_BYTES: Final = 3 << 18
"""Bytes of transformed values and products that are held at once, so that they stay in the second-level cache."""
_MAX_HELD_TILES: Final = 8 * ROWS
"""The most tiles that are held at once."""


_APART: Final = 16
"""Numbers by which the values of a tile are further apart than a power of two, so that a cache holds all of them."""


class TransformedFilters(ConstantForm):
    """The transforms of 3×3 filters (1, out, in, 3, 3) for tiles of ``tile`` × ``tile`` outputs.

    ``panels`` is f32 [(tile + 2)², panels, in, WIDTH]: a matrix in panels for each transformed value.
    """

    def __init__(self, source: np.ndarray, tile: int) -> None:
        super().__init__(source)
        self.tile, self.outs, ins = tile, *source.shape[1:3]
        points = np.array(FILTERS[tile])
        self.panels = lasting_zeros(((tile + 2) ** 2, -(-self.outs // WIDTH), ins, WIDTH), np.float32)
        for n in range(self.panels.shape[1]):
            part = source[0, n * WIDTH : (n + 1) * WIDTH].transpose(2, 3, 1, 0).reshape(3, -1).astype(np.float64)
            lines = (points @ part).reshape(tile + 2, 3, -1)
            values = np.matmul(points, lines).reshape(len(self.panels), ins, -1)
            self.panels[:, n, :, : values.shape[2]] = values
        self.shape = source.shape
        self.signs = np.packbits(source > 0), np.packbits(source < 0)

    def filters(self) -> np.ndarray:
        """Return the filters (1, out, in, 3, 3), within rounding.

        Their signs and zeros are exact, because these decide what becomes of an infinity.
        """
        back = np.linalg.pinv(np.array(FILTERS[self.tile]))
        panels, ins, width = self.panels.shape[1:]
        lines = back @ self.panels.reshape(self.tile + 2, -1)
        taps = np.matmul(back, lines.reshape(3, self.tile + 2, -1)).reshape(3, 3, panels, ins, width)
        filters = taps.transpose(2, 4, 3, 0, 1).reshape(1, -1, ins, 3, 3)
        sizes = np.abs(filters[:, : self.outs]).astype(np.float32)
        above, below = (np.unpackbits(bits, count=sizes.size).reshape(self.shape) for bits in self.signs)
        return np.maximum(sizes, np.finfo(np.float32).tiny) * (above.astype(np.float32) - below)


@compiled
def convolve_3x3(
    data: np.ndarray, beside: np.ndarray, panels: np.ndarray, tile: int, bias: np.ndarray, residual: np.ndarray,
    out: np.ndarray, pad_y: int, pad_x: int, adds: bool, limits: np.ndarray, first: int, last: int,
) -> bool:  # fmt: skip
    """Fill the rows of tiles ``first`` to ``last``, counted over the batch. See ``windows.convolve`` for the arguments.

    ``beside`` has more channels for each pixel of ``data``, or none. ``panels`` are those of ``TransformedFilters``.
    Returns whether all results are finite without bias and residual:
    if not, an infinity or NaN in the data may have spread over whole tiles.
    """
    ins, outs, values = data.shape[3] + beside.shape[3], out.shape[3], tile + 2
    across, strips = -(-out.shape[2] // tile), -(-out.shape[1] // tile)
    clamps = limits.size == 2
    low, high = (limits[0], limits[1]) if clamps else (np.float32(0), np.float32(0))
    added = address_of(bias) if bias.size else 0
    none = np.empty(0, np.float32)
    zeros, rest, faults = np.zeros(ins, np.float32), np.zeros(outs, np.float32), np.zeros(VECTOR, np.float32)
    most = max(ROWS, min(_MAX_HELD_TILES, _MAX_HELD_BYTES // (4 * values * values * (ins + outs)) // ROWS * ROWS))
    most = min(most, -(-(last - first) * across // ROWS) * ROWS)
    transformed = np.empty((values * values, most * ins + _APART), np.float32)
    products = np.empty((values * values, most * outs + _APART), np.float32)
    table, products_of = np.empty((most // ROWS, 1, ROWS), np.int64), np.empty((most // ROWS, ROWS, 3), np.int64)
    seen, targets = np.empty((values, values), np.int64), np.empty((tile, tile, 2), np.int64)
    for begin in range(first * across, last * across, most):
        count = min(most, last * across - begin)
        for n in range(count):
            image, strip = divmod((begin + n) // across, strips)
            top, left = strip * tile - pad_y, (begin + n) % across * tile - pad_x
            into, distance = address_of(transformed) + 4 * ins * n, transformed.strides[0]
            for source, channels in (address_of(data), data.shape[3]), (address_of(beside), beside.shape[3]):
                for i in range(values):
                    for j in range(values):
                        y, x = top + i, left + j
                        inside = 0 <= y < data.shape[1] and 0 <= x < data.shape[2]
                        place = (image * data.shape[1] + y) * data.shape[2] + x
                        seen[i, j] = source + 4 * channels * place if inside else address_of(zeros)
                if tile == 4:
                    evaluate_tile(4, address_of(seen), channels, into, distance)
                else:
                    evaluate_tile(2, address_of(seen), channels, into, distance)
                if beside.shape[3] == 0:
                    break
                into += 4 * channels
        for n in range(-(-count // ROWS) * ROWS):  # the last block has the last tile several times
            table[n // ROWS, 0, n % ROWS] = address_of(transformed) + 4 * ins * min(n, count - 1)
            products_of[n // ROWS, n % ROWS] = address_of(products) + 4 * outs * n
        for n in range(values * values):
            multiply_windows(
                panels[n], table, products_of, count, ins, outs, n * transformed.strides[0],
                n * products.strides[0], 0, 0, none, True, False,
            )  # fmt: skip
        for n in range(count):
            image, strip = divmod((begin + n) // across, strips)
            top, left = strip * tile, (begin + n) % across * tile
            for i in range(tile):
                for j in range(tile):
                    y, x = top + i, left + j
                    inside = y < out.shape[1] and x < out.shape[2]
                    place = 4 * outs * ((image * out.shape[1] + y) * out.shape[2] + x)
                    targets[i, j, 0] = address_of(out) + place if inside else address_of(rest)
                    targets[i, j, 1] = address_of(residual) + place if inside else address_of(rest)
            source, distance = address_of(products) + 4 * outs * n, products.strides[0]
            if tile == 4:
                interpolate_tile(
                    4, source, distance, address_of(targets), outs, added, adds, clamps, low, high, address_of(faults)
                )
            else:
                interpolate_tile(
                    2, source, distance, address_of(targets), outs, added, adds, clamps, low, high, address_of(faults)
                )
    sum = np.float32(0)
    for fault in faults:
        sum += fault
    return sum == 0  # NaN is not
