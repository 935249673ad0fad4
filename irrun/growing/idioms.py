"""What converters and quantizers write together. Each function adds a few layers, or nothing if no tensor suits them.

Plugins fuse these groups, so that faults live between their layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.growing.chain import FLOATS, Axis, Chain, fixed
from irrun.growing.layers import convolution, has_channels
from irrun.types import ELEMENT_TYPES

__all__ = ["IDIOMS"]

_CODES: Final = {"u8": (0, 256), "i8": (-128, 128), "u4": (0, 16), "i4": (-8, 8)}
"""The integers of each type that stores weights: the least one, and the one after the largest."""


def _scaled_convolution(g: Chain) -> None:
    """Scale and shift channels before a convolution, as preprocessing does."""
    if x := g.find(lambda t: has_channels(t) and t.rank == 4):
        for kind in g.choices.pick((("Multiply",), ("Add",), ("Multiply", "Add"), ("Subtract", "Multiply"))):
            x = g.compute(kind, x, g.constant((1, x.dims[1], 1, 1), x.type))
        y = convolution(g, x, g.choices.pick((1, 4, 8)), g.choices.pick((1, 3)), stride=g.choices.pick((1, 2)))
        if g.choices.chance():
            g.offer(g.compute("ReLU", g.compute("Add", y, g.constant((1, y.dims[1], 1, 1), y.type))))


def _decompressed_product(g: Chain) -> None:
    """Multiply by integers with scales and, perhaps, zero points: of each column, or of groups of the depth."""
    if not (x := g.find(lambda t: t.type == "f32" and t.rank >= 2 and not t.axes[-1].open and t.dims[-1] > 0)):
        return
    depth, columns, type = x.dims[-1], g.choices.pick((1, 3, 8)), g.choices.pick(tuple(_CODES))
    groups = g.choices.pick([count for count in (1, 2, 4) if depth % count == 0])
    shape = (columns, groups, depth // groups) if groups > 1 else (columns, depth)
    codes = g.array(g.numbers.integers(*_CODES[type], shape), type)
    weights = g.layer("Convert", [codes], ("f32", codes.axes), destination_type="f32")[0]
    each = fixed(*shape[:-1], 1)
    if g.choices.chance(0.7):
        zeros = g.array(g.numbers.integers(*_CODES[type], [axis.size for axis in each]), type)
        weights = g.compute("Subtract", weights, g.layer("Convert", [zeros], ("f32", each), destination_type="f32")[0])
    weights = g.compute("Multiply", weights, g.constant([axis.size for axis in each], "f32", 1 / depth))
    if groups > 1:
        target = g.ints(columns, depth)
        (weights,) = g.layer("Reshape", [weights, target], ("f32", fixed(columns, depth)), special_zero=False)
    axes = (*x.axes[:-1], Axis(columns))
    g.add("MatMul", [x, weights], (x.type, axes), transpose_a=False, transpose_b=True)


def _split_heads(g: Chain) -> None:
    """Reshape by a shape that Gather and Concat make of its own, and transpose, as attention does."""
    if x := g.find(lambda t: t.rank == 3 and not t.axes[-1].open and t.dims[-1] > 0):
        width = x.dims[-1]
        heads = g.choices.pick([count for count in (1, 2, 4) if width % count == 0])
        (shape,) = g.layer("ShapeOf", [x], ("i64", fixed(3)), output_type="i64")
        zero = g.number(0, "i64")
        kept = [g.layer("Gather", [shape, g.ints(n), zero], ("i64", fixed(1)), batch_dims=0)[0] for n in (0, 1)]
        (target,) = g.layer("Concat", [*kept, g.ints(heads), g.ints(width // heads)], ("i64", fixed(4)), axis=0)
        axes = (*x.axes[:2], Axis(heads), Axis(width // heads))
        (split,) = g.layer("Reshape", [x, target], (x.type, axes), special_zero=False)
        order = tuple(axes[n] for n in (0, 2, 1, 3))
        g.add("Transpose", [split, g.ints(0, 2, 1, 3)], (x.type, order))


def _new_and_shrunk_axes(g: Chain) -> None:
    """Add axes and remove axes in one StridedSlice."""
    if x := g.find(lambda t: 1 <= t.rank <= 4 and all(axis.size > 0 and not axis.open for axis in t.axes)):
        begin, end, new, shrink, axes = [], [], [], [], list[Axis]()
        for axis in x.axes:
            if g.choices.chance(0.3):
                begin, end, new, shrink = [*begin, 0], [*end, 0], [*new, 1], [*shrink, int(g.choices.chance(0.3))]
                axes.append(Axis(1))
            first = g.choices.integer(0, axis.size - 1)
            is_shrunk = g.choices.chance(0.4)
            last = first + 1 if is_shrunk else g.choices.integer(first + 1, axis.size)
            begin, end, new, shrink = [*begin, first], [*end, last], [*new, 0], [*shrink, int(is_shrunk)]
            axes += [] if is_shrunk else [Axis(last - first)]
        shrink = [0 if added else shrunk for added, shrunk in zip(new, shrink)]
        zeros, ones = [0] * len(begin), [1] * len(begin)
        g.add(
            "StridedSlice", [x, g.ints(*begin), g.ints(*end), g.ints(*ones)], (x.type, tuple(axes)), begin_mask=zeros,
            end_mask=zeros, new_axis_mask=new, shrink_axis_mask=shrink, ellipsis_mask=zeros,
        )  # fmt: skip


def _quantized_reduction(g: Chain) -> None:
    """Quantize a mean or a sum, as post-training quantization does."""
    if x := g.find(lambda t: t.type == "f32" and t.rank >= 2 and 0 not in t.dims):
        axes = tuple(Axis(1) if n == x.rank - 1 else axis for n, axis in enumerate(x.axes))
        kind = g.choices.pick(("ReduceMean", "ReduceSum", "ReduceMax"))
        (mean,) = g.layer(kind, [x, g.ints(-1)], (x.type, axes), keep_dims=True)
        limits = [g.number(value, "f32") for value in (-2, 2 - 1 / 64, -2, 2 - 1 / 64)]
        g.add("FakeQuantize", [mean, *limits], (x.type, axes), levels=256)


def _empty_product(g: Chain) -> None:
    """Multiply over a depth of 0: every element of the product is 0."""
    if x := g.find(lambda t: t.type in FLOATS and t.rank >= 2 and not t.axes[-1].open):
        (none,) = g.layer("Slice", [x, g.ints(0), g.ints(0), g.ints(1), g.ints(-1)], (x.type, (*x.axes[:-1], Axis(0))))
        w = g.array(np.zeros((0, 3), ELEMENT_TYPES[x.type].dtype), x.type)
        axes = (*x.axes[:-1], Axis(3))
        g.add("MatMul", [none, w], (x.type, axes), transpose_a=False, transpose_b=False)


def _static_beside_dynamic(g: Chain) -> None:
    """Put a tensor of known dims beside one with open dims: added to it, or behind it."""
    if x := g.find(lambda t: t.type in FLOATS and t.rank >= 2 and any(a.open for a in t.axes) and not t.axes[-1].open):
        row = g.parameter((*fixed(*[1] * (x.rank - 1)), x.axes[-1]), x.type)
        y = g.compute("Add", x, row)
        if g.choices.chance():
            axes = (*x.axes[:-1], Axis(2 * x.dims[-1]))
            g.add("Concat", [x, y], (x.type, axes), axis=x.rank - 1)
        else:
            g.offer(y)


IDIOMS: Final[tuple[Callable[[Chain], None], ...]] = (
    _scaled_convolution, _decompressed_product, _split_heads, _new_and_shrunk_axes, _quantized_reduction,
    _empty_product, _static_beside_dynamic,
)  # fmt: skip
"""A function for each group of layers."""
