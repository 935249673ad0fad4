"""Shared by AdaptiveAvgPool and AdaptiveMaxPool: windows that divide each spatial axis into parts."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irrun.base.deadline import in_time
from irrun.kernels.blocks import BLOCK_BYTES, each_block, reporting, scratch
from irrun.kernels.elementwise import native
from irrun.opdef import Index, Kernel, OnTileReady, Op, Request, Site, Value, ignore_tile, ports
from irrun.types import PartialShape


class AdaptiveBase(Op):
    """Base of AdaptiveAvgPool and AdaptiveMaxPool.

    C1  ``data`` has rank 3, 4 or 5.
    C2  ``output_shape`` is 1D with one entry for each spatial axis of ``data``, none negative.
    C3  A spatial axis of length 0 has no windows.
    """

    inputs = ports(data="T", output_shape="T_SHAPE")
    types = {"T": "float", "T_SHAPE": "i32 i64"}
    channels_last = True

    def pooled(self, at: Site, data: Value, output_shape: Value) -> Value:
        """Return an output of the element type of ``data``. Refuses the inputs by C1 to C3."""
        at.require(data.rank in (None, 3, 4, 5), "C1", f"data is {data.shape}, not 3D, 4D or 5D")
        at.require(output_shape.rank in (None, 1), "C2", f"output_shape is {output_shape.shape}, not 1D")
        count = output_shape.shape[0]
        spatial = count.value if data.rank is None else data.rank - 2
        if spatial is None:
            return data.reshaped(PartialShape(None))
        message = f"output_shape has length {count}, but data {data.shape} has {spatial} spatial axes"
        at.require(count.fits(spatial) and spatial in (1, 2, 3), "C2", message)
        batch, channels, *sizes = data.shape.dims or PartialShape.of_rank(2 + spatial)
        target = output_shape.as_shape()
        if target.dims is None:
            target = PartialShape.of_rank(spatial)
        at.require(all(d.hi >= 0 for d in target), "C2", f"output_shape {target} has a negative entry")
        at.require(
            all(size.hi > 0 or d.lo == 0 for size, d in zip(sizes, target)),
            "C3",
            f"data {data.shape} has a spatial axis of length 0, but output_shape {target} divides it into windows",
        )
        return data.reshaped([batch, channels, *target])

    def prepared(
        self,
        request: Request,
        merge: np.ufunc,
        end: Callable[[np.ndarray, np.ndarray], object] = lambda out, counts: None,
    ) -> Kernel | None:
        """Return the kernel of an operation with one output, or None for types other than f32 and f64.

        It fills the output block by block. ``merge`` reduces the elements of a window. ``end(out, counts)`` then
        completes a part of the output in place, with the number of elements in each window.
        """
        if not native(request.inputs[0]):
            return None
        if request.channels_last:
            return self._prepared_channels_last(merge, end)

        def call(
            data: np.ndarray,
            output_shape: np.ndarray,
            *,
            out: np.ndarray | None = None,
            on_tile_ready: OnTileReady = ignore_tile,
        ) -> np.ndarray:
            sizes = tuple(output_shape.tolist())
            whole = np.empty((*data.shape[:2], *sizes), data.dtype) if out is None else out
            if not whole.size:  # the other sizes may be any
                return whole
            windows = divided(data.shape[2:], sizes)
            counts = counted(windows)

            def fill(index: Index) -> None:
                seen = data[index]
                for axis, own in enumerate(windows, 2):
                    shape = *seen.shape[:axis], len(own.distinct), *seen.shape[axis + 1 :]
                    direct = axis == len(windows) + 1 and own.which is None
                    target = whole[index] if direct else scratch(axis % 2, data.dtype, *shape)
                    before = (slice(None),) * axis
                    for n, window in enumerate(in_time(own.distinct)):
                        merge.reduce(seen[(*before, window)], axis, out=target[(*before, n)])
                    seen = own.spread(target, axis)
                if windows[-1].which is not None:
                    whole[index] = seen
                end(whole[index], counts)

            size = math.prod(data.shape[2:]) * data.itemsize
            each_block(reporting(fill, whole, on_tile_ready), data.shape[:2], size, BLOCK_BYTES, work=data.nbytes)
            return whole

        return Kernel(call, "in blocks", out="tiles")

    def _prepared_channels_last(self, merge: np.ufunc, end: Callable[[np.ndarray, np.ndarray], object]) -> Kernel:
        """Return the kernel for channels-last data. It reduces one spatial axis after the other."""

        def call(data: np.ndarray, output_shape: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
            sizes = output_shape.tolist()
            whole = np.empty((len(data), *sizes, data.shape[3]), data.dtype) if out is None else out
            if not whole.size:
                return whole
            windows = divided(data.shape[1:3], sizes)
            rows, line = windows
            lines = np.empty((*data.shape[:2], len(line.distinct), data.shape[3]), data.dtype)
            for n, window in enumerate(in_time(line.distinct)):
                merge.reduce(data[:, :, window], 2, out=lines[:, :, n])
            lines = line.spread(lines, 2)
            target = (
                whole if rows.which is None else np.empty((len(data), len(rows.distinct), *whole.shape[2:]), data.dtype)
            )
            for n, window in enumerate(in_time(rows.distinct)):
                merge.reduce(lines[:, window], 1, out=target[:, n])
            if rows.which is not None:
                whole[...] = rows.spread(target, 1)
            end(whole, counted(windows)[..., np.newaxis])
            return whole

        return Kernel(call, "channels last", out="whole")


@dataclass(frozen=True)
class Windows:
    """The windows along one axis. Together they cover the axis, and they may overlap.

    Where there are more windows than elements, many are equal.
    """

    distinct: list[slice]
    which: np.ndarray | None
    """For each window, its number in ``distinct``; None if no two windows are equal."""

    def spread(self, results: np.ndarray, axis: int) -> np.ndarray:
        """Return the results of all windows along ``axis``, from those of the distinct ones."""
        return results if self.which is None else results.take(self.which, axis)


def divided(sizes: Sequence[int], counts: Sequence[int]) -> list[Windows]:
    """Return the windows along each axis: ``counts`` windows over ``sizes`` elements."""
    return [_windows(size, count) for size, count in zip(sizes, counts, strict=True)]


def _windows(size: int, count: int) -> Windows:
    if count <= size:
        return Windows([slice(n * size // count, -(-(n + 1) * size // count)) for n in range(count)], None)
    numbers = np.arange(count)
    bounds = np.stack([numbers * size // count, -(-(numbers + 1) * size // count)], 1)
    is_new = np.append(True, (bounds[1:] != bounds[:-1]).any(1))
    return Windows([slice(*pair) for pair in bounds[is_new].tolist()], np.cumsum(is_new) - 1)


def counted(windows: Sequence[Windows]) -> np.ndarray:
    """Return the number of elements in each window, from the windows along each axis."""
    sizes = [of.spread(np.array([w.stop - w.start for w in of.distinct], int), 0) for of in windows]
    return functools.reduce(np.multiply.outer, sizes)
