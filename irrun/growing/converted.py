"""What converters write as several layers, and what makes a layer harmless. Each function adds a few layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from irrun.growing.chain import Axis, Chain, Tensor, fixed, merge

__all__ = ["CONVERTED", "attention", "gelu", "layer_norm"]

_MAX_DEPTH: Final = 64
"""The largest dim over which a tensor is multiplied with itself."""


def _function(g: Chain) -> None:
    """Add Exp, Sqrt, Log or Divide behind what keeps its input in range."""
    if not (x := g.find_floats()):
        return
    kind = g.choices.pick(("Exp", "Sqrt", "Log", "Divide"))
    if kind == "Exp":
        g.offer(g.compute("Exp", g.compute("Clamp", x, min=-2.0, max=2.0)))
        return
    positive = g.compute("Add", g.compute("Abs", x), g.number(1, x.type))
    g.offer(g.compute("Divide", x, positive) if kind == "Divide" else g.compute(kind, positive))


def _integers(g: Chain) -> None:
    """Divide integers by numbers above 0."""
    if x := g.find(lambda t: t.type in ("i32", "i64")):
        divisor = g.compute("Add", g.compute("Abs", g.constant((), x.type)), g.number(1, x.type))
        g.offer(g.compute(g.choices.pick(("Divide", "Mod", "FloorMod")), x, divisor))


def _embed(g: Chain) -> None:
    """Look up rows of a constant by integers that an input or a layer gives."""
    if x := g.find(lambda t: t.type in ("i32", "i64") and t.rank <= 2):
        table = g.constant((11, 4), g.choices.pick(("f32", "f16", "i32", "string")))
        index = g.compute("Mod", g.compute("Abs", x), g.number(11, x.type))
        g.add("Gather", [table, index, g.number(0, "i64")], (table.type, (*x.axes, Axis(4))), batch_dims=0)


def _reshape_by(g: Chain) -> None:
    """Reshape a tensor by a shape that is computed from its own."""
    if x := g.find(lambda t: t.rank >= 2):
        (shape,) = g.layer("ShapeOf", [x], ("i64", fixed(x.rank)), output_type="i64")
        # beside a dim of 0, any number is valid for -1; with special_zero, the other dims decide
        (first,) = g.layer("Gather", [shape, g.ints(0), g.number(0, "i64")], ("i64", fixed(1)), batch_dims=0)
        (target,) = g.layer("Concat", [first, g.ints(-1)], ("i64", fixed(2)), axis=0)
        g.add("Reshape", [x, target], (x.type, (x.axes[0], merge(x.axes[1:]))), special_zero=True)


def _square(g: Chain) -> None:
    """Multiply a tensor by itself, transposed."""
    if x := g.find(lambda t: t.type in ("f32", "f16", "bf16", "f64") and 2 <= t.rank <= 4 and not t.axes[-1].open):
        depth = x.dims[-1]
        if 0 < depth <= _MAX_DEPTH:
            scaled = g.compute("Multiply", x, g.number(1 / depth, x.type))
            axes = (*x.axes[:-1], x.axes[-2])
            g.add("MatMul", [scaled, x], (x.type, axes), transpose_a=False, transpose_b=True)


def layer_norm(g: Chain, x: Tensor) -> Tensor:
    """Add a LayerNorm, or an RMS norm, as its parts. Return the output."""
    last = g.ints(-1)
    mean = (x.type, (*x.axes[:-1], Axis(1)))

    def average(tensor: Tensor) -> Tensor:
        return g.layer("ReduceMean", [tensor, last], mean, keep_dims=True)[0]

    if g.choices.chance(0.6):
        x = g.compute("Subtract", x, average(x))
    square = g.compute("Multiply", x, x) if g.choices.chance() else g.compute("Power", x, g.number(2, x.type))
    total = g.compute("Add", average(square), g.number(0.25, x.type))
    match g.choices.integer(0, 2):
        case 0:
            out = g.compute("Divide", x, g.compute("Sqrt", total))
        case 1:
            one = g.number(1, x.type)
            (inverse,) = g.layer("Divide", [one, g.compute("Sqrt", total)], mean)
            out = g.compute("Multiply", x, inverse)
        case _:
            out = g.compute("Multiply", x, g.compute("Power", total, g.number(-0.5, x.type)))
    scale, shift = g.constant((x.dims[-1],), x.type), g.constant((x.dims[-1],), x.type)
    out = g.compute("Add", g.compute("Multiply", out, scale), shift)
    g.offer(out)
    return out


def _layer_norm(g: Chain) -> None:
    if (x := g.find_floats(least_rank=2)) and not x.axes[-1].open and x.dims[-1]:
        layer_norm(g, x)


def gelu(g: Chain, x: Tensor) -> Tensor:
    """Add Gelu as its parts. Return the output."""
    root = math.sqrt(2)
    if g.choices.chance():
        scaled = g.compute("Divide", x, g.number(root, x.type))
    else:
        scaled = g.compute("Multiply", x, g.number(1 / root, x.type))
    gate, half = g.compute("Add", g.compute("Erf", scaled), g.number(1, x.type)), g.number(0.5, x.type)
    match g.choices.integer(0, 2):
        case 0:
            out = g.compute("Multiply", g.compute("Multiply", x, gate), half)
        case 1:
            scaled = g.layer("Multiply", [half, x], (x.type, x.axes))[0]
            out = g.compute("Multiply", scaled, gate)
        case _:
            out = g.compute("Multiply", x, g.compute("Multiply", gate, half))
    g.offer(out)
    return out


def _gelu(g: Chain) -> None:
    if x := g.find_floats():
        gelu(g, x)


def attention(g: Chain, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Add attention as its parts. All have the axes (batch, heads, length, width). Return the output."""
    scores = (q.type, (*q.axes[:-1], k.axes[-2]))
    (products,) = g.layer("MatMul", [q, k], scores, transpose_a=False, transpose_b=True)
    root = math.sqrt(q.dims[-1])
    if g.choices.chance():
        products = g.compute("Divide", products, g.number(root, q.type))
    else:
        products = g.compute("Multiply", products, g.number(1 / root, q.type))
    if mask is not None:
        products = g.compute("Add", products, mask)
    weights = g.compute("SoftMax", products, axis=-1)
    axes = (*q.axes[:-1], v.axes[-1])
    return g.add("MatMul", [weights, v], (q.type, axes), transpose_a=False, transpose_b=False)[0]


def _attention(g: Chain) -> None:
    if (x := g.find_floats(least_rank=3)) and x.rank in (3, 4) and not x.axes[-1].open and x.dims[-1]:
        attention(g, x, x, x)


CONVERTED: Final[tuple[Callable[[Chain], None], ...]] = (
    _function, _integers, _embed, _reshape_by, _square, _layer_norm, _gelu, _attention,
)  # fmt: skip
"""A function for each group of layers that a chain may hold."""
