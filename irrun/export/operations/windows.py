"""Convolutions and poolings: operations whose windows slide over the spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.export.call import Call
from irrun.export.operations.constants import reshaped
from irrun.export.operations.reductions import reduced
from irrun.export.registry import converts

__all__: list[str] = []


def _windows(call: Call, kernel: Sequence[int | None]) -> dict[str, Any]:
    """Return the attributes of ONNX for the windows of a layer: strides, dilations and pads.

    Pads are explicit if the spatial dims are known, so that each rounding gives the outputs of the IR. ``kernel`` may
    have unknown dims.
    """
    op, count = call.op, len(kernel)
    ones, zeros = (1,) * count, (0,) * count
    attributes: dict[str, Any] = {"strides": list(op.strides or ones)}
    if None not in kernel:
        attributes["kernel_shape"] = list(kernel)
    if any(n != 1 for n in op.dilations):
        attributes["dilations"] = list(op.dilations)
    sizes = [call.dim(0, 2 + axis) for axis in range(count)] if call.value(0).shape.dims else [None]
    known = [size for size in sizes if size is not None]
    if len(known) == count and None not in kernel:
        axes = op.axes(known, kernel)
        ends = [(a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.size - a.begin for a in axes]
        attributes["pads"] = [a.begin for a in axes] + [max(end, 0) for end in ends]
    elif op.auto_pad.startswith("same"):
        call.require("dilations" not in attributes, "pads depend on the shape of the data", "export with a --shape")
        attributes["auto_pad"] = op.auto_pad.upper()
    elif op.auto_pad == "explicit":
        attributes["pads"] = [*(op.pads_begin or zeros), *(op.pads_end or zeros)]
    if len(known) != count and op.rounding_type != "floor":
        ends = op.pads_end if op.auto_pad == "explicit" and op.pads_end else zeros
        fits = all(k and stride + end <= k for stride, end, k in zip(op.strides or ones, ends, kernel))
        call.require(
            fits or op.rounding_type == "ceil_torch",
            "a window may begin behind the data, where ONNX drops it",
            "export with a shape: --shape NAME=SHAPE",
        )
        attributes["ceil_mode"] = 1
    return attributes


def _filters(call: Call, groups: int = 0) -> tuple[str, list[int | None]]:
    """Return filters of a convolution, whose groups are joined to one axis, and their kernel."""
    filters, start = call.input(1), 2 + (groups > 0)
    kernel = [call.dim(1, axis) for axis in range(start, call.rank(1))]
    if groups and (static := call.value(1).shape.static):
        filters = reshaped(call, filters, [static[0] * static[1], *static[2:]])
    elif groups:
        shape = call("Concat", [-1], call("Shape", filters, start=2), axis=0)
        filters = call("Reshape", filters, shape)
    return filters, kernel


def _groups(call: Call) -> int:
    """Return the number of groups of filters."""
    groups = call.dim(1, 0)
    if groups is None:
        call.refuse("the number of groups is not known")
    return groups


@converts("Convolution", computes="f32")
def convolution(call: Call) -> str:
    """Conv."""
    filters, kernel = _filters(call)
    return call("Conv", call.input(0), filters, **_windows(call, kernel))


@converts("GroupConvolution", computes="f32")
def group_convolution(call: Call) -> str:
    """Conv with groups."""
    groups = _groups(call)
    filters, kernel = _filters(call, groups)
    return call("Conv", call.input(0), filters, group=groups, **_windows(call, kernel))


@converts("ConvolutionBackpropData", computes="f32")
def convolution_backprop_data(call: Call) -> str:
    """ConvTranspose."""
    return _transposed(call, *_filters(call), groups=1)


@converts("GroupConvolutionBackpropData", computes="f32")
def group_convolution_backprop_data(call: Call) -> str:
    """ConvTranspose with groups."""
    groups = _groups(call)
    return _transposed(call, *_filters(call, groups), groups=groups)


def _transposed(call: Call, filters: str, kernel: list[int | None], groups: int) -> str:
    """ConvTranspose; with ``output_shape``, the pads at the end follow from it."""
    op, count = call.op, len(kernel)
    strides, dilations = op.strides or (1,) * count, op.dilations or (1,) * count
    padding = list(op.output_padding or (0,) * count)
    attributes: dict[str, Any] = {
        "strides": list(strides), "dilations": list(dilations), "group": groups,
    }  # fmt: skip
    if call.given(2) and op.auto_pad.startswith("same") and call.value(0).shape.static is None and not any(padding):
        # the IR and ONNX name the halves of the pads the other way round
        swapped = "SAME_LOWER" if op.auto_pad == "same_upper" else "SAME_UPPER"
        attributes |= {"output_shape": call.ints(2), "auto_pad": swapped}
    elif call.given(2):
        axes = op.axes_to(call.dims()[2:], kernel, call.ints(2))
        begins = [axis.begin for axis in axes]
        wholes = [(axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1 for axis in axes]
        ends = [whole - axis.size - axis.begin for whole, axis in zip(wholes, axes)]
        padding = [max(-end, 0) for end in ends]
        attributes["pads"] = [*begins, *(max(end, 0) for end in ends)]
    elif op.auto_pad == "explicit":
        attributes["pads"] = [*(op.pads_begin or (0,) * count), *(op.pads_end or (0,) * count)]
    limits = [max(stride, dilation) for stride, dilation in zip(strides, dilations)]
    call.require(
        all(pad < limit for pad, limit in zip(padding, limits)),
        f"output_padding {padding} is not below strides and dilations, as ONNX wants it",
    )
    return call("ConvTranspose", call.input(0), filters, output_padding=padding, **attributes)


@converts("MaxPool", computes="i8 u8 f32 f64")
def max_pool(call: Call) -> list[str]:
    """MaxPool. ONNX counts indices over the whole tensor, the IR from an axis on."""
    attributes = _windows(call, call.op.kernel)
    pads, kernel = attributes.get("pads", ()), list(call.op.kernel) * 2
    call.require(all(pad < k for pad, k in zip(pads, kernel)), f"pads {list(pads)} reach the size of the kernel")
    used = len(call.outputs) > 1 and call.reads(1)
    if not used:
        values = call("MaxPool", call.input(0), **attributes)
        return [values, values][: len(call.outputs)]
    values, indices = call.many("MaxPool", call.input(0), outputs=2, **attributes)
    axis = call.axis(call.op.axis)
    if axis:
        indices = call("Mod", indices, np.array(math.prod(call.dims()[axis:]), np.int64))
    return [values, call.cast(indices, call.outputs[1].type)]


@converts("AvgPool", computes="f32")
def avg_pool(call: Call) -> str:
    """AveragePool. Pads count only if the layer has some."""
    call.require(call.outputs[0].type.kind == "float", "ONNX rounds no means of integers")
    op = call.op
    attributes = _windows(call, op.kernel)
    if "dilations" in attributes:
        call.since(19, "dilations of AveragePool")
    static = "pads" in attributes and "ceil_mode" not in attributes
    padded = op.auto_pad.startswith("same") or (any((*op.pads_begin, *op.pads_end)) and op.auto_pad == "explicit")
    if op.auto_pad.startswith("same") and static:
        padded = any(axis.begin or axis.end for axis in op.axes(call.dims()[2:], op.kernel))
    counts = padded and not op.exclude_pad
    call.require(not counts or static, "pads count, and the shape of the data is not known", "export with --shape")
    pads = attributes.get("pads", ())
    call.require(
        all(pad < k for pad, k in zip(pads, [*op.kernel, *op.kernel])),
        f"pads {list(pads)} reach the size of the kernel",
    )
    return call("AveragePool", call.input(0), count_include_pad=int(counts), **attributes)


@converts("AdaptiveAvgPool", computes="f32 f64")
def adaptive_avg_pool(call: Call) -> str:
    """AveragePool if all windows have one size, otherwise the mean of each part of each axis."""
    x, rank, sizes = call.input(0), call.rank(), call.ints(1)
    if all(size == 1 for size in sizes):
        return reduced(call, "ReduceMean", x, list(range(2, rank)), keep=True)
    counts = call.dims()[2:]
    if call.type.name != "f64" and all(count % size == 0 for count, size in zip(counts, sizes)):
        kernel = [count // size for count, size in zip(counts, sizes)]
        return call("AveragePool", x, kernel_shape=kernel, strides=kernel)
    return _parts_reduced(call, "ReduceMean", x, sizes)


def _parts_reduced(call: Call, type: str, x: str, sizes: Sequence[int]) -> str:
    """Return the reduction of each part of each spatial axis."""
    for number, size in enumerate(sizes):
        axis, count, parts = 2 + number, call.dims()[2 + number], []
        for begin, end in ((n * count // size, -(-(n + 1) * count // size)) for n in range(size)):
            parts.append(reduced(call, type, call("Slice", x, [begin], [end], [axis]), [axis], keep=True))
        x = call("Concat", *parts, axis=axis)
    return x


@converts("AdaptiveMaxPool", computes="f32 f64 i32 i64")
def adaptive_max_pool(call: Call) -> list[str]:
    """The maximum of each part of each axis."""
    call.require(not call.reads(1), "ONNX has no indices of an adaptive pooling")
    x = _parts_reduced(call, "ReduceMax", call.input(0), call.ints(1))
    return [x, x]
