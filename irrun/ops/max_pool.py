"""MaxPool: the largest element of each window.  Spec: pooling/max-pool-{1,8,14}."""

import math
from typing import Final

import ml_dtypes
import numpy as np

from irrun.kernels.convolution.windows import Axis, taps
from irrun.kernels.matmul import wide
from irrun.kernels.pooling import Reduction
from irrun.opdef import Kernel, Request, Site, Value, attr, op
from irrun.ops._sliding import Pooling
from irrun.types import ElementType


@op("MaxPool", since=14, spec="pooling/max-pool-14")
class MaxPool14(Pooling):
    """Find the largest element of each window, and its index in ``data`` flattened from ``axis`` on.

    C1  ``data`` has rank 3, 4 or 5: batch, channels, and one axis for each entry of ``kernel``.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each axis of the kernel.
    C3  Strides, dilations and the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data. With same_upper and same_lower, it always does.
    C5  ``axis`` is at least -rank and less than the rank of ``data``.
    C6  ``index_element_type`` is i32 or i64.
    """

    dilations = attr.ints(())
    rounding_type = attr.choice("floor", "ceil", "ceil_torch", default="floor")
    index_element_type = attr.element_type("i64")
    axis = attr.int(0)
    outputs = 2

    def infer(self, at: Site, data: Value) -> tuple[Value, Value]:
        pooled = self.pooled(at, data)
        at.axis(self.axis, pooled.rank, "C5")
        at.require(
            self.index_element_type.name in ("i32", "i64"),
            "C6",
            f"index_element_type is {self.index_element_type}, not i32 or i64",
        )
        return pooled, pooled.typed(self.index_element_type)

    def run(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        axes = self.axes(data.shape[2:], self.kernel)
        best = _largest(data, axes)
        places = _places(data, best, axes) % max(1, math.prod(data.shape[self.axis :]))
        return best, places.astype(self.index_element_type.dtype)

    def prepare(self, request: Request) -> Kernel | None:
        if request.outputs > 1:
            return None
        kernel = self.prepared(request, _MAXIMUM)
        if kernel is not None or request.channels_last:
            return kernel
        return Kernel(lambda data: _largest(data, self.axes(data.shape[2:], self.kernel)))


@op("MaxPool", since=8, spec="pooling/max-pool-8")
class MaxPool8(MaxPool14):
    """Compute the same as MaxPool-14, without ceil_torch.

    C1  ``data`` has rank 3, 4 or 5: batch, channels, and one axis for each entry of ``kernel``.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each axis of the kernel.
    C3  Strides, dilations and the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data. With same_upper and same_lower, it always does.
    C5  ``axis`` is at least -rank and less than the rank of ``data``.
    C6  ``index_element_type`` is i32 or i64.
    """

    rounding_type = attr.choice("floor", "ceil", default="floor")


@op("MaxPool", since=1, spec="pooling/max-pool-1")
class MaxPool1(Pooling):
    """Find the largest element of each window.

    C1  ``data`` has rank 3, 4 or 5: batch, channels, and one axis for each entry of ``kernel``.
    C2  ``strides`` and explicit pads have one entry for each axis of the kernel.
    C3  Strides and the kernel are positive, pads not negative.
    C4  The kernel fits into the padded data. With same_upper and same_lower, it always does.
    """

    def infer(self, at: Site, data: Value) -> Value:
        return self.pooled(at, data)

    def run(self, data: np.ndarray) -> np.ndarray:
        return _largest(data, self.axes(data.shape[2:], self.kernel))

    def prepare(self, request: Request) -> Kernel | None:
        return self.prepared(request, _MAXIMUM)


_MAXIMUM: Final = Reduction(np.maximum, -np.inf)


def _largest(data: np.ndarray, axes: tuple[Axis, ...]) -> np.ndarray:
    """Return the largest element of each window. The axes are reduced one after the other."""
    best, lowest = _comparable(data), _lowest(data.dtype)
    for axis, windows in enumerate(axes, 2):
        whole = best
        best = np.full((*whole.shape[:axis], windows.out, *whole.shape[axis + 1 :]), lowest, whole.dtype)
        before = (slice(None),) * axis
        for tap in windows.seeing:
            outputs, elements = windows.span(tap)
            part = best[(*before, outputs)]
            np.maximum(part, whole[(*before, elements)], out=part)
    return best.astype(data.dtype, copy=False)


def _places(data: np.ndarray, best: np.ndarray, axes: tuple[Axis, ...]) -> np.ndarray:
    """Return the index in the flattened ``data`` of the ``best`` element of each window.

    A window that covers only pads has the index of the first element of its channel.
    """
    data, best = _comparable(data), _comparable(best)
    count, any_nan = math.prod(len(axis.seeing) for axis in axes), bool((best != best).any())
    # taps are numbered downwards, so that the maximum selects the first tap that reads the best element
    number = np.zeros(best.shape, np.min_scalar_type(count))
    steps = [math.prod(data.shape[axis:]) for axis in range(3, data.ndim + 1)]
    offsets = np.zeros(count + 1, np.int64)
    for tap, windows, elements in taps(axes):
        values, part = data[(..., *elements)], number[(..., *windows)]
        is_best = values == best[(..., *windows)]
        if any_nan:
            is_best |= values != values
        np.maximum(part, is_best * number.dtype.type(count), out=part)
        offsets[count] = sum(n * axis.dilation * step for n, axis, step in zip(tap, axes, steps))
        count -= 1
    places = offsets[number]
    for axis, (windows, step) in enumerate(zip(axes, steps)):
        starts = (np.arange(windows.out) * windows.stride - windows.begin) * step
        places += starts.reshape(-1, *(1,) * (len(axes) - axis - 1))
    places[number == 0] = 0
    channels = np.arange(math.prod(data.shape[:2])) * math.prod(data.shape[2:])
    return places + channels.reshape(*data.shape[:2], *(1,) * len(axes))


def _comparable(data: np.ndarray) -> np.ndarray:
    """Return the elements in a dtype that numpy compares fast: narrow floats are widened."""
    work = wide(data.dtype)
    return data.astype(work, copy=False) if work.kind == "f" else data


def _lowest(dtype: np.dtype) -> np.generic:
    """Return the value of a pad: minus infinity, or the least value of a type without infinity."""
    # OpenVINO pads f32 with the lowest finite number
    kind = ElementType.of(dtype)
    assert kind is not None
    if kind.is_integer:
        return dtype.type(ml_dtypes.iinfo(dtype).min)
    lowest = dtype.type(-np.inf)
    return lowest if np.isinf(lowest) else dtype.type(ml_dtypes.finfo(dtype).min)
