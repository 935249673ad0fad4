"""Compiled passes over elements and rows: functions, activations, SoftMax and normalisation, against numpy in f64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irrun import fast
from irrun.opdef import Kernel, Request, Value
from kit import filled, operation, tensor

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.activations import Activation, activation

RANDOM = np.random.default_rng(0)
SPECIAL = np.array([
    np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-40, 1e-38, 3e38, -3e38,
    88.6, 88.8, 89, 104, -87.3, -88.1, -103.9, -104.1, 9.01, -9.03, 3.92, -3.94,
], np.float32)  # fmt: skip


def numbers() -> np.ndarray:
    """Return numbers of every exponent and sign, many where functions bend, and special ones."""
    bits = RANDOM.integers(0, 1 << 32, 1 << 16, dtype=np.uint32)
    bits[: 1 << 10] = np.repeat(np.arange(1 << 9, dtype=np.uint32), 2) << 23 | bits[: 1 << 10] >> 9
    bend = RANDOM.standard_normal(1 << 15) * 4, np.linspace(-105, 90, 1 << 15)
    return np.concatenate([bits.view(np.float32), *(part.astype(np.float32) for part in bend), SPECIAL])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def erf(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(n) for n in x.ravel().tolist()]).reshape(x.shape)


def kernel_of(name: str, attributes: dict[str, Any] | None, *inputs: Value | None) -> Kernel:
    kernel = fast.kernel(operation(name, attributes), Request(inputs))
    assert kernel is not None
    return kernel


@pytest.mark.parametrize(
    ("name", "function", "ulps"),
    [("Exp-1", np.exp, 1.1), ("Erf-1", erf, 6), ("Tanh-1", np.tanh, 5), ("Sigmoid-1", sigmoid, 3)],
)
def test_functions(name: str, function: Callable[[np.ndarray], np.ndarray], ulps: float) -> None:
    """Errors in units of the last place; results below the normal numbers are as close as f32 can be, or 0."""
    x = numbers()
    with np.errstate(all="ignore"):
        wide = function(x.astype(np.float64))
        wanted = wide.astype(np.float32)
    got = kernel_of(name, None, tensor("f32[?]")).call(x)
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(got[~finite], wanted[~finite])
    x, wide, wanted, got = (a[finite] for a in (x, wide, wanted, got))
    error, tiny = np.abs(got - wide), np.abs(wide) < 2.0**-126
    assert (error <= ulps * np.spacing(np.abs(wanted)))[~tiny].all()
    # the sigmoid of less than -88.7 is 0
    assert (error[tiny] <= (2.0**-126 if name == "Sigmoid-1" else 2.0**-149)).all()
    if name in ("Erf-1", "Tanh-1"):
        assert np.abs(got).max() == 1
        np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


def by_erf(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def by_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    ("name", "attributes", "function"),
    [
        ("Gelu-2", None, by_erf),
        ("Gelu-7", {"approximation_mode": "ERF"}, by_erf),
        ("Gelu-7", {"approximation_mode": "TANH"}, by_tanh),
        ("Swish-4", None, lambda x: x * sigmoid(x)),
    ],
)
def test_activations(name: str, attributes: dict[str, str] | None, function: Callable[..., np.ndarray]) -> None:
    """The error is relative to the larger of the input and the result."""
    x = np.concatenate([numbers()[-(1 << 16) :], np.array([-1e30, 1e30, 1e-30], np.float32)])
    inputs = (tensor("f32[?]"),) if name != "Swish-4" else (tensor("f32[?]"), None)
    got = kernel_of(name, attributes, *inputs).call(x)
    with np.errstate(all="ignore"):
        wanted = function(x.astype(np.float64))
        close = np.abs(got - wanted) <= 3e-7 * np.abs(x) + 1e-37
    assert close[np.isfinite(x)].all()
    assert np.isnan(got[np.isnan(x)]).all()
    assert (got[x == np.inf] == np.inf).all()
    assert np.isnan(got[x == -np.inf]).all()  # -Inf times 0


@pytest.mark.parametrize("name", ["Gelu-2", "Gelu-7", "Swish-4"])
def test_the_tail_is_zero(name: str) -> None:
    """Far below zero the factor is 0: a factor of 3e-8, the rounding error of erf, would give -0.03 for -1e6."""
    x = -np.geomspace(200, 3e38, 999).astype(np.float32)
    inputs = (tensor("f32[?]"),) if name != "Swish-4" else (tensor("f32[?]"), None)
    assert (kernel_of(name, None, *inputs).call(x) == 0).all()


def test_swish_with_beta() -> None:
    x, beta = numbers()[-(1 << 15) : -len(SPECIAL)], np.array(1.7, np.float32)
    got = kernel_of("Swish-4", None, tensor("f32[?]"), Value.of(beta)).call(x, beta)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(got, wide / (1 + np.exp(-np.float64(beta) * wide)), rtol=3e-5, atol=1e-36)


def layouts(rows: int, columns: int) -> list[np.ndarray]:
    """Return arrays whose rows follow each other, are evenly apart, are unevenly apart, and are not contiguous."""
    whole = RANDOM.standard_normal((3, rows, columns + 3), np.float32) * 3
    return [
        whole[1].copy(), whole[:, :, 2 : 2 + columns], whole[:, : rows - 1, :columns], whole[::-1, ::2, :columns],
        whole[:, :, 1 : columns + 1].swapaxes(0, 2), whole[1, :, ::2],
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [1, 5, 16, 300])
def test_activations_of_any_layout_in_place(columns: int) -> None:
    call = activation(Activation.SIGMOID).call
    for x in layouts(7, columns):
        wanted = sigmoid(x.astype(np.float64))
        np.testing.assert_allclose(call(x), wanted, rtol=1e-6)
        into = np.zeros_like(x)
        assert call(x, out=into) is into
        np.testing.assert_allclose(into, wanted, rtol=1e-6)
        assert call(x, out=x) is x
        np.testing.assert_allclose(x, wanted, rtol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (), (1,), (300, 401), (2, 3, 4, 5)])
def test_activations_of_any_shape(shape: tuple[int, ...]) -> None:
    """Among them one that is divided into blocks, in place and not."""
    call = activation(Activation.TANH).call
    x = np.array(RANDOM.standard_normal(shape), np.float32)
    wanted = np.tanh(x.astype(np.float64))
    got = call(x)
    assert got.shape == shape
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
    np.testing.assert_allclose(call(x, out=x), wanted, rtol=1e-6)


# ---------------------------------------------------------------------------------------------
# rows


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(-1, keepdims=True)


def standardised(x: np.ndarray, eps: float = 1e-5, *, inside: bool = True) -> np.ndarray:
    variance = x.var(-1, keepdims=True)
    return (x - x.mean(-1, keepdims=True)) / (np.sqrt(variance + eps) if inside else np.sqrt(variance) + eps)


def by_rows(name: str, columns: int) -> tuple[Kernel, list[np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """Return a compiled kernel, the arrays that it gets beside its data, and the function for f64."""
    data = tensor(f"f32[?,?,{columns}]")
    if name == "SoftMax-8":
        return kernel_of(name, {"axis": -1}, data), [], softmax
    if name == "RMS-14":
        gamma = RANDOM.standard_normal(columns, np.float32)
        kernel = kernel_of(name, {"epsilon": 1e-6}, data, Value.of(gamma))
        return kernel, [gamma], lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma
    inside = name == "inside_sqrt"
    attributes = {"normalize_variance": "true", "eps": 1e-5, "eps_mode": name}
    axes = np.array([-1])
    kernel = kernel_of("MVN-6", attributes, data, Value.of(axes))
    return kernel, [axes], lambda x: standardised(x, inside=inside)


NAMES = ["SoftMax-8", "RMS-14", "inside_sqrt", "outside_sqrt"]


@pytest.mark.parametrize("columns", [1, 2, 15, 16, 64, 197, 1500])
@pytest.mark.parametrize("name", NAMES)
def test_rows(name: str, columns: int) -> None:
    kernel, more, function = by_rows(name, columns)
    # far enough apart for the means of f32
    spread = np.linspace(-3, 4, columns) + RANDOM.random((2, 5, columns)) / 10
    for x in (spread.astype(np.float32), np.full((1, 3, columns), -2.5, np.float32)):
        wanted = function(x.astype(np.float64))
        np.testing.assert_allclose(kernel.call(x, *more), wanted, rtol=2e-6, atol=2e-6)
        np.testing.assert_allclose(filled(kernel, x.shape, np.float32, x, *more), wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_any_layout(name: str) -> None:
    kernel, more, function = by_rows(name, 20)
    whole = RANDOM.standard_normal((6, 9, 44), np.float32)
    for x in (whole[:, :, 3:23], whole[::2, 1:, :40:2], whole[:, :, :6].swapaxes(0, 2)[:, :, :0], whole[:0, :, :20]):
        if x.shape[-1] == 20:
            wanted = function(x.astype(np.float64))
            np.testing.assert_allclose(kernel.call(x, *more), wanted, rtol=2e-6, atol=2e-6)


def test_softmax_of_extremes() -> None:
    """Numbers that no exponential holds, and rows of -Inf and NaN, which spoil no other row."""
    inf, nan = np.inf, np.nan
    x = np.array([
        [1e38, 1e38, -1e38], [-3e38, -3e38, -3e38], [0, -inf, 0], [-inf, -inf, -inf], [inf, 0, 0], [nan, 0, 1],
        [-200, -300, -200], [-nan, 2, 1], [5, 5, 5],
    ], np.float32)[None]  # fmt: skip
    with np.errstate(invalid="ignore"):
        wanted = softmax(x.astype(np.float64))
    kernel, _, _ = by_rows("SoftMax-8", 3)
    np.testing.assert_allclose(kernel.call(x), wanted, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("name", ["inside_sqrt", "outside_sqrt", "RMS-14"])
def test_normalisation_of_extremes(name: str) -> None:
    """A large mean, a row that is not finite, and a row of zeros."""
    x = np.zeros((1, 4, 40), np.float32)
    x[0, 0] = 1000 + np.arange(40)
    x[0, 1, 3], x[0, 2, 4] = np.nan, np.inf
    kernel, more, function = by_rows(name, 40)
    with np.errstate(invalid="ignore"):
        wanted = function(x.astype(np.float64))
    np.testing.assert_allclose(kernel.call(x, *more), wanted, rtol=2e-5, atol=2e-5)


def test_kernels_that_are_left_to_numpy() -> None:
    """Another axis than the last, other types, and several axes."""
    for name, attributes, inputs in (
        ("SoftMax-8", {"axis": 1}, [RANDOM.standard_normal((2, 3, 4), np.float32)]),
        ("SoftMax-8", {"axis": -1}, [RANDOM.standard_normal((2, 3, 4))]),
        ("Tanh-1", None, [RANDOM.standard_normal((2, 3))]),
        (
            "MVN-6", {"normalize_variance": "true", "eps": 1e-5, "eps_mode": "inside_sqrt"},
            [RANDOM.standard_normal((2, 3, 4), np.float32), np.array([1, 2])],
        ),
    ):  # fmt: skip
        op, request = operation(name, attributes), Request(tuple(map(Value.of, inputs)))
        assert fast.kernel(op, request) is None
        kernel = op.prepare(request)
        assert kernel is not None
        np.testing.assert_allclose(kernel.call(*inputs), op.run(*inputs), rtol=1e-5, atol=1e-6)
