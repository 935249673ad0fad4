"""Choose compiled kernels of convolutions and transposed convolutions, for f32 and constant filters.

The data is channels-last, unless it has one spatial axis, or windows that lie side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, cast

import numpy as np

from irrun.fast.convolution.lines import line
from irrun.fast.convolution.methods import convolution, transposed
from irrun.fast.convolution.patches import patches
from irrun.kernels.convolution.planes import Filters
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Kernel, Op, Operands, Request, Value

__all__ = ["offer"]


class _Convolution(Protocol):
    def constant_geometry(self, data: Value, filters: Value, /) -> tuple[Filters, tuple[Axis, ...]] | None: ...


class _Transposed(Protocol):
    def constant_geometry(
        self, data: Value, filters: Value, output_shape: Value | None, /
    ) -> tuple[np.ndarray, tuple[Axis, ...]] | None: ...


def offer(op: Op, request: Request) -> Kernel | None:
    """Return the kernel of an operation of this family, or None if there is none for what is known of its inputs."""
    data, filters, output_shape = request.first(3)
    batch = None if data is None else data.shape[0].value
    if data is None or filters is None or batch is None or data.type.name != "f32":
        return None
    if op.type == "Convolution" and (data.rank == 3 or (data.rank == 4 and not request.channels_last)):
        known = cast(_Convolution, op).constant_geometry(data, filters)
        method = line if data.rank == 3 else patches
        return None if known is None else method(*known, batch, request.precision)
    if not request.channels_last:
        return None
    if op.type.endswith("BackpropData"):
        return _of_transposed(cast(_Transposed, op), data, filters, output_shape, batch, request.precision)
    known = cast(_Convolution, op).constant_geometry(data, filters)
    return None if known is None else convolution(*known, batch, request.precision)


def _of_transposed(
    op: _Transposed, data: Value, filters: Value, output_shape: Value | None, batch: int, precision: Operands
) -> Kernel | None:
    """Return the kernel if every element of the output depends on some tap, and the taps on data or finite."""
    known = op.constant_geometry(data, filters, output_shape)
    if known is None or known[0].dtype != np.float32:
        return None
    array, axes = known
    constant = Filters(array.swapaxes(1, 2))
    if not all(axis.out and axis.size and axis.kernel >= axis.stride and axis.stride <= axis.size for axis in axes):
        return None
    if any(axis.dilation > 1 < axis.stride for axis in axes) or not constant.is_finite:
        return None
    kernel = transposed(constant, axes, batch, precision)
    return replace(kernel, packing=replace(kernel.packing, inputs=(1,) if output_shape is None else (1, 2)))
