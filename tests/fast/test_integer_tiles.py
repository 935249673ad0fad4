"""Windows of bytes in each layout that tiles or vectors read: their sums are those of numpy's integers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.activations import Activation, activation
from irrun.fast.integers.convolution import After, IntegerFilters, convolution, joins_taps, padding
from irrun.fast.integers.dots import DOT
from irrun.fast.integers.levels import Grid, padded
from irrun.kernels.convolution.windows import Axis

pytestmark = [
    pytest.mark.skipif(DOT is None, reason="the processor has no form of products of bytes"),
    pytest.mark.usefixtures("compiled_kernels"),
]
RANDOM = np.random.default_rng(0)
TANH = activation(Activation.TANH).joins.change
ZERO = 117
"""The level of 0, which pads hold."""


@dataclass(frozen=True)
class Case:
    """A convolution of levels (batch, rows, columns, channels) with filters (groups, out, in, rows, columns)."""

    data: tuple[int, int, int, int]
    filters: tuple[int, int, int, int, int]
    pads: tuple[int, int] = (0, 0)
    """Pads at the beginning and at the end of rows and columns."""
    stride: int = 1
    dilation: int = 1
    axes: tuple[Axis, ...] = field(init=False)

    def __post_init__(self) -> None:
        made = []
        for size, kernel in zip(self.data[1:3], self.filters[3:]):
            wide = size + sum(self.pads) - (kernel - 1) * self.dilation
            out = (wide - 1) // self.stride + 1
            made.append(Axis(size, kernel, self.stride, self.dilation, *self.pads, out))
        object.__setattr__(self, "axes", tuple(made))

    def sums(self, levels: np.ndarray, codes: np.ndarray) -> np.ndarray:
        groups, outs, ins, *kernel = self.filters
        wide = np.pad(levels[..., : groups * ins].astype(np.int64) - ZERO, [(0, 0), self.pads, self.pads, (0, 0)])
        sizes = [axis.out for axis in self.axes]
        total = np.zeros((len(levels), *sizes, groups, outs), np.int64)
        for place in itertools.product(*map(range, kernel)):
            begin = [n * self.dilation for n in place]
            y, x = (slice(b, b + (n - 1) * self.stride + 1, self.stride) for b, n in zip(begin, sizes))
            seen = wide[:, y, x].reshape(*total.shape[:3], groups, ins)
            total += np.einsum("nyxgi,goi->nyxgo", seen, codes[:, :, :, place[0], place[1]].astype(np.int64))
        return total.reshape(*total.shape[:3], groups * outs)


CASES = {
    **{f"{n} windows": Case((1, 1, n, 64), (1, 70, 64, 1, 1)) for n in (*range(1, 18), 31, 32, 33, 40)},
    "deep": Case((2, 5, 9, 700), (1, 130, 700, 1, 1)),
    "odd channels": Case((2, 7, 6, 35), (1, 33, 35, 1, 1)),
    "few channels": Case((1, 9, 9, 4), (1, 5, 4, 1, 1)),
    "groups": Case((2, 6, 6, 120), (3, 20, 40, 1, 1)),
    "a tap with pads": Case((2, 6, 7, 64), (1, 64, 64, 1, 1), (2, 1)),
    "strides": Case((2, 9, 40, 64), (1, 96, 64, 1, 1), stride=2),
    "strides of odd channels": Case((1, 9, 70, 34), (1, 20, 34, 1, 1), stride=2),
    "band": Case((2, 9, 11, 64), (1, 70, 64, 3, 3), (1, 1)),
    "band of many": Case((1, 33, 40, 64), (1, 64, 64, 3, 3), (1, 1)),
    "band without pads": Case((1, 6, 5, 32), (1, 20, 32, 2, 2)),
    "band of one row": Case((1, 1, 30, 64), (1, 20, 64, 1, 3), (2, 2)),
    "band of far rows": Case((1, 3, 6, 64), (1, 64, 64, 3, 1), (4, 4)),
    "3×3 of odd channels": Case((2, 9, 11, 37), (1, 70, 37, 3, 3), (1, 1)),
    "3×3 with strides": Case((2, 9, 12, 64), (1, 70, 64, 3, 3), (1, 1), stride=2),
    "3×3 with dilations": Case((1, 12, 12, 64), (1, 64, 64, 3, 3), (2, 2), dilation=2),
    "3×3 of groups": Case((2, 6, 7, 48), (3, 18, 16, 3, 3), (1, 1)),
    "picture": Case((1, 40, 44, 3), (1, 33, 3, 7, 7), (3, 2), stride=2),
    "narrow picture": Case((2, 12, 12, 3), (1, 33, 3, 7, 7), (3, 3), stride=2),
    "band with strides": Case((2, 11, 25, 64), (1, 70, 64, 3, 3), (1, 1), stride=2),
    "band with long strides": Case((2, 11, 45, 19), (1, 20, 19, 2, 3), (1, 3), stride=3),
    "small images": Case((3, 2, 2, 64), (1, 64, 64, 3, 3), (1, 1)),
}


def drawn(case: Case) -> tuple[np.ndarray, IntegerFilters]:
    """Levels and filters with the least and the greatest bytes. Bytes behind the channels of a pixel are not zeros."""
    *pixels, channels = case.data
    levels = RANDOM.choice(np.array([0, 1, 127, 128, 255], np.uint8), (*pixels, padded(channels)))
    codes = RANDOM.choice(np.array([-128, -127, -1, 0, 1, 127], np.int8), case.filters)
    return levels, IntegerFilters(codes, np.ones(case.filters[0] * case.filters[1]))


def grid(step: float, zero: int, top: int = 255) -> Grid:
    scale, shift, size, level = (np.array([n], np.float64) for n in (1 / step, zero, step, zero))
    return Grid(scale, shift, size, level, top)


def computed(case: Case, after: After, arrays: Sequence[np.ndarray], filters: IntegerFilters, part: int) -> np.ndarray:
    """The result of the kernel, computed so many windows at a time: they begin and end within rows."""
    kernel = convolution(filters, case.axes, case.data[0], grid(1.0, ZERO), after)
    outs = case.filters[0] * case.filters[1]
    shape = case.data[0], case.axes[0].out, case.axes[1].out, outs if after.grid is None else padded(outs)
    out = np.full(shape, 77, np.float32 if after.grid is None else np.uint8)
    levels = arrays[0]
    if joins_taps(filters, case.axes):
        levels = padding(filters, case.axes, case.data[0], grid(1.0, ZERO))[0].call(levels)
    assert kernel.joins.calls is not None
    (call,) = kernel.joins.calls(levels, None, *arrays[1:], out=out, spare=np.empty(0, np.uint8))
    for first in range(0, call.size, part):
        call.function(*call.arguments, first, min(first + part, call.size))
    return out[..., :outs]


@pytest.mark.parametrize("name", CASES)
def test_sums(name: str) -> None:
    """Of all windows at once, of parts in tiles, and of parts that are too few for them."""
    case = CASES[name]
    levels, filters = drawn(case)
    wanted = case.sums(levels, filters.codes).astype(np.float32)
    outs = wanted.shape[3]
    for part in (10**6, 21, 7, 5):
        np.testing.assert_array_equal(computed(case, After(np.zeros(outs)), [levels], filters, part), wanted)


@pytest.mark.parametrize("name", CASES)
def test_what_follows(name: str) -> None:
    """Results do not depend on what computes them: with a residual, or an activation."""
    case = CASES[name]
    levels, filters = drawn(case)
    spread = case.sums(levels, filters.codes).std() + 1
    outs = case.filters[0] * case.filters[1]
    filters = IntegerFilters(filters.codes, RANDOM.uniform(0.5, 2, outs) / spread)
    bias, inner, last = RANDOM.uniform(-1, 1, outs), grid(0.02, 99), grid(0.03, 121, 200)
    shape = case.data[0], case.axes[0].out, case.axes[1].out, padded(outs)
    residual = RANDOM.integers(0, 256, shape, np.uint8)
    made = {
        "plain": ([levels], After(bias, grid=last)),
        "residual": ([levels, residual], After(bias, (-2.0, 2.5), inner, inner, (-1.5, 3.0), last)),
        "activation": ([levels], After(bias, grid=last, change=TANH, factors=RANDOM.uniform(0.5, 2, outs))),
    }
    for kind, (arrays, after) in made.items():
        few = computed(case, after, arrays, filters, 5)
        assert len(np.unique(few)) > min(few.size // 20, 100)
        for part in (10**6, 21):
            np.testing.assert_array_equal(computed(case, after, arrays, filters, part), few, err_msg=kind)
