"""Layers of random graphs. Each function adds one layer, or does nothing if no tensor suits it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from file_fuzz import moves
from file_fuzz.builder import EPSILON, FLOATS, INTEGERS, Builder, Tensor, count, number
from irrun import build as b

__all__ = ["LAYERS", "attention", "convolution", "gelu", "layer_norm"]


def _is_float(t: Tensor) -> bool:
    return t.type in FLOATS


# ---------------------------------------------------------------------------------------------
# element by element

_UNARY: Final[dict[str, tuple[float, Callable[[float], float], dict[str, Any]]]] = {
    "ReLU": (0, lambda x: x, {}), "Abs": (0, lambda x: x, {}), "Negative": (0, lambda x: x, {}),
    "Tanh": (8, lambda _: 1, {}), "Sigmoid": (8, lambda _: 1, {}), "Erf": (8, lambda _: 1, {}),
    "Gelu": (8, lambda x: x, {}), "Swish": (8, lambda x: x, {}), "HSwish": (8, lambda x: x, {}),
    "Mish": (8, lambda x: x, {}), "SoftPlus": (8, lambda x: x + 1, {}), "HSigmoid": (8, lambda _: 1, {}),
    "Elu": (8, lambda x: max(x, 1), {"alpha": 0.5}), "Sin": (8, lambda _: 1, {}), "Cos": (8, lambda _: 1, {}),
    "Clamp": (0, lambda x: min(x, 3), {"min": -3.0, "max": 2.5}), "SoftSign": (8, lambda _: 1, {}),
    "Atan": (8, lambda x: 1.6, {}), "Asinh": (8, lambda x: x, {}),
}  # fmt: skip
"""Element-wise operations with slopes of at most 1.2: roundings, the bound of the result, and attributes."""


def _unary(g: Builder) -> None:
    if x := g.pick(_is_float):
        type = g.rng.choice(list(_UNARY))
        rounds, bound, attributes = _UNARY[type]
        # a narrow float may be rounded at every step inside, in one of the two ways
        g.add(getattr(b, type)(x.output, **attributes), x.dims, x.type, bound(x.bound), 1.2 * x.error, rounds=rounds)


def _function(g: Builder) -> None:
    """Add Exp, Sqrt, Log or Divide behind what makes them harmless."""
    if not (x := g.pick(_is_float)):
        return
    one = number(1, x.type)
    match g.rng.randrange(4):
        case 0:
            small = b.Clamp(x.output, min=-2.0, max=2.0)
            g.add(b.Exp(small), x.dims, x.type, 8, 8 * x.error, rounds=4)
        case 1:
            g.add(b.Sqrt(b.Add(b.Abs(x.output), one)), x.dims, x.type, x.bound + 1, x.error, rounds=4)
        case 2:
            g.add(b.Log(b.Add(b.Abs(x.output), one)), x.dims, x.type, x.bound + 1, x.error, rounds=4)
        case _:
            divided = b.Divide(x.output, b.Add(b.Abs(x.output), one))
            g.add(divided, x.dims, x.type, 1, 2 * x.error + 2 * x.bound * EPSILON[x.type], rounds=4)


def _operand(g: Builder, x: Tensor) -> Tensor:
    """Return a second operand of ``x``: another tensor of its dims, or a constant that numpy broadcasts to them."""
    fits = [t for t in g.tensors if t.type == x.type and t.dims == x.dims]
    if g.rng.random() < 0.5:
        return g.rng.choice(fits)
    dims = [dim if isinstance(dim, int) and g.rng.random() < 0.6 else 1 for dim in x.dims]
    while dims and dims[0] == 1 and g.rng.random() < 0.5:
        del dims[0]
    return g.constant(dims, x.type)


def _binary(g: Builder) -> None:
    if not (x := g.pick(lambda t: t.type in (*FLOATS, *INTEGERS))):
        return
    y = _operand(g, x)
    type = g.rng.choice(("Add", "Subtract", "Multiply", "Maximum", "Minimum", "SquaredDifference", "PReLU"))
    if x.type in INTEGERS and type in ("SquaredDifference", "PReLU"):
        type = "Add"
    bounds = {
        "Multiply": x.bound * y.bound,
        "SquaredDifference": (x.bound + y.bound) ** 2,
        "PReLU": x.bound * max(1, y.bound),
    }
    errors = {
        "Multiply": x.error * y.bound + y.error * x.bound + x.error * y.error,
        "SquaredDifference": 2 * (x.bound + y.bound) * (x.error + y.error) + (x.error + y.error) ** 2,
        "PReLU": x.error * max(1, y.bound) + y.error * x.bound,
    }
    first, second = (x, y) if g.rng.random() < 0.7 or type == "PReLU" else (y, x)
    plain = type in ("Maximum", "Minimum")
    bound = bounds.get(type, max(x.bound, y.bound) if plain else x.bound + y.bound)
    error = errors.get(type, x.error + y.error)
    if x.type in INTEGERS and bound > 2**20:
        return  # they would wrap in both ways, but say nothing
    g.add(getattr(b, type)(first.output, second.output), x.dims, x.type, bound, error, rounds=0 if plain else 2)


def _compare(g: Builder) -> None:
    if x := g.pick(lambda t: t.error == 0 and t.type in (*FLOATS, *INTEGERS)):
        y = g.constant([], x.type)
        type = g.rng.choice(("Greater", "LessEqual", "Equal", "NotEqual"))
        g.add(getattr(b, type)(x.output, y.output), x.dims, "boolean", 1, 0)


def _logical(g: Builder) -> None:
    if x := g.pick(lambda t: t.type == "boolean"):
        fits = [t for t in g.tensors if t.type == "boolean" and t.dims == x.dims]
        y = g.rng.choice(fits)
        type = g.rng.choice(("LogicalAnd", "LogicalOr", "LogicalXor"))
        g.add(getattr(b, type)(x.output, y.output), x.dims, "boolean", 1, 0)


def _select(g: Builder) -> None:
    if x := g.pick(lambda t: t.type == "boolean"):
        fits = [t for t in g.tensors if t.type != "boolean" and t.dims == x.dims]
        if fits:
            y = g.rng.choice(fits)
            z = g.constant([], y.type)
            selected = b.Select(x.output, y.output, z.output)
            g.add(selected, x.dims, y.type, max(y.bound, z.bound), y.error, rounds=0)


def _convert(g: Builder) -> None:
    if x := g.pick(lambda t: t.type != "string" and (t.error == 0 or t.type in FLOATS)):
        exact = ("i64", "i32", "boolean") if x.error == 0 and x.type != "boolean" else ()
        to = g.rng.choice((*FLOATS, *FLOATS, *exact, x.type))
        if x.type in FLOATS and x.error and to not in FLOATS:
            return
        error = x.error if to in FLOATS else 0
        g.add(
            b.Convert(x.output, destination_type=to), x.dims, to, max(x.bound, 1), error, rounds=0.5 if x.error else 0
        )


def _integers(g: Builder) -> None:
    if x := g.pick(lambda t: t.type in ("i32", "i64")):
        y = g.constant([], x.type)
        divisor = b.Add(b.Abs(y.output), number(1, x.type))
        type = g.rng.choice(("Divide", "Mod", "FloorMod"))
        g.add(getattr(b, type)(x.output, divisor), x.dims, x.type, max(x.bound, 11), 0)


# ---------------------------------------------------------------------------------------------
# sums


def _reduce(g: Builder) -> None:
    if not (x := g.pick(lambda t: t.type in (*FLOATS, *INTEGERS) and t.rank >= 1)):
        return
    kind = g.rng.choice(("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum"))
    if x.type in INTEGERS and kind == "ReduceMean":
        kind = "ReduceSum"
    if kind == "ReduceSum" and x.bound > 100:
        return
    axes = sorted(g.rng.sample(range(x.rank), g.rng.randrange(1, x.rank + 1)))
    keep = g.rng.random() < 0.5
    dims = tuple(1 if i in axes else d for i, d in enumerate(x.dims) if keep or i not in axes)
    size = count(tuple(x.dims[i] for i in axes))
    many = size if isinstance(size, int) else 4096
    if many == 0:
        return
    bound, error, rounds = x.bound, x.error, 0.0 if kind in ("ReduceMax", "ReduceMin") else 2 + many**0.5
    if kind == "ReduceSum":
        bound, error = x.bound * many, x.error * many
    g.add(getattr(b, kind)(x.output, g.ints(*axes), keep_dims=keep), dims, x.type, bound, error, rounds=rounds)


def _matmul(g: Builder) -> None:
    if not (x := g.pick(lambda t: _is_float(t) and t.rank >= 2 and isinstance(t.dims[-1], int) and t.dims[-1] > 0)):
        return
    depth, columns, swapped = x.dims[-1], g.rng.choice((1, 2, 5, 8)), g.rng.random() < 0.5
    assert isinstance(depth, int)
    w = g.constant((columns, depth) if swapped else (depth, columns), x.type, 1 / depth)
    product = b.MatMul(x.output, w.output, transpose_a=False, transpose_b=swapped)
    g.add(product, (*x.dims[:-1], columns), x.type, x.bound * 1.01, x.error * 1.01, rounds=2 + depth**0.5)


def _dynamic_matmul(g: Builder) -> None:
    """Multiply a tensor by itself, transposed."""
    if x := g.pick(
        lambda t: _is_float(t) and 2 <= t.rank <= 4 and isinstance(t.dims[-1], int) and 0 < t.dims[-1] <= 64
    ):
        depth = x.dims[-1]
        assert isinstance(depth, int)
        scaled = b.Multiply(x.output, number(1 / depth, x.type))
        product = b.MatMul(scaled, x.output, transpose_a=False, transpose_b=True)
        g.add(product, (*x.dims[:-1], x.dims[-2]), x.type, x.bound**2, 2 * x.bound * x.error, rounds=4 + depth**0.5)


def _softmax(g: Builder) -> None:
    if x := g.pick(lambda t: _is_float(t) and t.rank >= 1):
        axis = g.rng.randrange(-x.rank, x.rank)
        g.add(b.SoftMax(x.output, axis=axis), x.dims, x.type, 1, min(2 * x.error, 1), rounds=8 + x.bound)


def _cumsum(g: Builder) -> None:
    if x := g.pick(lambda t: t.type in (*INTEGERS, "f32") and any(isinstance(d, int) and 0 < d < 50 for d in t.dims)):
        axis = next(i for i, d in enumerate(x.dims) if isinstance(d, int) and 0 < d < 50)
        size = x.dims[axis]
        assert isinstance(size, int)
        if x.bound * size < 2**20:
            sums = b.CumSum(x.output, number(axis, "i64"), reverse=g.rng.random() < 0.5)
            g.add(sums, x.dims, x.type, x.bound * size, x.error * size, rounds=2 * size**0.5)


def _is_image(t: Tensor) -> bool:
    return _is_float(t) and t.rank == 4 and isinstance(t.dims[1], int) and t.dims[1] > 0


def convolution(
    g: Builder,
    x: Tensor,
    outs: int,
    size: int,
    *,
    groups: int = 1,
    stride: int = 1,
    dilation: int = 1,
    bias: bool = True,
) -> Tensor:
    """Add a convolution that keeps the size of the image, or divides it by the stride."""
    ins = x.dims[1]
    assert isinstance(ins, int)
    fan = ins // groups * size * size
    shape = (outs, ins, size, size) if groups == 1 else (groups, outs // groups, ins // groups, size, size)
    w = g.constant(shape, x.type, 1 / fan)
    call = b.Convolution if groups == 1 else b.GroupConvolution
    out = call(
        x.output, w.output, strides=[stride] * 2, pads_begin=[0, 0], pads_end=[0, 0], dilations=[dilation] * 2,
        auto_pad="same_upper",
    )  # fmt: skip
    space = [d if stride == 1 else (-(-d // stride) if isinstance(d, int) else f"({d}/{stride})") for d in x.dims[2:]]
    bound, error = x.bound, x.error
    rounds = 4 + fan**0.5 + (300 if size == 3 and min(ins, outs) >= 32 else 0) + (100 if size >= 5 else 0)
    dims = (x.dims[0], outs, *space)
    if bias:
        shift = g.constant((1, outs, 1, 1), x.type)
        return g.add(b.Add(out, shift.output), dims, x.type, bound + shift.bound, error, rounds=rounds)
    return g.add(out, dims, x.type, bound, error, rounds=rounds)


def _convolution(g: Builder) -> None:
    if x := g.pick(_is_image):
        ins = x.dims[1]
        assert isinstance(ins, int)
        depthwise = g.rng.random() < 0.3
        outs = ins * g.rng.choice((1, 2)) if depthwise else g.rng.choice((1, 3, 4, 8))
        convolution(
            g, x, outs, g.rng.choice((1, 2, 3, 3, 5)), groups=ins if depthwise and ins > 1 else 1,
            stride=g.rng.choice((1, 1, 2)), dilation=g.rng.choice((1, 1, 2)), bias=g.rng.random() < 0.6,
        )  # fmt: skip


def _pool(g: Builder) -> None:
    if x := g.pick(_is_image):
        stride = g.rng.choice((1, 2))
        space = [d if stride == 1 else (-(-d // 2) if isinstance(d, int) else f"({d}/2)") for d in x.dims[2:]]
        common = {
            "strides": [stride] * 2, "pads_begin": [0, 0], "pads_end": [0, 0], "kernel": [3, 3],
            "auto_pad": "same_upper", "rounding_type": "floor",
        }  # fmt: skip
        dims = (*x.dims[:2], *space)
        if g.rng.random() < 0.5:
            g.moved(x, b.MaxPool(x.output, dilations=[1, 1], **common)[0], dims)
        else:
            pooled = b.AvgPool(x.output, **common, **{"exclude-pad": g.rng.random() < 0.5})
            g.add(pooled, dims, x.type, x.bound, x.error, rounds=8)


def _batch_norm(g: Builder) -> None:
    if x := g.pick(_is_image):
        channels = x.dims[1]
        assert isinstance(channels, int)
        gamma, beta, mean = (g.constant((channels,), x.type) for _ in range(3))
        variance = b.constant(g.numbers.uniform(0.5, 2, channels), x.type)
        out = b.BatchNormInference(x.output, gamma.output, beta.output, mean.output, variance, epsilon=1e-3)
        g.add(out, x.dims, x.type, 1.5 * (x.bound + 1) + 1, 1.5 * x.error, rounds=8)


# ---------------------------------------------------------------------------------------------
# what converters write as many layers


def _mean_square(g: Builder, x: Any, type: str) -> Any:
    square = b.Multiply(x, x) if g.rng.random() < 0.5 else b.Power(x, number(2, type))
    return b.ReduceMean(square, [-1], keep_dims=True)


def layer_norm(g: Builder, x: Tensor) -> Tensor:
    """Add a LayerNorm, or an RMS norm, as its parts."""
    width = x.dims[-1]
    assert isinstance(width, int)
    out = x.output
    if g.rng.random() < 0.6:
        out = b.Subtract(out, b.ReduceMean(out, [-1], keep_dims=True))
    total = b.Add(_mean_square(g, out, x.type), number(0.25, x.type))
    match g.rng.randrange(3):
        case 0:
            out = b.Divide(out, b.Sqrt(total))
        case 1:
            out = b.Multiply(out, b.Divide(number(1, x.type), b.Sqrt(total)))
        case _:
            out = b.Multiply(out, b.Power(total, number(-0.5, x.type)))
    scale, shift = g.constant((width,), x.type), g.constant((width,), x.type)
    out = b.Add(b.Multiply(out, scale.output), shift.output)
    # the deviation is at least 0.5: an error grows by at most 2, and again in the deviation
    bound, error = width**0.5 + 2, 8 * (x.error + x.bound * 4 * EPSILON[x.type]) * width**0.5
    return g.add(out, x.dims, x.type, bound, error, rounds=8 + width**0.5)


def _layer_norm(g: Builder) -> None:
    if x := g.pick(lambda t: _is_float(t) and t.rank >= 2 and isinstance(t.dims[-1], int) and t.dims[-1] > 0):
        layer_norm(g, x)


def gelu(g: Builder, x: Tensor) -> Tensor:
    """Add Gelu as its parts."""
    root = math.sqrt(2)
    scaled = (
        b.Divide(x.output, number(root, x.type))
        if g.rng.random() < 0.5
        else b.Multiply(x.output, number(1 / root, x.type))
    )
    gate, half = b.Add(b.Erf(scaled), number(1, x.type)), number(0.5, x.type)
    orders = [
        lambda: b.Multiply(b.Multiply(x.output, gate), half),
        lambda: b.Multiply(b.Multiply(half, x.output), gate),
        lambda: b.Multiply(x.output, b.Multiply(gate, half)),
    ]
    return g.add(g.rng.choice(orders)(), x.dims, x.type, x.bound, 1.5 * x.error, rounds=12)


def _gelu(g: Builder) -> None:
    if x := g.pick(_is_float):
        gelu(g, x)


def attention(g: Builder, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Add attention as its parts. All have the dims (batch, heads, length, width)."""
    width = q.dims[-1]
    assert isinstance(width, int)
    scores = b.MatMul(q.output, k.output, transpose_a=False, transpose_b=True)
    root = math.sqrt(width)
    scores = (
        b.Divide(scores, number(root, q.type)) if g.rng.random() < 0.5 else b.Multiply(scores, number(1 / root, q.type))
    )
    if mask is not None:
        scores = b.Add(scores, mask.output)
    out = b.MatMul(b.SoftMax(scores, axis=-1), v.output, transpose_a=False, transpose_b=False)
    rounding = 8 * width**0.5 * q.bound * k.bound * EPSILON[q.type]
    error = 2 * v.bound * (root * (q.error * k.bound + k.error * q.bound) + rounding) + v.error
    return g.add(out, (*q.dims[:-1], v.dims[-1]), q.type, v.bound, error, rounds=20)


def _attention(g: Builder) -> None:
    if x := g.pick(lambda t: _is_float(t) and t.rank in (3, 4) and isinstance(t.dims[-1], int) and t.dims[-1] > 0):
        attention(g, x, x, x)


LAYERS: Final = (
    _unary, _unary, _unary, _function, _binary, _binary, _binary, _compare, _logical, _select, _convert, _integers,
    moves.transpose, moves.reshape, moves.reshape_by, moves.unsqueeze, moves.squeeze, moves.concat, moves.split, moves.slice, moves.gather, moves.embed, moves.pad, moves.tile,
    moves.broadcast, moves.shape_of, moves.arrange, _reduce, _matmul, _dynamic_matmul, _softmax, _cumsum, _convolution, _convolution,
    _pool, _batch_norm, _layer_norm, _gelu, _attention,
)  # fmt: skip
"""A function for each layer of a random graph."""
