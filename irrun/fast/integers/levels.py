"""Levels: the integers to which FakeQuantize rounds, and the kernels that compute them of numbers, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from irrun.fast.functions import Number, contracted
from irrun.fast.integers.dots import BYTES
from irrun.fast.integers.encode_block import encode_planes, encode_row
from irrun.fast.machine.calls import in_calls
from irrun.fast.machine.memory import address_of, row_at
from irrun.fast.machine.processor import VECTOR, compiled
from irrun.opdef import Call, Calls, Kernel

__all__ = ["Grid", "decoding", "encoding", "level", "padded"]

_MAX_LEVELS: Final = 256
"""The most levels that a byte holds."""
_WHOLE: Final = 1e-3
"""How far a zero point may be from an integer, because the ends of the ranges are rounded to f32."""


def padded(channels: int) -> int:
    """Return how many bytes the levels of a pixel take: channels are added that no filter looks at."""
    return -(-channels // BYTES) * BYTES


@dataclass(frozen=True, eq=False)
class Grid:
    """How a FakeQuantize maps numbers to levels, and levels to numbers: f64 [1], or [channels] if they differ.

    The level of x is ``round(clip(x * scale + shift, 0, top))``, and stands for ``(level - zero) * step``.
    """

    scale: np.ndarray
    shift: np.ndarray
    step: np.ndarray
    zero: np.ndarray
    top: int

    @staticmethod
    def of(levels: int, limits: Sequence[np.ndarray]) -> Grid | None:
        """Return the grid of a FakeQuantize, or None if the level of 0 is no byte, or the ranges are no ranges.

        ``limits`` are the ends of the ranges of input and output, f32 [channels] each.
        """
        table = np.array(limits, np.float64)
        in_low, in_high, out_low, out_high = table[:, :1] if (table == table[:, :1]).all() else table
        top = levels - 1
        ranges = in_high - in_low, out_high - out_low
        if not 1 < levels <= _MAX_LEVELS or not all((np.isfinite(width) & (width > 0)).all() for width in ranges):
            return None
        scale, step = top / ranges[0], ranges[1] / top
        zero = -out_low / step
        whole = np.rint(zero)
        if not (np.abs(zero - whole) < _WHOLE).all() or not ((whole >= 0) & (whole < _MAX_LEVELS)).all():
            return None
        return Grid(scale, -in_low * scale, step, whole, top)

    @property
    def is_single(self) -> bool:
        """Whether all channels have the same levels."""
        return self.step.size == 1

    def scaled(self, factors: np.ndarray) -> Grid:
        """Return the grid of numbers that are multiplied by ``factors`` f64 [channels] first."""
        return replace(self, scale=self.scale * factors, shift=np.broadcast_to(self.shift, factors.shape))

    def is_like(self, other: Grid | None) -> bool:
        """Return whether all channels have the same levels, and those of another grid are the same."""
        own, others = ([] if g is None else [g.scale, g.shift, g.step, g.zero, g.top] for g in (self, other))
        return self.is_single and own == others


def encoding(grid: Grid, shape: tuple[int, int, int, int], is_rows: bool) -> Kernel:
    """Return the kernel that gives levels u8 of a shape (batch, rows, columns, channels), whose channels are padded.

    ``is_rows`` says whether the channels of the f32 are its last axis, and not its second one.
    """
    top, (batch, high, broad, channels) = np.float32(grid.top), shape
    numbers = np.ascontiguousarray(np.broadcast_to(np.array([grid.scale, grid.shift], np.float32), (2, channels)))
    pixels = high * broad

    def calls(data: np.ndarray, *, out: np.ndarray, spare: np.ndarray) -> Calls:
        is_view = not is_rows and data.transpose(0, 2, 3, 1).flags.c_contiguous
        apart = (1, channels) if is_rows or is_view else (pixels, 1)
        seen = (data.transpose(0, 2, 3, 1) if is_view else np.ascontiguousarray(data)).reshape(batch, -1)
        return [
            Call(_encode, (image, *apart, levels.reshape(pixels, -1), numbers, top), pixels)
            for image, levels in zip(seen, out)
        ]

    whole = (*shape[:3], padded(channels))
    return in_calls("to levels", calls, whole, np.uint8, math.prod(shape))


@compiled
def _encode(
    data: np.ndarray,
    channels_apart: int,
    pixels_apart: int,
    levels: np.ndarray,
    numbers: np.ndarray,
    top: Number,
    first: int,
    last: int,
) -> None:
    """Fill the rows ``first`` to ``last`` of ``levels`` u8 [pixels, padded channels].

    ``data`` is f32, whose channels and pixels are so many numbers apart. ``numbers`` f32 [2, channels] holds factors
    and addends.
    """
    source = address_of(data)
    channels, width = numbers.shape[1], levels.shape[1]
    scale, shift = address_of(numbers), address_of(numbers) + 4 * channels
    if channels_apart == 1:
        whole = channels // VECTOR * VECTOR
        for pixel in range(first, last):
            begin = source + 4 * pixel * pixels_apart
            encode_row(begin, address_of(levels) + pixel * width, whole, scale, shift, top)
            row = row_at(begin, channels)
            for c in range(whole, channels):
                levels[pixel, c] = level(row[c], numbers[0, c], numbers[1, c], top)
    else:
        whole = first + (last - first) // VECTOR * VECTOR
        for c in range(0, channels, BYTES):
            begin, planes = source + 4 * c * channels_apart, min(BYTES, channels - c)
            into, numbers_at = address_of(levels) + c, 4 * c
            encode_planes(
                begin + 4 * first,
                4 * channels_apart,
                planes,
                into + first * width,
                width,
                whole - first,
                scale + numbers_at,
                shift + numbers_at,
                top,
            )
            for plane in range(c, c + planes):
                row = row_at(source + 4 * plane * channels_apart, last)
                for pixel in range(whole, last):
                    levels[pixel, plane] = level(row[pixel], numbers[0, plane], numbers[1, plane], top)


@contracted
def level(x: Number, scale: Number, shift: Number, top: Number) -> Number:
    """Return the level of a number. NaN becomes 0."""
    place = x * scale + shift
    place = place if place > np.float32(0) else np.float32(0)
    return np.uint8(np.int32(np.rint(place if place < top else top)))


def decoding(grid: Grid, shape: tuple[int, ...]) -> Kernel:
    """Return the kernel that gives the f32 for which levels stand, of a shape whose last axis is the channels."""
    numbers = np.array([grid.step, -grid.zero * grid.step], np.float32)
    table = np.ascontiguousarray(np.broadcast_to(numbers, (2, shape[-1])))

    def calls(levels: np.ndarray, *, out: np.ndarray, spare: np.ndarray) -> Calls:
        pixels = out.reshape(-1, shape[-1])
        return [Call(_decode, (levels.reshape(len(pixels), -1), table, pixels), len(pixels))]

    return in_calls("from levels", calls, shape, np.float32, math.prod(shape))


@compiled
def _decode(levels: np.ndarray, numbers: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """Fill the rows ``first`` to ``last`` of ``out`` f32 [pixels, channels].

    ``levels`` is u8 [pixels, padded channels], and ``numbers`` f32 [2, channels] holds factors and addends.
    """
    for pixel in range(first, last):
        for c in range(out.shape[1]):
            out[pixel, c] = np.float32(levels[pixel, c]) * numbers[0, c] + numbers[1, c]
