"""RegionYolo: the confidences of regions and classes.  Spec: detection/region-yolo-1."""

from math import prod

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.kernels.normalization import shifted
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import UNKNOWN_RANK, Dim, product


@op("RegionYolo", since=1, spec="detection/region-yolo-1")
class RegionYolo(Op):
    """Apply a sigmoid to the centre and the confidence of each region, and softmax or a sigmoid to its classes.

    The channels of a region are its coordinates (x, y, width, height), confidence and classes. With ``do_softmax``
    there are ``num`` regions, and the output is flattened from ``axis`` to ``end_axis``. Without it there are as many
    regions as entries in ``mask``.

    C1  ``data`` is 4D [N, C, H, W].
    C2  C is at least (classes + coords + 1) times the number of regions.
    C3  With ``do_softmax``, ``axis`` and ``end_axis`` are within the rank, and ``axis`` is not after ``end_axis``.
    C4  ``coords`` and ``classes`` are not negative. With ``do_softmax``, ``num`` is positive.
    """

    anchors = attr.floats(())  # not used here: applications decode the output with it
    axis = attr.int()
    end_axis = attr.int()
    coords = attr.int()
    classes = attr.int()
    num = attr.int()
    do_softmax = attr.bool(True)
    mask = attr.ints(())
    inputs = ports(data="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value) -> Value:
        at.require(data.rank in (None, 4), "C1", f"data is {data.shape}, not 4D")
        for name in ("coords", "classes"):
            number = getattr(self, name)
            at.require(number >= 0, "C4", f"{name} is {number}, but cannot be negative")
        at.require(self.num > 0 or not self.do_softmax, "C4", f"num is {self.num}, not positive")
        needed = self._regions * self._entries
        at.require(
            data.shape[1].hi >= needed,
            "C2",
            f"{self._regions} regions need {needed} channels, but data is {data.shape}",
        )
        if not self.do_softmax:
            return data.reshaped([data.shape[0], needed, data.shape[2], data.shape[3]])
        axis, end = at.axis(self.axis, 4, "C3"), at.axis(self.end_axis, 4, "C3", "end_axis")
        at.require(axis <= end, "C3", f"axis {self.axis} is after end_axis {self.end_axis}")
        if data.shape.dims is None:
            return data.reshaped(UNKNOWN_RANK if axis == end else [Dim.unknown() for _ in range(4 - end + axis)])
        dims = data.shape.dims
        return data.reshaped([*dims[:axis], product(dims[axis : end + 1]), *dims[end + 1 :]])

    @property
    def _regions(self) -> int:
        return self.num if self.do_softmax else len(self.mask)

    @property
    def _entries(self) -> int:
        return self.coords + self.classes + 1

    def run(self, data: np.ndarray) -> np.ndarray:
        needed = self._regions * self._entries
        out = data.astype(wide(data.dtype))  # a copy
        n, _, height, width = data.shape
        raw = out[:, :needed].reshape(n, self._regions, self._entries, height, width)
        regions = raw.copy()
        confidence = self.coords
        with np.errstate(over="ignore"):
            # OpenVINO applies the sigmoid to the first two entries even if there are fewer coordinates
            for part in (slice(0, 2), slice(confidence, confidence + 1 if self.do_softmax else None)):
                regions[:, :, part] = 1 / (1 + np.exp(-regions[:, :, part]))
        if self.do_softmax:
            of_classes = np.exp(shifted(raw[:, :, confidence + 1 :], 2))
            regions[:, :, confidence + 1 :] = of_classes / of_classes.sum(axis=2, keepdims=True)
        out[:, :needed] = regions.reshape(n, needed, height, width)
        if not self.do_softmax:
            return narrow(out[:, :needed], data.dtype)
        axis, end = self.axis % 4, self.end_axis % 4
        joined = prod(data.shape[axis : end + 1])
        return narrow(out.reshape(*data.shape[:axis], joined, *data.shape[end + 1 :]), data.dtype)
