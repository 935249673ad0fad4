"""Graphs that reach a certain kernel or fusion, whose thresholds small random graphs do not reach. Others go on there.

Each function puts such a graph into a chain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.growing.chain import FLOATS, Axes, Axis, Chain, Tensor, fixed
from irrun.growing.converted import attention, gelu, layer_norm
from irrun.growing.layers import convolution

__all__ = ["STARTS"]

_ACTIVATIONS: Final = ("ReLU", "Tanh", "Sigmoid", "HSwish")
_NARROW_FLOATS: Final = ("f32", "f32", "f16", "bf16")


def _activate(g: Chain, x: Tensor) -> Tensor:
    return g.add(g.choices.pick(_ACTIVATIONS), [x], (x.type, x.axes))[0]


def _convolve(g: Chain, x: Tensor, filters: int, size: int = 3, *, groups: int = 1, stride: int = 1) -> Tensor:
    """Add a convolution, most often with a bias."""
    x = convolution(g, x, filters, size, groups=groups, stride=stride)
    if g.choices.chance(0.7):
        x = g.add("Add", [x, g.constant((1, filters, 1, 1), x.type)], (x.type, x.axes))[0]
    return x


def _convolutions(g: Chain, x: Tensor, filters: int, length: int) -> Tensor:
    """Add convolutions with activations and, now and then, the sum with the value before."""
    for _ in range(length):
        before, x = x, _convolve(g, x, filters)
        if before.axes == x.axes and g.choices.chance(0.3):
            x = g.add("Add", [x, before], (x.type, x.axes))[0]
        x = _activate(g, x)
    return x


def _channels_last(g: Chain) -> None:
    dims = (g.choices.pick((1, 2)), 3, g.choices.pick((16, 19)), 16)
    x = g.parameter(fixed(*dims), g.choices.pick(_NARROW_FLOATS))
    _convolutions(g, _convolve(g, x, 8, g.choices.pick((3, 5))), g.choices.pick((8, 12)), 5)


def _winograd_four(g: Chain) -> None:
    x = g.parameter(fixed(1, 32, g.choices.pick((21, 22, 24)), g.choices.pick((22, 23))))
    _convolutions(g, x, g.choices.pick((32, 36)), 4)


def _winograd_two(g: Chain) -> None:
    _convolutions(g, g.parameter(fixed(1, 128, g.choices.pick((8, 9, 10)), 8)), 128, 4)


def _winograd_first(g: Chain) -> None:
    """One convolution, for which it does not pay to change the layout."""
    _activate(g, _convolve(g, g.parameter(fixed(1, 32, g.choices.pick((16, 18, 23)), 16)), 32))


def _winograd_dynamic(g: Chain) -> None:
    g.sizes = range(16, 23)
    x = g.parameter((Axis(1), Axis(32), Axis(g.choices.pick(g.sizes), True), Axis(16)))
    _activate(g, _convolve(g, x, 32))


def _depthwise(g: Chain) -> None:
    channels = g.choices.pick((8, 16))
    x = g.parameter(fixed(1, channels, g.choices.pick((14, 15)), 14), g.choices.pick(("f32", "f32", "f16")))
    for _ in range(3):
        x = _activate(g, _convolve(g, x, channels, 1))
        x = _activate(g, _convolve(g, x, channels, g.choices.pick((3, 5)), groups=channels))
    _activate(g, _convolve(g, x, channels, 1))


def _planes(g: Chain) -> None:
    """One depthwise convolution, channels first."""
    channels = g.choices.pick((3, 6))
    x = g.parameter(fixed(2, channels, g.choices.pick((9, 50)), g.choices.pick((9, 50))))
    convolution(g, x, channels, 3, groups=channels, stride=g.choices.pick((1, 2)))


def _fourier(g: Chain) -> None:
    channels, side = g.choices.pick((2, 3)), g.choices.pick((40, 45))
    x = g.parameter(fixed(g.choices.pick((1, 2)), channels, side, side))
    _activate(g, _convolve(g, x, channels, g.choices.pick((19, 21)), groups=channels))


def _depth_to_space(g: Chain) -> None:
    x = _convolutions(g, g.parameter(fixed(1, 4, 12, g.choices.pick((12, 13)))), 16, 3)
    mode = g.choices.pick(("blocks_first", "depth_first"))
    wide = (x.axes[0], Axis(4), *(Axis(2 * dim) for dim in x.dims[2:]))
    x = _convolutions(g, g.add("DepthToSpace", [x], (x.type, wide), block_size=2, mode=mode)[0], 8, 2)
    deep = (x.axes[0], Axis(32), *(Axis(dim // 2) for dim in x.dims[2:]))
    x = _convolutions(g, g.add("SpaceToDepth", [x], (x.type, deep), block_size=2, mode=mode)[0], 8, 2)


def _images(g: Chain) -> None:
    """A network with pools, a resize, a Concat and a Pad, channels last."""
    x = _convolutions(g, g.parameter(fixed(1, 3, 16, 16)), 8, 3)
    small = (x.type, fixed(1, 8, 8, 8))
    window = {"strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0], "kernel": [2, 2]}
    if g.choices.chance():
        pooled = g.add("MaxPool", [x], small, opset=1, **window)[0]
    else:
        pooled = g.add("AvgPool", [x], small, opset=1, **window, **{"exclude-pad": True})[0]
    pooled = _convolutions(g, pooled, 8, 2)
    wide = g.add(
        "Interpolate", [pooled, g.array(np.array([2.0, 2.0], np.float32)), g.ints(2, 3)], (x.type, x.axes), opset=11,
        mode=g.choices.pick(("nearest", "linear_onnx")), shape_calculation_mode="scales", nearest_mode="floor",
        coordinate_transformation_mode=g.choices.pick(("asymmetric", "half_pixel")),
    )[0]  # fmt: skip
    both = g.add("Concat", [x, wide], (x.type, fixed(1, 16, 16, 16)), axis=1)[0]
    pads = [g.ints(0, 0, 1, 1), g.ints(0, 0, 1, 1)]
    _convolutions(g, g.add("Pad", [both, *pads], (x.type, fixed(1, 16, 18, 18)), pad_mode="edge")[0], 8, 2)


def _group_norm(g: Chain) -> None:
    x = _convolutions(g, g.parameter(fixed(1, 3, 12, 12)), 8, 2)
    scale, shift = g.constant((8,), "f32"), g.constant((8,), "f32")
    x = g.add("GroupNormalization", [x, scale, shift], (x.type, x.axes), num_groups=4, epsilon=0.25)[0]
    _convolutions(g, x, 8, 2)


def _backprop(g: Chain) -> None:
    x = _convolutions(g, g.parameter(fixed(1, 4, 10, 10)), 8, 2)
    size, stride = g.choices.pick(((2, 2), (3, 1), (4, 2)))
    w = g.constant((8, 8, size, size), "f32", 1 / (8 * size * size))
    side = (10 - 1) * stride + size
    x = g.add(
        "ConvolutionBackpropData", [x, w], (x.type, fixed(1, 8, side, side)), strides=[stride] * 2, pads_begin=[0, 0],
        pads_end=[0, 0], dilations=[1, 1],
    )[0]  # fmt: skip
    _convolutions(g, x, 8, 2)


def _sequence(g: Chain) -> None:
    """A recurrent sequence with constant weights."""
    kind, states, gates = g.choices.pick(_CELLS)
    batch, length, width, hidden = g.choices.pick((1, 2, 3)), g.choices.pick((1, 4, 9)), 6, g.choices.pick((4, 8))
    type = g.choices.pick(("f32", "f32", "f16"))
    x = g.parameter(fixed(batch, length, width), type)
    direction = g.choices.pick(("forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    first = [g.constant((batch, ways, hidden), type) for _ in range(states)]
    short = g.choices.chance()
    lengths = g.ints(*(g.choices.integer(1, length) if short else length for _ in range(batch)))
    weights = [g.constant((ways, gates * hidden, n), type, 0.2) for n in (width, hidden)]
    bias = g.constant((ways, gates * hidden), type, 0.2)
    last = (type, fixed(batch, ways, hidden))
    g.add(
        f"{kind}Sequence", [x, *first, lengths, *weights, bias], (type, fixed(batch, ways, length, hidden)),
        *[last] * states, hidden_size=hidden, direction=direction,
    )  # fmt: skip


def _cell(g: Chain) -> None:
    """A recurrent cell with constant weights, of any number of rows or of a given one."""
    kind, states, gates = g.choices.pick(_CELLS)
    width, hidden, type = 6, g.choices.pick((4, 8)), g.choices.pick(("f32", "f32", "f16"))
    rows = Axis(g.choices.pick((1, 2, 3)), g.choices.chance())
    x = g.parameter((rows, Axis(width)), type)
    first = [g.parameter((rows, Axis(hidden)), type) for _ in range(states)]
    weights = [g.constant((gates * hidden, n), type, 0.2) for n in (width, hidden)]
    bias = g.constant((gates * hidden,), type, 0.2)
    state = (type, (rows, Axis(hidden)))
    g.add(f"{kind}Cell", [x, *first, *weights, bias], *[state] * states, hidden_size=hidden)


_CELLS: Final = (("LSTM", 2, 4), ("GRU", 1, 3), ("RNN", 1, 1))
"""The recurrent layers: the name, and the numbers of states and of gates."""


def _encoder(g: Chain) -> None:
    _transformer(g, Axis(5), "f32")


def _dynamic_encoder(g: Chain) -> None:
    g.sizes = range(1, 8)
    _transformer(g, Axis(g.choices.pick(g.sizes), True), g.choices.pick(("f32", "f32", *FLOATS)))


def _transformer(g: Chain, length: Axis, type: str) -> None:
    """Encoder layers, with the parts of LayerNorm, attention and Gelu, and heads split by the shape of the input."""
    heads, width = 2, 8
    x = g.parameter((Axis(1), length, Axis(heads * width)), type)
    for _ in range(g.choices.pick((1, 2))):
        normed = layer_norm(g, x)
        q, k, v = (_split_heads(g, _dense(g, normed, heads * width), heads, width) for _ in range(3))
        mask = g.constant((1, 1, 1, 1), type) if g.choices.chance(0.3) else None
        merged = attention(g, q, k, v, mask)
        order = g.ints(0, 2, 1, 3)
        (merged,) = g.layer("Transpose", [merged, order], (type, tuple(merged.axes[n] for n in (0, 2, 1, 3))))
        target = g.ints(0, 0, heads * width)
        (merged,) = g.layer("Reshape", [merged, target], (type, x.axes), special_zero=True)
        x = g.compute("Add", x, _dense(g, merged, heads * width))
        inner = gelu(g, _dense(g, layer_norm(g, x), 2 * heads * width))
        x = g.compute("Add", x, _dense(g, inner, heads * width))
        g.offer(x)


def _dense(g: Chain, x: Tensor, columns: int) -> Tensor:
    depth = x.dims[-1]
    w, shift = g.constant((columns, depth), x.type, 1 / depth), g.constant((1, 1, columns), x.type)
    axes = (*x.axes[:-1], Axis(columns))
    (product,) = g.layer("MatMul", [x, w], (x.type, axes), transpose_a=False, transpose_b=True)
    return g.compute("Add", product, shift)


def _split_heads(g: Chain, x: Tensor, heads: int, width: int) -> Tensor:
    (shape,) = g.layer("ShapeOf", [x], ("i64", fixed(x.rank)))
    (rows,) = g.layer("Gather", [shape, g.ints(0, 1), g.number(0, "i64")], ("i64", fixed(2)))
    (target,) = g.layer("Concat", [rows, g.ints(heads, width)], ("i64", fixed(4)), axis=0)
    split = (*x.axes[:2], Axis(heads), Axis(width))
    (parts,) = g.layer("Reshape", [x, target], (x.type, split), special_zero=False)
    return g.layer("Transpose", [parts, g.ints(0, 2, 1, 3)], (x.type, tuple(split[n] for n in (0, 2, 1, 3))))[0]


def _multiply(g: Chain, x: Tensor, columns: int) -> Tensor:
    depth = x.dims[-1]
    w = g.array(g.numbers.uniform(-1 / depth, 1 / depth, (depth, columns)).astype(np.float32))
    return g.add("MatMul", [x, w], (x.type, (*x.axes[:-1], Axis(columns))))[0]


def _tiles(g: Chain) -> None:
    """Element-wise layers behind a matrix product, and others alone, on more than one tile."""
    rows = g.choices.pick((200, 210))
    x = _activate(g, _activate(g, _multiply(g, g.parameter(fixed(rows, 160)), 192)))
    _activate(g, g.add("Multiply", [x, g.constant((192,), "f32")], (x.type, x.axes))[0])
    y = g.parameter(fixed(rows, 192))
    (y,) = g.add("Multiply", [y, g.constant((192,), "f32")], (y.type, y.axes))
    _activate(g, g.add("Add", [_activate(g, y), y], (y.type, y.axes))[0])  # read twice, so that a tile is kept


def _threads(g: Chain) -> None:
    """Matrix products large enough for several threads and for pooled memory."""
    g.sizes = range(500, 521, 20)
    x = g.parameter((Axis(520, g.choices.chance()), Axis(64)))
    x = _activate(g, _multiply(g, x, 640))
    x = _activate(g, _multiply(g, x, 640))
    _multiply(g, g.add("SoftMax", [x], (x.type, x.axes), axis=-1)[0], 16)


def _strings(g: Chain) -> None:
    rows = Axis(3, g.choices.chance())
    x = g.parameter((rows, Axis(2)), "string")
    both: Axes = (Axis(rows.size + 4, rows.open), Axis(2))
    (y,) = g.layer("Concat", [x, g.constant((4, 2), "string")], (x.type, both), axis=0)
    (y,) = g.layer("Unsqueeze", [y, g.ints(0)], (x.type, (Axis(1), *both)))
    (y,) = g.layer("Concat", [y, y], (x.type, (Axis(2), *both)), axis=0)
    (y,) = g.layer("Concat", [y, y], (x.type, (Axis(2), both[0], Axis(4))), axis=2)
    g.add("Gather", [y, g.ints(1, 0, 0), g.number(2, "i64")], (x.type, (Axis(2), both[0], Axis(3))))


def _packed_integers(g: Chain) -> None:
    """Weights in four bits or eight, widened as a compressed model widens them: too many to be folded."""
    x = g.parameter(fixed(g.choices.pick((1, 3)), 128))
    type = g.choices.pick(("u4", "i4", "i8", "u8"))
    low, high = (0, 8) if type.startswith("u") else (-8, 8)
    codes = g.array(g.numbers.integers(low, high, (64, 128)), type)
    (w,) = g.layer("Convert", [codes], ("f16", codes.axes), destination_type="f16")
    w = g.compute("Subtract", w, g.array(np.full((64, 1), 4, np.float16)))
    w = g.compute("Multiply", w, g.array(np.full((64, 1), 1 / 512, np.float16)))
    (w,) = g.layer("Convert", [w], ("f32", w.axes), destination_type="f32")
    g.add("MatMul", [x, w], (x.type, (x.axes[0], Axis(64))), transpose_a=False, transpose_b=True)


STARTS: Final[tuple[Callable[[Chain], None], ...]] = (
    _channels_last, _winograd_four, _winograd_two, _winograd_first, _winograd_dynamic, _depthwise, _planes, _fourier,
    _depth_to_space, _images, _group_norm, _backprop, _sequence, _encoder, _tiles, _threads, _strings,
    _packed_integers, _dynamic_encoder, _cell,
)  # fmt: skip
"""A function for each start. Together they reach every algorithm of ``irrun.fuzz.reached.ALGORITHMS``."""
