"""Convolutions in bf16 that are computed in one call: what is rounded between them, and what they add, on every processor.

Small integers make every sum exact, so that nothing but the rounding to bf16 is seen.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from bf16 import in_bf16
from irrun import build as b
from rounded_runs import convolved, inside, node, run

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def own_numbers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test numbers of its own."""
    monkeypatch.setitem(globals(), "RNG", np.random.default_rng(zlib.crc32(request.node.name.encode())))


def integers(*shape: int, most: int = 600) -> np.ndarray:
    return RNG.integers(-most, most + 1, shape).astype(np.float32)


@pytest.mark.parametrize("batch", [0, 3])
def test_convolutions_one_after_the_other(way: str, batch: int) -> None:
    """Each value is rounded where a convolution reads it, and where it is added to one."""
    data = integers(batch, 6, 8, 9)
    one, two, three = (
        integers(1, 12, 6, 3, 3, most=2), integers(12, 1, 1, 3, 3, most=1), integers(1, 12, 12, 1, 1, most=1)
    )  # fmt: skip
    pad, alone = ([1, 1], [1, 1], [1, 1]), ([1, 1], [1, 1], [0, 0])
    x = b.parameter([batch, 6, 8, 9], "f32")
    first = b.Relu(node(b.Convolution, x, one[0], *pad))
    deep = node(b.GroupConvolution, first, two, *pad)
    then = b.Add(node(b.Convolution, first, three[0], *alone), first)
    result = run(inside(b.Add(deep, then)), way, data)
    between = np.maximum(convolved(in_bf16(data), one, *pad), 0)
    then = convolved(in_bf16(between), three, *alone) + in_bf16(between)
    np.testing.assert_array_equal(result, convolved(in_bf16(between), two, *pad) + in_bf16(then))
    if batch:
        assert (in_bf16(between) != between).mean() > 0.3


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("channels", [(6, 12, 70, 12), (6, 7, 9, 12), (5, 7, 80, 5)])
def test_results_that_only_convolutions_read(way: str, batch: int, channels: tuple[int, ...]) -> None:
    """The result of each convolution is rounded, also where it is written in bf16 alone."""
    data = integers(batch, channels[0], 9, 8)
    x = b.parameter(list(data.shape), "f32")
    alone, pad = ([1, 1], [1, 1], [0, 0]), ([1, 1], [1, 1], [1, 1])
    first, second, third = (
        integers(1, outs, ins, kernel, kernel, most=1) / divisor
        for outs, ins, kernel, divisor in zip(channels[1:], channels, (1, 3, 1), (1, 4, 16))
    )
    last = integers(1, channels[3], channels[3], 1, 1, most=1)
    one = b.Relu(node(b.Convolution, x, first[0], *alone))
    two = node(b.Convolution, one, second[0], *pad)
    three = node(b.Convolution, two, third[0], *alone)
    result = run(inside(b.Add(node(b.Convolution, three, last[0], *alone), three)), way, data)
    between = np.maximum(convolved(in_bf16(data), first, *alone), 0)
    between = convolved(in_bf16(between), second, *pad)
    between = convolved(in_bf16(between), third, *alone)
    np.testing.assert_array_equal(result, convolved(in_bf16(between), last, *alone) + in_bf16(between))


@pytest.mark.parametrize("channels", [1, 3, 4, 7])
@pytest.mark.parametrize(
    ("kernel", "strides", "begin", "end"),
    [((3, 3), [2, 2], [1, 1], [0, 0]), ((7, 7), [2, 2], [3, 3], [3, 3]), ((1, 3), [1, 2], [0, 0], [2, 1])],
)
@pytest.mark.parametrize("before", ["nothing", "Relu", "Convolution"])
def test_pictures(
    way: str, channels: int, kernel: tuple[int, int], strides: list[int], begin: list[int], end: list[int], before: str
) -> None:
    """Few channels, which are padded, or else rounded, in any layout: alone, and in a sequence."""
    rounded = in_bf16 if channels > 4 else np.asarray
    data = integers(2, channels, 15, 33)
    first, last = integers(1, 20, channels, *kernel, most=2), integers(1, 5, 20, 1, 1, most=1)
    eye = np.eye(channels, dtype=np.float32)[:, :, None, None]
    x = value = b.parameter(list(data.shape), "f32")
    value = b.Relu(x) if before == "Relu" else value
    value = node(b.Convolution, x, 3 * eye, [1, 1], [1, 1], [0, 0]) if before == "Convolution" else value
    value = b.Convolution(value, first[0], strides=strides, dilations=[1, 1], pads_begin=begin, pads_end=end)
    seen = {"nothing": rounded(data), "Relu": np.maximum(rounded(data), 0), "Convolution": rounded(3 * rounded(data))}
    between = convolved(np.pad(seen[before], [(0, 0), (0, 0), *zip(begin, end)]), first, strides, [1, 1], [0, 0])
    np.testing.assert_array_equal(run(inside(value), way, data), between)
    value = node(b.Convolution, value, last[0], [1, 1], [1, 1], [0, 0])
    wanted = convolved(in_bf16(between), last, [1, 1], [1, 1], [0, 0])
    np.testing.assert_array_equal(run(inside(value), way, data), wanted)


@pytest.mark.parametrize("groups", [1, 9])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_residuals(way: str, groups: int, swapped: bool, bias: bool) -> None:
    """What is added to a convolution is rounded, and so is the first one of two; a bias is not."""
    data, added, numbers = integers(2, 9, 7, 8), integers(2, 9, 7, 8, most=9999), integers(1, 9, 1, 1, most=9999)
    one, two = (integers(groups, 9 // groups, 9 // groups, 3, 3, most=1) for _ in range(2))
    x, y, pad = b.parameter([2, 9, 7, 8], "f32"), b.parameter([2, 9, 7, 8], "f32"), ([1, 1], [1, 1], [1, 1])
    kind = b.Convolution if groups == 1 else b.GroupConvolution
    first, second = (node(kind, x, filters[0] if groups == 1 else filters, *pad) for filters in (one, two))
    first = b.Add(first, numbers) if bias else first
    sums = [convolved(in_bf16(data), filters, *pad) for filters in (one, two)]
    sums[0] += numbers if bias else 0
    result = run(inside(b.Relu(b.Add(y, first) if swapped else b.Add(first, y))), way, data, added)
    np.testing.assert_array_equal(result, np.maximum(sums[0] + in_bf16(added), 0))
    np.testing.assert_array_equal(run(inside(b.Add(first, second)), way, data), in_bf16(sums[0]) + sums[1])
    assert (in_bf16(added) != added).mean() > 0.3


@pytest.mark.parametrize("parts", [(6, 12), (32, 16, 7), (5, 7)])
@pytest.mark.parametrize("before", ["nothing", "Convolution"])
@pytest.mark.parametrize("batch", [1, 2])
def test_data_in_parts(way: str, parts: tuple[int, ...], before: str, batch: int) -> None:
    """What a Concat joins is rounded, alone and in a sequence. All parts but the last may have to be even."""
    feeds = [integers(batch, channels, 9, 20) for channels in parts]
    channels, pad, alone = sum(parts), ([1, 1], [1, 1], [1, 1]), ([1, 1], [1, 1], [0, 0])
    first, last = integers(1, 20, channels, 3, 3, most=1), integers(1, 5, 20, 1, 1, most=1)
    some = [b.parameter(list(feed.shape), "f32", name=f"x{n}") for n, feed in enumerate(feeds)]
    eyes = [3 * np.eye(count, dtype=np.float32)[:, :, None, None] for count in parts]
    if before == "Convolution":
        some = [node(b.Convolution, x, eye, *alone) if len(eye) > 4 else x for x, eye in zip(some, eyes)]
    value = node(b.Convolution, b.Relu(node(b.Convolution, b.Concat(*some, axis=1), first[0], *pad)), last[0], *alone)
    seen = np.concatenate([3 * in_bf16(feed) if before == "Convolution" else feed for feed in feeds], 1)
    between = np.maximum(convolved(in_bf16(seen), first, *pad), 0)
    np.testing.assert_array_equal(run(inside(value), way, *feeds), convolved(in_bf16(between), last, *alone))


@pytest.mark.parametrize("channels", [32, 64])
@pytest.mark.parametrize(("high", "broad"), [(3, 400), (40, 9), (21, 22), (1, 1)])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 5), (4, 2)])
def test_many_windows(way: str, channels: int, high: int, broad: int, kernel: tuple[int, int]) -> None:
    """Windows side by side, whose taps take whole tiles, with a residual in bf16 and uneven pads."""
    data, begin = integers(2, channels, high, broad), [kernel[0] - 1, kernel[1] // 2]
    end = [size - 1 - count for size, count in zip(kernel, begin)]
    data[0, 0, 0, 0] = np.inf
    filters, eye = (
        integers(1, channels, channels, *kernel, most=1),
        np.eye(channels, dtype=np.float32)[:, :, None, None],
    )
    x = b.parameter(list(data.shape), "f32")
    first = node(b.Convolution, x, eye, [1, 1], [1, 1], [0, 0])
    value = b.Convolution(first, filters[0], strides=[1, 1], dilations=[1, 1], pads_begin=begin, pads_end=end)
    with np.errstate(invalid="ignore"):
        result = run(inside(b.Relu(b.Add(value, first))), way, data)
        seen = in_bf16(convolved(in_bf16(data), eye[None], [1, 1], [1, 1], [0, 0]))
        padded = np.pad(seen, [(0, 0), (0, 0), *zip(begin, end)])
        wanted = np.maximum(convolved(padded, filters, [1, 1], [1, 1], [0, 0]) + seen, 0)
    np.testing.assert_array_equal(result, wanted)
