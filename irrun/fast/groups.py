"""Normalisation of groups of channels, channels last."""

from __future__ import annotations

import math
from typing import Final, Protocol

import numpy as np

from irrun.fast.functions import Number, contracted
from irrun.fast.machine.calls import in_calls
from irrun.fast.machine.memory import address_of, row_at
from irrun.fast.machine.processor import compiled
from irrun.fast.panels import finish, from_place, then_of
from irrun.kernels.elementwise import native
from irrun.opdef import Call, Calls, Epilogue, Kernel, Packing, Request

__all__ = ["group_normalization", "offer"]

_PIXELS_PER_SUM: Final = 64
"""Pixels whose sum is one of f32. Sums of them are of f64, so that those of large images are as precise."""
_WORK_PER_NUMBER: Final = 8
"""The time that a pass takes for a number, in units of ``threads.WORTH``."""


class _GroupNormalization(Protocol):
    num_groups: int
    epsilon: float


def offer(op: _GroupNormalization, request: Request) -> Kernel | None:
    """Return the kernel of GroupNormalization for channels-last f32, or None for others."""
    data, scale, bias = request.inputs
    shape = None if data is None else data.shape.static
    if not request.channels_last or data is None or data.type.name != "f32" or not native(data, scale, bias):
        return None
    if shape is None or not all(shape):
        return None
    batch, channels, *spatial = shape
    held = tuple(None if value is None else value.exact for value in (scale, bias))
    return group_normalization((batch, *spatial, channels), op.num_groups, op.epsilon, held)


_Held = tuple[np.ndarray | None, ...]


def group_normalization(shape: tuple[int, ...], groups: int, epsilon: float, held: _Held = (None, None)) -> Kernel:
    """Return the kernel of GroupNormalization for f32 of a shape [batch, rows, columns, channels] without zeros.

    ``held`` are scale and bias, where they are constant.
    """
    batch, pixels, channels = shape[0], math.prod(shape[1:-1]), shape[-1]
    parts, work = -(-pixels // _PIXELS_PER_SUM), _WORK_PER_NUMBER * math.prod(shape)
    zeros = np.zeros((batch, channels), np.float32)
    own = [None if array is None else np.ascontiguousarray(array, np.float32) for array in held]
    packing = Packing(tuple(n for n, array in enumerate(own, 1) if array is not None))

    def kernel(epilogue: Epilogue | None = None) -> Kernel:
        change = None if epilogue is None else epilogue.change

        def calls(
            x: np.ndarray, scale: np.ndarray | None, bias: np.ndarray | None, residual: np.ndarray | None = None,
            *, out: np.ndarray, spare: np.ndarray,
        ) -> Calls:  # fmt: skip
            factor, added = (
                np.ascontiguousarray(array if constant is None else constant)
                for array, constant in zip((scale, bias), own)
            )
            given, into = (np.ascontiguousarray(a).reshape(batch, pixels, channels) for a in (x, out))
            more = None if residual is None else np.ascontiguousarray(residual).reshape(-1, channels)
            numbers = spare.view(np.float32).reshape(-1, batch, channels)
            middle, factors, sums = numbers[0], numbers[1], numbers[2:].reshape(batch, parts, channels)
            made = [
                Call(_sum, (given, zeros, False, sums), batch * parts),
                Call(_find_middle, (sums, groups, pixels, middle), batch),
                Call(_sum, (given, middle, True, sums), batch * parts),
                Call(_find_factors, (sums, groups, pixels, epsilon, factor, factors), batch),
                Call(_scale, (given, middle, factors, added, into, *then_of(epilogue, more, 0)), batch * pixels),
            ]
            return made if change is None else [*made, *change.calls(out.reshape(-1, channels))]

        return in_calls(
            "compiled, channels last", calls, shape, np.float32, work, packing=packing,
            spare_bytes=zeros.nbytes * (2 + parts), with_epilogue=kernel if epilogue is None else None,
        )  # fmt: skip

    return kernel()


@compiled
def _find_middle(
    sums: np.ndarray, groups: int, pixels: int, middle: np.ndarray, first: int, last: int
) -> None:  # fmt: skip
    """Fill the means [batch, channels] of the groups of the images from ``first`` to ``last``."""
    for image in range(first, last):
        for group in range(groups):
            size = middle.shape[1] // groups
            mean = np.float32(_mean(sums, image, group * size, size, pixels))
            for j in range(group * size, (group + 1) * size):
                middle[image, j] = mean


@compiled
def _find_factors(
    sums: np.ndarray, groups: int, pixels: int, epsilon: float, scale: np.ndarray, factors: np.ndarray, first: int,
    last: int,
) -> None:  # fmt: skip
    """Fill the factors [batch, channels] for the images from ``first`` to ``last``. ``sums`` are sums of squares."""
    for image in range(first, last):
        for group in range(groups):
            size = factors.shape[1] // groups
            deviation = math.sqrt(_mean(sums, image, group * size, size, pixels) + epsilon)
            for j in range(group * size, (group + 1) * size):
                factors[image, j] = np.float32(np.float64(scale[j]) / deviation)


@contracted
def _mean(sums: np.ndarray, image: int, begin: int, size: int, pixels: int) -> float:
    """Return the mean of ``size`` channels of an image, from sums [batch, parts, channels]."""
    total = 0.0
    for part in range(sums.shape[1]):
        for j in range(begin, begin + size):
            total += np.float64(sums[image, part, j])
    return total / (pixels * size)


@compiled
def _sum(x: np.ndarray, middle: np.ndarray, squared: bool, sums: np.ndarray, first: int, last: int) -> None:
    """Fill the sums [batch, parts, channels] of the parts ``first`` to ``last``, counted over the batch."""
    pixels, channels = x.shape[1:]
    for part in range(first, last):
        image, begin = part // sums.shape[1], part % sums.shape[1] * _PIXELS_PER_SUM
        total = row_at(address_of(sums) + 4 * part * channels, channels)
        mean = row_at(address_of(middle) + 4 * image * channels, channels)
        for j in range(channels):
            total[j] = 0
        for pixel in range(begin, min(begin + _PIXELS_PER_SUM, pixels)):
            row = row_at(address_of(x) + 4 * (image * pixels + pixel) * channels, channels)
            if squared:
                for j in range(channels):
                    total[j] += (row[j] - mean[j]) * (row[j] - mean[j])
            else:
                for j in range(channels):
                    total[j] += row[j] - mean[j]


@compiled
def _scale(
    x: np.ndarray, middle: np.ndarray, factors: np.ndarray, offsets: np.ndarray, out: np.ndarray, bias: int,
    residual: int, apart: int, low: Number, high: Number, first: int, last: int,
) -> None:  # fmt: skip
    """Fill the pixels ``first`` to ``last``, counted over the batch, with ``(x - middle) * factors + offsets``.

    The numbers from ``bias`` to ``high`` say what becomes of these: see ``panels.Then``.
    """
    pixels, channels = x.shape[1:]
    then, added = (bias, residual, apart, low, high), row_at(address_of(offsets), channels)
    for begin in range(first, last, _PIXELS_PER_SUM):
        end = min(begin + _PIXELS_PER_SUM, last)
        for pixel in range(begin, end):
            image = pixel // pixels
            mean = row_at(address_of(middle) + 4 * image * channels, channels)
            factor = row_at(address_of(factors) + 4 * image * channels, channels)
            row = row_at(address_of(x) + 4 * pixel * channels, channels)
            filled = row_at(address_of(out) + 4 * pixel * channels, channels)
            for j in range(channels):
                filled[j] = (row[j] - mean[j]) * factor[j] + added[j]
        place = address_of(out) + 4 * begin * channels
        finish(place, channels, end - begin, channels, from_place(then, begin, 0))
