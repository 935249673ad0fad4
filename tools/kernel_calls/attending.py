"""Random models of attention, and of what surrounds it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun import build as b
from irrun.growing.internal import OFF
from kernel_calls.draw import Draw, Node

__all__ = ["attention", "paged", "rotation", "token", "windows"]


def attention(d: Draw) -> Node:
    """Attention with a mask, constant or not, or without one."""
    lead, dynamic = [d.size(3) for _ in range(d.one(1, 2, 2))], d.one(0.0, 0.4)
    queries, keys, depth, width = d.one(d.size(4), d.size(120)), d.size(60), d.size(70), d.size(70)
    some = [d.input(*lead, *size, dynamic=dynamic) for size in ((queries, depth), (keys, depth), (keys, width))]
    kind = d.one("causal", "none", "constant", "boolean", "boolean")
    if kind in ("causal", "none"):
        return b.ScaledDotProductAttention(*some, causal=kind == "causal")
    if kind == "boolean":
        given = b.Greater(d.input(d.one(1, queries), keys, dynamic=dynamic), np.float32(0))
        return b.ScaledDotProductAttention(*some, b.LogicalOr(given, np.arange(keys) == 0), causal=False)
    mask = np.where(d.rng.random((queries, keys)) < 0.3, -np.inf, 0).astype(np.float32)
    mask[:, 0] = 0
    return b.ScaledDotProductAttention(*some, mask, causal=False)


def rotation(d: Draw) -> Node:
    """Rotated queries of a prompt."""
    batch, heads, rows, size = d.size(3), d.size(4), d.size(40), 2 * d.size(35)
    count = d.one(1, batch)
    return _rotated(d.input(batch, heads, rows, size), [d.input(count, 1, rows, size) for _ in range(2)], size)


def _rotated(x: Node, angles: Sequence[Node], size: int) -> Node:
    """Rotate pairs of ``size`` numbers by cosines and sines."""
    high, low = (b.Slice(x, [begin], [end], [1], [3]) for begin, end in ((size // 2, size), (0, size // 2)))
    turned = b.Concat([b.Multiply(high, np.float32(-1)), low], axis=-1)
    return b.Add(b.Multiply(x, angles[0]), b.Multiply(turned, angles[1]))


def token(d: Draw) -> Node:
    """A rotated query, whose rotated key and value are appended to those of the past, attends to them."""
    batch, heads, past, size, width = d.size(3), d.size(4), d.size(40), 2 * d.size(35), d.size(70)
    is_flat = d.rng.random() < 0.5  # the heads are side by side, as products give and read them

    def given(n: int) -> Node:
        if not is_flat:
            return d.input(batch, heads, 1, n, dynamic=0)
        rows = b.Reshape(d.input(batch, 1, heads * n, dynamic=0), [0, 0, heads, n], special_zero=True)
        return b.Transpose(rows, [0, 2, 1, 3])

    query, key, value = map(given, (size, size, width))
    angles = [d.input(1, 1, 1, size, dynamic=0) for _ in range(2)]
    whole: list[Node] = []
    for name, new in (("key", _rotated(key, angles, size)), ("value", value)):
        held = b.ReadValue(
            d.normal(batch, heads, past, size if name == "key" else width), variable_id=name, variable_type="f32",
            variable_shape=[batch, heads, None, size if name == "key" else width], opset=6,
        )  # fmt: skip
        chosen = b.Gather(held, np.arange(batch, dtype=np.int32), 0) if d.rng.random() < 0.5 else held
        whole.append(b.Concat([chosen, new], axis=2))
        d.sinks.append(b.Assign(whole[-1], variable_id=name))
    mask = d.one([], [d.normal(1, 1, 1, past + 1)], [d.normal(batch, heads, 1, past + 1)])
    result = b.ScaledDotProductAttention(_rotated(query, angles, size), *whole, *mask, causal=False)
    return b.Reshape(b.Transpose(result, [0, 2, 1, 3]), [0, 0, -1], special_zero=True) if is_flat else result


def paged(d: Draw) -> Node:
    """One new token of each of some sequences, most often with room in the caches that the tables name."""
    groups, each, slots, size, width = d.size(3), d.size(3), d.size(9), d.size(40), d.size(40)
    past = d.rng.integers(0, 40, d.size(4)).astype(np.int32)
    begins = np.cumsum([0, *(-(-(past + 1) // slots) + d.one(0, 0, 1))]).astype(np.int32)
    blocks = d.rng.permutation(begins[-1] + 2)[: begins[-1]].astype(np.int32)
    last = begins[:-1] + past // slots
    if d.rng.random() < 0.2:
        evicted = [n for n in range(len(blocks)) if n not in last]
        blocks[d.rng.permutation(evicted)[:2].astype(int)] = -1
    rows = [d.input(len(past), groups * n) for n in (each * size, size, width)]
    caches = [d.input(int(begins[-1]) + 2, groups, slots, n) for n in (size, width)]
    tables = [past, np.arange(len(past) + 1, dtype=np.int32), blocks, begins]
    options = {**OFF, "scale": np.float32(0.2), "sliding_window": np.int32(d.one(0, 0, 7))}
    if d.rng.random() < 0.4:
        options["alibi_slopes"] = d.weights(groups * each)
    if d.rng.random() < 0.4:
        options["sinks"] = d.weights(1, groups * each, 1, 1)
    return b.PagedAttentionExtension(*rows, *caches, *map(b.constant, (*tables, *options.values())))[0]


def windows(d: Draw) -> Node:
    """Rows of windows, which shift and are moved side by side, with heads that attend within a window."""
    high, wide, side, heads = d.size(3), d.size(3), d.size(4, 2), d.size(3)
    size = heads * d.size(24, 8)
    x, shift = d.input(1, side * high, side * wide, size, dynamic=0), d.one(0, 1)
    x = b.Roll(x, [-shift, -shift], [1, 2]) if shift else x
    apart = b.Reshape(x, [1, high, side, wide, side, size], special_zero=False)
    rows = b.Reshape(b.Transpose(apart, [0, 1, 3, 2, 4, 5]), [high * wide, side * side, size], special_zero=False)
    some = [b.MatMul(rows, d.weights(size, size)) for _ in range(3)]
    if d.rng.random() < 0.5:
        whole = b.MatMul(rows, d.weights(size, 3 * size))
        some = [b.VariadicSplit(whole, 2, [size, size, size])[n] for n in range(3)]
    split = [b.Transpose(b.Reshape(one, [0, 0, heads, size // heads], special_zero=True), [0, 2, 1, 3]) for one in some]
    joined = b.Transpose(b.ScaledDotProductAttention(*split, causal=False), [0, 2, 1, 3])
    y = b.MatMul(b.Reshape(joined, [0, 0, size], special_zero=True), d.weights(size, size))
    return d.one(y, b.ReduceMean(y, [1], keep_dims=False), [y, split[0]])
