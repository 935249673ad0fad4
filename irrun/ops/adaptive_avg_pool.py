"""AdaptiveAvgPool: means of a given number of windows.  Spec: pooling/adaptive-avg-pool-8."""

import functools

import numpy as np

from irrun.opdef import Site, Value, op
from irrun.ops._adaptive import AdaptiveBase, joined, parts
from irrun.ops._gemm import narrow, wide
from irrun.ops._windows import means


@op("AdaptiveAvgPool", since=8, spec="pooling/adaptive-avg-pool-8")
class AdaptiveAvgPool(AdaptiveBase):
    """Divide the spatial axes into ``output_shape`` windows and take the mean of each.

    C1  ``data`` has rank 3, 4 or 5.
    C2  ``output_shape`` is 1D with one entry for each spatial axis of ``data``, none negative.
    C3  A spatial axis of no elements has no windows.
    """

    def infer(self, at: Site, data: Value, output_shape: Value) -> Value:
        return self.pooled(at, data, output_shape)

    def run(self, data: np.ndarray, output_shape: np.ndarray) -> np.ndarray:
        total, counts = data.astype(wide(data.dtype), copy=False), []
        for axis, count in enumerate(output_shape.tolist(), 2):
            windows = list(parts(data.shape[axis], count))
            before = (slice(None),) * axis
            total = joined([total[(*before, window)].sum(axis) for window in windows], total, axis)
            counts.append(np.array([window.stop - window.start for window in windows], int))
        return narrow(means(total, functools.reduce(np.multiply.outer, counts)), data.dtype)
