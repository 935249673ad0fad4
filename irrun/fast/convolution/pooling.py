"""Poolings of channels-last data in one compiled pass."""

from __future__ import annotations

import math

import numpy as np

from irrun.fast.convolution.windows import average, geometry_of, maximum
from irrun.fast.machine.processor import ROWS
from irrun.fast.machine.sharing import share
from irrun.kernels.blocks import report_in_blocks
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Kernel, OnTileReady, ignore_tile

__all__ = ["pooling"]


def pooling(axes: tuple[Axis, ...], batch: int, channels: int, counts: np.ndarray | None) -> Kernel:
    """Return the kernel for f32 that finds the largest element of each window, or its mean.

    ``counts`` [rows, columns] are the divisors of the means of an image, None for the largest elements.
    """
    shape = batch, axes[0].out, axes[1].out, channels
    geometry = geometry_of(axes[0], axes[1])
    factors = None if counts is None else (1 / counts).astype(np.float32).ravel()
    work = math.prod(shape) * 4 * axes[0].kernel

    def call(
        data: np.ndarray, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
    ) -> np.ndarray:
        whole = np.empty(shape, np.float32) if out is None else out
        seen = np.ascontiguousarray(data)

        function, more = (maximum, ()) if factors is None else (average, (factors,))
        share(function, math.prod(shape[:3]), work, seen, whole, geometry, *more, unit=ROWS)
        report_in_blocks(whole, on_tile_ready)
        return whole

    return Kernel(call, "compiled, channels last", out="tiles")
