"""Normalizations and softmaxes."""

from __future__ import annotations

import math

import numpy as np

from irrun.export.call import Call
from irrun.export.operations.reductions import reduced
from irrun.export.registry import converts

__all__: list[str] = []


@converts("SoftMax", computes="f32 f64")
def softmax(call: Call) -> str:
    """Softmax."""
    return call("Softmax", call.input(0), axis=call.op.axis)


@converts("LogSoftmax", computes="f32 f64")
def log_softmax(call: Call) -> str:
    """LogSoftmax."""
    return call("LogSoftmax", call.input(0), axis=call.op.axis)


@converts("MVN", computes="f32 f64")
def mvn(call: Call) -> str:
    """LayerNormalization for the last axes, arithmetic for others."""
    op, x, rank = call.op, call.input(0), call.rank()
    if len(call.values) > 1:
        axes = sorted({axis % rank for axis in call.ints(1)})
        inside = op.eps_mode == "inside_sqrt"
    else:
        given = op.reduction_axes or range(1 if op.across_channels else 2, rank)
        axes, inside = sorted({axis % rank for axis in given}), True
    if not axes:  # each element is its own mean
        centred = call("Sub", x, x)
        return call("Div", centred, op.eps**0.5 if inside else op.eps) if op.normalize_variance else centred
    sizes = [call.dim(0, axis) for axis in axes]
    known = [size for size in sizes if size]
    if op.normalize_variance and inside and axes == list(range(rank - len(axes), rank)) and len(known) == len(axes):
        return call("LayerNormalization", x, np.ones(known, call.type.dtype), axis=axes[0], epsilon=op.eps)
    centred = call("Sub", x, reduced(call, "ReduceMean", x, axes, keep=True))
    if not op.normalize_variance:
        return centred
    variance = reduced(call, "ReduceMean", call("Mul", centred, centred), axes, keep=True)
    if inside:
        return call("Div", centred, call("Sqrt", call("Add", variance, op.eps)))
    return call("Div", centred, call("Add", call("Sqrt", variance), op.eps))


@converts("GroupNormalization", computes="f32")
def group_normalization(call: Call) -> str:
    """InstanceNormalization of groups, which runtimes have kernels for."""
    x, rank, groups = call.input(0), call.rank(), call.op.num_groups
    dims = call.value(0).shape.static
    rest = [call.dim(0, axis) for axis in range(1, rank)]
    count = -1 if None in rest else math.prod(filter(None, rest)) // groups  # known also for an empty batch
    grouped = call("Reshape", x, [0, groups, count])
    ones, zeros = np.ones(groups, np.float32), np.zeros(groups, np.float32)
    dtype = call.type.dtype
    normal = call("InstanceNormalization", grouped, ones.astype(dtype), zeros.astype(dtype), epsilon=call.op.epsilon)
    normal = call("Reshape", normal, call.shape_of(x) if dims is None else list(dims))
    scale, bias = call.input(1), call.input(2)
    if rank > 2:
        scale, bias = (call("Unsqueeze", name, list(range(1, rank - 1))) for name in (scale, bias))
    return call("Add", call("Mul", normal, scale), bias)


@converts("BatchNormInference", computes="f32 f64")
def batch_norm(call: Call) -> str:
    """BatchNormalization."""
    names = [call.input(position) for position in range(5)]
    if call.values[0] is not None and call.op.inputs[0].name == "gamma":
        names = [names[2], names[0], names[1], names[3], names[4]]
    return call("BatchNormalization", *names, epsilon=call.op.epsilon)


@converts("NormalizeL2", computes="f32 f64")
def normalize_l2(call: Call) -> str:
    """The quotient by the root of the sum of squares."""
    x, axes = call.input(0), call.axes_of(1)
    squares = call("Mul", x, x)
    total = reduced(call, "ReduceSum", squares, axes, keep=True) if axes else squares
    call.require(bool(axes), "no axis is normalized")
    total = call("Add" if call.op.eps_mode == "add" else "Max", total, call.op.eps)
    return call("Div", x, call("Sqrt", total))


@converts("LRN", computes="f32")
def lrn(call: Call) -> str:
    """LRN across channels, or the power of a mean of squares."""
    op, axes, x = call.op, call.axes_of(1), call.input(0)
    if axes == [1] and op.size % 2 == 1:
        flat = x if call.rank() == 4 else call("Reshape", x, [0, 0, -1, 1])
        made = call("LRN", flat, size=op.size, alpha=op.alpha, beta=op.beta, bias=op.bias)
        return made if call.rank() == 4 else call("Reshape", made, call.shape_of(x))
    squares = call("Mul", x, x)
    for axis in axes:
        squares = _around(call, squares, axis)
    scale = call("Add", call("Mul", squares, op.alpha / op.size ** len(axes)), op.bias)
    return call("Div", x, call("Pow", scale, op.beta))


def _around(call: Call, x: str, axis: int) -> str:
    """Return the sum of each element and its neighbours along an axis, as many as the IR takes for an even size."""
    reach, rank = (call.op.size - 1) // 2, call.rank()
    order = [*(a for a in range(rank) if a != axis), axis]
    last = call("Transpose", x, perm=order)
    rows = call("Reshape", last, call("Concat", np.array([-1, 1], np.int64), call.shape_of(last, -1), axis=0))
    window = 2 * reach + 1
    means = call("AveragePool", rows, kernel_shape=[window], pads=[reach, reach], count_include_pad=1)
    sums = call("Reshape", call("Mul", means, window), call.shape_of(last))
    return call("Transpose", sums, perm=[order.index(a) for a in range(rank)])


@converts("GRN", computes="f32 f64")
def grn(call: Call) -> str:
    """The quotient by the root of the sum of squares over channels."""
    x = call.input(0)
    total = reduced(call, "ReduceSum", call("Mul", x, x), [1], keep=True)
    return call("Div", x, call("Sqrt", call("Add", total, call.op.bias)))


@converts("RMS", computes="f32 f64")
def rms(call: Call) -> str:
    """The quotient by the root of the mean of squares."""
    x = call.input(0)
    mean = reduced(call, "ReduceMean", call("Mul", x, x), [call.rank() - 1], keep=True)
    normal = call("Div", x, call("Sqrt", call("Add", mean, call.op.epsilon)))
    normal = call("Mul", normal, call.input(1)) if call.given(1) and call.op.elementwise_affine else normal
    return call.cast(normal, call.outputs[0].type) if call.outputs[0].type is not call.value(0).type else normal
