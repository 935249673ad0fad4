"""Kernels of convolutions with constant filters: the choice of a method, once for each shape of the data."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irrun.kernels.convolution.channels_last import Method as ChannelsLastMethod
from irrun.kernels.convolution.fft import pays, spectra, spectral
from irrun.kernels.convolution.planes import Filters, Method, by_taps, columns, planes, pointwise
from irrun.kernels.convolution.windows import Axis, is_sparse
from irrun.kernels.convolution.winograd import suits, winograd
from irrun.kernels.matmul import narrow
from irrun.opdef import Index, Kernel, OnTileReady, Packing, ignore_tile
from irrun.types import PartialShape

WINOGRAD: Final = "Winograd F(4×4, 3×3)"
"""The method that needs transformed filters."""

Chosen = tuple[tuple[int, ...], str, Method]
"""The spatial sizes of an output, the name of the method that fills it, and the method."""


def prepared(filters: Filters, chosen: Callable[[Any, Any], Chosen], shape: PartialShape, wanted: Any) -> Kernel:
    """Return the kernel for constant filters.

    ``chosen(shape, wanted)`` returns the method for data of ``shape``. ``wanted`` is the output shape that an input
    asks for, or None.
    """
    groups, outs, ins, work = filters.groups, filters.outs, filters.ins, filters.dtype

    def call(
        data: np.ndarray,
        _: np.ndarray,
        output_shape: np.ndarray | None = None,
        *,
        out: np.ndarray | None = None,
        on_tile_ready: OnTileReady = ignore_tile,
    ) -> np.ndarray:
        sizes, _name, method = chosen(data.shape, None if output_shape is None else tuple(output_shape.tolist()))
        whole = np.empty((len(data), groups * outs, *sizes), data.dtype) if out is None else out
        if not whole.size:  # the methods count from the first window to the last
            return whole
        sums = whole if whole.dtype == work else np.empty(whole.shape, work)
        split = data.reshape(len(data), groups, ins, *data.shape[2:]).astype(work, copy=False)

        def report(tile: Index) -> None:
            images, some, rows, *windows = tile
            index = (images, slice(some.start * outs + rows.start, (some.stop - 1) * outs + rows.stop), *windows)
            if sums is not whole:
                whole[index] = narrow(sums[index], whole.dtype)
            on_tile_ready(index)

        method(split, sums.reshape(len(data), groups, outs, *sizes), report)
        return whole

    packing = Packing((1,), filters.copied)
    if shape.static is None:
        return Kernel(call, packing=packing)
    sizes, algorithm, _ = chosen(shape.static, wanted)
    flops = 2 * filters.size * shape.static[0] * math.prod(sizes)
    return Kernel(call, algorithm, out="tiles", flops=flops, packing=packing)


def filling(method: ChannelsLastMethod, shape: tuple[int, ...], algorithm: str, inputs: int = 2) -> Kernel:
    """Return the kernel of a channels-last method that fills an output of ``shape`` from the first input.

    ``inputs`` is the number of inputs, of which all but the first are constant.
    """

    def call(
        data: np.ndarray,
        *_: np.ndarray,
        out: np.ndarray | None = None,
        on_tile_ready: OnTileReady = ignore_tile,
    ) -> np.ndarray:
        whole = np.empty(shape, data.dtype) if out is None else out
        method(data, whole, on_tile_ready)
        return whole

    return Kernel(call, f"{algorithm}, channels last", out="tiles", packing=Packing(tuple(range(1, inputs))))


def choose(
    filters: Filters, matrices: Callable[[], np.ndarray], axes: tuple[Axis, ...], batch: int
) -> tuple[str, Method]:
    """Return the name of the fastest method for these filters and this geometry, and the method.

    ``matrices()`` returns the filters as Winograd's method needs them.
    """
    steps = {(axis.stride, axis.dilation) for axis in axes}
    if set(filters.kernel) == {1} and not any(axis.begin or axis.end for axis in axes):
        return "matmul", functools.partial(pointwise, filters, axes)
    if is_sparse(axes) or not filters.allow_pads(axes):
        return "taps", functools.partial(by_taps, filters, axes)
    if filters.ins == filters.outs == 1 and steps == {(1, 1)} and pays(filters, axes):
        return "Fourier transform", functools.partial(spectral, filters, spectra(filters, axes), axes)
    if filters.ins * filters.outs <= 16 and filters.groups > 1:
        return "im2col of planes", functools.partial(planes, filters, axes)
    if suits(filters, axes, batch):
        return WINOGRAD, functools.partial(winograd, filters, matrices, axes)
    return "im2col", functools.partial(columns, filters, axes)
