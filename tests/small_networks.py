"""Whole networks in small, built with OpenVINO's own operations: nothing beyond the tests' dependencies is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import openvino as ov

O: Any = ov.opset13
Model: Any = ov.Model

_rng = np.random.default_rng(0)


def _weights(*shape: int) -> np.ndarray:
    return _rng.normal(0, 0.1, shape).astype(np.float32)


def _convolution(x: Any, filters: int, channels: int, size: int, stride: int = 1) -> Any:
    pad = [size // 2] * 2
    convolved = O.convolution(x, _weights(filters, channels, size, size), [stride] * 2, pad, pad, [1, 1])
    return O.add(convolved, _weights(1, filters, 1, 1))


def resnet(*, dynamic: bool = False) -> Any:
    """A stem, four residual blocks that halve the image and double the channels, pooling and a classifier."""
    image = O.parameter([-1, 3, -1, -1] if dynamic else [1, 3, 64, 64], ov.Type.f32, name="image")
    x = O.relu(_convolution(image, 8, 3, 7, 2))
    x = O.max_pool(x, [2, 2], [1, 1], [1, 1], [1, 1], [3, 3]).output(0)
    channels = 8
    for block in range(4):
        wider, stride = channels * (2 if block else 1), 2 if block else 1
        y = O.relu(_convolution(x, wider, channels, 3, stride))
        y = _convolution(y, wider, wider, 3)
        x = _convolution(x, wider, channels, 1, stride) if block else x
        x, channels = O.relu(O.add(y, x)), wider
    x = O.reduce_mean(x, np.array([2, 3]), keep_dims=False)
    x = O.softmax(O.add(O.matmul(x, _weights(channels, 10), False, False), _weights(1, 10)), 1)
    return Model([O.result(x, name="probabilities")], [image], "resnet")


def resnet_dynamic() -> Any:
    return resnet(dynamic=True)


def bert(*, dynamic: bool = False) -> Any:
    """Embeddings and two encoder layers, whose heads are split by a shape computed from the input's."""
    width, heads, words = 16, 4, 30
    shape = [-1, -1] if dynamic else [1, 12]
    ids = O.parameter(shape, ov.Type.i64, name="input_ids")
    mask = O.parameter(shape, ov.Type.i64, name="attention_mask")
    x = O.gather(_weights(words, width), ids, np.array(0))
    length = O.gather(O.shape_of(ids), np.array([1]), np.array(0))
    positions = O.slice(_weights(40, width), np.array([0]), length, np.array([1]), np.array([0]))
    x = _normalized(O.add(x, O.unsqueeze(positions, np.array([0]))), width)
    masked = O.multiply(O.subtract(np.float32(1), O.convert(mask, "f32")), np.float32(-1e4))
    masked = O.unsqueeze(masked, np.array([1, 2]))
    for _ in range(2):
        query, key, value = (_heads(_dense(x, width, width), width, heads) for _ in range(3))
        scores = O.divide(O.matmul(query, key, False, True), np.float32((width // heads) ** 0.5))
        attended = O.matmul(O.softmax(O.add(scores, masked), -1), value, False, False)
        attended = O.transpose(attended, np.array([0, 2, 1, 3]))
        merged = O.reshape(attended, np.array([0, 0, width]), True)
        x = _normalized(O.add(x, _dense(merged, width, width)), width)
        inner = O.gelu(_dense(x, width, 4 * width), "erf")
        x = _normalized(O.add(x, _dense(inner, 4 * width, width)), width)
    first = O.squeeze(O.slice(x, np.array([0]), np.array([1]), np.array([1]), np.array([1])), np.array([1]))
    pooled = O.tanh(_dense(first, width, width))
    return Model([O.result(x, name="hidden"), O.result(pooled, name="pooled")], [ids, mask], "bert")


def bert_dynamic() -> Any:
    return bert(dynamic=True)


def _dense(x: Any, width: int, to: int) -> Any:
    return O.add(O.matmul(x, _weights(to, width), False, True), _weights(1, 1, to) if to != 1 else _weights(1))


def _normalized(x: Any, width: int) -> Any:
    x = O.mvn(x, np.array([-1]), normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt")
    return O.add(O.multiply(x, _weights(1, 1, width)), _weights(1, 1, width))


def _heads(x: Any, width: int, heads: int) -> Any:
    rows = O.gather(O.shape_of(x), np.array([0, 1]), np.array(0))
    split = O.reshape(x, O.concat([rows, np.array([heads, width // heads])], 0), False)
    return O.transpose(split, np.array([0, 2, 1, 3]))


NETWORKS: tuple[Callable[[], Any], ...] = (resnet, resnet_dynamic, bert, bert_dynamic)
