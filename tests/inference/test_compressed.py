"""Compressed weights: `irrun show` calls those compressed that the planner leaves as the file has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.checking.storage import storage

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 100, (64, 96))
ZEROS, SCALES = RNG.integers(0, 9, (64, 1)), RNG.uniform(0.01, 0.02, (64, 1))


def codes(type: Any = np.uint8, to: str = "f16") -> Any:
    return b.Convert(b.constant(CODES.astype(type)), destination_type=to)


def zeros(**reshaped: Any) -> Any:
    y = b.Convert(b.constant(ZEROS.astype(np.uint8)), destination_type="f16")
    return b.Reshape(y, np.array([64, 1]), special_zero=False) if reshaped else y


def scales(dtype: Any = np.float16) -> Any:
    return b.constant(SCALES.astype(dtype))


CASES: dict[str, tuple[Callable[[], Any], str, bool]] = {
    "in order": (
        lambda: b.Multiply(b.Subtract(codes(), zeros()), scales()), "u8 asymmetric, one scale per channel", True),
    "no zero points": (lambda: b.Multiply(codes(np.int8), scales()), "i8 symmetric, one scale per channel", True),
    "no scales": (lambda: b.Subtract(codes(), zeros()), "u8 asymmetric, no scales", True),
    "codes alone": (lambda: codes(np.int8), "i8", True),
    # the planner unpacked these, and `show` called them compressed
    "scales first": (lambda: b.Multiply(scales(), codes(np.int8)), "i8 symmetric, one scale per channel", True),
    "scales before zero points": (lambda: b.Subtract(b.Multiply(codes(), scales()), zeros()), "u8", False),
    "zero points twice": (
        lambda: b.Multiply(b.Subtract(b.Subtract(codes(), zeros()), zeros()), scales()), "u8", False),
    "zero points less codes": (lambda: b.Multiply(b.Subtract(zeros(), codes()), scales()), "u8", False),
    "zero points reshaped": (
        lambda: b.Multiply(b.Subtract(codes(), zeros(reshaped=True)), scales()), "u8", False),
    "scales twice": (lambda: b.Multiply(b.Multiply(codes(), scales()), scales()), "u8", False),
    "in another type": (lambda: b.Multiply(codes(to="f64"), scales(np.float64)), "u8", False),
    "FakeQuantize": (
        lambda: b.FakeQuantize(codes(np.int8), *map(np.float16, (0, 99, 0, 1)), levels=100), "i8, FakeQuantize", False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_show_and_the_planner_agree(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRRUN_FAST", "0")
    build, form, is_left = CASES[case]
    x = b.parameter([3, 96], "f32", name="x")
    model = b.model(b.MatMul(x, b.Convert(build(), destination_type="f32"), transpose_b=True))
    (row,) = [row for row in storage(model) if row.parameters >= CODES.size]
    assert row.form == form
    executable = irrun.compile(model, exact=False)
    assert bool(executable.plan.stored) is is_left
    a = RNG.standard_normal((3, 96), np.float32)
    expected = irrun.compile(model, exact=True)(a)[0]
    np.testing.assert_allclose(executable(a)[0], expected, rtol=0, atol=2**-8 * np.abs(expected).max())
