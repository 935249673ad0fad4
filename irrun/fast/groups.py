"""Normalisation of groups of channels, channels last."""

from __future__ import annotations

import math
from typing import Final, Protocol

import numpy as np

from irrun.fast.functions import Number
from irrun.fast.machine.memory import address_of, row_at
from irrun.fast.machine.processor import compiled
from irrun.fast.machine.sharing import share
from irrun.fast.panels import after, finish
from irrun.kernels.elementwise import native
from irrun.opdef import Epilogue, Joins, Kernel, Request

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
    return group_normalization((batch, *spatial, channels), op.num_groups, op.epsilon)


def group_normalization(shape: tuple[int, ...], groups: int, epsilon: float) -> Kernel:
    """Return the kernel of GroupNormalization for f32 of a shape [batch, rows, columns, channels] without zeros."""
    batch, pixels, channels = shape[0], math.prod(shape[1:-1]), shape[-1]
    size, parts, work = channels // groups, -(-pixels // _PIXELS_PER_SUM), _WORK_PER_NUMBER * math.prod(shape)

    def means(x: np.ndarray, middle: np.ndarray, squared: bool) -> np.ndarray:
        """Return the mean of ``x - middle``, or of its squares, of each group of an image, once per channel."""
        sums = np.empty((batch, parts, channels), np.float32)
        share(_sum, batch * parts, work, x, middle, squared, sums)
        of_groups = sums.sum(1, np.float64).reshape(batch, groups, size).sum(-1) / (pixels * size)
        return np.repeat(of_groups, size, -1)

    def kernel(epilogue: Epilogue | None = None) -> Kernel:
        change = None if epilogue is None else epilogue.change

        def call(
            x: np.ndarray, scale: np.ndarray, bias: np.ndarray, residual: np.ndarray | None = None,
            *, out: np.ndarray | None = None,
        ) -> np.ndarray:  # fmt: skip
            whole = np.empty(shape, np.float32) if out is None else out
            given, into = (np.ascontiguousarray(a).reshape(batch, pixels, channels) for a in (x, whole))
            middle = means(given, np.zeros((batch, channels), np.float32), squared=False).astype(np.float32)
            factors = (scale / np.sqrt(means(given, middle, squared=True) + epsilon)).astype(np.float32)
            more = None if residual is None else np.ascontiguousarray(residual).reshape(-1, channels)
            then = after(epilogue, more, 0)
            share(_scale, batch * pixels, work, given, middle, factors, np.ascontiguousarray(bias), into, *then)
            if change is not None:
                change(whole)
            return whole

        joins = Joins(with_epilogue=kernel if epilogue is None else None)
        return Kernel(call, "compiled, channels last", out="whole", joins=joins)

    return kernel()


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
    x: np.ndarray, middle: np.ndarray, factors: np.ndarray, bias: np.ndarray, out: np.ndarray, more: int, residual: int,
    apart: int, low: Number, high: Number, first: int, last: int,
) -> None:  # fmt: skip
    """Fill the pixels ``first`` to ``last``, counted over the batch, with ``(x - middle) * factors + bias``.

    See ``panels.finish`` for what follows.
    """
    pixels, channels = x.shape[1:]
    added = row_at(address_of(bias), channels)
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
        place, others = address_of(out) + 4 * begin * channels, residual + 4 * begin * apart if residual else 0
        finish(place, channels, end - begin, channels, more, others, apart, low, high)
