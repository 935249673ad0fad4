"""Random models of one operation, or of a few that compiled kernels join."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from irrun import build as b
from irrun.opdef import FEW_ROWS, Precision
from kernel_calls.attending import attention, paged, rotation, token, windows
from kernel_calls.draw import Draw, Node

__all__ = ["IN_PRECISIONS", "MODELS"]


# ---------------------------------------------------------------------------------------------
# models


def _after(d: Draw, node: Node, *shape: int) -> Node:
    """Add what kernels join to products and convolutions: an activation, a clamp, a residual of this shape."""
    kind = d.rng.integers(6)
    if kind == 0:
        return b.Relu(node)
    if kind == 1:
        return b.Clamp(node, min=-1.0, max=2.0)
    if kind == 2:
        return d.one(b.Gelu, b.Sigmoid, b.Tanh, b.Swish)(node)
    return b.Add(node, d.input(*shape)) if kind == 3 else node


_FLOATS: Final = ("f32", "f16", "bf16")
_CODES: Final = ("u8", "i8", "u4", "i4")


def _matrix(d: Draw, depth: int, columns: int, *kinds: str) -> tuple[Node, bool]:
    """Return a constant matrix of one of some types, and whether it is transposed.

    Integers have scales and zeros by groups.
    """
    kind = d.one(*kinds)
    ranges = {"u8": (0, 256), "i8": (-128, 128), "u4": (0, 16), "i4": (-8, 8)}
    if kind == "f32":
        flip = bool(d.rng.integers(2))
        return d.weights(*((columns, depth) if flip else (depth, columns))), flip
    if kind not in ranges:
        return b.Convert(b.constant(d.weights(depth, columns), kind), destination_type="f32"), False
    groups = d.one(*(n for n in (1, 2, 4) if depth % n == 0))
    low, high = ranges[kind]
    codes, zeros = (
        b.Convert(b.constant(d.rng.integers(low, high, (columns, groups, size)), kind), destination_type="f32")
        for size in (depth // groups, 1)
    )
    scales = np.abs(d.normal(columns, groups, 1, scale=1 / 512)) + np.float32(0.002)
    scaled = b.Multiply(b.Subtract(codes, zeros), scales)
    return b.Reshape(scaled, np.array([columns, depth]), special_zero=False), True


def _product(d: Draw) -> Node:
    depth, columns = d.size(300), d.size(300)
    if d.rng.random() < 0.5:  # small integers are folded
        depth = max(depth, -(-(1 << 12) // columns) + 7 & -8)
    matrix, flip = _matrix(d, depth, columns, *_FLOATS, *_CODES)
    batch, rows, other = (
        [d.size(3) for _ in range(d.rng.integers(3))],
        d.one(d.size(5), d.size(40)),
        bool(d.rng.integers(2)),
    )
    a = d.input(*batch, *((depth, rows) if other else (rows, depth)))
    product = b.MatMul(a, matrix, transpose_a=other, transpose_b=flip)
    if d.rng.random() < 0.5:
        product = b.Add(product, d.normal(columns))
    return _after(d, product, *batch, rows, columns)


def _product_with_codes(d: Draw) -> Node:
    """A product whose rows are quantized in groups. Its depth is mostly one for which there are kernels."""
    words, columns = d.size(64), d.size(300)
    depth = 8 * max(words, -(-(1 << 9) // columns)) + d.one(0, 0, 0, d.size(7))
    matrix, flip = _matrix(d, depth, columns, *_CODES)
    rows = d.one(1, d.size(7), d.size(80))
    product = b.MatMul(d.input(rows, depth), matrix, transpose_b=flip)
    return _after(d, product, rows, columns)


def _rows(d: Draw) -> Node:
    """Products, normalisations and element-wise layers in turn, which are joined by rows."""
    shape = [d.size(3) for _ in range(d.rng.integers(2))] + [d.size(160, d.one(1, FEW_ROWS))]
    wide = d.one(d.size(100), 72, 96)
    x, size = d.input(*shape, wide, dynamic=0), wide
    kept = [(x, wide)]
    for _ in range(d.rng.integers(2, 9)):
        kind = d.rng.integers(6)
        if kind < 2:
            size, depth = d.one(d.size(100), 72, 96), size
            matrix, flip = _matrix(d, depth, size, *_FLOATS, *_CODES)
            x = b.MatMul(x, matrix, transpose_b=flip)
        elif kind == 2:
            x = d.one(b.Gelu, b.Sigmoid, b.Tanh, b.Relu)(x)
        elif kind == 3:
            x = _normalised(d, x, size)
        else:
            others = [node for node, columns in kept if columns == size]
            fed = d.rng.random() < 0.3
            other = d.input(*shape, size, dynamic=0) if fed else d.one(d.normal(size), d.normal(1), *others)
            x = d.one(b.Add, b.Multiply, b.Subtract, b.Maximum)(x, other)
        kept.append((x, size))
    return x


def _normalised(d: Draw, x: Node, size: int) -> Node:
    """Add a normalisation whose ``eps`` keeps it from amplifying the rounding of Gelu a thousand times."""
    kind = d.rng.integers(3)
    if kind == 0:
        return b.SoftMax(x, opset=8, axis=-1)
    if kind == 1:
        return b.RMS(x, d.normal(size), epsilon=0.1)
    return b.MVN(x, [-1], normalize_variance=True, eps=0.1, eps_mode=d.one("inside_sqrt", "outside_sqrt"))


def _activation(type: str) -> Callable[[Draw], Node]:
    def draw(d: Draw) -> Node:
        x = d.input(*(d.size(40) for _ in range(d.rng.integers(1, 5))))
        if type == "Gelu":
            return b.Gelu(x, approximation_mode=d.one("ERF", "TANH"))
        return getattr(b, type)(x)

    return draw


def _sequence(type: str) -> Callable[[Draw], Node]:
    gates, states = (4, 2) if type.startswith("LSTM") else (3, 1)

    def draw(d: Draw) -> Node:
        batch, steps, size = d.size(5), d.size(9), d.size(40)
        linear = type.startswith("GRU") and bool(d.rng.integers(2))
        hidden = d.size(70)
        biases = gates + linear
        options = {"linear_before_reset": True} if linear else {}
        if type.endswith("Cell"):
            held = [d.input(batch, hidden, dynamic=0) for _ in range(states)]
            weights = d.weights(gates * hidden, size), d.weights(gates * hidden, hidden), d.weights(biases * hidden)
            node = getattr(b, type)(d.input(batch, size, dynamic=0), *held, *weights, hidden_size=hidden, **options)
            return [node[n] for n in range(states)]
        direction = d.one("forward", "reverse", "bidirectional")
        ways = 2 if direction == "bidirectional" else 1
        x, held = (
            d.input(batch, steps, size, dynamic=0),
            [d.input(batch, ways, hidden, dynamic=0) for _ in range(states)],
        )
        lengths = d.rng.integers(1, steps + 1, batch) if d.rng.random() < 0.5 else np.full(batch, steps)
        weights = (d.weights(ways, gates * hidden, s) for s in (size, hidden))
        node = getattr(b, type)(
            x, *held, lengths.astype(np.int32), *weights, d.weights(ways, biases * hidden), hidden_size=hidden,
            direction=direction, **options,
        )  # fmt: skip
        return [node[n] for n in range(d.one(1, states + 1))]

    return draw


def _filters(d: Draw, *shape: int) -> Node:
    """Return constant filters, which the model may hold in 16 bits."""
    kind = d.one("f32", "f16", "bf16")
    filters = d.weights(*shape)
    return filters if kind == "f32" else b.Convert(b.constant(filters, kind), destination_type="f32")


def _inside(node: Node) -> Node:
    """Add so many layers that the planner lays the channels last."""
    for _ in range(10):
        node = b.Negative(node)
    return node


def _spatial(d: Draw, channels: int, least: int) -> tuple[Node, tuple[int, ...]]:
    shape = d.size(3), channels, d.size(24, least), d.size(24, least)
    return d.input(*shape, dynamic=0), shape


def _convolution(type: str) -> Callable[[Draw], Node]:
    def draw(d: Draw) -> Node:
        kernel, dilation = [d.one(1, 1, 2, 3, 3, 5) for _ in "hw"], [d.one(1, 1, 1, 2) for _ in "hw"]
        groups = 1 if not type.startswith("Group") else d.one(2, 3, 8)
        ins, outs = d.size(48), d.size(48)
        winograd = type == "Convolution" and d.rng.random() < 0.4
        if winograd:
            kernel, dilation, ins, outs = [3, 3], [1, 1], d.one(16, 32, 48), d.one(16, 32, 48)
        elif type == "Convolution" and d.rng.random() < 0.3:
            outs = d.one(100, 192, 192)  # two or three threads share the panels, if these are larger than the data
        if groups > 1 and d.rng.random() < 0.5:
            ins = outs = 1
            groups = d.size(64, 2)  # depthwise
        least = max((k - 1) * s + 1 for k, s in zip(kernel, dilation))
        data, _ = _spatial(d, groups * ins, least)
        pair = (ins, outs) if type.endswith("BackpropData") else (outs, ins)
        filters = _filters(d, *([groups] if type.startswith("Group") else []), *pair, *kernel)
        zero = (0, 0)
        pads = [[int(d.rng.integers(0, k)) for k in kernel] for _ in "be"] if d.rng.random() < 0.7 else [zero, zero]
        if type.endswith("BackpropData"):
            pads = [zero, zero]
        strided = d.rng.random() < 0.5 and not winograd
        strides = [int(d.rng.integers(1, min(k, 2) + 1)) for k in kernel] if strided else [1, 1]
        node = getattr(b, type)(
            data, filters, strides=strides, pads_begin=pads[0], pads_end=pads[1], dilations=dilation
        )
        if d.rng.random() < 0.5:
            node = b.Add(node, d.normal(1, groups * outs, 1, 1))
        return _inside(d.one(node, b.Relu(node), b.Clamp(node, min=0.0, max=6.0), b.Swish(node)))

    return draw


def _patches(d: Draw) -> Node:
    """A convolution whose windows lie side by side."""
    kernel, ins, outs = [d.one(2, 3, 4, 8) for _ in "hw"], d.size(4), d.size(80, 20)
    data = d.input(d.size(2), ins, *(side * d.size(6) + d.one(0, 1) for side in kernel), dynamic=0)
    none = [0, 0]
    filters = _filters(d, outs, ins, *kernel)
    y = b.Convolution(data, filters, strides=kernel, pads_begin=none, pads_end=none, dilations=[1, 1])
    return d.one(y, b.Gelu(b.Add(y, d.normal(1, outs, 1, 1))))


def _rows_of_a_table(d: Draw) -> Node:
    """Rows of a matrix that stays in 16 bits, also counted from its end, or outside of it."""
    rows, columns, type = d.size(300, 64), d.one(64, 128, d.size(100, 64)), d.one("f16", "bf16")
    table = b.Convert(b.constant(d.weights(rows, columns), type), destination_type="f32")
    places = b.Convert(
        b.Multiply(d.input(d.size(5), d.size(9)), d.one(1.0, 40.0)), destination_type=d.one("i32", "i64")
    )
    return b.Gather(table, places, 0, batch_dims=0, opset=8)


def _joined(d: Draw) -> Node:
    shape, dynamic = [d.size(12) for _ in range(d.rng.integers(1, 4))], d.one(0.0, 0.4)
    axis = int(d.rng.integers(len(shape)))
    parts = [[*shape[:axis], d.size(40), *shape[axis + 1 :]] for _ in range(d.size(4))]
    return b.Concat([d.input(*part, dynamic=dynamic) for part in parts], axis=axis)


def _enlarged(d: Draw) -> Node:
    """Images that are resized between convolutions, so that the planner lays the channels last."""
    channels = d.size(40)
    data, shape = _spatial(d, d.size(8), 1)
    none = [0, 0]
    y = b.Convolution(
        data, d.weights(channels, shape[1], 1, 1), strides=[1, 1], pads_begin=none, pads_end=none, dilations=[1, 1]
    )
    sizes = [d.one(side, 2 * side, d.size(40)) for side in shape[2:]]
    options = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric", "antialias": False}
    y = b.Interpolate(
        y, sizes, [2, 3], mode="nearest", shape_calculation_mode="sizes", pads_begin=[0], pads_end=[0],
        cube_coeff=-0.75, opset=11, **options,
    )  # fmt: skip
    return _inside(y)


def _line(d: Draw) -> Node:
    """A convolution along one axis."""
    ins, outs, kernel = d.size(48), d.size(80), d.one(1, 2, 3, 5)
    pads = [int(d.rng.integers(0, kernel)) for _ in "be"]
    data, filters = d.input(d.size(2), ins, d.size(100, kernel)), _filters(d, outs, ins, kernel)
    return b.Convolution(data, filters, strides=[d.one(1, 1, 2)], pads_begin=pads[:1], pads_end=pads[1:], dilations=[1])


def _convolutions(d: Draw) -> Node:
    """Convolutions and poolings with sums and Concats of their results: computed in bands, or in one call."""
    channels = d.size(40)
    x, shape = _spatial(d, channels, 1)
    before: list[tuple[Node, int]] = []
    for _ in range(d.rng.integers(2, 7)):
        if d.rng.random() < 0.2:
            x = b.MaxPool(x, opset=1, strides=[1, 1], kernel=[3, 3], pads_begin=[1, 1], pads_end=[1, 1])
        if before and d.rng.random() < 0.3:
            other, more = d.one(*before)
            x, channels = b.Concat(x, other, axis=1), channels + more
        size, ins = d.one(1, 1, 3, 3, 5), channels
        alone = d.rng.random() < 0.3
        channels = channels if alone or d.rng.random() < 0.5 else d.size(40)
        filters = _filters(d, *((ins, 1, 1) if alone else (channels, ins)), size, size)
        pads: dict[str, Any] = {"pads_begin": [size // 2] * 2, "pads_end": [size // 2] * 2}
        x = (b.GroupConvolution if alone else b.Convolution)(x, filters, strides=[1, 1], dilations=[1, 1], **pads)
        x = d.one(x, b.Add(x, d.normal(1, channels, 1, 1)))
        alike = [node for node, count in before if count == channels]
        x = b.Add(x, d.one(*alike)) if alike and d.rng.random() < 0.7 else x
        x = d.one(x, b.Relu(x), b.Swish(x), b.Clamp(x, min=-1.0, max=6.0))
        before.append((x, channels))
    return _inside(b.Add(x, d.input(shape[0], channels, *shape[2:], dynamic=0)) if d.rng.random() < 0.2 else x)


def _pool(type: str) -> Callable[[Draw], Node]:
    def draw(d: Draw) -> Node:
        kernel = [d.one(1, 2, 3, 5) for _ in "hw"]
        data, shape = _spatial(d, d.size(40), max(kernel))
        # a convolution before it, so that the planner lays the channels last
        data = b.Convolution(
            data, d.weights(d.size(40), shape[1], 1, 1), strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0],
            dilations=[1, 1],
        )  # fmt: skip
        options = {"strides": [d.one(1, 2) for _ in "hw"], "kernel": kernel}
        options |= {f"pads_{end}": [int(d.rng.integers(0, (k + 1) // 2)) for k in kernel] for end in ("begin", "end")}
        options["rounding_type"] = d.one("floor", "ceil")
        if type == "AvgPool":
            return _inside(b.AvgPool(data, **options, **{"exclude-pad": bool(d.rng.integers(2))}))
        return _inside(b.MaxPool(data, opset=1, **options))

    return draw


def _group_normalization(d: Draw) -> Node:
    groups = d.one(1, 2, 4)
    channels = groups * d.size(12)
    data, shape = _spatial(d, d.size(16), 1)
    data = b.Convolution(
        data, d.weights(channels, shape[1], 1, 1), strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilations=[1, 1]
    )
    return _inside(b.GroupNormalization(data, d.normal(channels), d.normal(channels), num_groups=groups, epsilon=1e-3))


def _along_rows(type: str) -> Callable[[Draw], Node]:
    def draw(d: Draw) -> Node:
        shape = [d.size(300 if axis == 0 else 12) for axis in range(d.rng.integers(1, 4))][::-1]
        x = d.input(*shape, dynamic=0 if type == "RMS" else 0.4)
        if type.lower().endswith("softmax"):
            return b.SoftMax(x, opset=8, axis=-1) if type == "SoftMax" else b.LogSoftmax(x, axis=-1)
        if type == "MVN":
            return b.MVN(x, [-1], normalize_variance=True, eps=1e-3, eps_mode=d.one("inside_sqrt", "outside_sqrt"))
        return b.RMS(x, d.normal(shape[-1]), epsilon=1e-3)

    return draw


def _reduced(type: str) -> Callable[[Draw], Node]:
    """Sums and means along neighbouring axes."""

    def draw(d: Draw) -> Node:
        shape = [d.size(600 if axis == 0 else 30) for axis in range(d.rng.integers(1, 4))][::-1]
        begin = int(d.rng.integers(len(shape)))
        axes = np.arange(begin, d.rng.integers(begin, len(shape)) + 1)
        return getattr(b, type)(d.input(*shape), axes, keep_dims=bool(d.rng.integers(2)))

    return draw


def _fake_quantize(d: Draw) -> Node:
    x = d.input(*(d.size(40) for _ in range(d.rng.integers(1, 5))))
    low, high = sorted(d.normal(2, scale=3))
    ends = np.float32(low), np.float32(high + 0.5), np.float32(-1), np.float32(d.one(1.0, 254.0, -2.0))
    return b.FakeQuantize(x, *ends, levels=d.one(2, 16, 255, 256, 257, 65536))


def _integers(d: Draw) -> Node:
    """Convolutions of levels one after the other. Each step is an odd number of the least step of the sums before it.

    No sum is then in the middle between two levels, where rounding of f32 would choose. A tangent may follow the last
    one, of which three levels are left.
    """
    channels, least = d.one(3, d.size(20)), 2.0**-4
    x, before = _levels(_spatial(d, channels, 1)[0], np.full(1, least), d.one(0, 117)), []
    for _ in range(d.rng.integers(1, 4)):
        size, ins = d.one(1, 2, 3, 3), channels
        alone = ins > 1 and d.rng.random() < 0.3
        channels = ins if alone or d.rng.random() < 0.3 else d.size(80)
        codes = d.rng.integers(-128, 128, (*((ins, 1, 1) if alone else (channels, ins)), size, size))
        scales = np.full((*codes.shape[:2], *(1,) * (codes.ndim - 2)) if alone else (channels, 1, 1, 1), 1 / 64)
        filters = b.Multiply(b.Convert(b.constant(codes, "i8"), destination_type="f32"), scales.astype(np.float32))
        pads: dict[str, Any] = {"pads_begin": [size // 2] * 2, "pads_end": [(size - 1) // 2] * 2}
        x = (b.GroupConvolution if alone else b.Convolution)(x, filters, strides=[1, 1], dilations=[1, 1], **pads)
        x = d.one(x, b.Add(x, (d.rng.integers(-9, 9, (1, channels, 1, 1)) * least).astype(np.float32)))
        x = d.one(x, b.Relu(x), b.Clamp(x, min=-8 * least, max=4096 * least))
        odd, least = d.one(1001, 1501), least / 64
        x = _levels(x, np.full(d.one(1, channels) if alone else 1, odd * least), d.one(0, 100, 128))
        if (alike := [node for node, count in before if count == channels]) and d.rng.random() < 0.7:
            x = _levels(b.Relu(b.Add(x, d.one(*alike))), np.full(1, odd * least), 0)
        if d.rng.random() < 0.3:
            x = b.MaxPool(x, opset=1, strides=[1, 1], kernel=[3, 3], pads_begin=[1, 1], pads_end=[1, 1])
        before, least = [*before, (x, channels)], odd * least
    if d.rng.random() < 0.5:
        return x
    codes = b.constant(d.rng.integers(-128, 128, (outs := d.size(80), channels, 1, 1)), "i8")
    filters = b.Multiply(b.Convert(codes, destination_type="f32"), np.full((outs, 1, 1, 1), 1 / 64, np.float32))
    x = b.Convolution(x, filters, strides=[1, 1], dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0])
    return b.FakeQuantize(b.Tanh(x), *map(np.float32, (-1, 1, -1, 1)), levels=3)


def _levels(x: Node, step: np.ndarray, zero: int) -> Node:
    ends = [(end * step).astype(np.float32).reshape(1, -1, 1, 1) for end in (-zero, 255 - zero)]
    return b.FakeQuantize(x, *ends, *ends, levels=256)


def _outer(d: Draw) -> Node:
    lead, rows, columns = d.size(4), d.size(600, 200), d.size(512, 350)  # smaller ones are left to numpy
    return b.Multiply(d.input(lead, rows, 1), d.input(lead, 1, columns))


IN_PRECISIONS: Final[Mapping[str, Precision]] = {" in bf16": "bf16", " in i8": "int8-activations"}
"""How the names of models end that multiply in a lower precision."""
_MULTIPLYING: Final[Mapping[str, Callable[[Draw], Node]]] = {
    "MatMul": _product,
    "Convolutions": _convolutions,
    "Line": _line,
    "Patches": _patches,
    **{type: _sequence(type) for type in ("GRUCell", "GRUSequence", "LSTMCell", "LSTMSequence")},
    **{
        type: _convolution(type)
        for type in (
            "Convolution", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData"
        )
    },
}  # fmt: skip
MODELS: Final[Mapping[str, Callable[[Draw], Node]]] = {
    **{type: _activation(type) for type in ("Erf", "Exp", "Gelu", "Sigmoid", "Swish", "Tanh")},
    **_MULTIPLYING,
    **{f"{type} in bf16": draw for type, draw in _MULTIPLYING.items()},
    "MatMul in i8": _product_with_codes,
    **{type: _pool(type) for type in ("AvgPool", "MaxPool")},
    **{type: _along_rows(type) for type in ("LogSoftmax", "MVN", "RMS", "SoftMax")},
    **{type: _reduced(type) for type in ("ReduceMean", "ReduceSum")},
    "Concat": _joined,
    "FakeQuantize": _fake_quantize,
    "Gather": _rows_of_a_table,
    "GroupNormalization": _group_normalization,
    "Integers": _integers,
    "Interpolate": _enlarged,
    "Multiply": _outer,
    "PagedAttentionExtension": paged,
    "Rotation": rotation,
    "Rows": _rows,
    "ScaledDotProductAttention": attention,
    "ScaledDotProductAttention in bf16": attention,
    "Token": token,
    "Windows": windows,
}  # fmt: skip
"""What draws a model: for each type of operation that has compiled kernels, and for layers that kernels join."""
