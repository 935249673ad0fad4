"""Convolutions and poolings in one step, in f32 and in bf16, against the defining kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irrun
import irrun.build as b

pytest.importorskip("numba", reason="the extra `fast` is not installed")
pytestmark = pytest.mark.usefixtures("workers", "every_model_is_large")

SAME = {"dilations": [1, 1], "strides": [1, 1]}


class Network:
    """Layers of random constants. ``channels`` counts those of a value, whose second axis they are."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def normal(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape, np.float32)

    def biased(self, x: Any, channels: int) -> Any:
        return b.Add(x, self.normal(1, channels, 1, 1))

    def conv(self, x: Any, ins: int, outs: int, size: int = 3) -> Any:
        pads = {"pads_begin": [size // 2] * 2, "pads_end": [size // 2] * 2}
        filters = self.normal(outs, ins, size, size) / np.float32(size * ins**0.5)
        return self.biased(b.Convolution(x, filters, **SAME, **pads), outs)

    def each(self, x: Any, channels: int) -> Any:
        """A filter of its own for each channel."""
        filters, pads = self.normal(channels, 1, 1, 3, 3) / 3, {"pads_begin": [1, 1], "pads_end": [1, 1]}
        return self.biased(b.GroupConvolution(x, filters, **SAME, **pads), channels)

    def larger(self, x: Any, ins: int, outs: int, size: int = 2) -> Any:
        """Twice as many rows and columns."""
        filters, pads = self.normal(ins, outs, size, size) / np.float32(ins**0.5), [(size - 2) // 2] * 2
        how = {"strides": [2, 2], "dilations": [1, 1], "pads_begin": pads, "pads_end": pads}
        return self.biased(b.ConvolutionBackpropData(x, filters, **how), outs)

    def pool(self, x: Any, size: int = 2, stride: int = 2) -> Any:
        pads = [(size - 1) // 2] * 2
        how = {"strides": [stride] * 2, "pads_begin": pads, "pads_end": [size - stride - pads[0]] * 2}
        return b.MaxPool(x, kernel=[size, size], rounding_type="floor", **how)[0]


def assert_same(model: irrun.Model, precision: Any, *feeds: np.ndarray) -> irrun.Executable:
    executable = irrun.compile(model, exact=False, precision=precision)
    exact = irrun.compile(model, exact=True, precision=precision)(feeds).arrays
    for _ in range(2):  # the second time, with memory that was used before
        for found, wanted in zip(executable(feeds).arrays, exact, strict=True):
            far = 1e-4 if precision == "f32" else 1e-2
            np.testing.assert_allclose(found, wanted, rtol=0, atol=far * np.abs(wanted).max(initial=1e-30))
    return executable


def u_net(net: Network, x: Any, channels: tuple[int, ...], last: Any) -> Any:
    """Convolutions and poolings down, and transposed convolutions up, whose results are joined with those before."""
    left, count = [], 3
    for outs in channels:
        x = b.Relu(net.conv(b.Relu(net.conv(x, count, outs)), outs, outs))
        left.append(x)
        x, count = net.pool(x), outs
    x = b.Relu(net.conv(x, count, count))
    for before, outs in reversed([*zip(left, channels)]):
        x = b.Concat(net.larger(x, count, outs), before, axis=1)
        x, count = b.Relu(net.conv(b.Relu(net.conv(x, 2 * outs, outs)), outs, outs)), outs
    return last(net.conv(x, count, 2, 1))


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("channels", "last"), [((16, 32), b.Sigmoid), ((6, 20), b.Relu), ((5, 7), b.Sigmoid)])
def test_a_u_net(channels: tuple[int, ...], last: Any, batch: int, precision: Any) -> None:
    """It is one step in bf16, but for a Concat of values with an odd number of channels."""
    net = Network(sum(channels))
    model = b.model(u_net(net, b.parameter([batch, 3, 24, 20], "f32", name="x"), channels, last))
    executable = assert_same(model, precision, net.normal(batch, 3, 24, 20))
    if precision == "bf16" and not any(count % 2 for count in channels):
        (step,) = [step for step in executable.plan.steps if step.kernel.algorithm.startswith("compiled")]
        assert {"Concat", "MaxPool", "ConvolutionBackpropData"} <= {layer.type for layer in step.layers}


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("seed", range(40))
def test_networks_at_random(seed: int, precision: Any) -> None:
    """Any layer reads any value: also a part of two Concats, a pooled part, and what is added or changed later."""
    net = Network(seed)
    draw, batch, ins = net.random.integers, int(net.random.integers(1, 4)), int(net.random.integers(3, 9))
    values: list[tuple[Any, int, int]] = [(b.parameter([batch, ins, 12, 16], "f32", name="x"), ins, 0)]
    for _ in range(14):
        x, count, level = values[max(0, len(values) - 1 - int(draw(4)))]
        outs = int(draw(2, 20))
        others = [value for value in values[1:] if value[2] == level]
        kind = int(draw(9))
        if kind == 0 and level < 2:
            x, level = net.pool(x, *((2, 2), (3, 2), (3, 2))[int(draw(3))]), level + 1
        elif kind == 1:
            x = net.pool(x, 3, 1)
        elif kind == 2 and level > 0:
            x, count, level = net.larger(x, count, outs, int(draw(2, 5)) // 2 * 2), outs, level - 1
        elif kind == 3:
            x = net.each(x, count)
        elif kind == 4 and others:
            other, more, _ = others[int(draw(len(others)))]
            x, count = b.Relu(net.conv(b.Concat(x, other, axis=1), count + more, outs)), outs
        elif kind == 5 and any(value[1] == count for value in others):
            other = next(value[0] for value in others if value[1] == count)
            x = b.Add(other, net.conv(x, count, count))
        elif kind == 6:
            x, count = b.Swish(net.conv(x, count, outs)), outs
        else:
            x, count = net.conv(x, count, outs, (1, 3)[kind % 2]), outs
            x = b.Relu(x) if kind == 7 else x
        values.append((x, count, level))
    model = b.model({"last": values[-1][0], "other": values[-3][0]})
    assert_same(model, precision, net.normal(batch, ins, 12, 16))


@pytest.mark.parametrize("number", [np.nan, -np.inf])
def test_poolings_of_what_is_not_finite(number: float) -> None:
    net = Network(1)
    x = b.Relu(net.conv(b.parameter([1, 6, 12, 16], "f32", name="x"), 6, 16))
    model = b.model(net.conv(net.pool(x, 3, 2), 16, 4))
    data = net.normal(1, 6, 12, 16)
    data[0, 3, 5, 7] = number
    found, wanted = (irrun.compile(model, exact=exact, precision="bf16")([data])[0] for exact in (False, True))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=0.05)


def test_a_part_that_a_convolution_reads_too() -> None:
    net = Network(2)
    x = net.conv(b.parameter([2, 6, 12, 16], "f32", name="x"), 6, 32)
    y = net.conv(b.Concat(x, net.conv(x, 32, 12), axis=1), 44, 8)
    executable = assert_same(b.model(net.conv(y, 8, 5)), "bf16", net.normal(2, 6, 12, 16))
    assert sum(step.kernel.algorithm.startswith("compiled") for step in executable.plan.steps) == 1
