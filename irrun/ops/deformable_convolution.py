"""DeformableConvolution: convolutions whose taps have offsets.  Spec: convolution/deformable-convolution-{1,8}."""

import math
from collections.abc import Sequence

import numpy as np

from irrun.kernels.matmul import matmul, narrow, wide
from irrun.opdef import Site, Value, attr, op, opt, ports
from irrun.ops._convolution import Filtering, grouped
from irrun.types import Dim, PartialShape


class _Deformable(Filtering):
    group = attr.int(1)
    deformable_group = attr.int(1)
    bilinear_interpolation_pad: bool = False
    inputs = ports(data="T", offsets="T", filters="T")
    ranks = frozenset({4})

    def infer(self, at: Site, data: Value, offsets: Value, filters: Value, mask: Value | None = None) -> Value:
        for name in ("group", "deformable_group"):
            at.require(getattr(self, name) >= 1, "C6", f"{name} is {getattr(self, name)}, less than 1")
        out = self.correlated(at, data, filters)
        taps = self.deformable_group * filters.shape[2] * filters.shape[3]
        out = self._each(at, out, offsets, 2 * taps, "offsets", "C7")
        return out if mask is None else self._each(at, out, mask, taps, "mask", "C8")

    def channels(self, at: Site, data: Dim, filters: Sequence[Dim]) -> Dim:
        outs, ins = filters
        at.require(
            not outs.is_static or outs.lo % self.group == 0,
            "C6",
            f"{outs} filters cannot be divided into {self.group} groups",
        )
        divided = not data.is_static or data.lo % self.deformable_group == 0
        at.require(divided, "C6", f"{data} channels cannot be divided into {self.deformable_group} deformable groups")
        grouped(at, data, Dim(self.group), ins, outs)
        return outs

    def _each(self, at: Site, out: Value, per_tap: Value, count: Dim, name: str, label: str) -> Value:
        """Return ``out`` with its batch and windows narrowed to those of ``per_tap``, the input named ``name``.

        Refuses an input that is not 4D (C1), and one without ``count`` channels or with another shape (``label``).
        """
        at.require(per_tap.rank in (None, 4), "C1", f"{name} is {per_tap.shape}, not 4D")
        batch, channels, *windows = out.shape
        required = PartialShape.of([batch, count, *windows])
        met = per_tap.shape.meet(required)
        at.require(met is not None, label, f"{name} is {per_tap.shape}, not {required}")
        assert met is not None
        return out.reshaped([met[0], channels, *met.dims[2:]]) if met.dims else out

    def run(
        self, data: np.ndarray, offsets: np.ndarray, filters: np.ndarray, mask: np.ndarray | None = None
    ) -> np.ndarray:
        work = np.dtype(np.float64) if wide(data.dtype).kind == "i" else wide(data.dtype)
        axes = self.axes(data.shape[2:], filters.shape[2:])
        kernel, windows = filters.shape[2:], tuple(axis.out for axis in axes)
        parts, taps = self.deformable_group, kernel[0] * kernel[1]
        shifts = offsets.reshape(len(data), parts, taps, 2, *windows).astype(work, copy=False)
        # where each tap of each window would be without an offset
        places = [
            axis.stride * np.arange(axis.out) + axis.dilation * np.arange(axis.kernel)[:, np.newaxis] - axis.begin
            for axis in axes
        ]
        y = shifts[:, :, :, 0] + np.repeat(places[0], kernel[1], 0).reshape(taps, windows[0], 1)
        x = shifts[:, :, :, 1] + np.tile(places[1], (kernel[0], 1)).reshape(taps, 1, windows[1])
        split = data.reshape(len(data), parts, data.shape[1] // parts, *data.shape[2:])
        samples = self._sample(split.astype(work, copy=False), y, x)
        if mask is not None:
            samples = samples * mask.reshape(len(data), parts, 1, taps, *windows).astype(work, copy=False)
        height = filters.shape[1] * taps
        matrix = samples.reshape(len(data), self.group, height, windows[0] * windows[1])
        weights = filters.reshape(self.group, len(filters) // self.group, height).astype(work, copy=False)
        return narrow(matmul(weights, matrix).reshape(len(data), len(filters), *windows), data.dtype)

    def _sample(self, data: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Interpolate ``data`` (batch, part, channel, height, width) at coordinates (batch, part, tap, windows).

        Returns an array (batch, part, channel, tap, windows).
        """
        height, width = data.shape[3:]
        if self.bilinear_interpolation_pad:  # within a pixel outside the data, values fade to 0
            inside = (y > -1) & (y < height) & (x > -1) & (x < width)
        else:  # coordinates beyond the last pixel, but inside the data, count as the last pixel
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            y, x = np.minimum(y, height - 1), np.minimum(x, width - 1)
        y, x = np.where(inside, y, 0), np.where(inside, x, 0)
        flat = data.reshape(*data.shape[:3], height * width)
        total = np.zeros((*data.shape[:3], *y.shape[2:]), data.dtype)
        if not height * width:
            return total
        for row, near_y in _neighbours(y):
            for column, near_x in _neighbours(x):
                there = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
                index = np.where(there, row * width + column, 0).reshape(*y.shape[:2], 1, math.prod(y.shape[2:]))
                values = np.take_along_axis(flat, index, 3).reshape(total.shape)
                share = np.where(there, near_y * near_x, 0)[:, :, np.newaxis]  # 0 of an infinite pixel is 0
                total += np.multiply(values, share, out=np.zeros_like(total), where=share != 0)
        return total


@op("DeformableConvolution", since=8, spec="convolution/deformable-convolution-8")
class DeformableConvolution8(_Deformable):
    """Correlate ``data`` with each of ``filters``. Each tap of each window reads ``data`` at an offset of its own.

    Offsets may be fractions: values are interpolated between pixels. ``mask`` scales these values.

    C1  All inputs are 4D.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the dims of the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data. With same_upper and same_lower, it always does.
    C5  ``data`` has as many channels as the filters of all groups take.
    C6  ``group`` is positive and divides the number of filters. ``deformable_group`` is positive and divides the number
        of channels of ``data``.
    C7  ``offsets`` holds two numbers for each deformable group, tap and window.
    C8  ``mask`` holds one number for each deformable group, tap and window.
    """

    bilinear_interpolation_pad = attr.bool(False)
    inputs = ports(data="T", offsets="T", filters="T", mask=opt("T"))


@op("DeformableConvolution", since=1, spec="convolution/deformable-convolution-1")
class DeformableConvolution1(_Deformable):
    """Compute the same as DeformableConvolution-8, without ``mask`` and ``bilinear_interpolation_pad``.

    C1  All inputs are 4D.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the dims of the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data. With same_upper and same_lower, it always does.
    C5  ``data`` has as many channels as the filters of all groups take.
    C6  ``group`` is positive and divides the number of filters. ``deformable_group`` is positive and divides the number
        of channels of ``data``.
    C7  ``offsets`` holds two numbers for each deformable group, tap and window.
    """


def _neighbours(place: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the integer coordinates below and above each place, each with its weight."""
    below = np.floor(place)
    share = place - below
    first = below.astype(np.int64)
    return [(first, 1 - share), (first + 1, share)]
