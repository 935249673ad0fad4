"""MaxPool: the largest element of each window.  Spec: pooling/max-pool-{1,8,14}."""

import math

import ml_dtypes
import numpy as np

from irrun.opdef import Site, Value, attr, op
from irrun.ops._windows import Axis, Pooling
from irrun.types import ElementType


@op("MaxPool", since=14, spec="pooling/max-pool-14")
class MaxPool14(Pooling):
    """The largest element of each window, and its place in ``data`` flattened from ``axis`` on.

    C1  ``data`` has rank 3, 4 or 5: the kernel's axes follow batch and channels.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each axis of the kernel.
    C3  Strides, dilations and the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data (same_upper and same_lower pad until it does).
    C5  ``axis`` is within the rank of ``data``.
    C6  ``index_element_type`` is an integer type.
    """

    dilations = attr.ints(())
    rounding_type = attr.choice("floor", "ceil", "ceil_torch", default="floor")
    index_element_type = attr.element_type("i64")
    axis = attr.int(0)
    outputs = 2

    def infer(self, at: Site, data: Value) -> tuple[Value, Value]:
        pooled = self.pooled(at, data)
        at.axis(self.axis, pooled.rank, "C5")
        # OpenVINO: takes any integer type, the specification only i32 and i64
        at.require(self.index_element_type.is_integer, "C6", f"index_element_type is {self.index_element_type}")
        return pooled, pooled.typed(self.index_element_type)

    def run(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = np.arange(data.size).reshape(data.shape)
        count = math.prod(data.shape[self.axis :])
        # the last axis first, so that of equal elements the first in memory is taken
        for axis, windows in reversed(list(enumerate(self.axes(data.shape[2:], self.kernel), 2))):
            data, places = _largest_and_place(data, places, axis, windows)
        # a window that sees only pads has place 0
        return data, (np.maximum(places, 0) % max(count, 1)).astype(self.index_element_type.dtype)


@op("MaxPool", since=8, spec="pooling/max-pool-8")
class MaxPool8(MaxPool14):
    """As MaxPool-14, without ceil_torch.

    C1  ``data`` has rank 3, 4 or 5: the kernel's axes follow batch and channels.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each axis of the kernel.
    C3  Strides, dilations and the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data (same_upper and same_lower pad until it does).
    C5  ``axis`` is within the rank of ``data``.
    C6  ``index_element_type`` is an integer type.
    """

    rounding_type = attr.choice("floor", "ceil", default="floor")


@op("MaxPool", since=1, spec="pooling/max-pool-1")
class MaxPool1(Pooling):
    """The largest element of each window.

    C1  ``data`` has rank 3, 4 or 5: the kernel's axes follow batch and channels.
    C2  ``strides`` and explicit pads have one entry for each axis of the kernel.
    C3  Strides and the kernel are positive, pads not negative.
    C4  The kernel fits into the padded data (same_upper and same_lower pad until it does).
    """

    def infer(self, at: Site, data: Value) -> Value:
        return self.pooled(at, data)

    def run(self, data: np.ndarray) -> np.ndarray:
        for axis, windows in enumerate(self.axes(data.shape[2:], self.kernel), 2):
            data = _largest(data, axis, windows)
        return data


def _largest(data: np.ndarray, axis: int, windows: Axis) -> np.ndarray:
    """The largest element of each window along one axis: the largest of these along the next is that of both."""
    best = np.full((*data.shape[:axis], windows.out, *data.shape[axis + 1 :]), _lowest(data.dtype))
    before = (slice(None),) * axis
    for tap in range(windows.kernel):
        seeing, seen = windows.span(tap)
        part = best[(*before, seeing)]
        np.maximum(part, data[(*before, seen)], out=part)
    return best


def _largest_and_place(data: np.ndarray, places: np.ndarray, axis: int, windows: Axis) -> tuple[np.ndarray, np.ndarray]:
    """``_largest`` together with what ``places`` holds for it; -1 where a window sees only pads."""
    best = np.full((*data.shape[:axis], windows.out, *data.shape[axis + 1 :]), _lowest(data.dtype))
    found = np.full(best.shape, -1)
    before = (slice(None),) * axis
    for tap in range(windows.kernel):
        seeing, seen = windows.span(tap)
        kept, new, place = best[(*before, seeing)], data[(*before, seen)], found[(*before, seeing)]
        better = (new > kept) | (place < 0) | ((new != new) & (kept == kept))  # the first, and any NaN
        np.copyto(kept, new, where=better)
        np.copyto(place, places[(*before, seen)], where=better)
    return best, found


def _lowest(dtype: np.dtype) -> np.generic:
    """What a pad counts as: minus infinity, or the least of a type that has none."""
    # OpenVINO: f32 pads count as the lowest finite number
    kind = ElementType.of(dtype)
    if kind is None or kind.kind == "boolean":
        return np.False_
    if kind.is_integer:
        return dtype.type(ml_dtypes.iinfo(dtype).min)
    lowest = dtype.type(-np.inf)
    return lowest if np.isinf(lowest) else dtype.type(ml_dtypes.finfo(dtype).min)
