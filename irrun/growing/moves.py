"""Layers that move elements and compute none. Each function adds one, or nothing if no tensor suits it."""

from __future__ import annotations

import numpy as np

from irrun.growing.chain import FLOATS, INTEGERS, Axis, Chain, Tensor, fixed, merge

__all__ = [
    "arrange", "broadcast", "concat", "gather", "pad", "reshape", "reverse", "shape_of", "slice", "split", "split_dim",
    "squeeze", "tile", "transpose", "unsqueeze",
]  # fmt: skip

_MAX_SPLIT_DIMS = 3
"""The most dims that a Reshape to other dims makes before the last one."""


def transpose(g: Chain) -> None:
    if x := g.find(lambda t: t.rank >= 1):
        left = list(range(x.rank))
        order = [left.pop(g.choices.integer(0, len(left) - 1)) for _ in range(x.rank)]
        g.add("Transpose", [x, g.ints(*order)], (x.type, tuple(x.axes[n] for n in order)))


def reshape(g: Chain) -> None:
    """Add a Reshape that copies leading dims by 0 and merges the rest by -1."""
    if x := g.find(lambda t: t.rank >= 1):
        cut = g.choices.integer(0, x.rank - 1)
        axes = (*x.axes[:cut], merge(x.axes[cut:]))
        g.add("Reshape", [x, g.ints(*[0] * cut, -1)], (x.type, axes), special_zero=True)


def split_dim(g: Chain) -> None:
    """Add a Reshape to other dims, for a tensor without open dims."""
    if x := g.find(lambda t: t.is_fixed):
        rest, dims = merge(x.axes).size, []
        while rest > 1 and len(dims) < _MAX_SPLIT_DIMS:
            dims.append(g.choices.pick([d for d in range(1, rest + 1) if rest % d == 0]))
            rest //= dims[-1]
        dims.append(rest)
        g.add("Reshape", [x, g.ints(*dims)], (x.type, fixed(*dims)), special_zero=g.choices.chance() and 0 not in dims)


def unsqueeze(g: Chain) -> None:
    if x := g.find(lambda t: t.rank <= 4):
        axis = g.choices.integer(0, x.rank)
        position = axis - x.rank - 1 if g.choices.chance() else axis
        g.add("Unsqueeze", [x, g.ints(position)], (x.type, (*x.axes[:axis], Axis(1), *x.axes[axis:])))


def squeeze(g: Chain) -> None:
    if found := g.find_axis(lambda axis: axis == Axis(1)):
        x, axis = found
        g.add("Squeeze", [x, g.ints(axis)], (x.type, x.axes[:axis] + x.axes[axis + 1 :]))


def concat(g: Chain) -> None:
    if not (x := g.find(lambda t: t.rank >= 1)):
        return
    axis = g.choices.integer(0, x.rank - 1)

    def others(tensor: Tensor) -> list[int]:
        return [size for n, size in enumerate(tensor.dims) if n != axis]

    fitting = [t for t in g.tensors if (t.type, t.rank) == (x.type, x.rank) and others(t) == others(x)]
    parts = [x, *(g.choices.pick_late(fitting) for _ in range(g.choices.integer(1, 2)))]
    axes = [Axis(size, all(t.axes[n].open for t in parts)) for n, size in enumerate(x.dims)]  # one that knows is enough
    axes[axis] = Axis(sum(t.dims[axis] for t in parts), any(t.axes[axis].open for t in parts))
    g.add("Concat", parts, (x.type, tuple(axes)), axis=axis - x.rank if g.choices.chance() else axis)


def split(g: Chain) -> None:
    if found := g.find_axis(lambda axis: not axis.open and axis.size > 0 and axis.size % 2 == 0):
        x, axis = found
        half = (x.type, (*x.axes[:axis], Axis(x.dims[axis] // 2), *x.axes[axis + 1 :]))
        g.add("Split", [x, g.array(np.array(axis, np.int64))], half, half, num_splits=2)


def slice(g: Chain) -> None:
    if not (found := g.find_axis(lambda axis: not axis.open and axis.size > 1)):
        return
    x, axis = found
    size, step = x.dims[axis], g.choices.integer(1, 2)
    start = g.choices.integer(0, size - 1)
    if g.choices.chance(0.3):
        bounds, length = (size - 1, -size - 1, -step), len(range(size - 1, -1, -step))
    else:
        stop = g.choices.integer(start + 1, size)
        bounds, length = (start, stop, step), len(range(start, stop, step))
    axes = (*x.axes[:axis], Axis(length), *x.axes[axis + 1 :])
    g.add("Slice", [x, *(g.ints(bound) for bound in bounds), g.ints(axis)], (x.type, axes))


def gather(g: Chain) -> None:
    """Add a Gather with constant indices, some of which may be negative."""
    if found := g.find_axis(lambda axis: not axis.open and axis.size > 0):
        x, axis = found
        shape = g.choices.pick(((), (1,), (3,), (2, 2)))
        index = g.array(np.asarray(g.numbers.integers(-x.dims[axis], x.dims[axis], shape), np.int64))
        axes = (*x.axes[:axis], *index.axes, *x.axes[axis + 1 :])
        g.add("Gather", [x, index, g.number(axis, "i64")], (x.type, axes), batch_dims=0)


def pad(g: Chain) -> None:
    if not (x := g.find(lambda t: t.rank >= 1 and t.type in (*FLOATS, *INTEGERS))):
        return
    begin, end = ([g.choices.integer(0, 2) for _ in x.axes] for _ in range(2))
    axes = tuple(Axis(axis.size + p + q, axis.open) for axis, p, q in zip(x.axes, begin, end))
    has_edges = x.is_fixed and 0 not in x.dims
    mode = "edge" if has_edges and g.choices.chance() else "constant"
    more = [g.constant((), x.type)] if mode == "constant" else []
    g.add("Pad", [x, g.ints(*begin), g.ints(*end), *more], (x.type, axes), pad_mode=mode)


def tile(g: Chain) -> None:
    if x := g.find(lambda t: 1 <= t.rank <= 4 and t.type != "string"):
        repeats = [g.choices.pick((1, 1, 2, 3)) for _ in x.axes]
        axes = tuple(Axis(axis.size * count, axis.open) for axis, count in zip(x.axes, repeats))
        g.add("Tile", [x, g.ints(*repeats)], (x.type, axes))


def broadcast(g: Chain) -> None:
    """Add a Broadcast in both directions: dims of 1 grow, and an axis may come before the others."""
    if x := g.find(lambda t: t.rank < 5 and t.type != "string"):
        target = [g.choices.pick((2, 3)) if axis == Axis(1) else 1 for axis in x.axes]
        extra = [g.choices.pick((1, 2))] if not x.axes or g.choices.chance(0.4) else []
        axes = (*fixed(*extra), *(Axis(t) if axis == Axis(1) else axis for axis, t in zip(x.axes, target)))
        g.add("Broadcast", [x, g.ints(*extra, *target)], (x.type, axes), mode="bidirectional")


def shape_of(g: Chain) -> None:
    if x := g.find(lambda t: t.rank >= 1):
        type = g.choices.pick(("i64", "i32"))
        g.add("ShapeOf", [x], (type, fixed(x.rank)), output_type=type)


def arrange(g: Chain) -> None:
    """Shuffle channels, or move blocks from depth to space."""
    if not (x := g.find(lambda t: t.rank == 4 and not t.axes[1].open and t.dims[1] % 4 == 0 and t.dims[1] > 0)):
        return
    if x.type in (*FLOATS, *INTEGERS) and g.choices.chance():
        g.add("ShuffleChannels", [x], (x.type, x.axes), axis=1, group=2)
        return
    axes = (x.axes[0], Axis(x.dims[1] // 4), *(Axis(2 * axis.size, axis.open) for axis in x.axes[2:]))
    mode = g.choices.pick(("blocks_first", "depth_first"))
    g.add("DepthToSpace", [x], (x.type, axes), block_size=2, mode=mode)


def reverse(g: Chain) -> None:
    if found := g.find_axis(lambda axis: True):
        x, axis = found
        g.add("Reverse", [x, g.ints(axis)], (x.type, x.axes), mode="index")
