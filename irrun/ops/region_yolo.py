"""RegionYolo: the predictions of YOLO as probabilities.  Spec: detection/region-yolo-1."""

import math

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._softmax import shifted
from irrun.ops._unary import through_floats
from irrun.types import Dim, product


@op("RegionYolo", since=1, spec="detection/region-yolo-1")
class RegionYolo(Op):
    """The sigmoid of x, y and objectness of each region, and the sigmoid or softmax of its classes.

    C1  ``data`` is 4D.
    C2  For each region (``num`` of them; without do_softmax, one for each entry of ``mask``), ``data`` has
        ``coords + 1 + classes`` channels.
    C3  do_softmax: ``axis`` and ``end_axis`` are within the rank of ``data``, in this order.
    """

    anchors = attr.floats(())
    axis = attr.int()
    coords = attr.int()
    classes = attr.int()
    end_axis = attr.int()
    num = attr.int()
    do_softmax = attr.bool(True)
    mask = attr.ints(())
    inputs = ports(data="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value) -> Value:
        at.require(data.rank in (None, 4), "C1", f"data is {data.shape}, not 4D")
        count, channels = self._regions, self._regions * (self.coords + 1 + self.classes)
        at.require(
            data.shape[1].fits(channels), "C2", f"data is {data.shape}; {count} regions have {channels} channels"
        )
        if not self.do_softmax:
            return data.reshaped([data.shape[0], Dim(channels), data.shape[2], data.shape[3]])
        first, last = at.axis(self.axis, 4, "C3"), at.axis(self.end_axis, 4, "C3", "end_axis")
        at.require(first <= last, "C3", f"axis is {self.axis}, end_axis {self.end_axis}")
        dims = [data.shape[axis] for axis in range(4)]
        return data.reshaped([*dims[:first], product(dims[first : last + 1]), *dims[last + 1 :]])

    @property
    def _regions(self) -> int:
        return self.num if self.do_softmax else len(self.mask)

    def run(self, data: np.ndarray) -> np.ndarray:
        found = through_floats(self._kernel, data)
        if not self.do_softmax:
            return found
        first, last = self.axis % 4, self.end_axis % 4 + 1
        return found.reshape(*data.shape[:first], math.prod(data.shape[first:last]), *data.shape[last:])

    def _kernel(self, x: np.ndarray) -> np.ndarray:
        entries = x.reshape(len(x), self._regions, self.coords + 1 + self.classes, *x.shape[2:])
        found = entries.copy()
        rest = slice(self.coords, self.coords + 1 if self.do_softmax else None)
        for part in found[:, :, :2], found[:, :, rest]:
            part[:] = 1 / (1 + np.exp(-part))
        if self.do_softmax:
            powers = np.exp(shifted(entries[:, :, self.coords + 1 :], 2))
            found[:, :, self.coords + 1 :] = powers / powers.sum(2, keepdims=True)
        return found.reshape(x.shape)
