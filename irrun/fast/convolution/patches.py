"""Convolutions whose windows lie side by side, of channels-first data: the patches of a vision transformer.

Each window is a row of a matrix. The result has its channels last in memory, as the layers after it read it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.base.thresholds import least
from irrun.fast.product import packed_matrix
from irrun.kernels.cast import rounded_to_bf16
from irrun.kernels.convolution.planes import Filters
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Epilogue, Joins, Kernel, Operands, Packing

__all__ = ["patches"]

_MIN_FILTERS_ELEMENTS: Final = 1 << 12
"""The fewest elements of filters for which this is worth copying the data."""


def patches(filters: Filters, axes: tuple[Axis, ...], batch: int, precision: Operands) -> Kernel | None:
    """Return the kernel of a convolution of f32 along two axes whose windows neither overlap nor see pads, or None.

    ``precision`` is that of data and filters.
    """
    apart = all(axis.kernel == axis.stride and axis.dilation == 1 and axis.begin == axis.end == 0 for axis in axes)
    if not apart or filters.groups > 1 or filters.size < least(_MIN_FILTERS_ELEMENTS):
        return None
    (high, broad), (down, across) = ((axis.out for axis in axes), (axis.kernel for axis in axes))
    if down == across == 1 or not batch * high * broad:
        return None
    ins, outs = filters.ins, filters.outs
    packed = packed_matrix(filters.source[0].reshape(outs, -1), True, precision)
    flops = 2 * batch * high * broad * filters.size

    def kernel(epilogue: Epilogue | None = None) -> Kernel:
        def call(data: np.ndarray, _: np.ndarray, residual: np.ndarray | None = None) -> np.ndarray:
            seen = data[:, :, : high * down, : broad * across].reshape(batch, ins, high, down, broad, across)
            rows = np.ascontiguousarray(seen.transpose(0, 2, 4, 1, 3, 5)).reshape(-1, packed.depth)
            result = np.empty((batch, high, broad, outs), np.float32)
            more = None if residual is None else np.ascontiguousarray(residual.transpose(0, 2, 3, 1)).reshape(-1, outs)
            more = rounded_to_bf16(more) if more is not None and epilogue is not None and epilogue.rounds else more
            packed.multiply_shared(rows, result.reshape(-1, outs), epilogue, more)
            if epilogue is not None and epilogue.change is not None:
                epilogue.change(result)
            return result.transpose(0, 3, 1, 2)

        joins = Joins(with_epilogue=kernel if epilogue is None else None, bias_axis=1)
        return Kernel(call, packed.name, flops=flops, packing=Packing((1,), packed.nbytes), joins=joins)

    return kernel()
