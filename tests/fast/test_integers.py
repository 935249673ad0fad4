"""Networks in integers: the sums are those of numpy's integers, and what follows them is the definition in f64."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.integers.dots import DOT

RANDOM = np.random.default_rng(0)
needs_form = pytest.mark.skipif(DOT is None, reason="the processor has no form of products of bytes")


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch, compiled_kernels: None) -> None:
    monkeypatch.setenv("IRRUN_FAST", "always")


# ---------------------------------------------------------------------------------------------
# the definition, in f64 and numpy's integers


@dataclass(frozen=True)
class Levels:
    """A FakeQuantize: numbers are rounded to multiples of ``step``, from ``-zero * step`` on."""

    step: Any
    zero: Any = 0
    top: int = 255

    @property
    def ends(self) -> list[np.ndarray]:
        low, high = -np.multiply(self.zero, self.step), (self.top - np.asarray(self.zero)) * self.step
        numbers = [np.asarray(end, np.float32) for end in (low, high)]
        return [end.reshape(1, -1, 1, 1) if end.size > 1 else end.reshape(()) for end in numbers] * 2

    def node(self, x: Any) -> Any:
        return b.FakeQuantize(x, *self.ends, levels=self.top + 1)

    def of(self, x: np.ndarray) -> np.ndarray:
        """The numbers to which FakeQuantize rounds: a number in the middle becomes an even level."""
        numbers = (np.asarray(n, np.float64) for n in (self.step, self.zero))
        step, zero = (n.reshape(1, -1, 1, 1) if n.size > 1 else n for n in numbers)
        return (np.clip(np.rint(x / step + zero), 0, self.top) - zero) * step


@dataclass(frozen=True)
class Filters:
    """Filters as NNCF writes them: i8 (out, in, rows, columns), or (groups, out, in, …), and a scale for each output."""

    codes: np.ndarray
    scales: np.ndarray
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def outs(self) -> int:
        return math.prod(self.codes.shape[:-3])

    @property
    def values(self) -> np.ndarray:
        return self.codes * self.scales.astype(np.float64).reshape(*self.codes.shape[:-3], 1, 1, 1)

    def node(self, x: Any, zeros: Any = None) -> Any:
        codes = b.Convert(b.constant(self.codes, "i8"), destination_type="f32")
        codes = codes if zeros is None else b.Subtract(codes, zeros)
        scales = self.scales.astype(np.float32).reshape(*self.codes.shape[:-3], 1, 1, 1)
        make = b.Convolution if self.codes.ndim == 4 else b.GroupConvolution
        options: Any = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
        return make(x, b.Multiply(codes, scales), **(options | self.options))

    def of(self, x: np.ndarray) -> np.ndarray:
        values = self.values if self.codes.ndim == 5 else self.values[np.newaxis]
        strides, dilations = self.options.get("strides", [1, 1]), self.options.get("dilations", [1, 1])
        begin, end = self.options.get("pads_begin", [0, 0]), self.options.get("pads_end", [0, 0])
        wide = np.pad(x, [(0, 0), (0, 0), *zip(begin, end)])
        groups, outs, _, *kernel = values.shape
        sizes = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(wide.shape[2:], kernel, dilations, strides)]
        total: Any = 0
        for i, j in itertools.product(*map(range, kernel)):
            seen = wide[:, :, i * dilations[0] :: strides[0], j * dilations[1] :: strides[1]][
                ..., : sizes[0], : sizes[1]
            ]
            split = seen.reshape(len(x), groups, -1, *sizes)
            total = total + np.einsum("ngihw,goi->ngohw", split, values[..., i, j])
        return total.reshape(len(x), groups * outs, *sizes)


def filters(*shape: int, **options: Any) -> Filters:
    codes = RANDOM.integers(-128, 128, shape, np.int8)
    codes.ravel()[:2] = -128, 127
    return Filters(codes, 2.0 ** RANDOM.integers(-9, -6, math.prod(shape[:-3])), options)


def bias(channels: int) -> np.ndarray:
    return (RANDOM.integers(-1000, 1000, (1, channels, 1, 1)) * 2.0**-6).astype(np.float32)


def numbers(*shape: int, step: float = 1.0) -> np.ndarray:
    """Numbers that FakeQuantize rounds without doubt, also in f32."""
    return ((RANDOM.integers(-150, 300, shape) + RANDOM.choice([-0.25, 0.0, 0.25], shape)) * step).astype(np.float32)


def algorithms(model: irrun.Executable) -> list[str]:
    return [step.kernel.algorithm for step in model._plans.general.steps]


def check(node: Any, x: Sequence[np.ndarray] | np.ndarray, wanted: np.ndarray, steps: int) -> None:
    """The result is the same to the bit, and so many steps compute in integers: each by itself, and in turn."""
    arrays = [x] if isinstance(x, np.ndarray) else list(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("irrun.fast.passes.turns.join_turns.__code__", (lambda flow, context: flow).__code__)
        apart = irrun.compile(b.model({"y": node}))
        assert sum(name.startswith("integers") for name in algorithms(apart)) == steps
    model = irrun.compile(b.model({"y": node}))
    assert any("in turn" in name for name in algorithms(model)) == (steps > 0)
    for _ in range(2):
        np.testing.assert_array_equal(model(arrays)[0], wanted.astype(np.float32))
    np.testing.assert_array_equal(apart(arrays)[0], wanted.astype(np.float32))


IN = Levels(2.0**-3, 128)
POSITIVE = Levels(2.0**-3)
OUT = Levels(2.0**2, 117)
"""Its step is a power of two, so that many numbers are in the middle between two levels."""

CONVOLUTIONS: dict[str, tuple[tuple[int, ...], dict[str, Any], tuple[int, ...]]] = {
    "1×1": ((64, 32, 1, 1), {}, (1, 32, 7, 6)),
    "2×2 of three channels": ((5, 3, 2, 2), {}, (2, 3, 4, 5)),
    "3×3 with pads": ((70, 20, 3, 3), {"pads_begin": [1, 1], "pads_end": [1, 1]}, (1, 20, 9, 8)),
    "7×7 of a picture": ((64, 3, 7, 7), {"strides": [2, 2], "pads_begin": [3, 3], "pads_end": [3, 3]}, (1, 3, 20, 20)),
    "asymmetric": ((9, 8, 3, 2), {"pads_begin": [2, 0], "pads_end": [0, 1], "strides": [1, 2]}, (2, 8, 6, 7)),
    "dilated": ((33, 8, 3, 3), {"dilations": [2, 3], "pads_begin": [2, 3], "pads_end": [2, 3]}, (1, 8, 9, 9)),
    "groups": ((3, 18, 8, 3, 3), {"pads_begin": [1, 1], "pads_end": [1, 1]}, (2, 24, 5, 6)),
    "depthwise": ((70, 1, 1, 3, 3), {"pads_begin": [1, 1], "pads_end": [1, 1], "strides": [2, 1]}, (2, 70, 7, 9)),
    "depthwise of few": ((6, 1, 1, 5, 2), {}, (1, 6, 8, 3)),
}


@needs_form
@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    """Of signed and of positive levels, with what may follow them."""
    shape, options, size = CONVOLUTIONS[name]
    own, x = filters(*shape, **options), numbers(*size, step=IN.step)
    extra = bias(own.outs)
    for levels, after in itertools.product((IN, POSITIVE), range(3)):
        node = b.Add(own.node(levels.node(b.parameter(list(size), "f32"))), extra)
        wanted = own.of(levels.of(x)) + extra
        if after == 1:
            node, wanted = b.Relu(node), np.maximum(wanted, 0)
        if after == 2:
            node, wanted = b.Clamp(node, min=-3.5, max=90.0), np.clip(wanted, -3.5, 90)
        check(OUT.node(node), x, OUT.of(wanted), 1)


@needs_form
def test_result_in_f32() -> None:
    """No FakeQuantize follows, or others read the result as well."""
    own, x = filters(20, 8, 3, 3), numbers(1, 8, 6, 6, step=IN.step)
    extra, p = bias(20), b.parameter([1, 8, 6, 6], "f32")
    node, wanted = b.Relu(b.Add(own.node(IN.node(p)), extra)), np.maximum(own.of(IN.of(x)) + extra, 0)
    check(node, x, wanted, 1)
    check(b.Add(OUT.node(node), node), x, OUT.of(wanted) + wanted, 1)


@dataclass(frozen=True)
class Matrix:
    """A matrix [columns, depth] as NNCF writes it; ``flips`` holds it the other way round."""

    codes: np.ndarray
    scales: np.ndarray
    flips: bool = False

    @property
    def values(self) -> np.ndarray:
        return self.codes * self.scales.astype(np.float64)[:, np.newaxis]

    def node(self, x: Any) -> Any:
        codes, scales = self.codes, self.scales.astype(np.float32)[:, np.newaxis]
        codes, scales = (np.ascontiguousarray(codes.T), scales.T) if self.flips else (codes, scales)
        numbers = b.Multiply(b.Convert(b.constant(codes, "i8"), destination_type="f32"), scales)
        return b.MatMul(x, numbers, transpose_a=False, transpose_b=not self.flips)


def matrix(columns: int, depth: int, flips: bool = False) -> Matrix:
    codes = RANDOM.integers(-128, 128, (columns, depth), np.int8)
    return Matrix(codes, 2.0 ** RANDOM.integers(-9, -6, columns), flips)


@needs_form
@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("shape", [(1, 70), (13, 70), (2, 5, 70), (2, 2, 3, 70)])
def test_products(shape: tuple[int, ...], flips: bool) -> None:
    """Of levels that a view shows, with a bias; two in turn; the levels between them are the f32 that others read."""
    own, then, x = matrix(90, 70, flips), matrix(66, 90, flips), numbers(*shape, step=IN.step)
    p, extra = b.parameter(list(shape), "f32"), bias(90).ravel()
    check(own.node(IN.node(p)), x, IN.of(x) @ own.values.T, 1)
    node, wanted = b.Relu(b.Add(own.node(IN.node(p)), extra)), np.maximum(IN.of(x) @ own.values.T + extra, 0)
    check(OUT.node(node), x, OUT.of(wanted), 1)
    check(then.node(OUT.node(node)), x, OUT.of(wanted) @ then.values.T, 2)
    check(b.Negative(OUT.node(node)), x, -OUT.of(wanted), 1)
    turned = b.Reshape(IN.node(p), np.array([-1, 70]), special_zero=False)
    check(own.node(turned), x, IN.of(x).reshape(-1, 70) @ own.values.T, 1)


@needs_form
@pytest.mark.parametrize("channels", [8, 6])
def test_concat(channels: int) -> None:
    """Levels are joined if they are the same, and no channels are padded."""
    own, then, x = filters(channels, 8, 1, 1), filters(20, 8 + channels, 3, 3), numbers(2, 8, 5, 6, step=IN.step)
    levels, wanted = IN.node(b.parameter([2, 8, 5, 6], "f32")), IN.of(x)
    for inner, steps in ((IN, 3 if channels == 8 else 1), (OUT, 1)):
        node = b.Concat([levels, inner.node(own.node(levels))], axis=1)
        check(then.node(node), x, then.of(np.concatenate([wanted, inner.of(own.of(wanted))], 1)), steps)


@needs_form
def test_product_of_the_channels_of_an_image() -> None:
    """An image of levels, whose last axis is the columns of a product."""
    filter, own, x = filters(12, 8, 1, 1), matrix(90, 70), numbers(1, 8, 4, 70, step=IN.step)
    node = OUT.node(filter.node(IN.node(b.parameter([1, 8, 4, 70], "f32"))))
    check(own.node(node), x, OUT.of(filter.of(IN.of(x))) @ own.values.T, 2)


@needs_form
@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("channels", [8, 37])
def test_data_with_channels_last(channels: int) -> None:
    """As what f32 gives channels last."""
    own, x = filters(20, channels, 2, 2), numbers(2, 5, 6, channels, step=IN.step)
    node = own.node(IN.node(b.Transpose(b.parameter([2, 5, 6, channels], "f32"), [0, 3, 1, 2])))
    check(node, x, own.of(IN.of(x.transpose(0, 3, 1, 2))), 1)


@needs_form
@pytest.mark.usefixtures("workers")
def test_residuals() -> None:
    """Of a convolution, of its data, with and without a FakeQuantize before the sum, in both orders."""
    first, then, x = filters(24, 12, 1, 1), filters(24, 24, 1, 1), numbers(2, 12, 5, 5, step=IN.step)
    inner, last = Levels(2.0**3, 101), Levels(2.0**4, 9, 200)
    p = b.parameter([2, 12, 5, 5], "f32")
    a, wanted = OUT.node(first.node(IN.node(p))), OUT.of(first.of(IN.of(x)))
    c, added = inner.node(then.node(a)), inner.of(then.of(wanted))
    check(last.node(b.Relu(b.Add(c, a))), x, last.of(np.maximum(added + wanted, 0)), 2)
    check(last.node(b.Add(a, c)), x, last.of(added + wanted), 2)
    check(last.node(b.Add(a, then.node(a))), x, last.of(then.of(wanted) + wanted), 2)
    check(b.Add(b.Relu(then.node(a)), a), x, np.maximum(then.of(wanted), 0) + wanted, 2)


@needs_form
@pytest.mark.usefixtures("workers")
def test_network() -> None:
    """Levels stay levels through pools and depthwise convolutions, whose channels have ranges of their own."""
    pads: Any = {"pads_begin": [1, 1], "pads_end": [1, 1]}
    wide, deep, narrow = filters(66, 8, 3, 3, **pads), filters(66, 1, 1, 3, 3, **pads), filters(10, 66, 1, 1)
    own = Levels(2.0 ** RANDOM.integers(1, 4, 66), RANDOM.integers(0, 256, 66))
    x = numbers(1, 8, 12, 12, step=IN.step)
    pool: Any = {"strides": [2, 2], "kernel": [3, 3], "rounding_type": "floor", **pads}
    node = own.node(wide.node(IN.node(b.parameter([1, 8, 12, 12], "f32"))))
    node = OUT.node(deep.node(b.MaxPool(node, opset=1, **pool)))
    values = np.pad(own.of(wide.of(IN.of(x))), [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    pooled = np.max([values[:, :, i : i + 11 : 2, j : j + 11 : 2] for i in range(3) for j in range(3)], axis=0)
    wanted = OUT.of(deep.of(pooled))
    check(OUT.node(narrow.node(node)), x, OUT.of(narrow.of(wanted)), 4)


def test_other_forms_are_not_for_integers() -> None:
    """What the kernels do not hold, irrun computes in f32, as ``exact`` does."""
    own = filters(8, 8, 3, 3)
    x, p = numbers(1, 8, 6, 6, step=IN.step), b.parameter([1, 8, 6, 6], "f32")
    channels = Levels(2.0 ** RANDOM.integers(-3, 0, 8), 128)
    quarter = b.FakeQuantize(p, np.float32(-10.1), np.float32(20), np.float32(-10.1), np.float32(20), levels=256)
    nodes = {
        "zero points of filters": own.node(IN.node(p), zeros=np.float32(3)),
        "many levels": own.node(b.FakeQuantize(p, *IN.ends, levels=512)),
        "zero between two levels": own.node(quarter),
        "zero below the levels": own.node(b.FakeQuantize(p, *(np.float32(n) for n in (1, 5, 1, 5)), levels=256)),
        "ranges of channels": own.node(channels.node(p)),
    }
    for name, node in nodes.items():
        model = irrun.compile(b.model({"y": node}))
        assert not [step for step in algorithms(model) if step.startswith("integers")], name
        wanted = irrun.compile(b.model({"y": node}), exact=True)([x])[0]
        np.testing.assert_allclose(model([x])[0], wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


@needs_form
def test_any_scales() -> None:
    """Where scales are no powers of two, few numbers are so near to the middle that they get the level beside it."""
    x, p = RANDOM.standard_normal((1, 16, 24, 24), np.float32), b.parameter([1, 16, 24, 24], "f32")
    pads: Any = {"pads_begin": [1, 1], "pads_end": [1, 1]}
    own = filters(96, 16, 3, 3, **pads)
    own = Filters(own.codes, RANDOM.uniform(1e-3, 2e-3, 96), pads)
    first, last = Levels(0.0173, 120), Levels(0.0391, 131)
    node = last.node(own.node(first.node(p)))
    y, wanted = (irrun.compile(b.model({"y": node}), exact=exact)([x])[0] for exact in (False, True))
    apart = np.abs(y - wanted) / np.float32(last.step)
    assert apart.max() < 1.01
    assert (apart > 0.5).mean() < 1e-3


def near_levels(node: Any, x: np.ndarray, wanted: np.ndarray, last: Levels) -> irrun.Executable:
    """The result is that of levels, of which one in a thousand is beside the wanted one, in the middle between two."""
    model = irrun.compile(b.model({"y": node}))
    apart = np.abs(model([x])[0] - wanted) / last.step
    assert apart.max() < 1.01
    assert (apart > 0.5).mean() < 1e-3
    return model


ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], np.ndarray]]] = {
    "Gelu": (
        lambda x: b.Gelu(x, approximation_mode="erf"),
        lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    ),
    "Gelu of tanh": (
        lambda x: b.Gelu(x, approximation_mode="tanh"),
        lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "Swish": (lambda x: b.Swish(x, np.float32(1.5)), lambda x: x / (1 + np.exp(-1.5 * x))),
    "Sigmoid": (b.Sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "Tanh": (b.Tanh, np.tanh),
    "Erf": (b.Erf, np.vectorize(math.erf)),
}


@needs_form
@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    """Between a product or a convolution and levels, with a bias before and a number for each column after."""
    make, of = ACTIVATIONS[name]
    own, then, x = matrix(90, 70), matrix(66, 90), numbers(2, 40, 70, step=IN.step)
    own = Matrix(own.codes, own.scales / 256)
    extra, factors = bias(90).ravel() / 8, RANDOM.uniform(0.5, 2, (1, 1, 90)).astype(np.float32)
    last, wanted = Levels(2.0**-6, 60), of(IN.of(x) @ own.values.T + extra)
    node = make(b.Add(own.node(IN.node(b.parameter([2, 40, 70], "f32"))), extra))
    near_levels(last.node(node), x, last.of(wanted), last)
    model = near_levels(last.node(b.Multiply(factors, node)), x, last.of(wanted * factors), last)
    assert algorithms(model) == ["compiled in turn"]
    # two products, with only levels between them
    model = irrun.compile(b.model({"y": then.node(last.node(b.Multiply(node, factors)))}))
    assert algorithms(model) == ["compiled in turn"]
    assert np.abs(model([x])[0] - last.of(wanted * factors) @ then.values.T).max() < 2 * last.step
    filter, y = filters(70, 8, 3, 3), numbers(1, 8, 7, 8, step=IN.step)
    filter = Filters(filter.codes, filter.scales / 256)
    image = make(filter.node(IN.node(b.parameter([1, 8, 7, 8], "f32"))))
    near_levels(last.node(image), y, last.of(of(filter.of(IN.of(y)))), last)


@needs_form
def test_activations_that_others_read() -> None:
    """Or that no levels follow, or that follow a depthwise convolution: numpy or another kernel computes them."""
    own, x = matrix(90, 70), numbers(3, 70, step=IN.step)
    own = Matrix(own.codes, own.scales / 256)
    node = b.Tanh(own.node(IN.node(b.parameter([3, 70], "f32"))))
    wanted, last = np.tanh(IN.of(x) @ own.values.T), Levels(2.0**-6, 60)
    for given, numbers_wanted in ((node, wanted), (b.Add(last.node(node), node), last.of(wanted) + wanted)):
        y = irrun.compile(b.model({"y": given}))([x])[0]
        np.testing.assert_allclose(y, numbers_wanted, atol=1.01 * last.step if given is not node else 1e-6)
    deep, z = filters(12, 1, 1, 3, 3), numbers(1, 12, 6, 6, step=IN.step)
    deep = Filters(deep.codes, deep.scales / 256)
    image = last.node(b.Tanh(deep.node(IN.node(b.parameter([1, 12, 6, 6], "f32")))))
    near_levels(image, z, last.of(np.tanh(deep.of(IN.of(z)))), last)


@needs_form
def test_numbers_that_are_multiplied_before_levels() -> None:
    """By a number for each column, as smooth quantization has it: they become levels at once."""
    own, x = matrix(90, 70), numbers(2, 5, 70, step=IN.step)
    factors = 2.0 ** RANDOM.integers(-2, 3, (1, 1, 70))
    given, p = (x * factors).astype(np.float32), b.parameter([2, 5, 70], "f32")
    node = own.node(IN.node(b.Multiply(p, (1 / factors).astype(np.float32))))
    model = irrun.compile(b.model({"y": node}))
    assert algorithms(model) == ["compiled in turn"]
    np.testing.assert_array_equal(model([given])[0], (IN.of(x) @ own.values.T).astype(np.float32))
    # what also others read is computed once more
    both = b.Multiply(p, (1 / factors).astype(np.float32))
    y = irrun.compile(b.model({"y": own.node(IN.node(both)), "z": b.Negative(both)}))([given])
    np.testing.assert_array_equal(y[0], (IN.of(x) @ own.values.T).astype(np.float32))
    np.testing.assert_array_equal(y[1], -x)


@needs_form
def test_levels_that_a_view_shows_to_f32() -> None:
    """The product itself gives the f32 of its levels, as queries and keys of attention are."""
    own, x = matrix(90, 70), numbers(1, 5, 70, step=IN.step)
    node = b.Reshape(OUT.node(own.node(IN.node(b.parameter([1, 5, 70], "f32")))), np.array([5, 90]), special_zero=False)
    model = irrun.compile(b.model({"y": b.Negative(node)}))
    assert "from levels" not in algorithms(model)
    np.testing.assert_array_equal(model([x])[0], -OUT.of(IN.of(x)[0] @ own.values.T).astype(np.float32))
