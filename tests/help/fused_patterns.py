"""Models of the patterns that plugins fuse, each layer named, with one condition changed on request."""

from __future__ import annotations

from typing import Any

import numpy as np

import irrun
from irrun import build as b

__all__ = ["attention", "compressed", "gelu", "int8", "layer_norm", "rms", "rope"]

_rng = np.random.default_rng(0)


def _one(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def _weights(*shape: int) -> np.ndarray:
    return _rng.normal(0, 0.3, shape).astype(np.float32)


def layer_norm(
    *,
    axes: tuple[int, ...] = (-1,),
    variance_axes: tuple[int, ...] | None = None,
    keep_dims: bool = True,
    exponent: float = 2,
    eps: Any = 1e-5,
    of: str = "x",
    is_read: bool = False,
) -> irrun.Model:
    """Return LayerNorm in single layers. ``of`` is the input of the mean, and ``is_read`` adds a reader of the root."""
    x = b.parameter([2, 8, 16], "f32", name="x")
    source = b.Sigmoid(x, name="other") if of == "other" else x
    mean = b.ReduceMean(source, np.array(axes), name="mean", keep_dims=True)
    centred = b.Subtract(x, mean, name="centred")
    square = b.Power(centred, _one(exponent), name="square")
    variance_axes = axes if variance_axes is None else variance_axes
    variance = b.ReduceMean(square, np.array(variance_axes), name="variance", keep_dims=keep_dims)
    if not keep_dims:
        variance = b.Unsqueeze(variance, np.array(variance_axes), name="unsqueezed")
    root = b.Sqrt(b.Add(variance, np.asarray(eps, np.float32), name="eps"), name="root")
    scaled = b.Divide(centred, root, name="scaled")
    gain = b.Multiply(scaled, _weights(16), name="gain")
    outputs: dict[str, Any] = {"y": b.Add(gain, _weights(16), name="bias")}
    if is_read:
        outputs["z"] = b.ReLU(root, name="again")
    return b.model(outputs)


def rms(
    *, axes: tuple[int, ...] = (-1,), keep_dims: bool = True, exponent: float = 2, eps: Any = 1e-5, of: str = "x"
) -> irrun.Model:
    """Return RMSNorm in single layers. ``of`` is what is squared."""
    x = b.parameter([2, 8, 16], "f32", name="x")
    source = b.Sigmoid(x, name="other") if of == "other" else x
    square = b.Power(source, _one(exponent), name="square")
    mean = b.ReduceMean(square, np.array(axes), name="mean", keep_dims=keep_dims)
    if not keep_dims:
        mean = b.Unsqueeze(mean, np.array(axes), name="unsqueezed")
    root = b.Sqrt(b.Add(mean, np.asarray(eps, np.float32), name="eps"), name="root")
    return b.model({"y": b.Multiply(b.Divide(x, root, name="scaled"), _weights(16), name="gain")})


def gelu(*, half: float = 0.5, root: float = 2**0.5, one: float = 1.0, of: str = "x") -> irrun.Model:
    """Return Gelu in single layers. ``of`` is what the error function is computed of."""
    x = b.parameter([2, 8, 16], "f32", name="x")
    source = b.Sigmoid(x, name="other") if of == "other" else x
    erf = b.Erf(b.Divide(source, _one(root), name="by_root"), name="erf")
    product = b.Multiply(x, b.Add(erf, _one(one), name="plus"), name="product")
    return b.model({"y": b.Multiply(product, _one(half), name="gelu")})


def rope(*, sign: float = -1, half: int = 8, swapped: bool = True, axis: int = -1, of: str = "x") -> irrun.Model:
    """Return a rotary embedding of x [1,4,6,16]: ``x * cos + turned * sin``."""
    x = b.parameter([1, 4, 6, 16], "f32", name="x")
    source = b.Sigmoid(x, name="other") if of == "other" else x
    cos, sin = (b.parameter([1, 1, 6, 16], "f32", name=name) for name in ("cos", "sin"))

    def part(begin: int, end: int, name: str) -> Any:
        return b.Slice(source, np.array([begin]), np.array([end]), np.array([1]), np.array([3]), name=name)

    low, high = part(0, half, "low"), part(half, 16, "high")
    minus = b.Multiply(high if swapped else low, _one(sign), name="minus")
    turned = b.Concat(minus, low if swapped else high, name="turned", axis=axis)
    first, second = b.Multiply(x, cos, name="by_cos"), b.Multiply(turned, sin, name="by_sin")
    return b.model({"y": b.Add(first, second, name="rotated")})


def attention(*, axis: int = -1, transposed: bool = False, is_read: bool = False, batch: int = 1) -> irrun.Model:
    """Return attention in single layers, of [batch,4,8,16]."""
    q, k, v = (b.parameter([batch, 8, 4, 16], "f32", name=name) for name in "qkv")
    q, k, v = (b.Transpose(t, np.array([0, 2, 1, 3]), name=f"{n}_heads") for t, n in zip((q, k, v), "qkv"))
    scores = b.MatMul(q, k, name="scores", transpose_b=True)
    scaled = b.Multiply(scores, _one(0.25), name="scale")
    weights = b.SoftMax(scaled, name="softmax", axis=axis)
    mixed = b.MatMul(weights, v, name="mixed", transpose_a=transposed)
    outputs: dict[str, Any] = {"y": mixed}
    if is_read:
        outputs["z"] = b.ReLU(weights, name="again")
    return b.model(outputs)


def compressed(
    *,
    type: Any = np.uint8,
    transpose_b: bool = True,
    scales: str = "channel",
    is_read: bool = False,
    dtype: Any = np.float16,
) -> irrun.Model:
    """Return a MatMul whose weights are integers with zero points and scales."""
    x = b.parameter([4, 64], "f32", name="x")
    codes = _rng.integers(0, 15, (32, 64)).astype(type)
    shape = {"channel": (32, 1), "column": (1, 64), "one": (1, 1)}[scales]
    if not transpose_b:
        codes = codes.T.copy()
        shape = shape[::-1]
    name = np.dtype(dtype).name.replace("float", "f")
    wide = b.Convert(b.constant(codes, name="codes"), destination_type=name, name="wide")
    zeros = b.Convert(b.constant(np.full(shape, 7, type), name="zeros"), destination_type=name, name="zeros_wide")
    moved = b.Subtract(wide, zeros, name="moved")
    matrix: Any = b.Multiply(moved, b.constant(np.full(shape, 0.01, dtype), name="scales"), name="scaled")
    if name != "f32":
        matrix = b.Convert(matrix, destination_type="f32", name="matrix")
    outputs: dict[str, Any] = {"y": b.MatMul(x, matrix, name="product", transpose_b=transpose_b)}
    if is_read:
        outputs["z"] = b.Sigmoid(matrix, name="again")
    return b.model(outputs)


def int8(
    *, levels: int = 256, weight_levels: int = 255, per_channel: bool = False, constant: bool = True
) -> irrun.Model:
    """Return a convolution whose input and filters are quantized."""
    x = b.parameter([1, 16, 8, 8], "f32", name="x")
    shape = (1, 16, 1, 1) if per_channel else ()
    low, high = np.zeros(shape, np.float32), np.full(shape, 2, np.float32)
    if per_channel:
        high = high * np.linspace(0.5, 2, 16, dtype=np.float32).reshape(shape)
    data = b.FakeQuantize(x, low, high, low, high, levels=levels, name="data")
    filters: Any = b.constant(_weights(16, 16, 3, 3), name="filters")
    if not constant:
        filters = b.parameter([16, 16, 3, 3], "f32", name="filters")
    low, high = np.full((16, 1, 1, 1), -1, np.float32), np.full((16, 1, 1, 1), 1, np.float32)
    quantized = b.FakeQuantize(filters, low, high, low, high, levels=weight_levels, name="quantized")
    pads = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}
    y = b.Convolution(data, quantized, name="conv", **pads)
    return b.model({"y": b.ReLU(y, name="relu")})
