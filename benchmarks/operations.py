"""Single operations, from 1 KB to 256 MB, and the convolutions of ResNet-50 and MobileNetV2."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

import irrun
from benchmarks.case import Case, Setup
from irrun import build as b

Shape = tuple[int, ...]

# by the bytes of f32; NCHW
IMAGES: dict[str, Shape] = {
    "1 KB": (1, 16, 4, 4),
    "64 KB": (1, 16, 32, 32),
    "4 MB": (4, 64, 64, 64),
    "64 MB": (16, 64, 128, 128),
    "256 MB": (64, 64, 128, 128),
}
MOST = ("1 KB", "64 KB", "4 MB", "64 MB")
FEW = ("1 KB", "4 MB", "64 MB")


def _broadcast(mode: str, shape: Shape) -> b.Node:
    n, c, h, w = shape
    if mode == "numpy":
        return b.Broadcast(b.parameter([1, c, 1, 1]), shape)
    if mode == "bidirectional":
        return b.Broadcast(b.parameter([n, c, 1, 1]), [1, 1, h, w], mode="bidirectional")
    return b.Broadcast(b.parameter([c]), shape, [1], mode="explicit")


def _tile(shape: Shape) -> b.Node:
    n, c, h, w = shape
    return b.Tile(b.parameter([n, c // 2, h // 2, w // 2]), [1, 2, 2, 2])


def _concat(shape: Shape) -> b.Node:
    n, c, h, w = shape
    return b.Concat(*(b.parameter([n, c // 2, h, w]) for _ in range(2)), axis=1)


def _rows(shape: Shape) -> b.Node:
    """As rows of 256, the tokens of a transformer."""
    return b.parameter([1, int(np.prod(shape)) // 256, 256])


def _layer_norm(shape: Shape) -> b.Node:
    return b.MVN(_rows(shape), [-1], normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt")


def _gather(shape: Shape) -> b.Node:
    """As many rows as there are, from anywhere."""
    rows = _rows(shape)
    count = rows.shape[1].lo
    return b.Gather(rows, np.random.default_rng(0).integers(0, count, count), 1)


def _interpolate(mode: str, shape: Shape) -> b.Node:
    n, c, h, w = shape
    return b.Interpolate(
        b.parameter([n, c, h // 2, w // 2]), [2.0, 2.0], [2, 3], mode=mode, shape_calculation_mode="scales",
        coordinate_transformation_mode="half_pixel", nearest_mode="floor",
    )  # fmt: skip


def _pool(type: str, shape: Shape) -> b.Node:
    keywords = {"kernel": [3, 3], "strides": [2, 2], "pads_begin": [1, 1], "pads_end": [1, 1]}
    if type == "AvgPool":
        # without dilations OpenVINO crashes
        return b.AvgPool(b.parameter(shape), **keywords, dilations=[1, 1], exclude_pad=True)
    return b.MaxPool(b.parameter(shape), **keywords)[0]


def _matmul(m: int, k: int, n: int) -> b.Node:
    return b.MatMul(b.parameter([1, m, k]), _weights(k, n))


def _weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


Build = Callable[[Shape], b.Node]

# name, what builds it from the shape of its result or data, sizes, whether it does nothing but move data
IMAGE_OPERATIONS: list[tuple[str, Build, tuple[str, ...], bool]] = [
    ("Broadcast numpy", partial(_broadcast, "numpy"), tuple(IMAGES), True),
    ("Broadcast bidirectional", partial(_broadcast, "bidirectional"), MOST, True),
    ("Broadcast explicit", partial(_broadcast, "explicit"), MOST, True),
    ("Tile", _tile, tuple(IMAGES), True),
    ("Concat", _concat, tuple(IMAGES), True),
    ("Transpose NHWC", lambda s: b.Transpose(b.parameter(s), [0, 2, 3, 1]), tuple(IMAGES), True),
    ("Transpose last two", lambda s: b.Transpose(b.parameter(s), [0, 1, 3, 2]), MOST, True),
    ("Add channels", lambda s: b.Add(b.parameter(s), b.parameter([1, s[1], 1, 1])), tuple(IMAGES), True),
    ("Multiply outer", lambda s: b.Multiply(b.parameter([*s[:3], 1]), b.parameter([s[0], 1, 1, s[3]])), MOST, True),
    ("Gather rows", _gather, FEW, True),
    ("ReLU", lambda s: b.ReLU(b.parameter(s)), FEW, False),
    ("Sigmoid", lambda s: b.Sigmoid(b.parameter(s)), FEW, False),
    ("GELU erf", lambda s: b.Gelu(b.parameter(s), approximation_mode="ERF"), FEW, False),
    ("GELU tanh", lambda s: b.Gelu(b.parameter(s), approximation_mode="TANH"), FEW, False),
    ("ReduceMean image", lambda s: b.ReduceMean(b.parameter(s), [2, 3], keep_dims=True), FEW, False),
    ("ReduceSum channels", lambda s: b.ReduceSum(b.parameter(s), [1], keep_dims=True), FEW, False),
    ("SoftMax rows", lambda s: b.SoftMax(_rows(s), axis=-1), FEW, False),
    ("SoftMax channels", lambda s: b.SoftMax(b.parameter(s), axis=1), FEW, False),
    ("MVN rows", _layer_norm, FEW, False),
    ("MaxPool 3x3/2", partial(_pool, "MaxPool"), FEW, False),
    ("AvgPool 3x3/2", partial(_pool, "AvgPool"), FEW, False),
    ("Interpolate nearest", partial(_interpolate, "nearest"), FEW, False),
    ("Interpolate linear", partial(_interpolate, "linear_onnx"), FEW, False),
]  # fmt: skip

# m, k, n of BERT, GPT-2 and ViT, and squares
PRODUCTS = [
    (1, 768, 768), (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (197, 768, 3072), (64, 768, 50257),
    (16, 16, 16), (256, 256, 256), (1024, 1024, 1024),
]  # fmt: skip

# channels in and out, kernel, stride, side of the input; "dw" is depthwise
RESNET50: list[tuple[int, int, int, int, int]] = [
    (3, 64, 7, 2, 224),
    (64, 64, 1, 1, 56), (64, 64, 3, 1, 56), (64, 256, 1, 1, 56), (256, 64, 1, 1, 56),
    (256, 128, 1, 1, 56), (128, 128, 3, 2, 56), (128, 512, 1, 1, 28), (256, 512, 1, 2, 56), (512, 128, 1, 1, 28),
    (128, 128, 3, 1, 28),
    (512, 256, 1, 1, 28), (256, 256, 3, 2, 28), (256, 1024, 1, 1, 14), (512, 1024, 1, 2, 28), (1024, 256, 1, 1, 14),
    (256, 256, 3, 1, 14),
    (1024, 512, 1, 1, 14), (512, 512, 3, 2, 14), (512, 2048, 1, 1, 7), (1024, 2048, 1, 2, 14), (2048, 512, 1, 1, 7),
    (512, 512, 3, 1, 7),
]  # fmt: skip
MOBILENET_V2 = [
    (3, 32, 3, 2, 224), (32, 16, 1, 1, 112), (16, 96, 1, 1, 112), (96, 24, 1, 1, 56), (24, 144, 1, 1, 56),
    (144, 24, 1, 1, 56), (144, 32, 1, 1, 28), (32, 192, 1, 1, 28), (192, 32, 1, 1, 28), (192, 64, 1, 1, 14),
    (64, 384, 1, 1, 14), (384, 64, 1, 1, 14), (384, 96, 1, 1, 14), (96, 576, 1, 1, 14), (576, 96, 1, 1, 14),
    (576, 160, 1, 1, 7), (160, 960, 1, 1, 7), (960, 160, 1, 1, 7), (960, 320, 1, 1, 7), (320, 1280, 1, 1, 7),
]  # fmt: skip
# channels, stride, side of the input
DEPTHWISE = [
    (32, 1, 112), (96, 2, 112), (144, 1, 56), (144, 2, 56), (192, 1, 28), (192, 2, 28), (384, 1, 14), (576, 1, 14),
    (576, 2, 14), (960, 1, 7),
]  # fmt: skip


def operations(setup: Setup) -> Iterator[Case]:
    for name, build, sizes, moves in IMAGE_OPERATIONS:
        for size in sizes:
            write = ir("op", partial(build, IMAGES[size]))
            large = size not in ("1 KB", "64 KB")  # smaller ones measure the call
            yield Case(f"{name} {size}", write, memory=size == "64 MB", moves=moves and large)
    for m, k, n in PRODUCTS:
        yield Case(f"MatMul {m}x{k}x{n}", ir("op", partial(_matmul, m, k, n)))


def convolutions(setup: Setup) -> Iterator[Case]:
    for into, out, size, stride, side in itertools.chain(RESNET50, MOBILENET_V2):
        yield Case(conv_name(into, out, size, stride, side), ir("conv", partial(conv, into, out, size, stride, side)))
    for channels, stride, side in DEPTHWISE:
        name = f"Depthwise 3x3{_over(stride)} {channels} @{side}"
        yield Case(name, ir("conv", partial(_depthwise, channels, stride, side)))


def conv_name(into: int, out: int, size: int, stride: int, side: int) -> str:
    return f"Conv {size}x{size}{_over(stride)} {into}→{out} @{side}"


def _over(stride: int) -> str:
    return f"/{stride}" if stride > 1 else ""


def conv(into: int, out: int, size: int, stride: int, side: int) -> b.Node:
    weights = _weights(out, into, size, size) / np.float32(size * into**0.5)
    return b.Convolution(b.parameter([1, into, side, side]), weights, **_window(size, stride))


def _depthwise(channels: int, stride: int, side: int) -> b.Node:
    weights = _weights(channels, 1, 1, 3, 3) / np.float32(3)
    return b.GroupConvolution(b.parameter([1, channels, side, side]), weights, **_window(3, stride))


def _window(size: int, stride: int) -> dict[str, list[int]]:
    pads = [size // 2] * 2
    return {"strides": [stride] * 2, "pads_begin": pads, "pads_end": pads, "dilations": [1, 1]}


def ir(name: str, build: Callable[[], b.Node]) -> Callable[[Path], Path]:
    """What writes a model of one result into a folder."""

    def write(folder: Path) -> Path:
        path = folder / f"{name}.xml"
        irrun.save_model(b.model(build()), path)
        return path

    return write
