"""For scale: what `onnx.reference` takes for the same, and a convolution done the obvious way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto
from onnx import helper as h
from onnx.reference import ReferenceEvaluator

from benchmarks.case import Case, Setup
from benchmarks.measure import Contender, once
from benchmarks.operations import conv, conv_name, ir
from irrun import build as b

Shape = tuple[int, ...]

CONVOLUTIONS = [(64, 64, 1, 1, 56), (64, 64, 3, 1, 56), (512, 512, 3, 1, 7), (3, 64, 7, 2, 224)]
ROWS = (1, 12, 128, 128)
PRODUCT = (128, 768), (768, 768)


def scale(setup: Setup) -> Iterator[Case]:
    for row in CONVOLUTIONS:
        yield Case(conv_name(*row), ir("conv", partial(conv, *row)), beside=partial(_convolution, *row))
    yield _case("SoftMax rows", lambda x: b.SoftMax(x, axis=-1), "Softmax", ROWS)
    yield _case("ReduceMean rows", lambda x: b.ReduceMean(x, [-1]), "ReduceMean", ROWS)
    yield _case("GELU rows", lambda x: b.Gelu(x, approximation_mode="ERF"), "Gelu", ROWS)
    yield _case("MatMul 128x768x768", b.MatMul, "MatMul", *PRODUCT)


def _case(name: str, build: Callable[..., b.Node], type: str, *shapes: Shape) -> Case:
    return Case(name, ir("op", lambda: build(*map(b.parameter, shapes))), beside=lambda _: _reference(type, *shapes))


def _convolution(into: int, out: int, size: int, stride: int, side: int, folder: Path) -> Mapping[str, Contender]:
    pad = size // 2
    x, weights = (1, into, side, side), (out, into, size, size)
    image, kernel = np.ones(x, np.float32), np.ones(weights, np.float32)
    return {
        **_reference("Conv", x, weights, pads=[pad] * 4, strides=[stride] * 2),
        "obvious": once(lambda: _obvious(image, kernel, stride, pad)),
    }


def _obvious(image: np.ndarray, weights: np.ndarray, stride: int, pad: int) -> np.ndarray:
    """A loop over the pixels, all channels at once."""
    padded = np.pad(image, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    size = weights.shape[2]
    high, wide = ((n - size) // stride + 1 for n in padded.shape[2:])
    out = np.empty((len(image), len(weights), high, wide), image.dtype)
    for y in range(high):
        for x in range(wide):
            window = padded[:, :, y * stride : y * stride + size, x * stride : x * stride + size]
            out[:, :, y, x] = np.tensordot(window, weights, ((1, 2, 3), (1, 2, 3)))
    return out


def _reference(type: str, *shapes: Shape, **attributes: Any) -> dict[str, Contender]:
    """`onnx.reference` with one node."""
    names = [f"x{i}" for i in range(len(shapes))]
    inputs = [h.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip(names, shapes)]
    outputs = [h.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = h.make_graph([h.make_node(type, names, ["y"], **attributes)], type, inputs, outputs)
    evaluator = ReferenceEvaluator(h.make_model(graph, opset_imports=[h.make_opsetid("", 20)]))
    random = np.random.default_rng(0)
    feeds = {name: random.random(shape, np.float32) for name, shape in zip(names, shapes)}
    return {"onnx.reference": once(lambda: evaluator.run(None, feeds))}
