"""What ConvolutionBackpropData and GroupConvolutionBackpropData share.

They are convolutions the other way: each element of ``data`` is a window, and adds to the elements of the
output that it sees.
"""

from collections.abc import Sequence

import numpy as np

from irrun.opdef import Site, Value, attr, opt, ports
from irrun.ops._convolution import Filtering
from irrun.ops._gemm import matmul, narrow, wide
from irrun.ops._windows import Axis, at_least, entry, taps
from irrun.types import Dim, PartialShape


class BackpropBase(Filtering):
    """Base of the two; ``filters`` are (…, in, out, spatial axes).

    C2  ``strides``, ``dilations``, ``output_padding`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the kernel are positive, pads and ``output_padding`` not negative.
    C4  The pads leave something of the output.
    C6  ``output_shape`` is 1D with one entry for each spatial axis, none negative.
    """

    output_padding = attr.ints(())
    inputs = ports(data="T", filters="T", output_shape=opt("T_SHAPE"))

    def infer(self, at: Site, data: Value, filters: Value, output_shape: Value | None = None) -> Value:
        spatial = self.spatial(at, data, filters)
        if output_shape is not None:
            at.require(output_shape.rank in (None, 1), "C6", f"output_shape is {output_shape.shape}, not 1D")
            spatial = spatial or output_shape.shape[0].value
        if spatial is None:
            return data.reshaped(PartialShape(None))
        batch, channels, *sizes = data.shape.dims or PartialShape.of_rank(2 + spatial)
        given = filters.shape.dims or tuple(PartialShape.of_rank(self.leading + spatial))
        out, kernel = self.channels(at, channels, given[: self.leading]), given[self.leading :]
        self.check(at, spatial, kernel)
        self.entries(at, "output_padding", spatial, 0)
        if output_shape is None:
            return data.reshaped([batch, out, *self._sizes(at, sizes, kernel)])
        count = output_shape.shape[0]
        at.require(count.fits(spatial), "C6", f"output_shape has {count} entries for {spatial} spatial axes")
        wanted = output_shape.as_shape()
        if wanted.dims is None:
            wanted = PartialShape.of_rank(spatial)
        at.require(all(d.hi >= 0 for d in wanted), "C6", f"output_shape {wanted} has a negative entry")
        return data.reshaped([batch, out, *wanted])

    def _sizes(self, at: Site, sizes: Sequence[Dim], kernel: Sequence[Dim]) -> list[Dim]:
        """The spatial dims of the output where no input gives them."""
        found = []
        for axis, (size, k) in enumerate(zip(sizes, kernel)):
            size = self._whole(axis, size, k) - sum(self.pads(axis)) + entry(self.output_padding, axis, 0)
            at.require(size.hi >= 0, "C4", f"spatial axis {axis} of the output, {size}, is less than its pads")
            found.append(at_least(0, size))
        return found

    def _whole(self, axis: int, size: Dim, kernel: Dim) -> Dim:
        """The size of the output without pads."""
        return (size - 1) * entry(self.strides, axis, 1) + self.dilated(axis, kernel)

    def axes_to(self, sizes: Sequence[int], kernel: Sequence[int], wanted: Sequence[int] | None) -> tuple[Axis, ...]:
        """The axes of the convolution that leads back from the output to ``data``."""
        return tuple(
            self._axis_to(axis, size, k, None if wanted is None else wanted[axis])
            for axis, (size, k) in enumerate(zip(sizes, kernel))
        )

    def _axis_to(self, axis: int, size: int, kernel: int, wanted: int | None) -> Axis:
        stride, dilation = entry(self.strides, axis, 1), entry(self.dilations, axis, 1)
        whole = (size - 1) * stride + (kernel - 1) * dilation + 1 + entry(self.output_padding, axis, 0)
        begin, end = self.pads(axis)
        if wanted is None:
            return Axis(whole - begin - end, kernel, stride, dilation, begin, end, size)
        if self.auto_pad.startswith("same"):
            total = max(0, whole - wanted)
            begin = total // 2 if self.auto_pad == "same_lower" else total - total // 2
        # OpenVINO: explicit pads at the beginning stay, and valid has none; the specification halves the difference
        return Axis(wanted, kernel, stride, dilation, begin, whole - wanted - begin, size)


def spread(data: np.ndarray, filters: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """Add what each of (batch, groups * in, …) gives through filters (groups, in, out, …) to the output."""
    batch, (groups, ins, outs) = len(data), filters.shape[:3]
    work, sizes = wide(data.dtype), data.shape[2:]
    matrix = data.astype(work, copy=False).reshape(batch, groups, ins, int(np.prod(sizes)))
    out = np.zeros((batch, groups, outs, *(axis.size for axis in axes)), work)
    for tap, windows, elements in taps(axes):
        product = matmul(filters[(..., *tap)].astype(work, copy=False).swapaxes(1, 2), matrix)
        out[(..., *elements)] += product.reshape(batch, groups, outs, *sizes)[(..., *windows)]
    return narrow(out.reshape(batch, groups * outs, *out.shape[3:]), data.dtype)
