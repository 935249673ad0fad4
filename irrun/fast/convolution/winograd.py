"""Winograd's method on channels-last data, for 3×3 kernels with strides and dilations of 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Final

import numpy as np

from irrun.base.memory import lasting_zeros
from irrun.fast.convolution.kernel import After, Arrays, Method
from irrun.fast.convolution.windows import each_of, limits_of, multiply_windows
from irrun.fast.convolution.winograd_block import FILTERS, evaluate_tile, interpolate_tile
from irrun.fast.machine.memory import add_to, address_of, data_address
from irrun.fast.machine.processor import ROWS, VECTOR, compiled
from irrun.fast.machine.sharing import share
from irrun.fast.panels import WIDTH
from irrun.kernels.blocks import each_block
from irrun.kernels.convolution.planes import Filters, limit_of
from irrun.kernels.convolution.planes import convolve as defined
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.convolution.winograd import is_plain_3x3
from irrun.kernels.matmul import ConstantForm
from irrun.opdef import Call, Calls, Index, Kernel, OnTileReady, ignore_tile

__all__ = ["TransformedFilters", "Winograd", "convolve_3x3", "tile_of"]

_MAX_HELD_BYTES: Final = 3 << 18
"""Bytes of transformed values and products that are held at once, so that they stay in the second-level cache."""
_MAX_HELD_TILES: Final = 8 * ROWS
"""The most tiles that are held at once."""
_MIN_WINOGRAD_CHANNELS: Final = 16
"""The fewest channels for Winograd's method: with fewer, its transforms take longer than what they save."""
_SMALL_FILTERS_ELEMENTS: Final = 1 << 18
"""The most elements of transformed filters that do not matter: 1 MiB."""
_LARGE_FILTERS_ELEMENTS: Final = 1 << 22
"""The least elements of large transformed filters: 16 MiB."""
_MIN_SAVED_PER_ELEMENT: Final = 32
"""The least multiplications that each element of transformed filters must save, unless they are small."""
_MIN_SAVED_PER_LARGE_ELEMENT: Final = 128
"""The same for large ones. With 32 above 16 MiB, a U-Net takes 20 MB more and is 1 % faster; with 32 for 16 MiB too,
it takes 14 MB more."""
_NO_CHANNELS: Final = np.empty((0, 0, 0, 0), np.float32)


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
    out: np.ndarray, pad_y: int, pad_x: int, adds: bool, limits: np.ndarray, faults: int, first: int, last: int,
) -> bool:  # fmt: skip
    """Fill the rows of tiles ``first`` to ``last``, counted over the batch. See ``windows.convolve`` for the arguments.

    ``beside`` has more channels for each pixel of ``data``, or none. ``panels`` are those of ``TransformedFilters``.
    Returns whether all results are finite without bias and residual:
    if not, an infinity or NaN in the data may have spread over whole tiles. The i64 at the address ``faults``, unless
    that is 0, then grows by 1.
    """
    ins, outs, values = data.shape[3] + beside.shape[3], out.shape[3], tile + 2
    across, strips = -(-out.shape[2] // tile), -(-out.shape[1] // tile)
    clamps, low, high = limits_of(limits)
    added = address_of(bias) if bias.size else 0
    none = np.empty(0, np.float32)
    zeros, rest, found = np.zeros(ins, np.float32), np.zeros(outs, np.float32), np.zeros(VECTOR, np.float32)
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
                    more = place if residual.size > outs else 0
                    targets[i, j, 1] = address_of(residual) + more if inside else address_of(rest)
            source, distance = address_of(products) + 4 * outs * n, products.strides[0]
            if tile == 4:
                interpolate_tile(
                    4, source, distance, address_of(targets), outs, added, adds, clamps, low, high, address_of(found)
                )
            else:
                interpolate_tile(
                    2, source, distance, address_of(targets), outs, added, adds, clamps, low, high, address_of(found)
                )
    sum = np.float32(0)
    for number in found:
        sum += number
    if sum == 0:  # NaN is not
        return True
    if faults:
        add_to(faults, 1)
    return False


def tile_of(filters: Filters, axes: tuple[Axis, ...], batch: int) -> int | None:
    """Return the size of the tiles for Winograd's method, or None if another method is better.

    Transformed filters take much memory: 4 times that of the filters for tiles of 4, 1.8 times for tiles of 2. They
    must save enough multiplications.
    """
    plain = filters.groups == 1 and is_plain_3x3(filters, axes) and filters.is_finite
    if (
        not plain
        or min(filters.ins, filters.outs) < _MIN_WINOGRAD_CHANNELS
        or filters.ins % VECTOR
        or filters.outs % VECTOR
    ):
        return None
    # for each pair of channels: multiplications, and elements of transformed filters, without tiles and with them
    windows = {tile: batch * math.prod(-(-axis.out // tile) for axis in axes) for tile in (1, 2, 4)}
    work = {None: 9 * windows[1], 2: 16 * windows[2], 4: 36 * windows[4]}
    held = {None: 0, 2: 16, 4: 36}
    best: int | None = None
    for tile in (2, 4):
        saved, more = work[best] - work[tile], held[tile] - held[best]
        pairs = filters.ins * filters.outs
        worth = _MIN_SAVED_PER_ELEMENT if held[tile] * pairs < _LARGE_FILTERS_ELEMENTS else _MIN_SAVED_PER_LARGE_ELEMENT
        if saved > 0 and (more * pairs <= _SMALL_FILTERS_ELEMENTS or saved >= worth * more):
            best = tile
    return best


class Winograd(Method):
    """A convolution with 3×3 kernels by Winograd's method."""

    def __init__(self, filters: Filters, axes: tuple[Axis, ...], batch: int, tile: int) -> None:
        super().__init__(filters, axes, batch)
        self.name = f"compiled Winograd F({tile}×{tile}, 3×3)"
        self.filters, self.tile = TransformedFilters.of(filters.source, tile), tile
        self.packed = self.filters.panels.nbytes
        self.limit = limit_of(self.filters.panels)
        self.spare_bytes, self.checked = np.dtype(np.int64).itemsize, True

    def in_parts(self, sizes: Sequence[int]) -> Kernel | None:
        if len(sizes) != 2 or any(size % VECTOR for size in sizes):
            return None
        parted = copy(self)
        parted.parts = 2
        return parted.kernel()

    def fill(self, arrays: Arrays, after: After, on_tile_ready: OnTileReady) -> None:
        (batch, high, broad, channels), tile = arrays.out.shape, self.tile
        strips = -(-high // tile)
        fill: Callable[..., bool] = convolve_3x3
        arguments = self._arguments(arrays, after, 0)

        def check(finite: bool, index: Index) -> None:
            if not finite:  # an infinity or NaN has spread over its whole tile
                self._by_definition(arrays, after, index)

        def part(index: Index) -> None:
            images, cut = index
            lines = slice(cut.start * tile, min(cut.stop * tile, high))
            for image in range(images.start, images.stop):
                finite = fill(*arguments, image * strips + cut.start, image * strips + cut.stop)
                check(finite, (slice(image, image + 1), lines))
            on_tile_ready((images, lines, slice(0, broad), slice(0, channels)))

        if on_tile_ready is ignore_tile:
            finite = share(convolve_3x3, batch * strips, self.flops, *arguments)
            check(bool(finite), (slice(0, batch), slice(0, high)))
            return
        size = tile * broad * channels * arrays.out.itemsize
        each_block(part, (batch, strips), size, self.limit, work=self.flops, least=size)

    def calls(self, arrays: Arrays, after: After, spare: np.ndarray) -> Calls:
        arguments = self._arguments(arrays, after, data_address(spare))
        batch, strips, across = (-(-n // size) for n, size in zip(self.shape, (1, self.tile, self.tile)))
        count = batch * strips
        return [Call(convolve_3x3, arguments, count, 1, each_of(count, -(-_MAX_HELD_TILES // across)))]

    def _arguments(self, arrays: Arrays, after: After, faults: int) -> tuple[Any, ...]:
        """Return the arguments of ``convolve_3x3``."""
        (rows, line), (bias, limits, _), (data, residual, out) = self.axes, after, arrays
        first, beside = (*data, _NO_CHANNELS)[:2]
        return (
            first, beside, self.filters.panels, self.tile, bias, out if residual is None else residual, out, rows.begin,
            line.begin, residual is not None, limits, faults,
        )  # fmt: skip

    def _by_definition(self, arrays: Arrays, after: After, index: Index) -> None:
        """Fill a part of ``arrays.out`` as ``fill`` does, with the defining kernel."""
        (bias, limits, _), (data, residual, out) = after, arrays
        first, elements = self.axes[0].part(index[1])
        seen = np.moveaxis(np.concatenate([part[index[0], elements] for part in data], -1), -1, 1)
        result = np.moveaxis(defined(seen, self.filters.filters(), (first, self.axes[1])), 1, -1)
        if bias.size:
            result = result + bias
        if residual is not None:
            result = result + (residual[index] if residual.shape == out.shape else residual)
        out[index] = np.clip(result, *limits) if limits.size else result
