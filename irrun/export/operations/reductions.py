"""Reductions, cumulative sums and sorting."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irrun.export.call import Call
from irrun.export.registry import converts

__all__ = ["reduced"]


def reduced(call: Call, type: str, name: str, axes: list[int] | str, keep: bool) -> str:
    """Return the reduction of a tensor. Before operation set 18, all but ReduceSum have their axes as an attribute."""
    if call.opset >= 18 or type == "ReduceSum":
        return call(type, name, axes, keepdims=int(keep))
    call.require(not isinstance(axes, str), "the axes are not constant", "export with --opset 18")
    return call(type, name, axes=axes, keepdims=int(keep))


def _axes(call: Call) -> list[int] | str:
    """Return the axes of a reduction: numbers if they are known."""
    known = call.value(1).ints()
    if known is None:
        call.require(call.value(1).shape.count().lo > 0, "the axes may be none, for which ONNX reduces all")
        axes = call.cast(call.input(1), "i64")
        return call("Reshape", axes, [-1]) if call.value(1).rank == 0 else axes
    return sorted({axis % max(call.rank(), 1) for axis in known})


def _reduction(type: str) -> Callable[[Call], str]:
    """Return the converter to a reduction of ONNX. Without axes, the result is the data."""

    def convert(call: Call) -> str:
        axes = _axes(call)
        if not axes or call.value(0).rank == 0:
            return call.input(0)
        return reduced(call, type, call.input(0), axes, call.op.keep_dims)

    return convert


converts("ReduceSum", computes="i32 i64 f32 f64", wraps=True)(_reduction("ReduceSum"))
converts("ReduceProd", computes="i32 i64 f32 f64", wraps=True)(_reduction("ReduceProd"))
converts("ReduceL2", computes="f32")(_reduction("ReduceL2"))
converts("ReduceL1", computes="f32 i32")(_reduction("ReduceL1"))


converts("ReduceMax", computes="i8 u8 i32 i64 f32 f64")(_reduction("ReduceMax"))
converts("ReduceMin", computes="i8 u8 i32 i64 f32 f64")(_reduction("ReduceMin"))


@converts("ReduceMean", computes="i64 f32 f64")
def reduce_mean(call: Call) -> str:
    """ReduceMean; means of integers are rounded down."""
    axes = _axes(call)
    if not axes or call.value(0).rank == 0:
        return call.input(0)
    if call.type.kind == "float":
        return reduced(call, "ReduceMean", call.input(0), axes, call.op.keep_dims)
    call.require(isinstance(axes, list), "the axes are not constant")
    count = math.prod(call.dims()[axis] for axis in axes if isinstance(axis, int))
    call.require(call.outputs[0].type.bits < 64 and count > 0, "a sum of i64 may overflow")
    total = reduced(call, "ReduceSum", call.input(0), axes, call.op.keep_dims)
    divisor = np.array(count, np.int64)
    return call("Div", call("Sub", total, call("Mod", total, divisor)), divisor)


def _logical(type: str) -> Callable[[Call], str]:
    def convert(call: Call) -> str:
        axes = _axes(call)
        if not axes or call.value(0).rank == 0:
            return call.input(0)
        numbers = reduced(call, type, call.cast(call.input(0), "i32"), axes, call.op.keep_dims)
        return call("Greater", numbers, call.scalar(0, "i32"))

    return convert


converts("ReduceLogicalAnd")(_logical("ReduceMin"))
converts("ReduceLogicalOr")(_logical("ReduceMax"))


@converts("CumSum", computes="i32 i64 f32 f64", wraps=True)
def cum_sum(call: Call) -> str:
    """CumSum."""
    axis: str | np.ndarray = np.array(0, np.int64)
    if call.given(1):
        known = call.value(1).scalar()
        axis = call("Reshape", call.cast(call.input(1), "i64"), []) if known is None else np.array(known, np.int64)
    return call("CumSum", call.input(0), axis, exclusive=int(call.op.exclusive), reverse=int(call.op.reverse))


@converts("TopK", computes="i32 i64 f32 f64")
def top_k(call: Call) -> list[str]:
    """TopK. Sorted by index, the values are gathered in the order of the indices."""
    axis, op = call.axis(call.op.axis), call.op
    known, x = call.value(1).scalar(), call.input(0)
    k = call("Reshape", call.cast(call.input(1), "i64"), [1]) if known is None else call.operand([known])
    is_float = call.type.kind == "float"
    if is_float:  # NaN comes last, behind infinity, which becomes a number of f64; runtimes put NaN anywhere
        low, high = (call.scalar(n, "f64") for n in (np.finfo(np.float64).min, np.finfo(np.float64).max))
        key = call("Clip", call.cast(x, "f64"), low, high)
        x = call("Where", call("IsNaN", x), call.scalar(math.inf if op.mode == "min" else -math.inf, "f64"), key)
    values, indices = call.many(
        "TopK", x, k, outputs=2, axis=axis, largest=int(op.mode == "max"), sorted=int(op.sort != "none")
    )
    if op.sort == "index":
        indices = call.many("TopK", indices, k, outputs=2, axis=axis, largest=0)[0]
    if op.sort == "index" or is_float:
        values = call("GatherElements", call.input(0), indices, axis=axis)
    return [values, call.cast(indices, call.outputs[1].type) if call.outputs[1].type.name != "i64" else indices]


@converts("Bucketize")
def bucketize(call: Call) -> str:
    """The number of boundaries below a value, or not above it."""
    x, buckets = call.input(0), call.input(1)
    types = {call.value(0).type.name, call.value(1).type.name}
    wide = "f64" if "f64" in types or (types & {"i64", "i32"} and types & {"f32", "f16"}) else "f32"
    wide = "i64" if all(call.value(n).type.is_integer for n in range(2)) else wide
    x, buckets = call.cast(x, wide), call.cast(buckets, wide)
    below = call("Less" if call.op.with_right_bound else "LessOrEqual", buckets, call("Unsqueeze", x, [-1]))
    count = call("ReduceSum", call.cast(below, "i64"), [-1], keepdims=0)
    return call.cast(count, call.outputs[0].type)


@converts("SearchSorted", computes="i32 i64 f32 f64")
def search_sorted(call: Call) -> str:
    """The number of elements below a value, or not above it."""
    rank = call.rank(0)
    ordered = call.input(0) if rank == 1 else call("Unsqueeze", call.input(0), [rank - 1])
    below = call("LessOrEqual" if call.op.right_mode else "Less", ordered, call("Unsqueeze", call.input(1), [-1]))
    count = call("ReduceSum", call.cast(below, "i64"), [-1], keepdims=0)
    return call.cast(count, call.outputs[0].type)


@converts("NonZero", computes="boolean u8 i32 i64 f32")
def non_zero(call: Call) -> str:
    """NonZero."""
    call.require(call.rank() > 0, "ONNX and the IR give other shapes for a scalar")
    return call.cast(call("NonZero", call.input(0)), call.outputs[0].type)


@converts("Unique", computes="i64 f32 f64")
def unique(call: Call) -> list[str]:
    """Unique."""
    axis = call.ints(1)[0] if call.given(1) else None
    outputs = call.many("Unique", call.input(0), outputs=4, axis=axis, sorted=int(call.op.sorted))
    return [outputs[0], *(call.cast(name, value.type) for name, value in zip(outputs[1:], call.outputs[1:]))]
