"""AdaptiveAvgPool: means of a given number of windows.  Spec: pooling/adaptive-avg-pool-8."""

import numpy as np

from irrun.kernels.convolution.windows import means
from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Kernel, Request, Site, Value, op
from irrun.ops._adaptive import AdaptiveBase, counted, parts, stacked


@op("AdaptiveAvgPool", since=8, spec="pooling/adaptive-avg-pool-8")
class AdaptiveAvgPool(AdaptiveBase):
    """Divide the spatial axes into ``output_shape`` windows and take the mean of each.

    C1  ``data`` has rank 3, 4 or 5.
    C2  ``output_shape`` is 1D with one entry for each spatial axis of ``data``, none negative.
    C3  A spatial axis of length 0 has no windows.
    """

    def infer(self, at: Site, data: Value, output_shape: Value) -> Value:
        return self.pooled(at, data, output_shape)

    def run(self, data: np.ndarray, output_shape: np.ndarray) -> np.ndarray:
        total, windows = data.astype(wide(data.dtype), copy=False), []
        for axis, count in enumerate(output_shape.tolist(), 2):
            windows.append(list(parts(data.shape[axis], count)))
            before = (slice(None),) * axis
            total = stacked([total[(*before, window)].sum(axis) for window in windows[-1]], total, axis)
        return narrow(means(total, counted(windows)), data.dtype)

    def prepare(self, request: Request) -> Kernel | None:
        return self.prepared(request, np.add, _divide)


def _divide(total: np.ndarray, counts: np.ndarray) -> None:
    np.divide(total, counts.astype(total.dtype), out=total)
