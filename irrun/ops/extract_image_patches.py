"""ExtractImagePatches: the pixels of each window of an image, as channels.  Spec: movement/extract-image-patches-3."""

import numpy as np

from irrun.kernels.convolution.windows import Axis, taps
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import Dim, PartialShape, blank


@op("ExtractImagePatches", since=3, spec="movement/extract-image-patches-3")
class ExtractImagePatches(Op):
    """Stack the pixels of each window: ``sizes`` pixels, ``rates`` apart, in windows ``strides`` apart.

    The channels of the output are ordered by row, column and channel of the pixel in its window. Pads are zeros.

    C1  ``data`` is 4D.
    C2  ``sizes``, ``strides`` and ``rates`` have two entries each, all positive.
    """

    sizes = attr.ints()
    strides = attr.ints()
    rates = attr.ints()
    auto_pad = attr.choice("same_upper", "same_lower", "valid")
    inputs = ports(data="T")
    types = {"T": "any"}

    def infer(self, at: Site, data: Value) -> Value:
        for name, pair in (("sizes", self.sizes), ("strides", self.strides), ("rates", self.rates)):
            at.require(len(pair) == 2 and min(pair) > 0, "C2", f"{name} {list(pair)} is not two positive entries")
        at.require(data.rank in (None, 4), "C1", f"data is {data.shape}, not 4D")
        batch, depth, *image = data.shape.dims or PartialShape.of_rank(4)
        windows = [self._windows(axis, n) for axis, n in enumerate(image)]
        return data.reshaped([batch, depth * (self.sizes[0] * self.sizes[1]), *windows])

    def _windows(self, axis: int, size: Dim) -> Dim:
        """Return the number of windows along one axis of the image."""
        stride = self.strides[axis]
        if self.auto_pad != "valid":
            return size.ceil_div(stride)
        return (size + (stride - self._span(axis))).max(0) // stride

    def _span(self, axis: int) -> int:
        """Return the number of elements from the first to the last one of a window along one axis."""
        return (self.sizes[axis] - 1) * self.rates[axis] + 1

    def run(self, data: np.ndarray) -> np.ndarray:
        batch, depth, *image = data.shape
        counts = [int(self._windows(axis, Dim(n))) for axis, n in enumerate(image)]
        shape = (batch, self.sizes[0] * self.sizes[1] * depth, *counts)
        if 0 in shape:
            return blank(shape, data)
        # filled tap by tap, because strides and rates may make a padded image far larger than the patches
        patches = blank((batch, *self.sizes, depth, *counts), data)
        axes = [self._axis(axis, n, count) for axis, (n, count) in enumerate(zip(image, counts))]
        for (row, column), windows, elements in taps(axes):
            patches[(slice(None), row, column, slice(None), *windows)] = data[(..., *elements)]
        return patches.reshape(shape)

    def _axis(self, axis: int, size: int, count: int) -> Axis:
        """Return the ``count`` windows over the ``size`` elements of one axis."""
        missing = 0 if self.auto_pad == "valid" else max((count - 1) * self.strides[axis] + self._span(axis) - size, 0)
        begin = (missing + (self.auto_pad == "same_lower")) // 2
        return Axis(size, self.sizes[axis], self.strides[axis], self.rates[axis], begin, missing - begin, count)
