"""Shared by ConvolutionBackpropData and GroupConvolutionBackpropData: the shape rule, and the choice of a kernel.

They are transposed convolutions: each element of ``data`` is a window, and adds its products with the filters to the
elements of the output that the window sees.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irrun.kernels.convolution.channels_last import spread as spread_channels_last
from irrun.kernels.convolution.methods import Chosen, filling, prepared
from irrun.kernels.convolution.transposed import Transposed, is_disjoint
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.matmul import wide
from irrun.opdef import Kernel, Request, Site, Value, attr, opt, ports
from irrun.ops._convolution import Filtering
from irrun.ops._sliding import at_least, entry
from irrun.types import Dim, PartialShape


class BackpropBase(Filtering):
    """Base of both operations. ``filters`` is (…, in, out, spatial axes).

    C2  ``strides``, ``dilations``, ``output_padding`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the kernel are positive, pads and ``output_padding`` not negative.
    C4  The pads are not larger than the output from which they are cropped.
    C6  ``output_shape`` is 1D with one entry for each spatial axis, none negative.
    """

    output_padding = attr.ints(())
    inputs = ports(data="T", filters="T", output_shape=opt("T_SHAPE"))
    channels_last = True
    rounds_added = True

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        data = inputs[0]
        return Dim.unknown() if data is None else data.shape.count() * self.each(inputs[1]) * 2

    def infer(self, at: Site, data: Value, filters: Value, output_shape: Value | None = None) -> Value:
        spatial = self.spatial(at, data, filters)
        if output_shape is not None:
            at.require(output_shape.rank in (None, 1), "C6", f"output_shape is {output_shape.shape}, not 1D")
            spatial = spatial or output_shape.shape[0].value
        if spatial is None:
            return data.reshaped(PartialShape(None))
        batch, channels, *sizes = data.shape.dims or PartialShape.of_rank(2 + spatial)
        filter_dims = filters.shape.dims or tuple(PartialShape.of_rank(self.leading + spatial))
        out, kernel = self.channels(at, channels, filter_dims[: self.leading]), filter_dims[self.leading :]
        self.check(at, spatial, kernel)
        self.entries(at, "output_padding", spatial, 0)
        if output_shape is None:
            return data.reshaped([batch, out, *self._sizes(at, sizes, kernel)])
        count = output_shape.shape[0]
        at.require(count.fits(spatial), "C6", f"output_shape has length {count}, but there are {spatial} spatial axes")
        target = output_shape.as_shape()
        if target.dims is None:
            target = PartialShape.of_rank(spatial)
        at.require(all(d.hi >= 0 for d in target), "C6", f"output_shape {target} has a negative entry")
        return data.reshaped([batch, out, *target])

    def _sizes(self, at: Site, sizes: Sequence[Dim], kernel: Sequence[Dim]) -> list[Dim]:
        """Return the spatial dims of the output where there is no input ``output_shape``."""
        dims = []
        for axis, (size, k) in enumerate(zip(sizes, kernel)):
            size = self._whole(axis, size, k) - sum(self.pads(axis)) + entry(self.output_padding, axis, 0)
            at.require(size.hi >= 0, "C4", f"the pads leave spatial axis {axis} of the output with a length of {size}")
            dims.append(at_least(0, size))
        return dims

    def _whole(self, axis: int, size: Dim, kernel: Dim) -> Dim:
        """Return the size of the output along an axis before pads and output padding."""
        return (size - 1) * entry(self.strides, axis, 1) + self.dilated(axis, kernel)

    def axes_to(self, sizes: Sequence[int], kernel: Sequence[int], wanted: Sequence[int] | None) -> tuple[Axis, ...]:
        """Return the axes of the convolution that leads from the output back to ``data``.

        ``sizes`` are the spatial dims of ``data``. ``wanted`` are those in ``output_shape``, or None without this
        input.
        """
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
        # OpenVINO keeps explicit pads at the beginning, and valid has none; the specification halves the difference
        return Axis(wanted, kernel, stride, dilation, begin, whole - wanted - begin, size)

    def prepare(self, request: Request) -> Kernel | None:
        data, filters, output_shape = request.first(3)
        assert data is not None
        assert filters is not None
        if request.channels_last:
            return self._prepare_channels_last(data, filters, output_shape)
        both = any(entry(self.dilations, n, 1) > 1 < stride for n, stride in enumerate(self.strides))
        if filters.data is None or not filters.data.size or wide(filters.data.dtype).kind != "f" or both:
            return None
        array = filters.data.reshape(*(1,) * (3 - self.leading), *filters.data.shape)
        constant = Transposed(array)
        wanted = None if output_shape is None else output_shape.ints()

        @functools.lru_cache
        def chosen(shape: tuple[int, ...], wanted: tuple[int, ...] | None) -> Chosen:
            axes = self.axes_to(shape[2:], array.shape[3:], wanted)
            return tuple(axis.size for axis in axes), *constant.method(axes, shape[0])

        known = data.shape if output_shape is None or wanted is not None else PartialShape(None)
        kernel = prepared(constant.filters, chosen, known, wanted)
        flops = 0 if known.static is None else 2 * array.size * math.prod((known.static[0], *known.static[2:]))
        return replace(kernel, flops=flops, packing=replace(kernel.packing, bytes=kernel.packing.bytes + array.nbytes))

    def constant_geometry(
        self, data: Value, filters: Value, output_shape: Value | None
    ) -> tuple[np.ndarray, tuple[Axis, ...]] | None:
        """Return the filters (groups, in, out, …) and the windows of a kernel for channels-last data.

        The windows are those of the convolution that leads from the output back to ``data``. Return None if the shape
        of ``data`` or of the output is unknown, or if the filters are not constant, or narrower than f32.
        """
        shape, array, wanted = data.shape.static, filters.data, None if output_shape is None else output_shape.ints()
        unknown = output_shape is not None and wanted is None
        if shape is None or array is None or unknown or not array.size or array.dtype != wide(array.dtype):
            return None
        array = array.reshape(*(1,) * (3 - self.leading), *array.shape)
        return array, self.axes_to(shape[2:], array.shape[3:], wanted)

    def _prepare_channels_last(self, data: Value, filters: Value, output_shape: Value | None) -> Kernel | None:
        known, shape = self.constant_geometry(data, filters, output_shape), data.shape.static
        if known is None or shape is None:
            return None
        array, axes = known
        if len(array) > 1 or not all(is_disjoint(axis) for axis in axes):
            return None
        matrix = np.ascontiguousarray(array[0].transpose(0, 2, 3, 1))  # (in, rows, columns, out)
        whole = shape[0], *(axis.size for axis in axes), array.shape[2]
        kernel = filling(
            functools.partial(spread_channels_last, matrix), whole, "matmul", 2 if output_shape is None else 3
        )
        flops = 2 * array.size * math.prod((shape[0], *shape[2:]))
        return replace(kernel, flops=flops, packing=replace(kernel.packing, bytes=matrix.nbytes))
