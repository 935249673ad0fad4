"""Shared by Convolution and GroupConvolution: their shape rule, and the choice of a method."""

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from irrun.kernels.convolution.channels_last import choose as choose_channels_last
from irrun.kernels.convolution.methods import WINOGRAD, Chosen, choose, filling, prepared
from irrun.kernels.convolution.planes import Filters
from irrun.kernels.convolution.windows import Axis, is_sparse
from irrun.kernels.convolution.winograd import outruns_bf16, packed, transformed_bytes
from irrun.kernels.matmul import wide
from irrun.opdef import Kernel, Operands, Packing, Request, Site, Value, attr, ports
from irrun.ops._sliding import Sliding
from irrun.types import Dim, PartialShape, product

_MAX_PICTURE_CHANNELS: Final = 4
"""The most channels of a picture."""


class Filtering(Sliding):
    """Base of all convolutions. ``filters`` has ``leading`` axes before the spatial ones.

    C1  ``data`` has one of ``ranks``, ``filters`` one that fits it.
    C5  ``data`` has as many channels as the filters take.
    """

    dilations = attr.ints()
    types = {"T": "numeric", "T_SHAPE": "int"}
    ranks = frozenset({3, 4, 5})
    leading = 2

    def spatial(self, at: Site, data: Value, filters: Value) -> int | None:
        """Return the number of spatial axes, or None if it is unknown."""
        ranks = {r for r in (data.rank, filters.rank and filters.rank - self.leading + 2) if r is not None}
        pairs = " or ".join(f"{rank} and {rank + self.leading - 2}" for rank in sorted(self.ranks))
        message = f"data {data.shape} and filters {filters.shape} do not have the ranks {pairs}"
        at.require(len(ranks) <= 1 and ranks <= self.ranks, "C1", message)
        if len(self.ranks) == 1:
            ranks = set(self.ranks)
        return max(ranks, default=2) - 2 or len(self.strides or self.dilations) or None

    def channels(self, at: Site, data: Dim, filters: Sequence[Dim]) -> Dim:
        """Return the number of output channels, from the channels of ``data`` and the leading dims of the filters."""
        raise NotImplementedError

    def correlated(self, at: Site, data: Value, filters: Value) -> Value:
        """Return the output of a convolution that is not transposed."""
        spatial = self.spatial(at, data, filters)
        if spatial is None:
            return data.reshaped(PartialShape(None))
        batch, channels, *sizes = data.shape.dims or PartialShape.of_rank(2 + spatial)
        filter_dims = filters.shape.dims or tuple(PartialShape.of_rank(self.leading + spatial))
        out = self.channels(at, channels, filter_dims[: self.leading])
        return data.reshaped([batch, out, *self.slide(at, sizes, filter_dims[self.leading :])])

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        filters = inputs[-1] if len(inputs) == 2 else inputs[2]
        return outputs[0].shape.count() * self.each(filters) * 2

    def rounded(self, inputs: Sequence[Value | None], precision: Operands, /) -> tuple[int, ...]:
        """Return data and filters."""
        filters = inputs[1]
        return () if precision in ("i8", "codes") or filters is None or filters.shape.static is None else (0, 1)

    def each(self, filters: Value | None) -> Dim:
        """Return how many filter elements one element of the output (of the input, if transposed) is multiplied by."""
        if filters is None or filters.shape.dims is None:
            return Dim.unknown()
        return product(filters.shape.dims[self.leading - 1 :])


def ungrouped(at: Site, data: Dim, ins: Dim, outs: Dim) -> Dim:
    """Return ``channels`` of an operation without groups."""
    at.require(
        data.meet(ins) is not None, "C5", f"data has {data} channels, but the filters take {ins}", dims=(data, ins)
    )
    return outs


def grouped(at: Site, data: Dim, groups: Dim, ins: Dim, outs: Dim) -> Dim:
    """Return ``channels`` of an operation with groups."""
    message = f"data has {data} channels, but the filters of {groups} groups take {ins} each"
    at.require(data.meet(groups * ins) is not None, "C5", message, dims=(data, groups * ins))
    if data.is_static and ins.is_static and ins.lo:
        at.require(data.lo % ins.lo == 0, "C5", message, dims=(data, ins))
        groups = groups if groups.is_static else data // ins
    return groups * outs


class ConvolutionBase(Filtering):
    """Base of Convolution and GroupConvolution."""

    inputs = ports(data="T", filters="T")
    channels_last = True
    takes_stored = 1
    stored_filters = True
    rounds_added = True

    def infer(self, at: Site, data: Value, filters: Value) -> Value:
        return self.correlated(at, data, filters)

    def rounded(self, inputs: Sequence[Value | None], precision: Operands, /) -> tuple[int, ...]:
        """Return data and filters, or nothing for a convolution that stays in f32.

        So does that of a picture, which takes little time: the layers behind it would enlarge the error. So do those
        for which Winograd's method in f32 takes less time than products in bf16.
        """
        data, filters = (None if value is None else value.shape.static for value in inputs)
        if filters is not None and self.leading == 2:
            outs, ins, *kernel = filters
            if self.splits(inputs):
                return ()
            if data is not None and outruns_bf16(outs, ins, self.axes(data[2:], kernel), data[0]):
                return ()
        return super().rounded(inputs, precision)

    def splits(self, inputs: Sequence[Value | None], /) -> bool:
        """Return whether the data is a picture."""
        filters = None if inputs[1] is None else inputs[1].shape.static
        return filters is not None and self.leading == 2 and filters[1] <= _MAX_PICTURE_CHANNELS

    def prepare(self, request: Request) -> Kernel | None:
        data, filters = request.inputs
        assert data is not None
        assert filters is not None
        if request.channels_last:
            return self._prepare_channels_last(data, filters)
        if filters.stored is not None:
            return self._prepare_stored(data, filters)
        if filters.data is None or not filters.data.size or wide(filters.data.dtype).kind != "f":
            return None
        constant = Filters(filters.data.reshape(*(1,) * (3 - self.leading), *filters.data.shape))
        matrices = functools.cache(lambda: packed(constant))

        @functools.lru_cache
        def chosen(shape: tuple[int, ...], _: None) -> Chosen:
            axes = self.axes(shape[2:], constant.kernel)
            return tuple(axis.out for axis in axes), *choose(constant, matrices, axes, shape[0])

        kernel = prepared(constant, chosen, data.shape, None)
        if kernel.algorithm == WINOGRAD:
            size = kernel.packing.bytes + transformed_bytes(constant)
            return replace(kernel, packing=Packing((1,), size, matrices))
        return kernel

    def _prepare_stored(self, data: Value, filters: Value) -> Kernel:
        """Return the kernel for channels-first data and stored filters, which it widens late, if at all."""

        @functools.cache
        def made() -> Kernel:
            kernel = self.prepare(Request((data, Value.of(_stored(filters).astype(np.float32, copy=False)))))
            assert kernel is not None
            return kernel

        def call(data: np.ndarray, filters: np.ndarray, **keywords: Any) -> np.ndarray:
            return made().call(data, filters, **keywords)

        shape, size = self.infer(Site(), data, filters).shape.static, math.prod(filters.shape.static or ())
        packing = Packing((1,), 4 * size, made)
        if shape is None:
            return Kernel(call, packing=packing)
        return Kernel(call, out="tiles", flops=2 * size * shape[0] * math.prod(shape[2:]), packing=packing)

    def constant_geometry(self, data: Value, filters: Value) -> tuple[Filters, tuple[Axis, ...]] | None:
        """Return the filters (groups, out, in, …) and the windows of a kernel for channels-last data.

        Return None if the data has an unknown shape or another type than the filters, if the filters are not constant,
        or if a copy of the data with its pads would be far larger than the data or would spread infinities.
        """
        shape, array = data.shape.static, filters.data if filters.stored is None else _stored(filters)
        if shape is None or array is None or not array.size or data.type.dtype != wide(array.dtype):
            return None
        constant = Filters(array.reshape(*(1,) * (3 - self.leading), *array.shape))
        axes = self.axes(shape[2:], constant.kernel)
        return None if is_sparse(axes) or not constant.allow_pads(axes) else (constant, axes)

    def _prepare_channels_last(self, data: Value, filters: Value) -> Kernel | None:
        known = self.constant_geometry(data, filters)
        batch = data.shape[0].value
        if known is None or batch is None:
            return None
        constant, axes = known
        choice = choose_channels_last(constant, axes, batch)
        if choice is None:
            return None
        algorithm, method, packed_bytes = choice
        whole = batch, *(axis.out for axis in axes), constant.groups * constant.outs
        flops = 2 * constant.size * math.prod(whole[:-1])
        kernel = filling(method, whole, algorithm)
        return replace(kernel, flops=flops, packing=replace(kernel.packing, bytes=packed_bytes))


def _stored(filters: Value) -> np.ndarray:
    """Return filters that stay as the file has them: a view of the .bin, or f32 if they are integers."""
    stored = filters.stored
    assert stored is not None
    rows = stored.codes if stored.type.kind == "float" else stored.unpack_rows(slice(None))
    return rows.reshape(filters.shape.static or ())
