"""Poolings of channels-last data in one compiled pass."""

from __future__ import annotations

import math

import numpy as np

from irrun.kernels.blocks import BLOCK, each_block
from irrun.kernels.compiled.convolution.windows import average, geometry_of, maximum
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.threads import shared
from irrun.opdef import Index, Kernel, OnTileReady, ignore_tile

__all__ = ["pooling"]


def pooling(axes: tuple[Axis, ...], batch: int, channels: int, counts: np.ndarray | None) -> Kernel:
    """Return the kernel for f32 that finds the largest element of each window, or its mean.

    ``counts`` [rows, columns] are the divisors of the means of an image, None for the largest elements.
    """
    shape = batch, axes[0].out, axes[1].out, channels
    geometry = geometry_of(axes[0], axes[1])
    factors = None if counts is None else (1 / counts).astype(np.float32).ravel()
    size, work = axes[1].out * channels * 4, math.prod(shape) * 4 * axes[0].kernel

    def call(
        data: np.ndarray, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
    ) -> np.ndarray:
        whole = np.empty(shape, np.float32) if out is None else out
        seen = np.ascontiguousarray(data)

        def part(index: Index) -> None:
            images, rows = index
            first, last = images.start * shape[1] + rows.start, (images.stop - 1) * shape[1] + rows.stop
            if factors is None:
                maximum(seen, whole, geometry, first * shape[2], last * shape[2])
            else:
                average(seen, whole, geometry, factors, first * shape[2], last * shape[2])
            on_tile_ready((images, rows, slice(0, shape[2]), slice(0, channels)))

        if on_tile_ready is ignore_tile and not shared(work):
            part((slice(0, batch), slice(0, shape[1])))
        else:
            each_block(part, shape[:2], size, BLOCK // 2, work=work)
        return whole

    return Kernel(call, "compiled, channels last", out="tiles")
