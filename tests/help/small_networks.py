"""Whole networks in small, built with OpenVINO's own operations: nothing beyond the tests' dependencies is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_rng = np.random.default_rng(0)


def _weights(*shape: int) -> np.ndarray:
    return _rng.normal(0, 0.1, shape).astype(np.float32)


def _convolution(o: Any, x: Any, filters: int, channels: int, size: int, stride: int = 1) -> Any:
    pad = [size // 2] * 2
    convolved = o.convolution(x, _weights(filters, channels, size, size), [stride] * 2, pad, pad, [1, 1])
    return o.add(convolved, _weights(1, filters, 1, 1))


def resnet(ov: Any, *, dynamic: bool = False) -> Any:
    """A stem, four residual blocks that halve the image and double the channels, pooling and a classifier."""
    o = ov.opset13
    image = o.parameter([-1, 3, -1, -1] if dynamic else [1, 3, 64, 64], ov.Type.f32, name="image")
    x = o.relu(_convolution(o, image, 8, 3, 7, 2))
    x = o.max_pool(x, [2, 2], [1, 1], [1, 1], [1, 1], [3, 3]).output(0)
    channels = 8
    for block in range(4):
        wider, stride = channels * (2 if block else 1), 2 if block else 1
        y = o.relu(_convolution(o, x, wider, channels, 3, stride))
        y = _convolution(o, y, wider, wider, 3)
        x = _convolution(o, x, wider, channels, 1, stride) if block else x
        x, channels = o.relu(o.add(y, x)), wider
    x = o.reduce_mean(x, np.array([2, 3]), keep_dims=False)
    x = o.softmax(o.add(o.matmul(x, _weights(channels, 10), False, False), _weights(1, 10)), 1)
    return ov.Model([o.result(x, name="probabilities")], [image], "resnet")


def resnet_dynamic(ov: Any) -> Any:
    return resnet(ov, dynamic=True)


def bert(ov: Any, *, dynamic: bool = False) -> Any:
    """Embeddings and two encoder layers, whose heads are split by a shape computed from the input's."""
    o = ov.opset13
    width, heads, words = 16, 4, 30
    shape = [-1, -1] if dynamic else [1, 12]
    ids = o.parameter(shape, ov.Type.i64, name="input_ids")
    mask = o.parameter(shape, ov.Type.i64, name="attention_mask")
    x = o.gather(_weights(words, width), ids, np.array(0))
    length = o.gather(o.shape_of(ids), np.array([1]), np.array(0))
    positions = o.slice(_weights(40, width), np.array([0]), length, np.array([1]), np.array([0]))
    x = _normalized(o, o.add(x, o.unsqueeze(positions, np.array([0]))), width)
    masked = o.multiply(o.subtract(np.float32(1), o.convert(mask, "f32")), np.float32(-1e4))
    masked = o.unsqueeze(masked, np.array([1, 2]))
    for _ in range(2):
        query, key, value = (_heads(o, _dense(o, x, width, width), width, heads) for _ in range(3))
        scores = o.divide(o.matmul(query, key, False, True), np.float32((width // heads) ** 0.5))
        attended = o.matmul(o.softmax(o.add(scores, masked), -1), value, False, False)
        attended = o.transpose(attended, np.array([0, 2, 1, 3]))
        merged = o.reshape(attended, np.array([0, 0, width]), True)
        x = _normalized(o, o.add(x, _dense(o, merged, width, width)), width)
        inner = o.gelu(_dense(o, x, width, 4 * width), "erf")
        x = _normalized(o, o.add(x, _dense(o, inner, 4 * width, width)), width)
    first = o.squeeze(o.slice(x, np.array([0]), np.array([1]), np.array([1]), np.array([1])), np.array([1]))
    pooled = o.tanh(_dense(o, first, width, width))
    return ov.Model([o.result(x, name="hidden"), o.result(pooled, name="pooled")], [ids, mask], "bert")


def bert_dynamic(ov: Any) -> Any:
    return bert(ov, dynamic=True)


def _dense(o: Any, x: Any, width: int, to: int) -> Any:
    return o.add(o.matmul(x, _weights(to, width), False, True), _weights(1, 1, to) if to != 1 else _weights(1))


def _normalized(o: Any, x: Any, width: int) -> Any:
    x = o.mvn(x, np.array([-1]), normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt")
    return o.add(o.multiply(x, _weights(1, 1, width)), _weights(1, 1, width))


def _heads(o: Any, x: Any, width: int, heads: int) -> Any:
    rows = o.gather(o.shape_of(x), np.array([0, 1]), np.array(0))
    split = o.reshape(x, o.concat([rows, np.array([heads, width // heads])], 0), False)
    return o.transpose(split, np.array([0, 2, 1, 3]))


NETWORKS: tuple[Callable[[Any], Any], ...] = (resnet, resnet_dynamic, bert, bert_dynamic)
