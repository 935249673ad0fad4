"""Networks in integers: the sums are those of numpy's integers, and what follows them is the definition in f64."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b

pytest.importorskip("numba", reason="the extra `fast` is not installed")

import llvmlite.binding as llvm
from llvmlite import ir

from irrun.fast.integers.block import IntegerBlock, Row, _Arguments, windows
from irrun.fast.integers.dots import DOT, DOTS
from irrun.fast.integers.quads import in_quads
from irrun.fast.machine.processor import ROWS, VECTORS

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


# ---------------------------------------------------------------------------------------------
# the instructions

_I64 = ir.IntType(64)
_CALL = [_I64] * 11


def module(feature: str, triple: str, depthwise: bool, levels: bool) -> ir.Module:
    """A function that takes the arguments of a block, and computes it with all its vectors."""
    made = ir.Module()
    made.triple = triple
    function = ir.Function(made, ir.FunctionType(ir.VoidType(), _CALL), "block")
    builder = ir.IRBuilder(function.append_basic_block())
    *places, rounds, adds = function.args
    flags = [builder.trunc(flag, ir.IntType(8)) for flag in (rounds, adds)]
    IntegerBlock(builder, DOTS[feature], depthwise, VECTORS, levels, _Arguments(*places, *flags)).emit()
    builder.ret_void()
    return made


def machine(triple: str, processor: str, features: str) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(processor, features, opt=3)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize(
    ("feature", "triple", "processor", "instruction"),
    [
        ("avx512vnni", "x86_64-linux", "icelake-server", "vpdpbusd"),
        ("avx512bw", "x86_64-linux", "skylake-avx512", "vpmaddwd"),
        ("avxvnni", "x86_64-linux", "alderlake", "vpdpbusd"),
        ("avx2", "x86_64-linux", "haswell", "vpmaddwd"),
        ("dotprod", "aarch64-linux", "neoverse-n1", "sdot"),
    ],
)
def test_forms_of_other_processors_are_assembled(
    feature: str, triple: str, processor: str, instruction: str, depthwise: bool
) -> None:
    code = llvm.parse_assembly(str(module(feature, triple, depthwise, levels=True)))
    text = machine(triple, processor, "").emit_assembly(code)
    assert depthwise or instruction in text


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("feature", DOTS)
def test_forms_of_this_processor(feature: str, depthwise: bool) -> None:
    """Each form that it can execute: with the largest products, residuals and rounding."""
    host = llvm.get_host_cpu_features()
    if not host.get(feature):
        pytest.skip(f"this processor has no {feature}")
    lanes, taps, depth = DOTS[feature].lanes, 6, 5
    width, channels = lanes * VECTORS, lanes * VECTORS - 3
    deep = width if depthwise else 4 * depth
    data = RANDOM.choice(np.array([0, 1, 127, 128, 255], np.uint8), (ROWS * taps, deep))
    codes = RANDOM.choice(np.array([-128, -1, 0, 1, 127], np.int8), (taps, width if depthwise else 4 * depth, width))
    if depthwise:
        weights = in_quads(codes[:, 0].T) if DOTS[feature].quads else np.ascontiguousarray(codes[:, 0].astype(np.int16))
        sums = np.einsum("rtc,tc->rc", data.reshape(ROWS, taps, width).astype(np.int64), codes[:, 0])
    else:
        weights = np.ascontiguousarray(codes.reshape(taps, depth, 4, width).swapaxes(2, 3))
        sums = np.einsum("rtk,tkc->rc", data.reshape(ROWS, taps, deep).astype(np.int64), codes)
        sums -= DOTS[feature].offset * codes.sum((0, 1), dtype=np.int64)
    own = np.zeros((len(Row), width), np.float32)
    own[0].view(np.int32)[:] = start = RANDOM.integers(-1000, 1000, width)
    own[1:3], own[3:5], own[5:8] = [[2.0**-10], [3.5]], [[-50.0], [70.0]], [[0.5], [8.0], [2.0]]
    own[8:10] = [[1.0], [200.0]]
    residual, table = RANDOM.integers(0, 256, (ROWS, width), np.uint8), np.zeros((taps, ROWS), np.int64)
    table[:] = data.__array_interface__["data"][0] + deep * (np.arange(ROWS) * taps + np.arange(taps)[:, None])
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(str(module(feature, llvm.get_process_triple(), depthwise, levels=True))),
        machine(llvm.get_process_triple(), llvm.get_host_cpu_name(), host.flatten()),
    )
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 11)(engine.get_function_address("block"))
    plain = (sums + start) * 2.0**-10 + 3.5
    stepped = np.rint(np.clip(plain, -50, 70)) * 0.5 + 8
    for rounds, adds in itertools.product((0, 1), (0, 1)):
        out, targets = np.full((ROWS, width), 99, np.uint8), np.zeros((ROWS, 3), np.int64)
        for n, array in enumerate((out, residual)):
            targets[:, n] = array.__array_interface__["data"][0] + width * np.arange(ROWS)
        addresses = [array.__array_interface__["data"][0] for array in (table, weights, targets, own)]
        for row in range(0, ROWS, windows(DOTS[feature]) if depthwise else ROWS):
            entries, places = addresses[0] + 8 * row, addresses[2] + 24 * row
            function(entries, taps, depth, addresses[1], places, 0, 0, lanes - 3, addresses[3], rounds, adds)
        wanted = np.rint(np.clip((stepped if rounds else plain) + 2.0 * residual * adds, 1, 200))
        np.testing.assert_array_equal(out[:, :channels], wanted[:, :channels])
        assert (out[:, channels:] == 99).all(), "lanes beyond the last channel are written"
