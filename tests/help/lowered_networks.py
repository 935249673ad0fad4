"""Five networks in which one layer can be lowered by hand: layers that round are inserted into the model itself.

They are the witness of ``irrun.debug.precision``: each model is an ordinary one, which irrun runs with its defining
kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import irrun
from irrun import build as b

MOVING = {"Transpose", "Reshape", "Concat", "MaxPool", "ReLU", "Slice", "Squeeze", "Unsqueeze", "VariadicSplit"}
"""The operations that move values or choose among them: they round nothing."""
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
QUANTIZED = ("MatMul", "Convolution", "GroupConvolution", "ConvolutionBackpropData")
OUT_AXIS = {"Convolution": 0, "ConvolutionBackpropData": 1}

Ranges = Mapping[tuple[str, int], tuple[float, float]]


@dataclass
class Net:
    """Builds a network. The layer named ``lowered`` computes in ``format``, all others in f32.

    ``ranges`` are those of the inputs that int8 quantizes, by layer and position.
    """

    lowered: str | None = None
    format: str = "f16"
    ranges: Ranges = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    """The type of each layer, by its name with the path through bodies."""
    inputs: list[Any] = field(default_factory=list)
    prefix: str = ""

    def input(self, shape: list[int], name: str) -> Any:
        self.inputs.append(b.parameter(shape, "f32", name=name))
        return self.inputs[-1]

    def __call__(self, type: str, *inputs: Any, name: str, **attributes: Any) -> Any:
        """Return a layer. Arrays are its constants."""
        path = self.prefix + name
        self.types[path] = type
        is_lowered = path == self.lowered
        nodes = [self._input(type, path, i, node, is_lowered, attributes) for i, node in enumerate(inputs)]
        node: Any = getattr(b, type)(*nodes, name=name, **attributes)
        if is_lowered and self.format in DTYPES and type not in MOVING:
            node = _rounded(node, self.format)
        return node

    def _input(self, type: str, path: str, position: int, node: Any, lowered: bool, attributes: Any) -> Any:
        is_array = isinstance(node, np.ndarray)
        floats = not is_array or node.dtype == np.float32
        if not lowered or not floats:
            return b.constant(node) if is_array else node
        if self.format in DTYPES:
            if is_array:
                return b.constant(node.astype(DTYPES[self.format]).astype(np.float32))
            return _rounded(node, self.format) if any(node is i for i in self.inputs) else node
        if type not in QUANTIZED or position > 1:
            return b.constant(node) if is_array else node
        if is_array:
            axis = _out_axis(type, position, node.ndim, attributes) if self.format == "int8-per-channel" else None
            return b.constant(quantized(node, axis))
        low, high = self.ranges[path, position]
        levels = [np.float32(bound) for bound in aligned(low, high)]
        return b.FakeQuantize(node, *levels, *levels, levels=256)


def _rounded(node: Any, format: str) -> Any:
    return b.Convert(b.Convert(node, destination_type=format), destination_type="f32")


def _out_axis(type: str, position: int, rank: int, attributes: Mapping[str, Any]) -> int:
    if type in OUT_AXIS:
        return OUT_AXIS[type]
    return rank - 2 if attributes.get("transpose_b" if position else "transpose_a") else rank - 1


def quantized(weights: np.ndarray, axis: int | None) -> np.ndarray:
    """Return weights rounded to the multiples of a 127th of the greatest one, of all or of each index of ``axis``."""
    if axis is None:
        step = np.abs(weights).max() / 127
        return (np.round(weights / step) * step).astype(np.float32)
    parts = [quantized(part, None) for part in np.moveaxis(weights, axis, 0)]
    return np.moveaxis(np.array(parts), 0, axis)


def aligned(low: float, high: float) -> tuple[float, float]:
    """Return a range with 256 levels, one of which is 0, that covers a range."""
    step = (max(high, 0) - min(low, 0)) / 255
    below = round(-min(low, 0) / step)
    return -below * step, (255 - below) * step


# ---------------------------------------------------------------------------------------------
# the networks


def _w(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    first, *rest = shape
    fan = math.prod(rest) if len(rest) > 1 else first
    return (rng.normal(size=shape) * scale / math.sqrt(fan)).astype(np.float32)


def _one(value: float) -> np.ndarray:
    return np.array(value, np.float32)


_LAST = np.array([-1])


def _rms(net: Net, x: Any, size: int, rng: np.random.Generator, name: str) -> Any:
    square = net("Power", x, _one(2), name=f"{name}/square")
    mean = net("ReduceMean", square, _LAST, name=f"{name}/mean", keep_dims=True)
    root = net("Sqrt", net("Add", mean, _one(1e-5), name=f"{name}/eps"), name=f"{name}/root")
    gain = (1 + 0.2 * rng.normal(size=size)).astype(np.float32)
    return net("Multiply", net("Divide", x, root, name=f"{name}/divide"), gain, name=f"{name}/gain")


def gated_mlp(net: Net) -> irrun.Model:
    """Return three blocks of RMSNorm and SwiGLU with residuals."""
    rng = np.random.default_rng(1)
    x = net.input([6, 32], "x")
    for n in range(3):
        h = _rms(net, x, 32, rng, f"{n}/norm")
        gate = net("MatMul", h, _w(rng, 32, 64, scale=2), name=f"{n}/gate")
        up = net("MatMul", h, _w(rng, 32, 64, scale=3), name=f"{n}/up")
        product = net("Multiply", net("Swish", gate, _one(1), name=f"{n}/silu"), up, name=f"{n}/product")
        down = net("MatMul", product, _w(rng, 64, 32, scale=0.5 + n), name=f"{n}/down")
        x = net("Add", x, down, name=f"{n}/residual")
    return b.model({"y": net("MatMul", _rms(net, x, 32, rng, "norm"), _w(rng, 32, 10), name="head")})


def transformer(net: Net) -> irrun.Model:
    """Return two transformer blocks: LayerNorm in single layers, attention with two heads, GELU."""
    rng = np.random.default_rng(2)
    x = net.input([1, 8, 32], "x")
    for n in range(2):
        h = _layer_norm(net, x, 32, rng, f"{n}/norm1")
        q, k, v = (
            net(
                "Transpose",
                net("Reshape", net("MatMul", h, _w(rng, 32, 32, scale=2), name=f"{n}/{i}"),
                    np.array([1, 8, 2, 16]), name=f"{n}/{i}/split", special_zero=False),
                np.array([0, 2, 1, 3]), name=f"{n}/{i}/heads",
            )
            for i in "qkv"
        )  # fmt: skip
        scores = net("MatMul", q, k, name=f"{n}/scores", transpose_b=True)
        scores = net("Multiply", scores, _one(0.25), name=f"{n}/scale")
        mixed = net("MatMul", net("SoftMax", scores, name=f"{n}/softmax", axis=-1), v, name=f"{n}/mixed")
        mixed = net("Transpose", mixed, np.array([0, 2, 1, 3]), name=f"{n}/back")
        mixed = net("Reshape", mixed, np.array([1, 8, 32]), name=f"{n}/merge", special_zero=False)
        x = net("Add", x, net("MatMul", mixed, _w(rng, 32, 32), name=f"{n}/out"), name=f"{n}/residual1")
        h = _layer_norm(net, x, 32, rng, f"{n}/norm2")
        h = net("Gelu", net("MatMul", h, _w(rng, 32, 64), name=f"{n}/fc1"), name=f"{n}/gelu")
        x = net("Add", x, net("MatMul", h, _w(rng, 64, 32), name=f"{n}/fc2"), name=f"{n}/residual2")
    return b.model({"y": x, "pooled": net("ReduceMean", x, np.array([1]), name="pool", keep_dims=False)})


def _layer_norm(net: Net, x: Any, size: int, rng: np.random.Generator, name: str) -> Any:
    mean = net("ReduceMean", x, _LAST, name=f"{name}/mean", keep_dims=True)
    centred = net("Subtract", x, mean, name=f"{name}/centred")
    square = net("Multiply", centred, centred, name=f"{name}/square")
    variance = net("ReduceMean", square, _LAST, name=f"{name}/variance", keep_dims=True)
    root = net("Sqrt", net("Add", variance, _one(1e-5), name=f"{name}/eps"), name=f"{name}/root")
    scaled = net("Divide", centred, root, name=f"{name}/scaled")
    gain = net("Multiply", scaled, (1 + 0.1 * rng.normal(size=size)).astype(np.float32), name=f"{name}/gain")
    return net("Add", gain, (0.1 * rng.normal(size=size)).astype(np.float32), name=f"{name}/bias")


def _conv(net: Net, x: Any, into: int, out: int, rng: np.random.Generator, name: str, size: int = 3) -> Any:
    pads = {"strides": [1, 1], "pads_begin": [size // 2] * 2, "pads_end": [size // 2] * 2, "dilations": [1, 1]}
    x = net("Convolution", x, _w(rng, out, into, size, size, scale=1.5), name=f"{name}/conv", **pads)
    x = net("Multiply", x, rng.uniform(0.5, 1.5, (1, out, 1, 1)).astype(np.float32), name=f"{name}/scale")
    return net("Add", x, rng.normal(size=(1, out, 1, 1)).astype(np.float32), name=f"{name}/shift")


def resnet(net: Net) -> irrun.Model:
    """Return a stem, three residual blocks with scale and shift in place of BatchNorm, and a head."""
    rng = np.random.default_rng(3)
    x = net("ReLU", _conv(net, net.input([1, 3, 12, 12], "x"), 3, 8, rng, "stem"), name="stem/relu")
    for n in range(3):
        h = net("ReLU", _conv(net, x, 8, 8, rng, f"{n}/a"), name=f"{n}/relu1")
        h = _conv(net, h, 8, 8, rng, f"{n}/b")
        x = net("ReLU", net("Add", x, h, name=f"{n}/residual"), name=f"{n}/relu2")
    x = net("ReduceMean", x, np.array([2, 3]), name="pool", keep_dims=False)
    x = net("Add", net("MatMul", x, _w(rng, 8, 10), name="fc"), _w(rng, 1, 10), name="fc/bias")
    return b.model({"y": net("SoftMax", x, name="softmax", axis=-1)})


def unet(net: Net) -> irrun.Model:
    """Return two levels of convolutions that go down and up again, with skip connections."""
    rng = np.random.default_rng(4)
    window = {"strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0]}
    skips: list[Any] = []
    x = net.input([1, 2, 16, 16], "x")
    channels = 2
    for n in range(2):
        x = net("ReLU", _conv(net, x, channels, 6 * (n + 1), rng, f"down{n}"), name=f"down{n}/relu")
        channels = 6 * (n + 1)
        skips.append(x)
        x = net("MaxPool", x, name=f"down{n}/pool", **window, kernel=[2, 2], opset=1)
    x = net("Sigmoid", _conv(net, x, channels, 16, rng, "middle"), name="middle/sigmoid")
    channels = 16
    for n in (1, 0):
        into = 6 * (n + 1)
        filters = _w(rng, channels, into, 2, 2, scale=2)
        x = net("ConvolutionBackpropData", x, filters, name=f"up{n}/deconv", **window, dilations=[1, 1])
        x = net("Concat", x, skips[n], name=f"up{n}/join", axis=1)
        x = net("Tanh", _conv(net, x, 2 * into, into, rng, f"up{n}"), name=f"up{n}/tanh")
        channels = into
    return b.model({"y": _conv(net, x, channels, 2, rng, "last", size=1)})


def recurrent(net: Net) -> irrun.Model:
    """Return a GRU, written as layers in the body of a Loop with 7 iterations, between two dense layers."""
    rng = np.random.default_rng(5)
    rows = net("Tanh", net("MatMul", net.input([7, 12], "x"), _w(rng, 12, 16), name="embed"), name="embed/tanh")
    weights = {name: _w(rng, 16, 16, scale=1.5) for name in ("wz", "wr", "wh", "uz", "ur", "uh")}

    def body(i: Any, row: Any, state: Any) -> tuple[Any, ...]:
        net.prefix = "loop/"

        def gate(name: str, hidden: Any) -> Any:
            first = net("MatMul", row, weights[f"w{name}"], name=f"{name}/input")
            return net(
                "Add", first, net("MatMul", hidden, weights[f"u{name}"], name=f"{name}/state"), name=f"{name}/sum"
            )

        z = net("Sigmoid", gate("z", state), name="z/sigmoid")
        r = net("Sigmoid", gate("r", state), name="r/sigmoid")
        new = net("Tanh", gate("h", net("Multiply", r, state, name="reset")), name="h/tanh")
        kept = net("Multiply", net("Subtract", _one(1), z, name="rest"), new, name="new")
        state = net("Add", kept, net("Multiply", z, state, name="old"), name="state")
        net.prefix = ""
        return True, state, b.concatenated(state)

    start = b.constant(np.zeros((1, 16), np.float32))
    last, states = b.Loop(7, True, b.sliced(rows), start, body=body, name="loop")
    scores = net("MatMul", states, _w(rng, 16, 5), name="head")
    return b.model({"y": net("LogSoftmax", scores, name="log", axis=-1), "z": net("Exp", last, name="exp")})


NETWORKS: tuple[Callable[[Net], irrun.Model], ...] = (gated_mlp, transformer, resnet, unet, recurrent)


# ---------------------------------------------------------------------------------------------
# brute force


def sample(model: irrun.Model) -> list[np.ndarray]:
    """Return random inputs of a network."""
    rng = np.random.default_rng(9)
    shapes = [[dim.lo for dim in getattr(p.outputs[0].shape, "dims", ())] for p in model.parameters]
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


class _Seen:
    """A hook that records the range of the first two inputs of each layer, by its name."""

    def __init__(self) -> None:
        self.ranges: dict[tuple[str, int], tuple[float, float]] = {}

    def before(self, step: Any, inputs: Any) -> None:
        for position, array in enumerate(inputs[:2]):
            if step.layer.type in QUANTIZED:
                low, high = self.ranges.get((step.layer.name, position), (np.inf, -np.inf))
                self.ranges[step.layer.name, position] = min(low, float(array.min())), max(high, float(array.max()))

    def after(self, step: Any, inputs: Any, outputs: Any) -> None:
        pass


def brute_force(network: Callable[[Net], irrun.Model], format: str) -> dict[str, float]:
    """Return the effect of each layer of a network by its name: the model is built, and run, once for each of them.

    The effect is the relative error of the output that suffers most.
    """
    net = Net()
    model = network(net)
    arrays = sample(model)
    seen = _Seen()
    true = irrun.compile(model, exact=True)(arrays, hooks=[seen])
    inner = {name.removeprefix("loop/"): name for name in net.types}
    ranges = {(inner[name], position): seen.ranges[name, position] for name, position in seen.ranges}
    effects: dict[str, float] = {}
    for name, type in net.types.items():
        if format not in DTYPES and type not in QUANTIZED:
            continue  # int8 does not change it
        outputs = irrun.compile(network(Net(name, format, ranges)), exact=True)(arrays)
        effects[name] = max(_error(true[i], outputs[i]) for i in range(len(model.results)))
    return effects


def _error(true: np.ndarray, other: np.ndarray) -> float:
    first, second = true.astype(np.float64), other.astype(np.float64)
    return float(np.sqrt(np.sum((second - first) ** 2) / np.sum(first**2)))
