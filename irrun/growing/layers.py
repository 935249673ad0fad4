"""Layers of networks. Each function adds one layer and its constants, or nothing if no tensor suits it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from irrun.growing import moves
from irrun.growing.chain import FLOATS, INTEGERS, Axes, Axis, Chain, Tensor
from irrun.types import ELEMENT_TYPES

__all__ = ["LAYERS", "broadcast_axes", "convolution", "has_channels"]

_UNARY: Final[dict[str, dict[str, Any]]] = {
    "ReLU": {}, "Abs": {}, "Negative": {}, "Tanh": {}, "Sigmoid": {}, "Sin": {}, "Cos": {}, "Floor": {}, "Erf": {},
    "Gelu": {}, "Swish": {}, "HSwish": {}, "HSigmoid": {}, "Mish": {}, "SoftPlus": {}, "SoftSign": {}, "Atan": {},
    "Asinh": {}, "Elu": {"alpha": 0.5},
}  # fmt: skip
"""Element-wise operations of any float, with attributes."""
_MAX_SUMMED: Final = 50
"""The largest dim whose elements a CumSum adds."""


def _unary(g: Chain) -> None:
    type = g.choices.pick(list(_UNARY))
    if x := g.find_floats():
        g.add(type, [x], (x.type, x.axes), **_UNARY[type])


def _clamp(g: Chain) -> None:
    if x := g.find_numbers():
        g.add("Clamp", [x], (x.type, x.axes), min=0 if x.type == "u8" else -2, max=g.choices.integer(1, 9))


def _operands(g: Chain, x: Tensor) -> tuple[list[Tensor], Axes]:
    """Return a tensor and what broadcasts with it, a constant or another tensor, in any order; and the result's axes"""
    others = [t for t in g.tensors if t.type == x.type and broadcast_axes(x, t) is not None]
    if g.choices.chance() and others:
        y = g.choices.pick_late(others)
    else:
        dims = [1 if axis.open or g.choices.chance() else {1: 3}.get(axis.size, axis.size) for axis in x.axes]
        y = g.constant(dims[g.choices.integer(0, len(dims)) :], x.type)
    axes = broadcast_axes(x, y)
    assert axes is not None
    return ([x, y] if g.choices.chance() else [y, x]), axes


def broadcast_axes(x: Tensor, y: Tensor) -> Axes | None:
    """Return the axes of the result if numpy broadcasts two tensors to each other; None if it does not."""
    rank, axes = max(x.rank, y.rank), []
    for position in range(-rank, 0):
        a, c = (t.axes[position] if -position <= t.rank else Axis(1) for t in (x, y))
        if a.size != c.size and 1 not in (a.size, c.size):
            return None
        # a fixed dim above 1 fixes the result; a fixed dim of 1 leaves it open
        is_fixed = any(not axis.open and axis.size > 1 for axis in (a, c))
        axes.append(Axis(c.size if a.size == 1 else a.size, (a.open or c.open) and not is_fixed))
    return tuple(axes)


def _binary(g: Chain) -> None:
    kind = g.choices.pick(("Add", "Multiply", "Maximum", "Minimum", "Subtract", "SquaredDifference"))
    if x := g.find_numbers():
        if x.type in INTEGERS and kind in ("Subtract", "SquaredDifference"):
            kind = "Add"  # of u8, others would be below 0
        inputs, axes = _operands(g, x)
        g.add(kind, inputs, (x.type, axes), auto_broadcast="numpy")


def _compare(g: Chain) -> None:
    kind = g.choices.pick(("Less", "Equal", "GreaterEqual", "Greater", "LessEqual", "NotEqual"))
    if x := g.find_numbers():
        inputs, axes = _operands(g, x)
        g.add(kind, inputs, ("boolean", axes), auto_broadcast="numpy")


def _logical(g: Chain) -> None:
    if x := g.find(lambda t: t.type == "boolean"):
        kind = g.choices.pick(("LogicalNot", "LogicalAnd", "LogicalOr", "LogicalXor"))
        if kind == "LogicalNot":
            g.add(kind, [x], (x.type, x.axes))
        else:
            inputs, axes = _operands(g, x)
            g.add(kind, inputs, (x.type, axes), auto_broadcast="numpy")


def _select(g: Chain) -> None:
    if condition := g.find(lambda t: t.type == "boolean"):
        fitting = [t for t in g.tensors if t.type in (*FLOATS, *INTEGERS) and t.axes == condition.axes]
        if fitting:
            x = g.choices.pick_late(fitting)
            g.add("Select", [condition, x, g.constant((), x.type)], (x.type, x.axes), auto_broadcast="numpy")


def _convert(g: Chain) -> None:
    if x := g.find(lambda t: t.type != "string"):
        types = [t for t in ("f32", "f16", "f64", "bf16", "i64", "i32", "boolean") if t in g.types]
        type = g.choices.pick(types)
        g.add("Convert", [x], (type, x.axes), destination_type=type)


def _reduce(g: Chain) -> None:
    kind = g.choices.pick(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"))
    if not (x := g.find_numbers(least_rank=1)):
        return
    if x.type in INTEGERS and kind == "ReduceMean":
        kind = "ReduceSum"
    axes = [n for n in range(x.rank) if g.choices.chance()] or [x.rank - 1]
    keep = g.choices.chance()
    left = tuple(Axis(1) if n in axes else axis for n, axis in enumerate(x.axes) if keep or n not in axes)
    g.add(kind, [x, g.ints(*(n - x.rank * g.choices.chance() for n in axes))], (x.type, left), keep_dims=keep)


def _matmul(g: Chain) -> None:
    """Add a MatMul with a constant matrix on the right. Either operand may be transposed."""
    if not (x := g.find_floats(least_rank=2)):
        return
    a, c = g.choices.chance(0.2), g.choices.chance()
    row, inner = (-1, -2) if a else (-2, -1)
    depth = x.axes[inner]
    if depth.open or not depth.size:
        return
    columns = g.choices.pick((1, 2, 5, 8))
    w = g.constant((columns, depth.size) if c else (depth.size, columns), x.type, 1 / depth.size)
    axes = (*x.axes[:-2], x.axes[row], Axis(columns))
    g.add("MatMul", [x, w], (x.type, axes), transpose_a=a, transpose_b=c)


def _softmax(g: Chain) -> None:
    if x := g.find_floats(least_rank=1):
        g.add("SoftMax", [x], (x.type, x.axes), axis=g.choices.integer(-x.rank, x.rank - 1))


def _cumsum(g: Chain) -> None:
    if found := g.find_axis(lambda axis: not axis.open and 0 < axis.size < _MAX_SUMMED):
        x, axis = found
        if x.type in ("f32", "i32", "i64"):
            place = g.number(axis - x.rank * g.choices.chance(), "i64")
            g.add("CumSum", [x, place], (x.type, x.axes), reverse=g.choices.chance())


def has_channels(tensor: Tensor) -> bool:
    """Return whether a convolution or a pooling may read a tensor: batch, known channels, one or two spatial dims."""
    return tensor.type in FLOATS and tensor.rank in (3, 4) and not tensor.axes[1].open and 0 not in tensor.dims


def _windows(g: Chain, x: Tensor) -> tuple[dict[str, Any], Axes]:
    """Return kernel, strides and pads for the spatial axes of a tensor, and the spatial axes of the output."""
    space, draw = x.axes[2:], g.choices.integer
    begin, end = ([draw(0, 1) for _ in space] for _ in range(2))
    kernel = [draw(1, min(3, axis.size + p + q)) for axis, p, q in zip(space, begin, end)]
    strides = [draw(1, 2) for _ in space]
    # with a pad as wide as the kernel, a window could hold nothing but padding
    begin, end = ([min(p, k - 1) for p, k in zip(pads, kernel)] for pads in (begin, end))
    sizes = [(axis.size + p + q - k) // s + 1 for axis, p, q, k, s in zip(space, begin, end, kernel, strides)]
    out = tuple(Axis(size, axis.open) for size, axis in zip(sizes, space))
    return {"kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end, "auto_pad": "explicit"}, out


def _convolution(g: Chain) -> None:
    """Add a convolution: with any pads, or one that keeps the size of the image or divides it by the stride."""
    if not (x := g.find(has_channels)):
        return
    channels = x.dims[1]
    if x.rank == 4 and g.choices.chance():
        depthwise = channels > 1 and g.choices.chance(0.3)
        filters = channels * g.choices.pick((1, 2)) if depthwise else g.choices.pick((1, 3, 4, 8))
        convolution(
            g, x, filters, g.choices.pick((1, 2, 3, 5)), groups=channels if depthwise else 1,
            stride=g.choices.pick((1, 2)), dilation=g.choices.pick((1, 2)),
        )  # fmt: skip
        return
    windows, out = _windows(g, x)
    filters, kernel = g.choices.integer(1, 3), windows.pop("kernel")
    w = g.constant((filters, channels, *kernel), x.type)
    windows["dilations"] = [1] * len(out)
    g.add("Convolution", [x, w], (x.type, (x.axes[0], Axis(filters), *out)), **windows)


def convolution(
    g: Chain, x: Tensor, filters: int, size: int, *, groups: int = 1, stride: int = 1, dilation: int = 1
) -> Tensor:
    """Add a convolution that keeps the size of the image, or divides it by the stride. Return its output."""
    channels = x.dims[1] // groups
    shape = (filters, channels, size, size)
    if groups > 1:
        shape = (groups, filters // groups, channels, size, size)
    w = g.constant(shape, x.type, 1 / (channels * size * size))
    out = tuple(Axis(-(-axis.size // stride), axis.open) for axis in x.axes[2:])
    return g.add(
        "Convolution" if groups == 1 else "GroupConvolution", [x, w], (x.type, (x.axes[0], Axis(filters), *out)),
        strides=[stride] * 2, pads_begin=[0, 0], pads_end=[0, 0], dilations=[dilation] * 2, auto_pad="same_upper",
    )[0]  # fmt: skip


def _pool(g: Chain) -> None:
    if not (x := g.find(has_channels)):
        return
    windows, out = _windows(g, x)
    windows["rounding_type"] = "floor"
    output = (x.type, (*x.axes[:2], *out))
    if g.choices.chance():
        g.add("AvgPool", [x], output, opset=1, **windows, **{"exclude-pad": g.choices.chance()})
    else:
        g.add("MaxPool", [x], output, opset=1, **windows)


def _batch_norm(g: Chain) -> None:
    if x := g.find(has_channels):
        channels = (x.dims[1],)
        gamma, beta, mean = (g.constant(channels, x.type) for _ in range(3))
        variance = g.array(g.numbers.uniform(0.5, 2, channels).astype(ELEMENT_TYPES[x.type].dtype), x.type)
        g.add("BatchNormInference", [x, gamma, beta, mean, variance], (x.type, x.axes), epsilon=1e-3)


LAYERS: Final[tuple[Callable[[Chain], None], ...]] = (
    _unary, _binary, _clamp, _compare, _logical, _select, _convert, moves.reshape, moves.split_dim, moves.transpose,
    moves.unsqueeze, moves.squeeze, moves.concat, moves.split, moves.slice, moves.gather, moves.pad, moves.tile,
    moves.broadcast, moves.shape_of, moves.arrange, moves.reverse, _reduce, _matmul, _convolution, _pool, _softmax,
    _cumsum, _batch_norm,
)  # fmt: skip
"""A function for each layer that a chain may hold, the simplest first."""
