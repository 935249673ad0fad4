"""The layers of generated models.

Each function adds one layer and the constants that it reads to a model, or nothing if no tensor suits the layer.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from hypothesis import strategies as st

from irrun.testing.strategies._arrays import Dims, narrowed, shapes
from irrun.testing.strategies._builder import FLOATS, NUMBERS, Builder, Tensor

__all__ = ["LAYERS"]


def _unary(b: Builder) -> None:
    old, newer = ("ReLU", "Tanh", "Sigmoid", "Sin", "Floor"), ("HSwish", "SoftPlus", "Mish")
    type = b.pick(old + newer)
    if x := b.tensor(FLOATS):
        b.add(type, [x], (x.type, x.dims, x.open), opset=1 if type in old else 4)


def _clamp(b: Builder) -> None:
    if x := b.tensor(NUMBERS):
        b.add("Clamp", [x], (x.type, x.dims, x.open), min=0, max=b.integer(1, 9))


def _binary(b: Builder) -> None:
    """Add a binary operation on a tensor and either a constant or another tensor that broadcasts with it."""
    if not (x := b.tensor(NUMBERS)):
        return
    others = [t for t in b.tensors if t.type == x.type and _broadcast(x, t)]
    if b.flag() and others:
        y = b.pick(others)
    else:
        dims = narrowed(b.draw, tuple(1 if o else d for d, o in zip(x.dims, x.open)))
        y = b.const(b.values(x.type, dims))
    pair = (x, y) if b.flag() else (y, x)
    out = _broadcast(x, y)
    assert out is not None
    kind = b.pick(("Add", "Multiply", "Maximum", "Minimum", "Subtract", "Less", "Equal", "GreaterEqual"))
    if kind == "Subtract" and x.type == "u8":
        kind = "Add"
    type = "boolean" if kind in ("Less", "Equal", "GreaterEqual") else x.type
    b.add(kind, pair, (type, *out), auto_broadcast="numpy")


def _broadcast(x: Tensor, y: Tensor) -> tuple[Dims, tuple[bool, ...]] | None:
    """Return the dims of the broadcast result and which of them are open; None if the tensors do not broadcast."""
    rank = max(len(x.dims), len(y.dims))
    dims: list[int] = []
    open: list[bool] = []
    for axis in range(-rank, 0):
        (a, p), (c, q) = ((t.dims[axis], t.open[axis]) if -axis <= len(t.dims) else (1, False) for t in (x, y))
        if a != c and 1 not in (a, c):
            return None
        dims.append(c if a == 1 else a)
        # a fixed dim above 1 fixes the result; a fixed dim of 1 leaves it open
        fixed = [d for d, o in ((a, p), (c, q)) if not o and d > 1]
        open.append((p or q) and not fixed)
    return tuple(dims), tuple(open)


def _logical(b: Builder) -> None:
    if x := b.tensor(("boolean",)):
        b.add("LogicalNot", [x], (x.type, x.dims, x.open))


def _convert(b: Builder) -> None:
    if x := b.tensor():
        to = b.pick(("f32", "f16", "i64", "boolean"))
        b.add("Convert", [x], (to, x.dims, x.open), destination_type=to)


def _reshape(b: Builder) -> None:
    """Add a Reshape that copies leading dims by 0 and merges the rest by -1."""
    if not (x := b.tensor(min_rank=1)):
        return
    rank = len(x.dims)
    cut = b.integer(0, rank - 1)
    # 0 copies each dim before the cut, -1 merges the rest into one dim
    dims, open = (*x.dims[:cut], math.prod(x.dims[cut:])), (*x.open[:cut], any(x.open[cut:]))
    b.add("Reshape", [x, b.ints(*[0] * cut, -1)], (x.type, dims, open), special_zero=True)


def _split_dim(b: Builder) -> None:
    """Add a Reshape to explicit dims, for a tensor without open dims."""
    fit = [t for t in b.tensors if b.fixed(t)]
    if fit:
        x = b.pick(fit)
        count, dims = math.prod(x.dims), []
        while count > 1 and len(dims) < 3:
            dims.append(b.pick([d for d in range(1, count + 1) if count % d == 0]))
            count //= dims[-1]
        dims.append(count)
        b.add("Reshape", [x, b.ints(*dims)], (x.type, tuple(dims), (False,) * len(dims)), special_zero=b.flag())


def _transpose(b: Builder) -> None:
    if x := b.tensor(min_rank=1):
        order = b.draw(st.permutations(range(len(x.dims))))
        b.add(
            "Transpose", [x, b.ints(*order)], (x.type, tuple(x.dims[i] for i in order), tuple(x.open[i] for i in order))
        )


def _unsqueeze(b: Builder) -> None:
    if x := b.tensor(max_rank=4):
        axis = b.integer(0, len(x.dims))
        dims, open = (*x.dims[:axis], 1, *x.dims[axis:]), (*x.open[:axis], False, *x.open[axis:])
        b.add("Unsqueeze", [x, b.ints(axis if b.flag() else axis - len(x.dims) - 1)], (x.type, dims, open))


def _squeeze(b: Builder) -> None:
    fit = [(t, a) for t in b.tensors for a, d in enumerate(t.dims) if d == 1 and not t.open[a]]
    if fit:
        x, axis = b.pick(fit)
        dims, open = x.dims[:axis] + x.dims[axis + 1 :], x.open[:axis] + x.open[axis + 1 :]
        b.add("Squeeze", [x, b.ints(axis)], (x.type, dims, open))


def _concat(b: Builder) -> None:
    if not (x := b.tensor(min_rank=1)):
        return
    axis = b.integer(0, len(x.dims) - 1)
    fit = [t for t in b.tensors if t.type == x.type and _other_dims(t, axis) == _other_dims(x, axis)]
    parts = [b.pick(fit) for _ in range(b.integer(1, 2))]
    dims = (*x.dims[:axis], x.dims[axis] + sum(t.dims[axis] for t in parts), *x.dims[axis + 1 :])
    inputs = [x, *parts]
    # on the other axes, a dim is known if it is known in any part
    open = tuple(
        any(t.open[i] for t in inputs) if i == axis else all(t.open[i] for t in inputs) for i in range(len(x.dims))
    )
    b.add("Concat", inputs, (x.type, dims, open), axis=axis if b.flag() else axis - len(x.dims))


def _other_dims(tensor: Tensor, axis: int) -> tuple[Dims, Dims] | None:
    """Return the dims before and after an axis; None if the tensor does not have that axis."""
    return (tensor.dims[:axis], tensor.dims[axis + 1 :]) if axis < len(tensor.dims) else None


def _split(b: Builder) -> None:
    fit = [(t, a) for t in b.tensors for a, d in enumerate(t.dims) if d % 2 == 0 and d and not t.open[a]]
    if fit:
        x, axis = b.pick(fit)
        dims = (*x.dims[:axis], x.dims[axis] // 2, *x.dims[axis + 1 :])
        b.add("Split", [x, b.const(np.array(axis, np.int64))], *[(x.type, dims, x.open)] * 2, num_splits=2)


def _reduce(b: Builder) -> None:
    kind = b.pick(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"))
    if x := b.tensor(FLOATS if kind == "ReduceMean" else NUMBERS, min_rank=1):
        axes = sorted(b.draw(st.sets(st.integers(0, len(x.dims) - 1), min_size=1)))
        keep = b.flag()
        kept = [
            (1, False) if i in axes else (x.dims[i], x.open[i]) for i in range(len(x.dims)) if keep or i not in axes
        ]
        b.add(kind, [x, b.ints(*axes)], (x.type, tuple(d for d, _ in kept), tuple(o for _, o in kept)), keep_dims=keep)


def _matmul(b: Builder) -> None:
    """Add a MatMul with a constant matrix on the right. Either operand may be transposed."""
    fit = [t for t in b.tensors if t.type in FLOATS and len(t.dims) >= 2]
    if not fit:
        return
    x = b.pick(fit)
    a, c = b.flag(), b.flag()
    row, inner = (-1, -2) if a else (-2, -1)
    if x.open[inner]:
        return
    columns, depth = b.integer(1, 4), x.dims[inner]
    w = b.const(b.values(x.type, (columns, depth) if c else (depth, columns)))
    dims, open = (*x.dims[:-2], x.dims[row], columns), (*x.open[:-2], x.open[row], False)
    b.add("MatMul", [x, w], (x.type, dims, open), transpose_a=a, transpose_b=c)


def _images(b: Builder) -> list[Tensor]:
    """Return the tensors for a convolution or pooling: batch, channels (known), and one or two spatial dims."""
    return [t for t in b.tensors if t.type in ("f32", "f16") and len(t.dims) in (3, 4) and not t.open[1]]


def _windows(b: Builder, x: Tensor) -> tuple[Dims, Dims, Dims, Dims, Dims]:
    """Draw kernel, strides and both pads for the spatial axes of ``x``. Return them and the output's spatial dims."""
    space = x.dims[2:]
    begin, end = (tuple(b.integer(0, 1) for _ in space) for _ in range(2))
    kernel = tuple(b.integer(1, min(3, d + p + q)) for d, p, q in zip(space, begin, end))
    strides = tuple(b.integer(1, 2) for _ in space)
    # with a pad as wide as the kernel, a window could hold nothing but padding
    begin, end = (tuple(min(p, k - 1) for p, k in zip(pads, kernel)) for pads in (begin, end))
    out = tuple((d + p + q - k) // s + 1 for d, p, q, k, s in zip(space, begin, end, kernel, strides))
    return kernel, strides, begin, end, out


def _convolution(b: Builder) -> None:
    if fit := _images(b):
        x = b.pick(fit)
        kernel, strides, begin, end, out = _windows(b, x)
        into = b.integer(1, 3)
        w = b.const(b.values(x.type, (into, x.dims[1], *kernel)))
        b.add(
            "Convolution", [x, w], (x.type, (x.dims[0], into, *out), (x.open[0], False, *x.open[2:])),
            strides=strides, dilations=(1,) * len(out), pads_begin=begin, pads_end=end, auto_pad="explicit",
        )  # fmt: skip


def _pool(b: Builder) -> None:
    if fit := _images(b):
        x = b.pick(fit)
        kernel, strides, begin, end, out = _windows(b, x)
        more = {"exclude-pad": b.flag()} if (average := b.flag()) else {}
        b.add(
            "AvgPool" if average else "MaxPool", [x], (x.type, (*x.dims[:2], *out), x.open),
            kernel=kernel, strides=strides, pads_begin=begin, pads_end=end, rounding_type="floor",
            auto_pad="explicit", **more,
        )  # fmt: skip


def _softmax(b: Builder) -> None:
    if x := b.tensor(FLOATS, min_rank=1):
        rank = len(x.dims)
        b.add("SoftMax", [x], (x.type, x.dims, x.open), opset=8, axis=b.integer(-rank, rank - 1))


def _gather(b: Builder) -> None:
    """Add a Gather with constant indices, some of which may be negative."""
    fit = [(t, a) for t in b.tensors for a, d in enumerate(t.dims) if d and not t.open[a]]
    if fit:
        x, axis = b.pick(fit)
        indices = b.rng.integers(-x.dims[axis], x.dims[axis], b.draw(shapes(max_rank=2, min_dim=1, max_dim=3)))
        index = b.const(np.asarray(indices, np.int64))
        dims = (*x.dims[:axis], *index.dims, *x.dims[axis + 1 :])
        open = (*x.open[:axis], *index.open, *x.open[axis + 1 :])
        b.add("Gather", [x, index, b.const(np.array(axis, np.int64))], (x.type, dims, open), opset=8, batch_dims=0)


def _slice(b: Builder) -> None:
    fit = [(t, a) for t in b.tensors for a, d in enumerate(t.dims) if d > 1 and not t.open[a]]
    if fit:
        x, axis = b.pick(fit)
        size = x.dims[axis]
        start = b.integer(0, size - 1)
        stop, step = b.integer(start + 1, size), b.integer(1, 2)
        dims = (*x.dims[:axis], len(range(start, stop, step)), *x.dims[axis + 1 :])
        bounds = [b.ints(n) for n in (start, stop, step, axis)]
        b.add("Slice", [x, *bounds], (x.type, dims, x.open), opset=8)


def _pad(b: Builder) -> None:
    if x := b.tensor(NUMBERS, min_rank=1):
        begin, end = (tuple(b.integer(0, 2) for _ in x.dims) for _ in range(2))
        dims = tuple(d + p + q for d, p, q in zip(x.dims, begin, end))
        value = b.const(b.values(x.type, ()))
        b.add("Pad", [x, b.ints(*begin), b.ints(*end), value], (x.type, dims, x.open), pad_mode="constant")


def _tile(b: Builder) -> None:
    if x := b.tensor(min_rank=1):
        repeats = tuple(b.integer(1, 2) for _ in x.dims)
        b.add("Tile", [x, b.ints(*repeats)], (x.type, tuple(d * r for d, r in zip(x.dims, repeats)), x.open))


def _shape_of(b: Builder) -> None:
    if x := b.tensor(min_rank=1):
        b.add("ShapeOf", [x], ("i64", (len(x.dims),), (False,)), opset=3, output_type="i64")


def _reshape_by(b: Builder) -> None:
    """Add a Reshape of a tensor to its own ShapeOf. If dims are open, the target is known only at run time."""
    if x := b.tensor(min_rank=1):
        (shape,) = b.layer("ShapeOf", [x], ("i64", (len(x.dims),), (False,)), opset=3, output_type="i64")
        b.add("Reshape", [x, shape], (x.type, x.dims, x.open), special_zero=False)


def _select(b: Builder) -> None:
    if x := b.tensor(NUMBERS):
        fit = [t for t in b.tensors if t.type == "boolean" and (t.dims, t.open) == (x.dims, x.open)]
        if fit:
            other = b.const(b.values(x.type, ()))
            b.add("Select", [b.pick(fit), x, other], (x.type, x.dims, x.open), auto_broadcast="numpy")


LAYERS: Final = (
    _unary, _binary, _clamp, _logical, _convert, _reshape, _split_dim, _transpose, _unsqueeze, _squeeze, _concat,
    _split, _reduce, _matmul, _convolution, _pool, _softmax, _gather, _slice, _pad, _tile, _shape_of, _reshape_by,
    _select,
)  # fmt: skip
"""A function for each layer that a generated model may hold."""
