"""Convolutions whose windows lie side by side, of channels-first data: the patches of a vision transformer.

Each window is a row of a matrix. The result has its channels last in memory, as the layers after it read it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.base.thresholds import least
from irrun.fast.machine.calls import in_calls
from irrun.fast.machine.processor import compiled
from irrun.fast.machine.sharing import share_call
from irrun.fast.product import packed_matrix
from irrun.kernels.cast import rounded_to_bf16
from irrun.kernels.convolution.planes import Filters
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Call, Calls, Epilogue, Joins, Kernel, Operands, Packing

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
            share_call(packed.call_alone(rows, result.reshape(-1, outs), epilogue, more), flops)
            if epilogue is not None and epilogue.change is not None:
                epilogue.change(result)
            return result.transpose(0, 3, 1, 2)

        def calls(data: np.ndarray, _: np.ndarray | None = None, *, out: np.ndarray, spare: np.ndarray) -> Calls:
            rows = spare.view(np.float32).reshape(-1, packed.depth)
            target, change = out.reshape(-1, outs), None if epilogue is None else epilogue.change
            return [
                Call(_cut, (data, rows, high, broad, down, across), len(rows)),
                packed.call_alone(rows, target, epilogue, None),
                *(() if change is None else change.calls(target)),
            ]

        last = in_calls(
            packed.name,
            calls,
            (batch, high, broad, outs),
            np.float32,
            flops,
            flops=flops,
            packing=Packing((1,), packed.nbytes),
            spare_bytes=4 * batch * high * broad * packed.depth,
        )
        has_calls = epilogue is None or not epilogue.residual
        joins = Joins(
            with_epilogue=kernel if epilogue is None else None, bias_axis=1, channels_last=last if has_calls else None
        )
        return Kernel(call, packed.name, flops=flops, packing=Packing((1,), packed.nbytes), joins=joins)

    return kernel()


@compiled
def _cut(
    data: np.ndarray, rows: np.ndarray, high: int, broad: int, down: int, across: int, first: int, last: int
) -> None:
    """Fill the rows from ``first`` to ``last`` with the windows of images, ``down`` by ``across`` of each channel."""
    for n in range(first, last):
        line, x = divmod(n, broad)
        image, y = divmod(line, high)
        row, place = rows[n], 0
        for channel in range(data.shape[1]):
            for i in range(down):
                seen = data[image, channel, y * down + i]
                for j in range(across):
                    row[place + j] = seen[x * across + j]
                place += across
