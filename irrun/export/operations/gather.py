"""Gather and scatter."""

from __future__ import annotations

import math

import numpy as np

from irrun.export.call import Call
from irrun.export.operations.movement import as_i64
from irrun.export.operations.reductions import reduced
from irrun.export.registry import converts
from irrun.types import ELEMENT_TYPES, ElementType

__all__: list[str] = []


def _indices(call: Call, position: int = 1) -> str:
    """Return indices as i64."""
    name = call.input(position)
    known = call.value(position).exact
    if known is not None:
        return call.operand(known.astype(np.int64))
    return name if call.value(position).type.name == "i64" else call.cast(name, "i64")


@converts("Gather")
def gather(call: Call) -> str:
    """Gather, or GatherND for batches."""
    axis = call.axes_of(2)[0]
    batch = call.op.batch_dims
    batch = batch + call.rank(1) if batch < 0 else batch
    known = call.value(1).type.name in ("i32", "i64")
    if not batch:
        return call("Gather", call.input(0), call.input(1) if known else _indices(call), axis=axis)
    rank, x = call.rank(), call.input(0)
    order = [*range(batch), axis, *(a for a in range(batch, rank) if a != axis)]
    x = call("Transpose", x, perm=order) if axis != batch else x
    taken = call("GatherND", x, call("Unsqueeze", _indices(call), [-1]), batch_dims=batch)
    if axis == batch:
        return taken
    inner, places = call.rank(1) - batch, axis - batch
    begin = batch + inner
    back = [
        *range(batch),
        *range(begin, begin + places),
        *range(batch, begin),
        *range(begin + places, rank - 1 + inner),
    ]
    return call("Transpose", taken, perm=back)


@converts("GatherElements")
def gather_elements(call: Call) -> str:
    """GatherElements."""
    return call("GatherElements", call.input(0), call.input(1), axis=call.op.axis)


@converts("GatherND")
def gather_nd(call: Call) -> str:
    """GatherND; version 5 joins the batch axes."""
    batch = call.op.batch_dims
    x = call("GatherND", call.input(0), _indices(call), batch_dims=batch)
    if call.op.since == 5 and batch > 1:
        shape = call.shape_of(x)
        return call("Reshape", x, call("Concat", [-1], call("Slice", shape, [batch], [1 << 62], [0]), axis=0))
    return x


@converts("ScatterUpdate")
def scatter_update(call: Call) -> str:
    """ScatterND along the first axis, to which the scattered one is moved."""
    axis, rank, inner = call.ints(3)[0], call.rank(), call.rank(1)
    axis %= rank
    x, updates = call.input(0), call.input(2)
    indices = call("Unsqueeze", _indices(call), [-1])
    if not axis:
        return call("ScatterND", x, indices, updates)
    order = [axis, *(a for a in range(rank) if a != axis)]
    of_updates = [*range(axis, axis + inner), *range(axis), *range(axis + inner, rank - 1 + inner)]
    moved = call("ScatterND", call("Transpose", x, perm=order), indices, call("Transpose", updates, perm=of_updates))
    return call("Transpose", moved, perm=[order.index(a) for a in range(rank)])


@converts("ScatterNDUpdate")
def scatter_nd_update(call: Call) -> str:
    """ScatterND with a reduction."""
    reduction = getattr(call.op, "reduction", "none")
    x, updates = (_summable(call, call.input(n), reduction) for n in (0, 2))
    call.require(reduction != "sub" or call.type.kind != "boolean", "ONNX has no difference of booleans")
    if reduction == "sub":
        updates, reduction = call("Neg", updates), "sum"
    scattered = call("ScatterND", x, _indices(call), updates, reduction=_reduction(call, reduction))
    return _summed(call, scattered, reduction)


@converts("ScatterElementsUpdate")
def scatter_elements_update(call: Call) -> str:
    """ScatterElements with a reduction. Without the initial values, these become neutral first."""
    axis = call.ints(3)[0] % call.rank()
    reduction = getattr(call.op, "reduction", "none")
    indices = _indices(call)
    x, updates = (_summable(call, call.input(n), reduction) for n in (0, 2))
    if reduction == "none":
        return call("ScatterElements", x, indices, updates, axis=axis)
    if not call.op.use_init_val:
        neutral = call("Expand", _neutral(reduction, _wide(call, reduction)), call.shape_of(updates))
        x = call("ScatterElements", x, indices, neutral, axis=axis)
    name = _reduction(call, "sum" if reduction == "mean" else reduction)
    total = call("ScatterElements", x, indices, updates, axis=axis, reduction=name)
    if reduction != "mean":
        return _summed(call, total, reduction)
    call.require(call.type.kind == "float", "ONNX rounds no means of integers")
    one, zero = (call.scalar(n, _wide(call, reduction)) for n in (1, 0))
    ones = call("Expand", one, call.shape_of(updates))
    start = call("Expand", one if call.op.use_init_val else zero, call.shape_of(call.input(0)))
    count = call("ScatterElements", start, indices, ones, axis=axis, reduction="add")
    return _summed(call, call("Div", total, call("Max", count, one)), reduction)


def _wide(call: Call, reduction: str) -> ElementType:
    """Return the type in which a reduction is computed: runtimes reduce neither f16 nor booleans."""
    own = call.value(0).type.name
    wide = {"f16": "f32", "bf16": "f32", "boolean": "i32"}.get(own, own) if reduction != "none" else own
    return ELEMENT_TYPES[wide]


def _summable(call: Call, name: str, reduction: str) -> str:
    """Return a tensor in the type of a reduction."""
    wide = _wide(call, reduction)
    return name if wide is call.value(0).type else call.cast(name, wide)


def _summed(call: Call, name: str, reduction: str) -> str:
    """Return the result of a reduction in the type of the layer."""
    own = call.value(0).type
    return name if _wide(call, reduction) is own else call.cast(name, own)


def _neutral(reduction: str, type: ElementType) -> np.ndarray:
    """Return the value that leaves others as they are in a reduction."""
    if reduction in ("sum", "mean", "prod"):
        number: float = int(reduction == "prod")
    elif type.kind == "float":
        number = -math.inf if reduction == "max" else math.inf
    else:
        limits = np.iinfo(type.dtype)
        number = limits.min if reduction == "max" else limits.max
    return np.array(number).astype(type.dtype)


def _reduction(call: Call, reduction: str) -> str | None:
    """Return the name of a reduction in ONNX."""
    if reduction in ("min", "max"):
        call.since(18, f"the reduction {reduction}")
    return {"none": None, "sum": "add", "prod": "mul", "min": "min", "max": "max"}[reduction]


@converts("EmbeddingBagPackedSum", "EmbeddingBagPacked", computes="i32 i64 f32 f64", wraps=True)
def embedding_bag_packed(call: Call) -> str:
    """The sum of the rows of each bag."""
    rows = call("Gather", call.input(0), call.input(1), axis=0)
    if call.given(2):
        rank = call.rank()
        weights = call.input(2)
        rows = call("Mul", rows, call("Unsqueeze", weights, list(range(2, rank + 1))) if rank > 1 else weights)
    mean = getattr(call.op, "reduction", "sum") == "mean"
    return reduced(call, "ReduceMean" if mean else "ReduceSum", rows, [1], keep=False)


@converts("EmbeddingSegmentsSum", computes="f32 f64 i32 i64")
def embedding_segments_sum(call: Call) -> str:
    """The sum of the rows of each segment; the default row, or zeros, for an empty one."""
    count = call("Reshape", call.cast(call.input(3), "i64"), [1])
    segments = call("Reshape", call.cast(call.input(2), "i64"), [-1])
    return _bags(call, segments, count, 4, 5)


def _bags(call: Call, segments: str, count: str, default: int, weights: int) -> str:
    """Return the sums of the rows that input 1 lists, by segment."""
    rank = call.rank()
    table = _summable(call, call.input(0), "sum")
    rows = call("Gather", table, call.input(1), axis=0)
    if call.given(weights):
        own = _summable(call, call.input(weights), "sum")
        rows = call("Mul", rows, call("Unsqueeze", own, list(range(1, rank))) if rank > 1 else own)
    inner = call("Shape", table, start=1) if rank > 1 else None
    shape = call("Concat", count, inner, axis=0) if inner else count
    nothing = call.scalar(0, _wide(call, "sum"))
    zeros, one = call("Expand", nothing, shape), call.scalar(1, "i64")
    at = call("Unsqueeze", segments, [-1])
    total = call("ScatterND", zeros, at, rows, reduction="add")
    ones = call("Expand", one, call("Shape", segments))
    counts = call("ScatterND", call("Expand", call.scalar(0, "i64"), count), at, ones, reduction="add")
    counts = call("Unsqueeze", counts, list(range(1, rank))) if rank > 1 else counts
    if getattr(call.op, "reduction", "sum") == "mean":
        total = call("Div", total, call.cast(call("Max", counts, one), _wide(call, "sum")))
    if not call.given(default):
        return _summed(call, total, "sum")
    chosen, zero = call("Reshape", call.cast(call.input(default), "i64"), []), call.scalar(0, "i64")
    row = call("Gather", table, call("Max", chosen, zero), axis=0)
    row = call("Where", call("Less", chosen, zero), nothing, row)
    empty = call("Equal", counts, zero)
    return _summed(call, call("Where", empty, row, total), "sum")


@converts("EmbeddingBagOffsetsSum", "EmbeddingBagOffsets", computes="f32 f64 i32 i64")
def embedding_bag_offsets(call: Call) -> str:
    """The sum of the rows of each bag. The bags that begin at or before a row tell which one the row belongs to."""
    offsets = as_i64(call, 2)
    count = call("Shape", offsets)
    zero, one = call.scalar(0, "i64"), call.scalar(1, "i64")
    places = call("Range", zero, call("Squeeze", call("Shape", call.input(1)), [0]), one)
    begun = call("LessOrEqual", call("Unsqueeze", offsets, [0]), call("Unsqueeze", places, [1]))
    segments = call("Sub", call("ReduceSum", call.cast(begun, "i64"), [1], keepdims=0), one)
    # rows before the first bag belong to a bag behind the last one, which is dropped
    segments = call("Where", call("Less", segments, zero), count, segments)
    return call("Slice", _bags(call, segments, call("Add", count, one), 3, 4), [0], [-1], [0])


@converts("SliceScatter")
def slice_scatter(call: Call) -> str:
    """ScatterElements at the places of the slice, among those of all elements."""
    x, shape = call.input(0), call.shape_of(call.input(0))
    zero, one = call.scalar(0, "i64"), call.scalar(1, "i64")
    count = call("ReduceProd", shape, [0], keepdims=0) if call.opset >= 18 else call("ReduceProd", shape, keepdims=0)
    places = call("Reshape", call("Range", zero, count, one), shape)
    bounds = [as_i64(call, position) for position in range(2, 5)]
    axes = as_i64(call, 5) if call.given(5) else None
    taken = call("Reshape", call("Slice", places, bounds[0], bounds[1], axes, bounds[2]), [-1])
    flat, updates = (call("Reshape", name, [-1]) for name in (x, call.input(1)))
    return call("Reshape", call("ScatterElements", flat, taken, updates, axis=0), shape)


@converts("Bincount")
def bincount(call: Call) -> str:
    """ScatterND that adds to zeros. The greatest element decides about the length."""
    numbers = call.cast(call.input(0), "i64")
    most = reduced(call, "ReduceMax", call("Concat", [-1], numbers, axis=0), [0], keep=True)
    count = call("Max", call("Add", most, [1]), [call.op.minlength])
    own = call.outputs[0].type
    wide = ELEMENT_TYPES["f32" if own.name == "f16" else own.name]
    zero, one = call.scalar(0, wide), call.scalar(1, wide)
    weights = call("Expand", one, call.shape_of(numbers)) if not call.given(1) else call.input(1)
    weights = call.cast(weights, wide) if call.given(1) and wide is not own else weights
    at = call("Unsqueeze", numbers, [-1])
    total = call("ScatterND", call("Expand", zero, count), at, weights, reduction="add")
    return total if wide is own else call.cast(total, own)


@converts("ReorgYolo", "ExtractImagePatches")
def rearranged(call: Call) -> str:
    """Gather of elements at constant places: those to which the operation moves their numbers. 0 is the padding."""
    dims = call.dims()
    numbers = np.arange(1, 1 + math.prod(dims), dtype=np.int64).reshape(dims)
    places = call.op.run(numbers)
    flat = call("Reshape", call.input(0), [-1])
    if (places == 0).any():
        flat = call("Concat", flat, call.graph.constant(np.zeros(1, call.type.dtype), call.type), axis=0)
        places = np.where(places, places, numbers.size + 1)
    return call("Gather", flat, places - 1, axis=0)


@converts("SegmentMax", computes="f32 f64 i32 i64")
def segment_max(call: Call) -> str:
    """ScatterND that takes the maximum. An empty segment has the least finite value, or 0."""
    call.since(18, "the reduction max")
    call.require(not (call.type.kind == "int" and call.outputs[0].type is not call.type), "another lowest value")
    rank, ids = call.rank(), call.cast(call.input(1), "i64")
    zero, one = call.scalar(0, "i64"), call.scalar(1, "i64")
    if call.given(2):
        count = as_i64(call, 2)
    else:
        count = call("Add", reduced(call, "ReduceMax", call("Concat", [-1], ids, axis=0), [0], keep=True), one)
    shape = call("Concat", count, call("Shape", call.input(0), start=1), axis=0) if rank > 1 else count
    at, wide = call("Unsqueeze", ids, [-1]), _wide(call, "max")
    lowest = np.finfo(call.value(0).type.dtype).min if wide.kind == "float" else np.iinfo(wide.dtype).min
    start = call("Expand", _neutral("max", wide), shape)
    most = call("ScatterND", start, at, _summable(call, call.input(0), "max"), reduction="max")
    ones = call("Expand", one, call("Shape", ids))
    rows = call("ScatterND", call("Expand", zero, count), at, ones, reduction="add")
    rows = call("Unsqueeze", rows, list(range(1, rank))) if rank > 1 else rows
    empty = np.array(0 if call.op.fill_mode == "zero" else lowest, wide.dtype)
    return _summed(call, call("Where", call("Equal", rows, zero), empty, most), "max")
