"""AvgPool: the mean of each window.  Spec: pooling/avg-pool-{1,14,16}."""

import functools
import math

import numpy as np

from irrun.kernels.convolution.windows import Axis
from irrun.kernels.means import means
from irrun.kernels.pooling import Reduction
from irrun.opdef import Kernel, Request, Site, Value, attr, op
from irrun.ops._sliding import Pooling


class _AvgPool(Pooling):
    exclude_pad = attr.bool(name="exclude-pad")

    def infer(self, at: Site, data: Value) -> Value:
        return self.pooled(at, data)

    def run(self, data: np.ndarray) -> np.ndarray:
        axes = self.axes(data.shape[2:], self.kernel)

        def sums(elements: np.ndarray) -> np.ndarray:
            for axis, windows in enumerate(axes, 2):
                elements = _sums(elements, axis, windows)
            return elements

        return means(data, sums, self._counts(axes))

    def prepare(self, request: Request) -> Kernel | None:
        return self.prepared(request, Reduction(np.add, 0, self.divisors))

    def divisors(self, axes: tuple[Axis, ...]) -> np.ndarray:
        """Return the divisor of each window [windows, ...]; 1 for a window without elements that count."""
        return np.broadcast_to(np.maximum(self._counts(axes), 1), [axis.out for axis in axes])

    def _counts(self, axes: tuple[Axis, ...]) -> np.ndarray:
        """Return the divisor of each window: the number of its elements that count."""
        # if pads count, OpenVINO also counts elements of a window beyond the pads (rounding_type ceil);
        # if there are no pads, it counts elements of data only
        if not self.exclude_pad and any(axis.begin or axis.end for axis in axes):
            return np.array(math.prod(axis.kernel for axis in axes))
        return functools.reduce(np.multiply.outer, [_sums(np.ones(axis.size, int), 0, axis) for axis in axes])


@op("AvgPool", since=16, spec="pooling/avg-pool-16")
class AvgPool16(_AvgPool):
    """Compute the mean of each window. Means of integers are rounded, halves to even.

    C1  ``data`` has rank 3, 4 or 5: batch, channels, and one axis for each entry of ``kernel``.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each axis of the kernel.
    C3  Strides, dilations and the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data. With same_upper and same_lower, it always does.
    """

    dilations = attr.ints(())
    rounding_type = attr.choice("floor", "ceil", "ceil_torch", default="floor")


@op("AvgPool", since=14, spec="pooling/avg-pool-14")
class AvgPool14(_AvgPool):
    """Compute the same as AvgPool-16, without dilations.

    C1  ``data`` has rank 3, 4 or 5: batch, channels, and one axis for each entry of ``kernel``.
    C2  ``strides`` and explicit pads have one entry for each axis of the kernel.
    C3  Strides and the kernel are positive, pads not negative.
    C4  The kernel fits into the padded data. With same_upper and same_lower, it always does.
    """

    rounding_type = attr.choice("floor", "ceil", "ceil_torch", default="floor")


@op("AvgPool", since=1, spec="pooling/avg-pool-1")
class AvgPool1(_AvgPool):
    """Compute the same as AvgPool-14, without ceil_torch.

    C1  ``data`` has rank 3, 4 or 5: batch, channels, and one axis for each entry of ``kernel``.
    C2  ``strides`` and explicit pads have one entry for each axis of the kernel.
    C3  Strides and the kernel are positive, pads not negative.
    C4  The kernel fits into the padded data. With same_upper and same_lower, it always does.
    """


def _sums(data: np.ndarray, axis: int, windows: Axis) -> np.ndarray:
    """Return the sum of each window along one axis."""
    total = np.zeros((*data.shape[:axis], windows.out, *data.shape[axis + 1 :]), data.dtype)
    before = (slice(None),) * axis
    for tap in windows.seeing:
        outputs, elements = windows.span(tap)
        total[(*before, outputs)] += data[(*before, elements)]
    return total
