"""AdaptiveAvgPool: means of a given number of windows.  Spec: pooling/adaptive-avg-pool-8."""

import numpy as np

from irrun.base.deadline import in_time
from irrun.kernels.means import means
from irrun.opdef import Kernel, Request, Site, Value, op
from irrun.ops._adaptive import AdaptiveBase, counted, divided


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
        if 0 in output_shape:  # the other sizes may be any
            return np.empty((*data.shape[:2], *output_shape.tolist()), data.dtype)
        windows = divided(data.shape[2:], output_shape.tolist())

        def sums(elements: np.ndarray) -> np.ndarray:
            for axis, along in enumerate(windows, 2):
                before = (slice(None),) * axis
                distinct = [elements[(*before, window)].sum(axis) for window in in_time(along.distinct)]
                elements = along.spread(np.stack(distinct, axis), axis)
            return elements

        return means(data, sums, counted(windows))

    def prepare(self, request: Request) -> Kernel | None:
        return self.prepared(request, np.add, _divide)


def _divide(total: np.ndarray, counts: np.ndarray) -> None:
    np.divide(total, counts.astype(total.dtype), out=total)
