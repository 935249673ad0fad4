"""Graphs of shapes that reach a certain kernel or fusion, whose thresholds small random graphs do not reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from file_fuzz.builder import Builder, Tensor, number
from file_fuzz.graphs import RandomGraph, finished, new_builder, random_graph
from file_fuzz.layers import attention, convolution, gelu, layer_norm
from irrun import build as b

__all__ = ["graph"]


def graph(seed: str, number: int, layers: int | None = None) -> RandomGraph:
    """Return the graph of this number: every second one is random, the others are of each target in turn."""
    name = f"{seed}/{number}"
    if number % 2 == 0:
        return random_graph(name, layers=layers)
    target = _TARGETS[number // 2 % len(_TARGETS)]
    g = new_builder(f"target/{name}", dynamic=target in _DYNAMIC)
    target(g)
    return finished(g)


def _activation(g: Builder, x: Tensor) -> Tensor:
    type = g.rng.choice(("ReLU", "Tanh", "Sigmoid", "HSwish"))
    bound = 1 if type in ("Tanh", "Sigmoid") else x.bound
    return g.add(getattr(b, type)(x.output), x.dims, x.type, bound, 1.2 * x.error, rounds=0 if type == "ReLU" else 8)


def _chain(g: Builder, x: Tensor, channels: int, length: int, size: int = 3) -> Tensor:
    """Add convolutions with activations and, now and then, the sum with the value before."""
    for _ in range(length):
        before, x = x, convolution(g, x, channels, size, bias=g.rng.random() < 0.7)
        if before.dims == x.dims and g.rng.random() < 0.3:
            x = g.add(b.Add(x.output, before.output), x.dims, x.type, x.bound + before.bound, x.error + before.error)
        x = _activation(g, x)
    return x


def _channels_last(g: Builder) -> None:
    x = g.parameter((g.rng.choice((1, 2)), 3, g.rng.choice((16, 19)), 16), g.rng.choice(("f32", "f32", "f16", "bf16")))
    x = convolution(g, x, 8, g.rng.choice((3, 5)))
    g.tensors = [_chain(g, x, g.rng.choice((8, 12)), 5)]


def _winograd_four(g: Builder) -> None:
    x = g.parameter((1, 32, g.rng.choice((21, 22, 24)), g.rng.choice((22, 23))))
    g.tensors = [_chain(g, x, g.rng.choice((32, 36)), 4)]


def _winograd_two(g: Builder) -> None:
    x = g.parameter((1, 128, g.rng.choice((8, 9, 10)), 8))
    g.tensors = [_chain(g, x, 128, 4)]


def _winograd_first(g: Builder) -> None:
    """One convolution, for which it does not pay to change the layout."""
    x = g.parameter((1, 32, g.rng.choice((16, 18, 23)), 16))
    x = convolution(g, x, 32, 3)
    g.tensors = [_activation(g, x)]


def _winograd_dynamic(g: Builder) -> None:
    x = g.parameter((1, 32, "n", 16))
    for sizes in g.sizes:
        sizes["n"] += 16
    g.tensors = [_activation(g, convolution(g, x, 32, 3))]


def _depthwise(g: Builder) -> None:
    channels = g.rng.choice((8, 16))
    x = g.parameter((1, channels, g.rng.choice((14, 15)), 14), g.rng.choice(("f32", "f32", "f16")))
    for _ in range(3):
        x = _activation(g, convolution(g, x, channels, 1))
        x = _activation(g, convolution(g, x, channels, g.rng.choice((3, 5)), groups=channels, stride=1))
    g.tensors = [_activation(g, convolution(g, x, channels, 1))]


def _planes(g: Builder) -> None:
    """One depthwise convolution, channels first."""
    channels = g.rng.choice((3, 6))
    x = g.parameter((2, channels, g.rng.choice((9, 50)), g.rng.choice((9, 50))))
    g.tensors = [convolution(g, x, channels, 3, groups=channels, stride=g.rng.choice((1, 2)), bias=False)]


def _fourier(g: Builder) -> None:
    channels, side = g.rng.choice((2, 3)), g.rng.choice((40, 45))
    x = g.parameter((g.rng.choice((1, 2)), channels, side, side))
    g.tensors = [_activation(g, convolution(g, x, channels, g.rng.choice((19, 21)), groups=channels))]


def _depth_to_space(g: Builder) -> None:
    x = g.parameter((1, 4, 12, g.rng.choice((12, 13))))
    x = _chain(g, x, 16, 3)
    dims = (1, 4, *(2 * d for d in x.dims[2:] if isinstance(d, int)))
    mode = g.rng.choice(("blocks_first", "depth_first"))
    x = g.moved(x, b.DepthToSpace(x.output, block_size=2, mode=mode), dims)
    x = _chain(g, x, 8, 2)
    dims = (1, 32, *(d // 2 for d in x.dims[2:] if isinstance(d, int)))
    x = g.moved(x, b.SpaceToDepth(x.output, block_size=2, mode=mode), dims)
    g.tensors = [_chain(g, x, 8, 2)]


def _images(g: Builder) -> None:
    """A network with pools, a resize, a Concat and a Pad, channels last."""
    x = _chain(g, g.parameter((1, 3, 16, 16)), 8, 3)
    common = {"strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0], "kernel": [2, 2]}
    if g.rng.random() < 0.5:
        small = g.moved(x, b.MaxPool(x.output, **common, dilations=[1, 1])[0], (1, 8, 8, 8))
    else:
        pooled = b.AvgPool(x.output, **common, **{"exclude-pad": True})
        small = g.add(pooled, (1, 8, 8, 8), x.type, x.bound, x.error, rounds=8)
    small = _chain(g, small, 8, 2)
    mode, about = g.rng.choice(("nearest", "linear_onnx")), g.rng.choice(("asymmetric", "half_pixel"))
    wide = b.Interpolate(
        small.output, b.constant(np.array([2.0, 2.0], np.float32)), g.ints(2, 3), mode=mode,
        shape_calculation_mode="scales", coordinate_transformation_mode=about, nearest_mode="floor", opset=11,
    )  # fmt: skip
    wide = g.add(wide, (1, 8, 16, 16), x.type, small.bound, small.error, rounds=8)
    both = g.add(
        b.Concat(x.output, wide.output, axis=1),
        (1, 16, 16, 16),
        x.type,
        max(x.bound, wide.bound),
        max(x.error, wide.error),
        rounds=0,
    )
    padded = g.moved(both, b.Pad(both.output, g.ints(0, 0, 1, 1), g.ints(0, 0, 1, 1), pad_mode="edge"), (1, 16, 18, 18))
    g.tensors = [_chain(g, padded, 8, 2)]


def _group_norm(g: Builder) -> None:
    x = _chain(g, g.parameter((1, 3, 12, 12)), 8, 2)
    scale, shift = g.constant((8,), "f32"), g.constant((8,), "f32")
    out = b.GroupNormalization(x.output, scale.output, shift.output, num_groups=4, epsilon=0.25)
    x = g.add(out, x.dims, "f32", 20, 60 * (x.error + 1e-6 * x.bound), rounds=30)
    g.tensors = [_chain(g, x, 8, 2)]


def _backprop(g: Builder) -> None:
    x = _chain(g, g.parameter((1, 4, 10, 10)), 8, 2)
    size, stride = g.rng.choice(((2, 2), (3, 1), (4, 2)))
    w = g.constant((8, 8, size, size), "f32", 1 / (8 * size * size))
    out = b.ConvolutionBackpropData(
        x.output, w.output, strides=[stride] * 2, pads_begin=[0, 0], pads_end=[0, 0], dilations=[1, 1]
    )
    side = (10 - 1) * stride + size
    x = g.add(out, (1, 8, side, side), "f32", x.bound, x.error, rounds=40)
    g.tensors = [_chain(g, x, 8, 2)]


def _recurrent(g: Builder) -> None:
    """A sequence or a cell with constant weights."""
    kind, states, gates = g.rng.choice((("LSTM", 2, 4), ("GRU", 1, 3), ("RNN", 1, 1)))
    batch, length, width, hidden = g.rng.choice((1, 2, 3)), g.rng.choice((1, 4, 9)), 6, g.rng.choice((4, 8))
    type = g.rng.choice(("f32", "f32", "f16"))
    whole = "n" if g.rng.random() < 0.5 else batch
    if g.rng.random() < 0.6:
        x = g.parameter((batch, length, width), type)
        direction = g.rng.choice(("forward", "reverse", "bidirectional"))
        ways = 2 if direction == "bidirectional" else 1
        first = [g.constant((batch, ways, hidden), type) for _ in range(states)]
        lengths = g.rng.choice([[length] * batch, [g.rng.randrange(1, length + 1) for _ in range(batch)]])
        w, r = (
            g.constant((ways, gates * hidden, width), type, 0.2),
            g.constant((ways, gates * hidden, hidden), type, 0.2),
        )
        bias = g.constant((ways, gates * hidden), type, 0.2)
        node = getattr(b, f"{kind}Sequence")(
            x.output, *(s.output for s in first), b.constant(np.array(lengths, np.int64)), w.output, r.output,
            bias.output, hidden_size=hidden, direction=direction,
        )  # fmt: skip
        shapes = [(batch, ways, length, hidden), *[(batch, ways, hidden)] * states]
    else:
        x = g.parameter((whole, width), type)
        first = [g.parameter((whole, hidden), type) for _ in range(states)]
        w, r = g.constant((gates * hidden, width), type, 0.2), g.constant((gates * hidden, hidden), type, 0.2)
        bias = g.constant((gates * hidden,), type, 0.2)
        inputs = (x.output, *(s.output for s in first), w.output, r.output, bias.output)
        node = getattr(b, f"{kind}Cell")(*inputs, hidden_size=hidden)
        shapes = [(whole, hidden)] * states
    g.tensors = [g.add(node[n], dims, type, 2 + 2 * length, 0, rounds=30 * length) for n, dims in enumerate(shapes)]


def _encoder(g: Builder) -> None:
    _transformer(g, 5, "f32")


def _dynamic_encoder(g: Builder) -> None:
    for sizes in g.sizes:
        sizes["n"] += 1
    _transformer(g, "n", g.rng.choice(("f32", "f32", "f32", "f64", "f16", "bf16")))


def _transformer(g: Builder, length: int | str, type: str) -> None:
    """Encoder layers, with the parts of LayerNorm, attention and Gelu, and heads split by the shape of the input."""
    heads, width = 2, 8
    x = g.parameter((1, length, heads * width), type)
    for _ in range(g.rng.choice((1, 2))):
        normed = layer_norm(g, x)
        q, k, v = (_split_heads(g, _dense(g, normed, heads * width), heads, width) for _ in range(3))
        mask = g.constant((1, 1, 1, 1), type) if g.rng.random() < 0.3 else None
        a = attention(g, q, k, v, mask)
        swapped = b.Transpose(a.output, g.ints(0, 2, 1, 3))
        merged = g.moved(a, b.Reshape(swapped, g.ints(0, 0, heads * width), special_zero=True), x.dims)
        out = _dense(g, merged, heads * width)
        x = g.add(b.Add(x.output, out.output), x.dims, type, x.bound + out.bound, x.error + out.error)
        inner = gelu(g, _dense(g, layer_norm(g, x), 2 * heads * width))
        out = _dense(g, inner, heads * width)
        x = g.add(b.Add(x.output, out.output), x.dims, type, x.bound + out.bound, x.error + out.error)
    g.tensors = [x]


def _dense(g: Builder, x: Tensor, columns: int) -> Tensor:
    depth = x.dims[-1]
    assert isinstance(depth, int)
    w, shift = g.constant((columns, depth), x.type, 1 / depth), g.constant((1, 1, columns), x.type)
    product = b.Add(b.MatMul(x.output, w.output, transpose_a=False, transpose_b=True), shift.output)
    return g.add(product, (*x.dims[:-1], columns), x.type, x.bound + 1, x.error, rounds=4 + depth**0.5)


def _split_heads(g: Builder, x: Tensor, heads: int, width: int) -> Tensor:
    shape = b.ShapeOf(x.output)
    rows = b.Gather(shape, g.ints(0, 1), number(0, "i64"))
    split = b.Reshape(x.output, b.Concat(rows, g.ints(heads, width), axis=0), special_zero=False)
    return g.moved(x, b.Transpose(split, g.ints(0, 2, 1, 3)), (x.dims[0], heads, x.dims[1], width))


def _tiles(g: Builder) -> None:
    """Element-wise layers behind a matrix product, and others alone, on more than one tile."""
    x = g.parameter((g.rng.choice((200, 210)), 160))
    x = _activation(g, _activation(g, _wide(g, x, 192)))
    x = g.add(b.Multiply(x.output, g.constant((192,), "f32").output), x.dims, "f32", x.bound, x.error)
    g.tensors = [_activation(g, x)]


def _wide(g: Builder, x: Tensor, columns: int) -> Tensor:
    depth = x.dims[-1]
    assert isinstance(depth, int)
    w = g.constant((depth, columns), x.type, 1 / depth)
    product = b.MatMul(x.output, w.output)
    return g.add(product, (*x.dims[:-1], columns), x.type, x.bound, x.error, rounds=4 + depth**0.5)


def _threads(g: Builder) -> None:
    """Matrix products large enough for several threads and for pooled memory."""
    rows: int | str = 520
    if g.rng.random() < 0.5:
        rows = "n"
        g.sizes = [{"n": 500 + g.rng.choice((0, 20))} for _ in g.sizes]
        g.sizes[:3] = [{"n": 520}] * 3
    x = g.parameter((rows, 64))
    x = _activation(g, _wide(g, x, 640))
    x = _activation(g, _wide(g, x, 640))
    x = g.add(b.SoftMax(x.output, axis=-1), x.dims, "f32", 1, 2 * x.error, rounds=20)
    g.tensors = [_wide(g, x, 16)]


def _strings(g: Builder) -> None:
    x = g.parameter(("n", 2) if g.rng.random() < 0.5 else (3, 2), "string")
    table = b.constant(g.array((4, 2), "string"))
    both = g.moved(x, b.Concat(x.output, table, axis=0), ("(n+4)", 2))
    spread = g.moved(both, b.Unsqueeze(both.output, g.ints(0)), (1, *both.dims))
    tiled = g.moved(spread, b.Tile(spread.output, g.ints(2, 1, 2)), (2, both.dims[0], 4))
    g.tensors = [g.moved(tiled, b.Gather(tiled.output, g.ints(1, 0, 0), number(2, "i64")), (2, both.dims[0], 3))]


def _packed_integers(g: Builder) -> None:
    """Weights in four bits or eight, widened as a compressed model widens them."""
    x = g.parameter((g.rng.choice((1, 3)), 32))
    type: Any = g.rng.choice(("u4", "i4", "i8", "u8"))
    low, high = (0, 8) if type.startswith("u") else (-8, 8)
    packed = b.constant(g.numbers.integers(low, high, (16, 32)), type)
    wide = b.Convert(packed, destination_type="f16")
    less = b.Subtract(wide, b.constant(np.full((16, 1), 4, np.float16)))
    scaled = b.Convert(b.Multiply(less, b.constant(np.full((16, 1), 1 / 512, np.float16))), destination_type="f32")
    out = b.MatMul(x.output, scaled, transpose_a=False, transpose_b=True)
    g.tensors = [g.add(out, (*x.dims[:-1], 16), "f32", x.bound, x.error, rounds=20)]


_TARGETS: Final[tuple[Callable[[Builder], None], ...]] = (
    _channels_last, _winograd_four, _winograd_two, _winograd_first, _winograd_dynamic, _depthwise, _planes, _fourier,
    _depth_to_space, _images, _group_norm, _backprop, _recurrent, _encoder, _tiles, _threads, _strings,
    _packed_integers, _dynamic_encoder, _recurrent,
)  # fmt: skip
_DYNAMIC: Final = (_winograd_dynamic, _recurrent, _dynamic_encoder, _strings, _threads)
