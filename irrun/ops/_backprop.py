"""Shared by ConvolutionBackpropData and GroupConvolutionBackpropData: the shape rule, and the kernels.

They are transposed convolutions: each element of ``data`` is a window, and adds its products with the filters to the
elements of the output that the window sees.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irrun.kernels.blocks import blocks, scratch
from irrun.kernels.convolution.channels_last import spread as spread_channels_last
from irrun.kernels.convolution.planes import Filters, Method, tiles_ready
from irrun.kernels.convolution.windows import Axis, taps
from irrun.kernels.convolution.winograd import packed
from irrun.kernels.matmul import matmul, narrow, wide
from irrun.opdef import Kernel, OnTileReady, Request, Site, Value, attr, ignore_tile, opt, ports
from irrun.ops._convolution import Chosen, Filtering, choose, filling, prepared
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
            return self._prepare_channels_last(data, filters, output_shape, request.compiled)
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

    def _prepare_channels_last(
        self, data: Value, filters: Value, output_shape: Value | None, compiled: bool
    ) -> Kernel | None:
        shape, array, wanted = data.shape.static, filters.data, None if output_shape is None else output_shape.ints()
        unknown = output_shape is not None and wanted is None
        if shape is None or array is None or unknown or not array.size or array.dtype != wide(array.dtype):
            return None
        array = array.reshape(*(1,) * (3 - self.leading), *array.shape)
        axes = self.axes_to(shape[2:], array.shape[3:], wanted)
        if compiled and array.dtype == np.float32 and (kernel := _compiled(array, axes, shape[0])) is not None:
            return replace(kernel, packing=replace(kernel.packing, inputs=(1,) if output_shape is None else (1, 2)))
        if len(array) > 1 or not all(is_disjoint(axis) for axis in axes):
            return None
        matrix = np.ascontiguousarray(array[0].transpose(0, 2, 3, 1))  # (in, rows, columns, out)
        whole = shape[0], *(axis.size for axis in axes), array.shape[2]
        kernel = filling(
            functools.partial(spread_channels_last, matrix), whole, "matmul", 2 if output_shape is None else 3
        )
        flops = 2 * array.size * math.prod((shape[0], *shape[2:]))
        return replace(kernel, flops=flops, packing=replace(kernel.packing, bytes=matrix.nbytes))


def spread(data: np.ndarray, filters: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """Return the transposed convolution of ``data`` (batch, groups * in, …) with ``filters`` (groups, in, out, …).

    ``axes`` are those of ``axes_to``. The result is of the dtype of ``data``.
    """
    batch, (groups, ins, outs) = len(data), filters.shape[:3]
    work, sizes = wide(data.dtype), data.shape[2:]
    matrix = data.astype(work, copy=False).reshape(batch, groups, ins, int(np.prod(sizes)))
    out = np.zeros((batch, groups, outs, *(axis.size for axis in axes)), work)
    for tap, windows, elements in taps(axes):
        product = matmul(filters[(..., *tap)].astype(work, copy=False).swapaxes(1, 2), matrix)
        out[(..., *elements)] += product.reshape(batch, groups, outs, *sizes)[(..., *windows)]
    return narrow(out.reshape(batch, groups * outs, *out.shape[3:]), data.dtype)


# ---------------------------------------------------------------------------------------------
# prepared kernels


class Transposed:
    """Constant filters (groups, in, out, …) of a transposed convolution, packed once for each method that uses them."""

    def __init__(self, array: np.ndarray) -> None:
        self.filters = Filters(array.swapaxes(1, 2))
        self._packed: dict[tuple[int, ...], tuple[Filters, Callable[[], np.ndarray]]] = {}

    def method(self, axes: tuple[Axis, ...], batch: int) -> tuple[str, Method]:
        """Return the name of the fastest method, and the method.

        ``axes`` are those of the convolution that leads from the output back to the data.
        """
        if all(map(is_disjoint, axes)):
            return "matmul", functools.partial(disjoint, self._spread)
        phases: list[Phase] = []
        names: list[str] = []
        # strides may be far larger than the filters, and only these phases have a tap
        for first in itertools.product(*map(_phases, axes)) if all(axis.out for axis in axes) else ():
            places = tuple(slice(n, None, axis.stride) for n, axis in zip(first, axes))
            own, seen = zip(*(_phase(axis, n) for axis, n in zip(axes, first)))
            name, method = choose(*self._some(seen), own, batch)
            names.append(name)
            phases.append((places, method))
        is_whole = len(phases) == math.prod(min(axis.stride, axis.size) for axis in axes)
        if is_whole and len(phases) == 1:
            return names[0], phases[0][1]
        return " and ".join(dict.fromkeys(names)), functools.partial(by_phases, phases, is_whole)

    @functools.cached_property
    def _spread(self) -> np.ndarray:
        """The filters as (groups, out, …, in)."""
        return np.ascontiguousarray(np.moveaxis(self.filters.array, 2, -1))

    def _some(self, taps: tuple[slice, ...]) -> tuple[Filters, Callable[[], np.ndarray]]:
        """Return the filters of these taps in reverse order, and a function that packs them for Winograd's method."""
        key = tuple(tap.start for tap in taps)
        if key not in self._packed:
            reverse = (slice(None, None, -1),) * len(taps)
            filters = Filters(np.ascontiguousarray(self.filters.array[(..., *taps)][(..., *reverse)]))
            self._packed[key] = filters, functools.cache(lambda: packed(filters))
        return self._packed[key]


Phase = tuple[tuple[slice, ...], Method]
"""The elements of the output at one phase of the strides, and the convolution that computes them."""


def _phases(axis: Axis) -> list[int]:
    """Return the phases of the output that a tap of the filters reaches: the positions of their first elements."""
    firsts = ((tap - axis.begin) % axis.stride for tap in range(min(axis.kernel, axis.stride)))
    return sorted(first for first in firsts if first < axis.size)


def _phase(axis: Axis, first: int) -> tuple[Axis, slice]:
    """Return the convolution for every ``stride``-th element of the output from ``first`` on, and its taps."""
    tap = (first + axis.begin) % axis.stride
    kernel, count = len(range(tap, axis.kernel, axis.stride)), len(range(first, axis.size, axis.stride))
    begin = (kernel - 1) * axis.dilation - (first + axis.begin - tap) // axis.stride
    end = count + (kernel - 1) * axis.dilation - begin - axis.out
    return Axis(axis.out, kernel, 1, axis.dilation, begin, end, count), slice(tap, None, axis.stride)


def by_phases(
    phases: Sequence[Phase], is_whole: bool, data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady
) -> None:
    """Fill ``out`` (batch, groups, out, …) with one convolution for each phase of the strides.

    Unless they are the whole output, the elements between them are 0.
    """
    if not is_whole:
        out[...] = 0
    for places, method in phases:
        part = out[(..., *places)]
        if part.size:
            result = np.empty(part.shape, part.dtype)
            method(data, result, ignore_tile)
            part[...] = result
    tiles_ready(out, on_tile_ready)


def _compiled(array: np.ndarray, axes: tuple[Axis, ...], batch: int) -> Kernel | None:
    """Return the compiled kernel for channels-last data and constant filters (groups, in, out, …), or None.

    ``axes`` are those of the convolution that leads from the output back to the data. Every element of the output must
    depend on some tap, and the taps on data or finite.
    """
    filters = Filters(array.swapaxes(1, 2))
    if not all(axis.out and axis.size and axis.kernel >= axis.stride and axis.stride <= axis.size for axis in axes):
        return None
    if any(axis.dilation > 1 < axis.stride for axis in axes) or not filters.is_finite:
        return None
    from irrun.fast.convolution.methods import transposed

    phases: list[Any] = []
    for first in itertools.product(*map(_phases, axes)):
        own, taps = zip(*(_phase(axis, n) for axis, n in zip(axes, first)))
        phases.append((first, own, tuple(tap.start for tap in taps)))
    return transposed(filters, axes, batch, phases)


def is_disjoint(axis: Axis) -> bool:
    """Return whether each output element depends on one element only: strides equal the kernel size, without pads."""
    return axis == Axis(axis.out * axis.kernel, axis.kernel, axis.kernel, 1, 0, 0, axis.out)


def disjoint(filters: np.ndarray, data: np.ndarray, out: np.ndarray, on_tile_ready: OnTileReady) -> None:
    """Fill ``out`` with a transposed convolution whose strides equal the kernel size, without pads.

    ``filters`` is (groups, out, …, in). Each output element is one product.
    """
    (batch, groups, ins, rows, *rest), (outs, *kernel) = data.shape, filters.shape[1:-1]
    width, height = math.prod(rest), outs * math.prod(kernel)
    matrix, spread = data.reshape(*data.shape[:3], rows * width), filters.reshape(groups, height, ins)
    for images, some, part in blocks((batch, groups, rows), height * width * out.itemsize):
        seen = matrix[images, some, :, part.start * width : part.stop * width]
        products = scratch(0, out.dtype, *seen.shape[:2], height, seen.shape[-1])
        matmul(spread[some], seen, out=products)
        products = products.reshape(*seen.shape[:2], outs, *kernel, part.stop - part.start, *rest)
        lines = slice(part.start * kernel[0], part.stop * kernel[0])
        target = out[images, some, :, lines]
        for tap in np.ndindex(*kernel):
            places = (slice(n, None, step) for n, step in zip(tap, kernel))
            target[(..., *places)] = products[(slice(None),) * 3 + tap]
        on_tile_ready((images, some, slice(0, outs), lines, *map(slice, out.shape[4:])))
