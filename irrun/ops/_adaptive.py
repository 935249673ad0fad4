"""Shared by AdaptiveAvgPool and AdaptiveMaxPool: windows that divide each spatial axis into parts."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from irrun.kernels.blocks import BLOCK, each_block, reporting, scratch
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
    types = {"T": "numeric boolean", "T_SHAPE": "int"}  # OpenVINO pools integers and booleans, too
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
            windows = [list(parts(size, count)) for size, count in zip(data.shape[2:], sizes)]
            counts = counted(windows)

            def fill(index: Index) -> None:
                seen = data[index]
                for number, own in enumerate(windows, 1):
                    shape = *seen.shape[: 1 + number], len(own), *seen.shape[2 + number :]
                    target = whole[index] if number == len(windows) else scratch(number % 2, data.dtype, *shape)
                    before = (slice(None),) * (1 + number)
                    for n, window in enumerate(own):
                        merge.reduce(seen[(*before, window)], 1 + number, out=target[(*before, n)])
                    seen = target
                end(whole[index], counts)

            size = math.prod(data.shape[2:]) * data.itemsize
            each_block(reporting(fill, whole, on_tile_ready), data.shape[:2], size, BLOCK, work=data.nbytes)
            return whole

        return Kernel(call, "in blocks", out="tiles")

    def _prepared_channels_last(self, merge: np.ufunc, end: Callable[[np.ndarray, np.ndarray], object]) -> Kernel:
        """Return the kernel for channels-last data. It reduces one spatial axis after the other."""

        def call(data: np.ndarray, output_shape: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
            sizes = output_shape.tolist()
            whole = np.empty((len(data), *sizes, data.shape[3]), data.dtype) if out is None else out
            if not whole.size:
                return whole
            windows = [list(parts(size, count)) for size, count in zip(data.shape[1:], sizes)]
            lines = np.empty((len(data), data.shape[1], *whole.shape[2:]), data.dtype)
            for n, window in enumerate(windows[1]):
                merge.reduce(data[:, :, window], 2, out=lines[:, :, n])
            for n, window in enumerate(windows[0]):
                merge.reduce(lines[:, window], 1, out=whole[:, n])
            end(whole, counted(windows)[..., np.newaxis])
            return whole

        return Kernel(call, "channels last", out="whole")


def counted(windows: Sequence[Sequence[slice]]) -> np.ndarray:
    """Return the number of elements in each window, from the windows along each axis."""
    sizes = [np.array([window.stop - window.start for window in of_axis], int) for of_axis in windows]
    return functools.reduce(np.multiply.outer, sizes)


def parts(size: int, count: int) -> Iterator[slice]:
    """Yield the ``count`` windows along one axis. Together they cover the axis, and they may overlap."""
    for n in range(count):
        yield slice(n * size // count, -(-(n + 1) * size // count))


def stacked(windows: list[np.ndarray], data: np.ndarray, axis: int) -> np.ndarray:
    """Stack the results of all windows along ``axis``. Without windows, this axis of the result is empty."""
    return np.stack(windows, axis) if windows else np.take(data, [], axis)
