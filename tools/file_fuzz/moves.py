"""Layers of random graphs that move elements and compute none. Each function adds one, or does nothing."""

from __future__ import annotations

import numpy as np

from file_fuzz.builder import FLOATS, INTEGERS, Builder, count, joined, number
from irrun import build as b

__all__ = [
    "arrange",
    "broadcast",
    "concat",
    "embed",
    "gather",
    "pad",
    "reshape",
    "reshape_by",
    "shape_of",
    "slice",
    "split",
    "squeeze",
    "tile",
    "transpose",
    "unsqueeze",
]


def transpose(g: Builder) -> None:
    if x := g.pick(lambda t: t.rank >= 2):
        order = list(range(x.rank))
        g.rng.shuffle(order)
        g.moved(x, b.Transpose(x.output, g.ints(*order)), tuple(x.dims[i] for i in order))


def reshape(g: Builder) -> None:
    """Merge the dims after some leading ones, or give a static tensor other dims."""
    if x := g.pick(lambda t: t.rank >= 1):
        cut = g.rng.randrange(x.rank)
        shaped = b.Reshape(x.output, g.ints(*[0] * cut, -1), special_zero=True)
        g.moved(x, shaped, (*x.dims[:cut], count(x.dims[cut:])))


def reshape_by(g: Builder) -> None:
    """Reshape a tensor by a shape that is computed from that of the input, as converters do."""
    if x := g.pick(lambda t: t.rank >= 2):
        shape = b.ShapeOf(x.output)
        # beside a dim of 0, any number is valid for -1; with special_zero, the other dims decide
        first = b.Gather(shape, g.ints(0), number(0, "i64"))
        shaped = b.Reshape(x.output, b.Concat(first, g.ints(-1), axis=0), special_zero=True)
        g.moved(x, shaped, (x.dims[0], count(x.dims[1:])))
    return


def unsqueeze(g: Builder) -> None:
    if x := g.pick(lambda t: t.rank <= 3):
        axis = g.rng.randrange(x.rank + 1)
        g.moved(x, b.Unsqueeze(x.output, g.ints(axis)), (*x.dims[:axis], 1, *x.dims[axis:]))


def squeeze(g: Builder) -> None:
    if x := g.pick(lambda t: 1 in t.dims):
        axis = x.dims.index(1)
        g.moved(x, b.Squeeze(x.output, g.ints(axis)), x.dims[:axis] + x.dims[axis + 1 :])


def concat(g: Builder) -> None:
    if x := g.pick(lambda t: t.rank >= 1):
        axis = g.rng.randrange(x.rank)
        before, after = x.dims[:axis], x.dims[axis + 1 :]
        fits = [t for t in g.tensors if t.type == x.type and t.rank == x.rank]
        fits = [t for t in fits if (t.dims[:axis], t.dims[axis + 1 :]) == (before, after)]
        parts = [x, *(g.rng.choice(fits) for _ in range(g.rng.randrange(1, 3)))]
        dims = (*before, joined(*(t.dims[axis] for t in parts)), *after)
        bound, error = max(t.bound for t in parts), max(t.error for t in parts)
        g.add(b.Concat(*(t.output for t in parts), axis=axis), dims, x.type, bound, error, rounds=0)


def split(g: Builder) -> None:
    if x := g.pick(lambda t: any(isinstance(d, int) and d % 2 == 0 and d for d in t.dims)):
        axis = next(i for i, d in enumerate(x.dims) if isinstance(d, int) and d % 2 == 0 and d)
        half = x.dims[axis]
        assert isinstance(half, int)
        dims = (*x.dims[:axis], half // 2, *x.dims[axis + 1 :])
        for output in b.Split(x.output, number(axis, "i64"), num_splits=2):
            g.moved(x, output, dims)


def slice(g: Builder) -> None:
    if x := g.pick(lambda t: any(isinstance(d, int) and d > 1 for d in t.dims)):
        axis = g.rng.choice([i for i, d in enumerate(x.dims) if isinstance(d, int) and d > 1])
        size = x.dims[axis]
        assert isinstance(size, int)
        start = g.rng.randrange(size)
        stop, step = g.rng.randrange(start + 1, size + 1), g.rng.choice((1, 2))
        if g.rng.random() < 0.3:
            sliced = b.Slice(x.output, g.ints(size - 1), g.ints(-size - 1), g.ints(-step), g.ints(axis))
            length = len(range(size - 1, -1, -step))
        else:
            sliced = b.Slice(x.output, g.ints(start), g.ints(stop), g.ints(step), g.ints(axis))
            length = len(range(start, stop, step))
        g.moved(x, sliced, (*x.dims[:axis], length, *x.dims[axis + 1 :]))


def gather(g: Builder) -> None:
    if x := g.pick(lambda t: any(isinstance(d, int) and d for d in t.dims)):
        axis = g.rng.choice([i for i, d in enumerate(x.dims) if isinstance(d, int) and d])
        size = x.dims[axis]
        assert isinstance(size, int)
        shape = g.rng.choice([(), (1,), (3,), (2, 2)])
        indices = b.constant(np.asarray(g.numbers.integers(-size, size, shape), np.int64))
        gathered = b.Gather(x.output, indices, number(axis, "i64"))
        g.moved(x, gathered, (*x.dims[:axis], *shape, *x.dims[axis + 1 :]))


def embed(g: Builder) -> None:
    """Look up rows of a constant by integers of the input."""
    if x := g.pick(lambda t: t.type in ("i32", "i64") and t.error == 0 and t.rank <= 2):
        table = g.constant((11, 4), g.rng.choice(("f32", "f16", "i32", "string")))
        index = b.Mod(b.Abs(x.output), number(11, x.type))
        g.moved(table, b.Gather(table.output, index, number(0, "i64")), (*x.dims, 4))


def pad(g: Builder) -> None:
    if x := g.pick(lambda t: t.rank >= 1 and t.type in (*FLOATS, *INTEGERS)):
        begin, end = ([g.rng.randrange(2) for _ in x.dims] for _ in range(2))
        dims = tuple(joined(d, p + q) if p + q else d for d, p, q in zip(x.dims, begin, end))
        empty = any(isinstance(d, str) or d == 0 for d in x.dims)  # has no edge
        mode = "constant" if empty else g.rng.choice(("constant", "edge"))
        more = [number(0, x.type)] if mode == "constant" else []
        g.moved(x, b.Pad(x.output, g.ints(*begin), g.ints(*end), *more, pad_mode=mode), dims)


def tile(g: Builder) -> None:
    if x := g.pick(lambda t: 1 <= t.rank <= 3):
        repeats = [g.rng.choice((1, 1, 2, 3)) for _ in x.dims]
        dims = tuple(d if r == 1 else count((d, r)) for d, r in zip(x.dims, repeats))
        g.moved(x, b.Tile(x.output, g.ints(*repeats)), dims)


def broadcast(g: Builder) -> None:
    if x := g.pick(lambda t: 1 in t.dims or t.rank < 3):
        target = [g.rng.choice((2, 3)) if d == 1 else 1 for d in x.dims]
        extra = [g.rng.choice((1, 2))] if x.rank < 4 and g.rng.random() < 0.4 else []
        dims = (*extra, *(t if d == 1 else d for d, t in zip(x.dims, target)))
        g.moved(x, b.Broadcast(x.output, g.ints(*extra, *target), mode="bidirectional"), dims)


def shape_of(g: Builder) -> None:
    if x := g.pick(lambda t: t.rank >= 1):
        type = g.rng.choice(("i64", "i32"))
        g.add(b.ShapeOf(x.output, output_type=type), (x.rank,), type, 1e4, 0)


def arrange(g: Builder) -> None:
    """Reverse rows, shuffle channels, or move blocks between depth and space."""
    if not (x := g.pick(lambda t: t.rank == 4 and isinstance(t.dims[1], int) and t.dims[1] % 4 == 0 and t.dims[1] > 0)):
        return
    channels = x.dims[1]
    assert isinstance(channels, int)
    if g.rng.random() < 0.5:
        dims = (x.dims[0], channels // 4, count((x.dims[2], 2)), count((x.dims[3], 2)))
        mode = g.rng.choice(("blocks_first", "depth_first"))
        g.moved(x, b.DepthToSpace(x.output, block_size=2, mode=mode), dims)
    else:
        g.moved(x, b.ShuffleChannels(x.output, axis=1, group=2), x.dims)
