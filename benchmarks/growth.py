"""How time grows with the batch, with the size and with the number of layers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.case import Case, Setup
from benchmarks.operations import ir
from benchmarks.starts import chain
from irrun import build as b


def growth(setup: Setup) -> Iterator[Case]:
    for batch in (1, 2, 4, 8, 16, 32):
        yield Case(f"convnet, batch {batch}", ir("net", partial(_convnet, batch, 32)), at=("batch", batch))
    for side in (16, 32, 64, 128, 256):
        yield Case(f"convnet, side {side}", ir("net", partial(_convnet, 1, side)), at=("pixels", side * side))
    for length in (64, 128, 256, 512, 1024):
        yield Case(f"attention, length {length}", ir("net", partial(_attention, length)), at=("length", length))
    for layers in (10, 100, 1_000):
        yield Case(f"chain, {layers} layers", lambda f, n=layers: chain(f, n, side=1), at=("layers", layers))


def _convnet(batch: int, side: int) -> b.Node:
    x = b.parameter([batch, 32, side, side])
    for seed in range(3):
        weights = np.random.default_rng(seed).standard_normal((32, 32, 3, 3), np.float32) / np.float32(17)
        same = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}
        x = b.ReLU(b.Convolution(x, weights, **same))
    return x


def _attention(length: int) -> b.Node:
    q, k, v = (b.parameter([1, 8, length, 64]) for _ in range(3))
    return b.MatMul(b.SoftMax(b.MatMul(q, k, transpose_b=True), axis=-1), v)
