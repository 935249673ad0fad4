"""Convolutions of channels-first data whose results have their channels last in memory: patches, and lines."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from bf16 import in_bf16
from irrun import build as b
from rounded_runs import run


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


def convolved(data: np.ndarray, filters: np.ndarray, stride: tuple[int, ...], pad: int) -> np.ndarray:
    """The convolution with filters (out, in, …), in f64."""
    data, axes = data.astype(np.float64), len(stride)
    data = np.pad(data, [(0, 0), (0, 0), *[(pad, pad)] * axes])
    seen = np.lib.stride_tricks.sliding_window_view(data, filters.shape[2:], tuple(range(2, 2 + axes)))
    seen = seen[(slice(None), slice(None), *(slice(None, None, step) for step in stride))]
    names = "hw"[:axes], "yx"[:axes]
    return np.einsum(f"bi{names[0]}{names[1]},oi{names[1]}->bo{names[0]}", seen, filters.astype(np.float64))


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("follows", ["nothing", "bias", "all"])
@pytest.mark.parametrize(
    ("shape", "outs", "kernel", "stride", "pad"),
    [
        ((1, 3, 12, 16), 96, (4, 4), (4, 4), 0),
        ((2, 5, 9, 14), 37, (2, 3), (2, 3), 0),
        ((1, 1, 35, 18), 70, (16, 16), (16, 16), 0),
        ((3, 7, 5, 8), 20, (1, 2), (1, 2), 0),
        ((1, 9, 20), 17, (3,), (1,), 1),
        ((2, 40, 21), 70, (5,), (2,), 2),
        ((2, 8, 11), 5, (3,), (3,), 0),
    ],
)
def test_results_with_channels_last_in_memory(
    rng: np.random.Generator, way: str, shape: tuple[int, ...], outs: int, kernel: tuple[int, ...],
    stride: tuple[int, ...], pad: int, follows: str, precision: str,
) -> None:  # fmt: skip
    axes = len(kernel)
    data, filters = (rng.standard_normal(s, np.float32) for s in (shape, (outs, shape[1], *kernel)))
    held = in_bf16 if precision == "bf16" and shape[1] > 4 else np.asarray  # a picture stays in f32
    wanted, terms = (
        convolved(a, f, stride, pad)
        for a, f in [(held(data), held(filters)), (np.abs(held(data)), np.abs(held(filters)))]
    )
    feeds, x = [data], b.parameter(list(shape), "f32", name="x")
    ends = {"pads_begin": [pad] * axes, "pads_end": [pad] * axes}
    node: Any = b.Convolution(x, filters, strides=[*stride], dilations=[1] * axes, **ends)
    if follows != "nothing":
        bias = rng.standard_normal((1, outs, *[1] * axes), np.float32)
        node, wanted, terms = b.Add(node, bias), wanted + bias, terms + np.abs(bias)
    if follows == "all":
        feeds.append(rng.standard_normal(wanted.shape, np.float32))
        node = b.Relu(b.Add(node, b.parameter(list(wanted.shape), "f32", name="y")))
        wanted, terms = np.maximum(wanted + held(feeds[1]), 0), terms + np.abs(feeds[1])
    count = int(np.prod(wanted.shape[2:]))
    node = b.Transpose(b.Reshape(node, [shape[0], outs, count], special_zero=False), [0, 2, 1])
    result = run(node, way, *feeds, precision=precision)
    wanted, terms = (a.reshape(shape[0], outs, count).swapaxes(1, 2) for a in (wanted, terms))
    assert (np.abs(result - wanted) <= 2**-20 * terms).all()


def test_lines_one_after_the_other(rng: np.random.Generator, way: str) -> None:
    """The second one reads channels that are last in memory."""
    data = rng.integers(-3, 4, (2, 6, 30)).astype(np.float32)
    filters = [rng.integers(-1, 2, shape).astype(np.float32) for shape in [(20, 6, 3), (9, 20, 4)]]
    node = b.parameter([2, 6, 30], "f32")
    for some, stride in zip(filters, (1, 2)):
        node = b.Convolution(node, some, strides=[stride], dilations=[1], pads_begin=[1], pads_end=[1])
    wanted = convolved(convolved(data, filters[0], (1,), 1), filters[1], (2,), 1)
    np.testing.assert_array_equal(run(node, way, data), wanted)  # small integers are exact in bf16
