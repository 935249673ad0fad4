"""Convolutions with constant filters, channels last, in compiled form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.kernels.blocks import each_block
from irrun.kernels.compiled.product import PackedMatrix
from irrun.kernels.compiled.windows import convolve, convolve_depthwise, geometry_of
from irrun.kernels.convolution.channels_last import with_pads
from irrun.kernels.convolution.planes import Filters, limit_of
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.matmul import ConstantForm
from irrun.kernels.threads import shared
from irrun.opdef import Epilogue, Index, Kernel, OnTileReady, ignore_tile

__all__ = ["convolution"]

_FEW: Final = 8
"""The most input channels for which the taps of a row are joined: a tap alone would be too short a loop."""


def convolution(filters: Filters, axes: tuple[Axis, ...], batch: int) -> Kernel:
    """Return the kernel of a convolution of f32, ``filters`` being f32, too, for data of a known geometry."""
    return _Direct(filters, axes, batch).kernel()


class PackedFilters(ConstantForm):
    """Filters in panels: see ``irrun.kernels.compiled.windows``. They are held in f16 where that is exact."""

    def __init__(self, source: np.ndarray) -> None:
        super().__init__(source)
        groups, outs, ins = source.shape[:3]
        if ins == outs == 1:
            self.panels = PackedMatrix(source.reshape(groups, -1).T).panels
        else:
            matrices = source.transpose(0, 3, 4, 2, 1).reshape(groups, -1, outs)
            self.panels = PackedMatrix(matrices[0]).panels
            if groups > 1:
                self.panels = np.concatenate([PackedMatrix(matrix).panels for matrix in matrices])


class _Direct:
    """A convolution computed from the data as it is: as a matrix product, or channel by channel."""

    def __init__(self, filters: Filters, axes: tuple[Axis, ...], batch: int) -> None:
        self.groups, self.depth, self.axes = filters.groups, filters.ins, axes
        self.shape = batch, axes[0].out, axes[1].out, filters.groups * filters.outs
        self.depthwise = filters.ins == filters.outs == 1
        self.filters = PackedFilters.of(filters.array)
        self.flops = 2 * filters.array.size * math.prod(self.shape[:3])
        self.limit = limit_of(filters.array)
        rows, line = axes
        # the taps of a row are one after the other in memory
        self.joins = filters.groups == 1 and filters.ins <= _FEW and line.kernel > 1 and line.dilation == 1
        if self.joins:
            self.depth *= line.kernel
            rows, line = (replace(axis, begin=0, end=0) for axis in axes)
            line = replace(line, kernel=1)
        self.geometry = geometry_of(rows, line)

    def kernel(self, epilogue: Epilogue | None = None) -> Kernel:
        """Return the kernel, which also computes ``epilogue``."""
        none = np.empty(0, np.float32)
        bias = none if epilogue is None or epilogue.bias is None else epilogue.bias
        limits = none if epilogue is None or epilogue.limits is None else np.array(epilogue.limits, np.float32)

        def call(
            data: np.ndarray, _: np.ndarray, residual: np.ndarray | None = None, *,
            out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile,
        ) -> np.ndarray:  # fmt: skip
            whole = np.empty(self.shape, np.float32) if out is None else out
            seen = with_pads(data, *self.axes) if self.joins else np.ascontiguousarray(data)
            adds = residual is not None
            more = whole if residual is None else np.ascontiguousarray(residual)

            def compute(first: int, last: int) -> None:
                if self.depthwise:
                    convolve_depthwise(
                        seen, self.filters.panels, bias, more, whole, self.geometry, adds, limits, first, last
                    )
                else:
                    convolve(
                        seen, self.filters.panels, bias, more, whole, self.geometry, self.groups, self.depth, adds,
                        limits, first, last,
                    )  # fmt: skip

            each_part(compute, whole, self.flops, self.limit, on_tile_ready)
            return whole

        name = "compiled depthwise" if self.depthwise else "compiled"
        return Kernel(
            call, f"{name}, channels last", out="tiles", flops=self.flops, prepacked=(1,),
            packed=self.filters.panels.nbytes, followed=self.kernel if epilogue is None else None,
        )  # fmt: skip


def each_part(
    compute: Callable[[int, int], None], out: np.ndarray, work: int, limit: int, on_tile_ready: OnTileReady
) -> None:
    """Call ``compute(first, last)`` for windows of ``out``, counted over batch, rows and columns, until all are filled.

    They are divided only among threads, or into tiles of ``limit`` bytes that ``on_tile_ready`` waits for.
    """
    batch, high, broad, channels = out.shape
    if on_tile_ready is ignore_tile and not shared(work):
        compute(0, batch * high * broad)
        return

    def part(index: Index) -> None:
        images, rows = index
        first = (images.start * high + rows.start) * broad
        compute(first, ((images.stop - 1) * high + rows.stop) * broad)
        on_tile_ready((images, rows, slice(0, broad), slice(0, channels)))

    size = broad * channels * out.itemsize
    each_block(part, (batch, high), size, limit, work=work, least=_LEAST * channels * out.itemsize)


_LEAST: Final = 64
"""The fewest windows of a part: each part reads all filters again."""
