"""AdaptiveMaxPool: the largest of a given number of windows.  Spec: pooling/adaptive-max-pool-8."""

import math

import numpy as np

from irrun.base.deadline import in_time
from irrun.opdef import Kernel, Request, Site, Value, attr, op
from irrun.ops._adaptive import AdaptiveBase, divided


@op("AdaptiveMaxPool", since=8, spec="pooling/adaptive-max-pool-8")
class AdaptiveMaxPool(AdaptiveBase):
    """Divide the spatial axes into ``output_shape`` windows and find the largest element of each, and its index.

    The index counts the elements of the flattened spatial axes.

    C1  ``data`` has rank 3, 4 or 5.
    C2  ``output_shape`` is 1D with one entry for each spatial axis of ``data``, none negative.
    C3  A spatial axis of length 0 has no windows.
    C4  ``index_element_type`` is i32 or i64.
    """

    index_element_type = attr.element_type("i64")
    outputs = 2

    def infer(self, at: Site, data: Value, output_shape: Value) -> tuple[Value, Value]:
        index_type = self.index_element_type
        at.require(index_type.name in ("i32", "i64"), "C4", f"index_element_type is {index_type}, not i32 or i64")
        pooled = self.pooled(at, data, output_shape)
        return pooled, pooled.typed(index_type)

    def run(self, data: np.ndarray, output_shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if 0 in output_shape:  # the other sizes may be any
            none = np.empty((*data.shape[:2], *output_shape.tolist()), data.dtype)
            return none, none.astype(self.index_element_type.dtype)
        sizes = data.shape[2:]
        places = np.broadcast_to(np.arange(math.prod(sizes)).reshape(sizes), data.shape)
        # the last axis first, so that of equal elements the first in memory is taken
        for axis, windows in reversed(list(enumerate(divided(sizes, output_shape.tolist()), 2))):
            best, best_places = [], []
            for window in in_time(windows.distinct):
                selection = (*(slice(None),) * axis, window)
                largest = np.argmax(data[selection], axis, keepdims=True)
                best.append(np.take_along_axis(data[selection], largest, axis).squeeze(axis))
                best_places.append(np.take_along_axis(places[selection], largest, axis).squeeze(axis))
            data, places = (windows.spread(np.stack(of, axis), axis) for of in (best, best_places))
        return data, places.astype(self.index_element_type.dtype)

    def prepare(self, request: Request) -> Kernel | None:
        if request.outputs > 1:
            return None
        kernel = self.prepared(request, np.maximum)
        if kernel is not None or request.channels_last:
            return kernel
        return Kernel(lambda data, output_shape: self.run(data, output_shape)[0])
