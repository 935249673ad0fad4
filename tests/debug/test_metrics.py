"""The figures of a pair of values, against formulas in plain numpy."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from irrun.debug import measure
from irrun.debug.metrics import is_outside

RNG = np.random.default_rng(0)
R = RNG.normal(size=(300, 401)).astype(np.float32)  # several blocks
C = (R + RNG.normal(scale=1e-4, size=R.shape)).astype(np.float32)


def test_figures() -> None:
    m = measure(R, C, 1e-4, 1e-5)
    r, c = R.astype(np.float64), C.astype(np.float64)
    d = np.abs(c - r)
    allowed = 1e-5 + 1e-4 * np.maximum(np.abs(r), np.sqrt(np.mean(r**2)))
    assert m.size == R.size
    assert m.outside == np.count_nonzero(d > allowed)
    assert 0 < m.share == m.outside / R.size < 1
    assert not m.agrees
    assert m.max_abs == d.max()
    assert m.max_rel == pytest.approx((d / np.abs(r)).max(), rel=1e-12)
    assert m.excess == pytest.approx((d / allowed).max(), rel=1e-12)
    assert m.worst == np.unravel_index(np.argmax(d / allowed), R.shape)
    assert m.cosine == pytest.approx((r * c).sum() / np.linalg.norm(r) / np.linalg.norm(c), rel=1e-12)
    assert m.snr == pytest.approx(10 * np.log10((r**2).sum() / (d**2).sum()), rel=1e-9)
    assert m.error == pytest.approx(np.sqrt((d**2).mean() / (r**2).mean()), rel=1e-9)
    assert (m.nan, m.inf) == ((0, 0), (0, 0))


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_index_is_that_of_the_array(order: str) -> None:
    array = np.zeros((3, 4), np.float32, order=order)  # type: ignore[call-overload]
    other = array.copy(order="C")
    other[2, 1] = 1
    assert measure(array, other, 0, 0).worst == (2, 1)


def test_equal_values() -> None:
    m = measure(R, R, 0, 0)
    assert (m.outside, m.max_abs, m.max_rel, m.error, m.snr, m.agrees) == (0, 0, 0, 0, None, True)
    assert m.cosine == pytest.approx(1, abs=1e-12)


def test_a_single_element_far_off_is_found_in_any_block() -> None:
    for position in (0, 65535, 65536, R.size - 1):
        other = R.copy().reshape(-1)
        other[position] += 1
        m = measure(R, other.reshape(R.shape), 1e-4, 1e-5)
        assert (m.outside, m.worst) == (1, np.unravel_index(position, R.shape))


def test_values_near_zero_are_allowed_what_the_others_are() -> None:
    """A sum that cancels to 0 has the rounding of its large terms: it is judged by the size of the other elements."""
    r = np.array([100, 100, 0], np.float32)
    assert measure(r, np.array([100, 100, 5e-3], np.float32), 1e-4, 0).agrees
    assert not measure(r, np.array([100, 100, 5e-2], np.float32), 1e-4, 0).agrees


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("reference", "candidate", "outside", "nan", "inf"),
    [
        ([1, NAN], [1, NAN], 0, (1, 1), (0, 0)),
        ([1, INF], [1, INF], 0, (0, 0), (1, 1)),
        ([1, INF], [1, -INF], 1, (0, 0), (1, 1)),
        ([1, 2], [1, NAN], 1, (0, 1), (0, 0)),
        ([1, NAN], [1, 2], 1, (1, 0), (0, 0)),
        ([1, 2], [1, INF], 1, (0, 0), (0, 1)),
        ([1, NAN], [1, INF], 1, (1, 0), (0, 1)),
        ([NAN, NAN], [NAN, NAN], 0, (2, 2), (0, 0)),
    ],
)
def test_nan_and_inf(
    reference: list[float], candidate: list[float], outside: int, nan: tuple[int, int], inf: tuple[int, int]
) -> None:
    m = measure(np.array(reference, np.float32), np.array(candidate, np.float32), 1e-3, 1e-3)
    assert (m.outside, m.nan, m.inf) == (outside, nan, inf)
    assert (m.error == math.inf) == (outside > 0)  # whatever the other elements are
    assert m.max_abs == m.max_rel == 0  # of the elements that are finite on both sides
    if outside:
        assert m.excess == math.inf
        assert m.worst == (1,)


@pytest.mark.parametrize(
    ("reference", "candidate", "outside", "max_abs"),
    [
        (np.array([2**62, 5]), np.array([2**62 + 1, 5]), 1, 1),  # float64 does not tell them apart
        (np.array([True, False]), np.array([True, True]), 1, 1),
        (np.array([3, 4], np.uint8), np.array([4, 3], np.uint8), 2, 1),
        (np.array([3, 4]).astype(ml_dtypes.int4), np.array([3, -4]).astype(ml_dtypes.int4), 1, 8),
        (np.array([1, 2]).astype(ml_dtypes.bfloat16), np.array([1, 2.5], np.float32), 1, 0.5),
    ],
)
def test_other_types(reference: np.ndarray, candidate: np.ndarray, outside: int, max_abs: float) -> None:
    m = measure(reference, candidate, 0, 0)
    assert (m.outside, m.max_abs) == (outside, max_abs)


def test_strings() -> None:
    m = measure(np.array([["a", "b"]]), np.array([["a", "c"]]), 1, 1)
    assert (m.outside, m.worst, m.share) == (1, (0, 1), 0.5)
    assert measure(np.array(["a"]), np.array(["a"]), 0, 0).agrees


@pytest.mark.parametrize(
    ("reference", "candidate", "problem"),
    [
        (np.zeros((2, 3)), np.zeros((3, 2)), "the shape is [3, 2], that of the reference [2, 3]"),
        (np.zeros(1, np.float32), np.array(["a"]), "the type is string, that of the reference f32"),
    ],
)
def test_what_cannot_be_compared(reference: np.ndarray, candidate: np.ndarray, problem: str) -> None:
    m = measure(reference, candidate, 1, 1)
    assert not m.agrees
    assert m.problem == problem


def test_no_elements_and_scalars() -> None:
    assert measure(np.zeros((0, 3)), np.zeros((0, 3)), 0, 0).agrees
    m = measure(np.array(1.0), np.array(2.0), 0, 0)
    assert (m.outside, m.worst, m.max_abs) == (1, (), 1)


@pytest.mark.parametrize("seed", range(20))
def test_a_frontier_decides_as_the_run_does(seed: int) -> None:
    """For other tolerances, as long as they are a hundredth away from those at which the answer changes."""
    rng = np.random.default_rng(seed)
    r = (rng.normal(size=500) * np.exp2(rng.integers(-8, 8, 500))).astype(np.float32)
    c = (r + rng.normal(size=500) * np.exp2(rng.integers(-12, 0, 500))).astype(np.float32)
    if seed % 4 == 0:
        c[3] = np.nan
    frontier = measure(r, c, 0, 0, frontier=True).frontier
    assert len(frontier) < 60
    for _ in range(50):
        rtol, atol = np.exp2(rng.uniform(-14, 2, 2))
        m = measure(r, c, rtol, atol)
        if not 0.99 < m.excess < 1.01:
            assert is_outside(frontier, rtol, atol) == (m.outside > 0)


def test_the_frontier_of_equal_values_is_empty() -> None:
    assert measure(R, R, 0, 0, frontier=True).frontier == ()
    assert measure(R, C, 0, 0).frontier == ()
