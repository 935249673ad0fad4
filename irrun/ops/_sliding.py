"""Shared by convolutions and poolings: the shape rules of windows that slide over the spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irrun.kernels.convolution.windows import Axis
from irrun.kernels.elementwise import native
from irrun.kernels.pooling import Reduction, pooling, pooling_channels_last
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, ports
from irrun.types import Dim, PartialShape


class Sliding(Op):
    """Base of the operations whose windows slide. An attribute with an empty list stands for ones (pads: zeros).

    Its clauses have the same labels everywhere:

    C2  ``strides``, ``dilations`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data. With same_upper and same_lower, it always does.
    """

    strides = attr.ints()
    pads_begin = attr.ints()
    pads_end = attr.ints()
    auto_pad = attr.choice(
        "explicit", "same_upper", "same_lower", "valid", default="explicit", also={"notset": "explicit"}
    )
    dilations: tuple[int, ...] = ()
    rounding_type: str = "floor"

    def slide(self, at: Site, sizes: Sequence[Dim], kernel: Sequence[Dim]) -> list[Dim]:
        """Return the number of windows along each spatial axis. Refuses by C2 to C4."""
        self.check(at, len(sizes), kernel)
        return [self._windows(at, axis, size, k) for axis, (size, k) in enumerate(zip(sizes, kernel))]

    def check(self, at: Site, count: int, kernel: Sequence[Dim]) -> None:
        """Refuse the attributes by C2 and C3, for ``count`` spatial axes."""
        self.entries(at, "strides", count, 1)
        self.entries(at, "dilations", count, 1)
        if self.auto_pad == "explicit":
            self.entries(at, "pads_begin", count, 0)
            self.entries(at, "pads_end", count, 0)
        at.require(
            all(k.hi >= 1 for k in kernel), "C3", f"the kernel [{','.join(map(str, kernel))}] has an entry below 1"
        )

    def entries(self, at: Site, name: str, count: int, least: int) -> None:
        """Refuse one attribute by C2 and C3. Its entries must be at least ``least``."""
        values = getattr(self, name)
        message = f"{name} {list(values)} has length {len(values)}, but there are {count} spatial axes"
        at.require(len(values) in (0, count), "C2", message)
        at.require(all(n >= least for n in values), "C3", f"{name} {list(values)} has an entry below {least}")

    def _windows(self, at: Site, axis: int, size: Dim, kernel: Dim) -> Dim:
        if not self._same:
            begin, end = self.pads(axis)
            padded, dilated = size + begin + end, self.dilated(axis, kernel)
            at.require(
                padded.hi >= dilated.lo,
                "C4",
                f"the dilated kernel spans {dilated} elements, but spatial axis {axis} has {padded} with its pads",
                dims=(padded, dilated),
            )
        return self._count(axis, size, kernel)

    def axes(self, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[Axis, ...]:
        """Return the windows over data of a known size."""
        return tuple(self._axis(axis, size, k) for axis, (size, k) in enumerate(zip(sizes, kernel)))

    def _axis(self, axis: int, size: int, kernel: int) -> Axis:
        out = self._count(axis, Dim(size), Dim(kernel)).lo
        stride, dilation = entry(self.strides, axis, 1), entry(self.dilations, axis, 1)
        begin, end = self.pads(axis)
        if self._same:
            total = max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size)
            begin, end = total // 2, total - total // 2
            if self.auto_pad == "same_lower":
                begin, end = end, begin
        return Axis(size, kernel, stride, dilation, begin, end, out)

    def _count(self, axis: int, size: Dim, kernel: Dim) -> Dim:
        """Return the number of windows, for a kernel that fits."""
        stride = entry(self.strides, axis, 1)
        if self._same:
            return size.ceil_div(stride)
        begin, end = self.pads(axis)
        steps = size + begin + end - self.dilated(axis, kernel)
        if self.rounding_type == "floor":
            return at_least(1, steps // stride + 1)
        count = at_least(1, steps.ceil_div(stride) + 1)
        # ceil_torch: no window begins in the pads at the end
        return count if self.rounding_type == "ceil" else count.min((size + begin).ceil_div(stride))

    @property
    def _same(self) -> bool:
        return self.auto_pad in ("same_upper", "same_lower")

    def pads(self, axis: int) -> tuple[int, int]:
        """Return the pads of an axis, 0 for those that depend on the data."""
        if self.auto_pad != "explicit":
            return 0, 0
        return entry(self.pads_begin, axis, 0), entry(self.pads_end, axis, 0)

    def dilated(self, axis: int, kernel: Dim) -> Dim:
        """Return how many elements a kernel spans."""
        dilation = entry(self.dilations, axis, 1)
        kernel = at_least(1, kernel)
        return kernel if dilation == 1 else (kernel - 1) * dilation + 1


class Pooling(Sliding):
    """Base of the poolings. ``kernel`` is an attribute, whose length is the number of spatial axes.

    C1  ``data`` has rank 3, 4 or 5: batch, channels, and one axis for each entry of ``kernel``.
    """

    kernel = attr.ints()
    rounding_type = attr.choice("floor", "ceil", default="floor")
    inputs = ports(data="T")
    types = {"T": "numeric"}
    channels_last = True

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        return outputs[0].shape.count() * math.prod(self.kernel)

    def check(self, at: Site, count: int, kernel: Sequence[Dim]) -> None:
        message = f"strides {list(self.strides)} has length {len(self.strides)}, but there are {count} spatial axes"
        at.require(len(self.strides) == count, "C2", message)  # OpenVINO has a default for convolutions only
        super().check(at, count, kernel)

    def pooled(self, at: Site, data: Value) -> Value:
        """Return an output of the element type of ``data``. Refuses by C1 to C4."""
        rank = 2 + len(self.kernel)
        at.require(
            rank in (3, 4, 5) and data.rank in (None, rank),
            "C1",
            f"data {data.shape} does not have {rank} axes: batch, channels and {len(self.kernel)} of the kernel"
            if rank in (3, 4, 5)
            else f"kernel has length {len(self.kernel)}, not 1, 2 or 3",
        )
        batch, channels, *sizes = data.shape.dims or PartialShape.of_rank(rank)
        return data.reshaped([batch, channels, *self.slide(at, sizes, [Dim(k) for k in self.kernel])])

    def prepared(self, request: Request, reduction: Reduction) -> Kernel | None:
        """Return the kernel of a pooling with one output, or None for types other than f32 and f64."""
        (data,) = request.inputs
        assert data is not None
        if not native(data):
            return None
        if not request.channels_last:
            return pooling(reduction, lambda sizes: self.axes(sizes, self.kernel))
        shape = data.shape.static
        if shape is None:
            return None
        return pooling_channels_last(reduction, self.axes(shape[2:], self.kernel), shape[1], data.type.dtype.itemsize)


def entry(values: tuple[int, ...], axis: int, default: int) -> int:
    """Return the entry of an attribute for one axis, or ``default`` if the attribute is empty."""
    return values[axis] if values else default


def at_least(least: int, dim: Dim) -> Dim:
    """Return the dim with a lower bound of at least ``least``. The formula that it comes from is kept."""
    return dim if dim.lo >= least else Dim(least, max(least, dim.hi), dim.term)
