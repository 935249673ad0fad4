"""Operations that move elements: shapes, slices, pads, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from irrun.export.call import Call
from irrun.export.operations.constants import transposed
from irrun.export.registry import converts

__all__ = ["as_i64", "parts"]

_LAST: Final = (1 << 63) - 1
"""An end behind every axis, and negated a start before it: ONNX clamps them."""


def as_i64(call: Call, position: int) -> str:
    """Return an input of integers as i64 [n]; a constant if it is known."""
    known = call.value(position).ints()
    if known is not None:
        return call.operand(known)
    name = call.input(position)
    if call.value(position).type.name != "i64":
        name = call.cast(name, "i64")
    return call("Reshape", name, [-1]) if call.value(position).rank != 1 else name


@converts("Reshape")
def reshape(call: Call) -> str:
    """Reshape."""
    known, target = call.value(1).ints(), call.outputs[0].shape.static
    if target is not None:
        return call("Reshape", call.input(0), list(target), allowzero=1 if 0 in target else None)
    zeros = not call.op.special_zero and (known is None or 0 in known)
    call.require(not zeros or known is None or -1 not in known, "ONNX has no dim of 0 beside one of -1")
    return call("Reshape", call.input(0), as_i64(call, 1), allowzero=1 if zeros else None)


@converts("Transpose")
def transpose(call: Call) -> str:
    """Transpose."""
    order = call.ints(1)
    order = order or list(range(call.rank()))[::-1]
    if not order:
        return call.input(0)
    return transposed(call, call.input(0), order, call.value(0).shape.static)


@converts("Squeeze")
def squeeze(call: Call) -> str:
    """Squeeze, or Reshape if the result is known."""
    target = call.outputs[0].shape.static
    if target is not None:
        return call("Reshape", call.input(0), list(target), allowzero=1 if 0 in target else None)
    if not call.given(1) or call.value(1).shape.count().value == 0:
        return call("Squeeze", call.input(0))
    if getattr(call.op, "allow_axis_skip", False):
        call.refuse("whether an axis is dropped depends on its length", "export with a shape: --shape NAME=SHAPE")
    axes = call.axes_of(1)
    kept = [axis for axis in axes if call.dim(0, axis) in (1, None)]
    return call("Squeeze", call.input(0), kept)


@converts("Unsqueeze")
def unsqueeze(call: Call) -> str:
    """Unsqueeze."""
    rank = call.rank()
    count = rank + len(call.ints(1))
    axes = [axis % count for axis in call.ints(1)]
    if len(set(axes)) < len(axes):
        target = call.outputs[0].shape.static
        call.require(target is not None, "an axis is named twice")
        return call("Reshape", call.input(0), list(target or ()))
    return call("Unsqueeze", call.input(0), axes)


@converts("Concat")
def concat(call: Call) -> str:
    """Concat."""
    return call("Concat", *call.inputs, axis=call.op.axis)


@converts("Split")
def split(call: Call) -> list[str]:
    """Split into equal parts."""
    axis, count = call.axes_of(1)[0], call.op.num_splits
    dim = call.dim(0, axis)
    if dim is not None:
        return call.many("Split", call.input(0), [dim // count] * count, outputs=count, axis=axis)
    more = {"num_outputs": count} if call.opset >= 18 else {}
    return call.many("Split", call.input(0), outputs=count, axis=axis, **more)


@converts("VariadicSplit")
def variadic_split(call: Call) -> list[str]:
    """Split; a length of -1 is what the others leave."""
    axis, lengths = call.axes_of(1)[0], call.value(2).ints()
    dim, count = call.dim(0, axis), len(call.outputs)
    if lengths is None:
        sizes = as_i64(call, 2)
        whole = call.shape_of(call.input(0), axis, axis + 1)
        left = call("Sub", whole, call("ReduceSum", call("Max", sizes, np.array(0)), [0], keepdims=1))
        sizes = call("Where", call("Less", sizes, np.array(0)), left, sizes)
    elif -1 not in lengths:
        sizes = call.operand(lengths)
    elif dim is not None:
        sizes = call.operand([dim - sum(lengths) - 1 if n == -1 else n for n in lengths])
    else:
        left = call("Sub", call.shape_of(call.input(0), axis, axis + 1), [sum(lengths) + 1])
        sizes = call("Concat", *([n] if n != -1 else left for n in lengths), axis=0)
    return call.many("Split", call.input(0), sizes, outputs=count, axis=axis)


@converts("ShapeOf")
def shape_of(call: Call) -> str:
    """Shape."""
    shape = call("Shape", call.input(0))
    return shape if call.outputs[0].type.name == "i64" else call.cast(shape, call.outputs[0].type)


@converts("Slice")
def slice_(call: Call) -> str:
    """Slice."""
    names = [as_i64(call, position) for position in range(1, 4)]
    axes = as_i64(call, 4) if call.given(4) else None
    if axes is None and (count := call.value(1).shape.count().value) is not None:
        axes = call.operand(list(range(count)))
    return call("Slice", call.input(0), names[0], names[1], axes, names[2])


@converts("StridedSlice")
def strided_slice(call: Call) -> str:
    """Slice, whose starts and ends are masked, with Squeeze and Unsqueeze."""
    op, known = call.op, [call.value(n).ints() if call.given(n) else None for n in range(1, 4)]
    lengths = [call.value(n).shape.count().value for n in (1, 2) if call.given(n)]
    masks = (op.begin_mask, op.end_mask, op.new_axis_mask, op.shrink_axis_mask, op.ellipsis_mask)
    count = max([n for n in lengths if n is not None] + [len(mask) for mask in masks], default=0)
    begin, end, new, shrink, ellipsis = ([bool(m) for m in mask] + [False] * (count - len(mask)) for mask in masks)
    strides = list(known[2]) if known[2] is not None else [1] * count
    call.require(not call.given(3) or known[2] is not None, "the strides are not constant")
    strides += [1] * (count - len(strides))
    entries: list[tuple[int, int]] = []
    axis, added, dropped, out = 0, [], [], 0
    taken = sum(not new[n] and not ellipsis[n] for n in range(count))
    for n in range(count):
        if ellipsis[n]:
            width = call.rank() - taken
            axis, out = axis + width, out + width
        elif new[n]:
            added.append(out)
            out += 1
        else:
            entries.append((n, axis))
            if shrink[n]:
                dropped.append(axis)
            else:
                out += 1
            axis += 1
    starts, ends = [], []
    for n, _ in entries:
        step = strides[n]
        first = 0 if step > 0 else _LAST
        last = _LAST if step > 0 else -_LAST
        if shrink[n]:
            starts.append(0 if begin[n] else _entry(call, known[0], 1, n))
            ends.append(_after(call, starts[-1]))
        else:
            starts.append(first if begin[n] else _entry(call, known[0], 1, n))
            ends.append(last if end[n] else _entry(call, known[1], 2, n))
    x = call.input(0)
    if entries:
        steps = [1 if shrink[n] else strides[n] for n, _ in entries]
        x = call("Slice", x, _joined(call, starts), _joined(call, ends), [a for _, a in entries], steps)
    x = call("Squeeze", x, dropped) if dropped else x
    return call("Unsqueeze", x, added) if added else x


def _entry(call: Call, known: Sequence[int] | None, position: int, n: int) -> int | str:
    """Return an entry of ``begin`` or ``end``: a number, or a tensor [1]."""
    if known is not None:
        return known[n] if n < len(known) else 0
    return call("Slice", as_i64(call, position), [n], [n + 1], [0])


def _after(call: Call, start: int | str) -> int | str:
    """Return the end of a slice of one element; behind every axis for the last element, -1."""
    if isinstance(start, int):
        return start + 1 if start != -1 else _LAST
    end = call("Add", start, [1])
    return call("Where", call("Equal", end, [0]), [_LAST], end)


def _joined(call: Call, entries: list[int | str]) -> str:
    """Return numbers and tensors [1] as one tensor."""
    if all(isinstance(entry, int) for entry in entries):
        return call.operand([entry for entry in entries if isinstance(entry, int)])
    return call("Concat", *([entry] if isinstance(entry, int) else entry for entry in entries), axis=0)


@converts("Pad", computes="boolean string i8 i32 i64 u8 u32 u64 f32 f64")
def pad(call: Call) -> str:
    """Pad; the mirrors of the IR that ONNX does not have gather elements."""
    mode, begins, ends = call.op.pad_mode, call.value(1).ints(), call.value(2).ints()
    if mode == "constant":
        pads = call("Concat", as_i64(call, 1), as_i64(call, 2), axis=0) if begins is None or ends is None else None
        value = call.input(3) if call.given(3) else None
        return call("Pad", call.input(0), pads or [*(begins or ()), *(ends or ())], value, mode="constant")
    x = call.input(0)
    if begins is not None and ends is not None and mode != "symmetric" and min([*begins, *ends], default=0) >= 0:
        return call("Pad", x, [*begins, *ends], mode=mode) if any((*begins, *ends)) else x
    for axis in range(call.rank()):
        if begins is None or ends is None or begins[axis] or ends[axis]:
            begin, end = (call("Slice", as_i64(call, n), [axis], [axis + 1], [0]) for n in (1, 2))
            x = call("Gather", x, _mirror(call, call.shape_of(x, axis, axis + 1), begin, end), axis=axis)
    return x


def _mirror(call: Call, count: str, begin: str, end: str) -> str:
    """Return the indices of an axis that is padded: i64 [n], from the dim and its pads, each i64 [1]."""
    whole = call("Max", call("Add", call("Add", begin, count), end), [0])
    zero, one = call.scalar(0, "i64"), call.scalar(1, "i64")
    at = call("Sub", call("Range", zero, call("Squeeze", whole, [0]), one), begin)
    last = call("Sub", count, [1])
    if call.op.pad_mode == "edge":
        return call("Max", call("Min", at, last), [0])
    twice = int(call.op.pad_mode == "symmetric")
    at = call("Where", call("Less", at, [0]), call("Sub", [-twice], at), at)
    mirrored = call("Sub", call("Add", call("Add", last, last), [twice]), at)
    return call("Where", call("GreaterOrEqual", at, count), mirrored, at)


@converts("Tile")
def tile(call: Call) -> str:
    """Tile. Axes are added in front of the shorter of shape and repeats."""
    rank, count = call.rank(), call.value(1).shape.count().value
    x, repeats = call.input(0), as_i64(call, 1)
    if count is None:
        call.refuse("the number of repeats is not known")
    if count < rank:
        repeats = call("Concat", [1] * (rank - count), repeats, axis=0)
    elif count > rank:
        x = call("Unsqueeze", x, list(range(count - rank)))
    return call("Tile", x, repeats)


@converts("Broadcast")
def broadcast(call: Call) -> str:
    """Expand. In mode explicit, axes are added where the mapping names none."""
    x, target = call.input(0), call.outputs[0].shape.static
    if call.op.mode == "explicit":
        mapping, count = call.ints(2), call.value(1).shape.count().value
        if count is None:
            call.refuse("the rank of the target is not known")
        added = [axis for axis in range(count) if axis not in mapping]
        x = call("Unsqueeze", x, added) if added else x
    return call("Expand", x, as_i64(call, 1) if target is None else list(target))


@converts("Range")
def range_(call: Call) -> str:
    """Range in i64 for integers and in f64 for floats."""
    to = call.outputs[0].type
    values = [call.value(n) for n in range(3)]
    wide = "i64" if to.is_integer and all(value.type.is_integer for value in values) else "f64"
    names = [call.cast(call.input(n), wide) for n in range(3)]
    if to.is_integer and wide == "f64":
        names = [call.cast(call.cast(name, "i64"), "f64") for name in names]
    names = [name if value.rank == 0 else call("Reshape", name, []) for name, value in zip(names, values)]
    numbers = call("Range", *names)
    return numbers if to.name == wide else call.cast(numbers, to)


@converts("Reverse")
def reverse(call: Call) -> str:
    """Slice with a step of -1."""
    if call.op.mode == "mask":
        axes = [axis for axis, flag in enumerate(call.known(1).ravel()) if flag]
    else:
        axes = call.axes_of(1)
    if not axes:
        return call.input(0)
    return call("Slice", call.input(0), [_LAST] * len(axes), [-_LAST] * len(axes), axes, [-1] * len(axes))


@converts("ReverseSequence")
def reverse_sequence(call: Call) -> str:
    """ReverseSequence, whose batch and time are the first two axes."""
    rank = call.rank()
    batch, time = call.op.batch_axis % rank, call.op.seq_axis % rank
    x, lengths = call.input(0), as_i64(call, 1)
    call.require(batch != time, "batch and time are one axis")
    if {batch, time} == {0, 1}:
        return call("ReverseSequence", x, lengths, batch_axis=batch, time_axis=time)
    order = [batch, time, *(axis for axis in range(rank) if axis not in (batch, time))]
    moved = call("ReverseSequence", call("Transpose", x, perm=order), lengths, batch_axis=0, time_axis=1)
    return call("Transpose", moved, perm=[order.index(axis) for axis in range(rank)])


@converts("Roll")
def roll(call: Call) -> str:
    """The end of each axis before its beginning."""
    x, axes = call.input(0), call.axes_of(2)
    shifts = call.value(1).ints()
    for n, axis in enumerate(axes):
        dim = call.dim(0, axis)
        if shifts is not None and dim is not None:
            shift = shifts[n % len(shifts)] % max(dim, 1)
            if not shift:
                continue
            cut: str | list[int] = [dim - shift]
        else:
            size = call.shape_of(x, axis, axis + 1)
            several = call.value(1).shape.count().value != 1
            shift_of = call("Slice", as_i64(call, 1), [n], [n + 1], [0]) if several else as_i64(call, 1)
            cut = call("Sub", size, call("Mod", shift_of, call("Max", size, [1])))
        x = call("Concat", call("Slice", x, cut, [_LAST], [axis]), call("Slice", x, [0], cut, [axis]), axis=axis)
    return x


@converts("ShuffleChannels")
def shuffle_channels(call: Call) -> str:
    """Reshape, Transpose, Reshape."""
    axis, groups = call.axis(call.op.axis), call.op.group
    dims = list(call.dims())
    parts_ = [*dims[:axis], groups, dims[axis] // groups, *dims[axis + 1 :]]
    order = list(range(len(parts_)))
    order[axis], order[axis + 1] = axis + 1, axis
    return call("Reshape", call("Transpose", call("Reshape", call.input(0), parts_), perm=order), dims)


@converts("DepthToSpace")
def depth_to_space(call: Call) -> str:
    """DepthToSpace, or Reshape and Transpose for other ranks than 4."""
    block, mode, rank = call.op.block_size, call.op.mode, call.rank()
    if rank == 4 and call.type.name in ("f16", "f32", "f64"):
        return call("DepthToSpace", call.input(0), blocksize=block, mode="DCR" if mode == "blocks_first" else "CRD")
    batch, channels, *sizes = list(call.dims())
    spatial = len(sizes)
    inner = channels // block**spatial
    split_ = [*[block] * spatial, inner] if mode == "blocks_first" else [inner, *[block] * spatial]
    first = 1 if mode == "blocks_first" else 2
    channel = 1 + spatial if mode == "blocks_first" else 1
    order = [0, channel]
    for n in range(spatial):
        order += [2 + spatial + n, first + n]
    x = call("Transpose", call("Reshape", call.input(0), [batch, *split_, *sizes]), perm=order)
    return call("Reshape", x, [batch, inner, *(size * block for size in sizes)])


@converts("SpaceToDepth")
def space_to_depth(call: Call) -> str:
    """Reshape and Transpose; SpaceToDepth where ONNX has it."""
    block, mode, rank = call.op.block_size, call.op.mode, call.rank()
    if rank == 4 and mode == "blocks_first" and call.type.name in ("f16", "f32", "f64"):
        return call("SpaceToDepth", call.input(0), blocksize=block)
    batch, channels, *sizes = list(call.dims())
    spatial = len(sizes)
    pairs = [n for size in sizes for n in (size // block, block)]
    blocks, rests = [3 + 2 * n for n in range(spatial)], [2 + 2 * n for n in range(spatial)]
    order = [0, *blocks, 1, *rests] if mode == "blocks_first" else [0, 1, *blocks, *rests]
    x = call("Transpose", call("Reshape", call.input(0), [batch, channels, *pairs]), perm=order)
    return call("Reshape", x, [batch, channels * block**spatial, *(size // block for size in sizes)])


@converts("BatchToSpace")
def batch_to_space(call: Call) -> str:
    """Reshape, Transpose, Slice."""
    blocks, begins, ends = (call.ints(n) for n in range(1, 4))
    dims = list(call.dims())
    count = int(np.prod(blocks))
    batch = dims[0] // count
    axes = range(1, len(dims))
    x = call("Reshape", call.input(0), [*blocks[1:], batch, *dims[1:]])
    first = len(blocks) - 1
    order = [first]
    for axis in axes:
        order += [first + axis, axis - 1]
    whole = [batch, *(dims[axis] * blocks[axis] for axis in axes)]
    x = call("Reshape", call("Transpose", x, perm=order), whole)
    stops = [size - end for size, end in zip(whole, ends)]
    return call("Slice", x, begins, stops, list(range(len(dims)))) if any((*begins, *ends)) else x


@converts("SpaceToBatch")
def space_to_batch(call: Call) -> str:
    """Pad, Reshape, Transpose."""
    blocks, begins, ends = (call.ints(n) for n in range(1, 4))
    x = call.input(0)
    if any((*begins, *ends)):
        x = call("Pad", x, [*begins, *ends])
    dims = [begin + dim + end for begin, dim, end in zip(begins, call.dims(), ends)]
    axes = range(1, len(dims))
    pairs = [n for axis in axes for n in (dims[axis] // blocks[axis], blocks[axis])]
    x = call("Reshape", x, [dims[0], *pairs])
    order = [*(2 * axis for axis in axes), 0, *(2 * axis - 1 for axis in axes)]
    rest = [dims[axis] // blocks[axis] for axis in axes]
    return call("Reshape", call("Transpose", x, perm=order), [dims[0] * int(np.prod(blocks)), *rest])


@converts("Identity", "Result")
def identity(call: Call) -> str:
    """The input itself."""
    return call.input(0)


@converts("Eye")
def eye(call: Call) -> str:
    """Where the difference of column and row is the diagonal."""
    zero, one = np.array(0, np.int64), np.array(1, np.int64)
    rows, columns, diagonal = (call("Reshape", call.cast(call.input(n), "i64"), []) for n in range(3))
    row = call("Unsqueeze", call("Range", zero, rows, one), [1])
    column = call("Range", zero, columns, one)
    x = call.cast(call("Equal", call("Sub", column, row), diagonal), call.outputs[0].type)
    if call.given(3):
        shape = call("Concat", as_i64(call, 3), call("Unsqueeze", rows, [0]), call("Unsqueeze", columns, [0]), axis=0)
        x = call("Expand", x, shape)
    return x


@converts("OneHot")
def one_hot(call: Call) -> str:
    """Where an index equals the position along the new axis."""
    axis = call.op.axis
    axis = axis % (call.rank() + 1) if axis < 0 else axis
    depth = call("Reshape", call.cast(call.input(1), "i64"), [])
    index = call.cast(call.input(0), "i64")
    if getattr(call.op, "negative_indices_mode", "ignore_negative") == "normalize":
        index = call("Where", call("Less", index, np.array(0)), call("Add", index, depth), index)
    places = call("Range", np.array(0, np.int64), depth, np.array(1, np.int64))
    after = call.rank() - axis
    places = call("Unsqueeze", places, list(range(1, 1 + after))) if after else places
    hot = call("Equal", call("Unsqueeze", index, [axis]), places)
    wide = {"i8": "i32", "i16": "i32", "u16": "i32", "u32": "i64", "u64": "i64"}.get(call.outputs[0].type.name)
    on, off = (call.cast(call.input(n), wide) if wide else call.input(n) for n in (2, 3))
    x = call("Where", hot, on, off)
    return call.cast(x, call.outputs[0].type) if wide else x


def parts(call: Call, name: str, count: int, axis: int) -> list[str]:
    """Return equal parts of a tensor whose dim along ``axis`` is a known multiple of ``count``."""
    more = {"num_outputs": count} if call.opset >= 18 else {}
    return call.many("Split", name, outputs=count, axis=axis, **more)
