"""The errors to expect in a precision, beside those of plain numpy in that precision."""

from __future__ import annotations

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.debug.budget import Expected, InEffect, expect_in

MEMORY = 1 << 30
RNG = np.random.default_rng(0)
X, W = (RNG.normal(size=shape).astype(np.float32) for shape in ((1, 40, 64), (48, 64)))


def _expected(model: irrun.Model, effect: InEffect, x: np.ndarray = X) -> Expected:
    return expect_in(model, effect, [{0: x}], MEMORY)


def _relative(error: np.ndarray, value: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(error)) / np.mean(np.square(value))))


def _network() -> irrun.Model:
    product = b.MatMul(b.parameter(X.shape, name="x"), W, transpose_b=True, name="product")
    return b.model({"y": b.Exp(product, name="exp"), "n": b.ShapeOf(product, name="shape")})


@pytest.mark.parametrize(("type", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_the_errors_of_each_layer(type: str, dtype: type) -> None:
    """Each layer rounds its inputs and its result; Exp makes relative errors of absolute ones."""
    rounded = [array.astype(dtype).astype(np.float32) for array in (X * 0.2, W)]
    low, true = (rounded[0] @ rounded[1].T).astype(dtype).astype(np.float32), X * 0.2 @ W.T
    exact = np.exp(true)
    errors = _relative(low - true, true), _relative(np.exp(low).astype(dtype).astype(np.float32) - exact, exact)
    found = _expected(_network(), InEffect(type), X * np.float32(0.2))
    for name, error in zip(("product", "exp"), errors):
        assert error / 1.5 < (found.of_layer(name) or 0) < error * 2.5
    assert found.of_layer("exp") == pytest.approx(found.outputs[0].error, rel=0.05)
    assert found.outputs[0].allowed > 4 * found.outputs[0].error
    assert found.precision == type
    assert found.of_layer("shape") is None
    assert list(found.outputs) == [0]


def test_f32_rounds_little() -> None:
    found = _expected(_network(), InEffect())
    assert 2.0**-25 < (found.of_layer("product") or 0) < 2.0**-21


def test_an_overflow_is_infinite() -> None:
    model = b.model({"y": b.Multiply(b.parameter([4], name="x"), np.float32(1000), name="large")})
    x = np.full(4, 100, np.float32)
    assert _expected(model, InEffect("f16"), x).of_layer("large") == math.inf
    assert (_expected(model, InEffect("bf16"), x).of_layer("large") or 0) < 2.0**-7


def test_activations_in_groups() -> None:
    """An element of 64 that are quantized has an error of up to half a step, a 254th of the greatest in its group."""
    codes = RNG.integers(-100, 100, W.shape).astype(np.int8)
    weights = b.Multiply(b.Convert(codes, destination_type="f32"), np.full((48, 1), 0.01, np.float32))
    model = b.model([b.MatMul(b.parameter(X.shape, name="x"), weights, transpose_b=True, name="product")])
    parts = X.reshape(1, 40, 2, 32)
    steps = np.abs(parts).max(axis=-1, keepdims=True) / 127
    true, wide = X @ codes.T.astype(np.float32), (np.rint(parts / steps) * steps).reshape(X.shape)
    error = _relative(wide @ codes.T.astype(np.float32) - true, true)
    found = _expected(model, InEffect("f32", group=32))
    assert found.precision == "f32, groups of 32"
    assert error / 2 < found.outputs[0].error < error * 2
    assert found.outputs[0].error > 100 * _expected(model, InEffect()).outputs[0].error


def test_a_quantized_cache(tmp_path: Path) -> None:
    """A u8 cache keeps each row in 255 steps of its range. The expectation lets an element move by up to one step."""
    x = b.parameter(X.shape, name="x")
    empty = np.zeros((1, 0, 64), np.float32)
    past = b.ReadValue(empty, variable_id="past", variable_type="f32", variable_shape=[1, "?", 64])
    kept = b.Concat([past, x], axis=1, name="kept")
    model = b.model({"y": b.Negative(kept, name="y")}, sinks=[b.Assign(kept, variable_id="past")])
    irrun.save_model(model, tmp_path / "model.xml")
    model = irrun.read_model(tmp_path / "model.xml")
    steps = np.ptp(X, axis=-1, keepdims=True) / 255
    error = _relative(np.rint(X / steps) * steps - X, X)
    found = _expected(model, InEffect("f32", cache="u8"))
    assert found.precision == "f32, u8 cache"
    assert error < found.outputs[0].error < 3 * error
    assert _expected(_network(), InEffect("bf16", cache="u8")).precision == "bf16"
