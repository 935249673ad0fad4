"""Functions of one f32, which loops call and the compiler turns into vector code.

None of them branches: a condition chooses between two numbers. NaN gives NaN. Where the processor has fused
multiply-adds, the compiler uses them. The coefficients are our own minimax fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from irrun.fast.machine.late import inlined

__all__ = [
    "Number",
    "contracted",
    "erf",
    "exp",
    "exp_of_negative",
    "in_order",
    "number_at",
    "sigmoid",
    "summing",
    "tanh",
]

Number = Any
"""A number of f32 or, where the function says so, of i32."""
_F = TypeVar("_F", bound=Callable[..., Any])
_f32: Final = np.float32


def contracted(function: _F) -> _F:
    """Compile a function that compiled loops call. Products and sums are fused where the processor can."""
    return inlined(function, frozenset({"contract"}))


def summing(function: _F) -> _F:
    """Compile a function as ``contracted``, with sums in any order, so that a vector holds partial sums."""
    return inlined(function, frozenset({"contract", "reassoc"}))


# numba computes in f64 what it does not know to be f32
_ONE: Final = _f32(1)
_HALF: Final = _f32(0.5)

_MIN_EXPONENT: Final = _f32(-104)  # exp is 0 from here on, rounded to f32
_MAX_EXPONENT: Final = _f32(89)  # and Inf from here on
_MIN_NORMAL_EXPONENT: Final = _f32(-88)  # the power of two that belongs to it is below those of normal numbers
_PER_E: Final = _f32(1 / math.log(2))
# log(2) in two parts: products of the first with integers up to 2**15 are exact
_LOG_2: Final = _f32(0.693359375)
_LOG_2_REST: Final = _f32(math.log(2) - 0.693359375)
# a number of this size holds an integer in the lowest bits of its mantissa
_ROUNDING: Final = _f32(3 << 22)
_EXPONENT: Final = _f32((3 << 22) + 127)
# exp(r) = 1 + r + r² p(r) for |r| <= log(2) / 2, within 1e-8
_E0, _E1, _E2, _E3, _E4 = map(_f32, (0.49999999551, 0.16666577141, 0.04166685377, 0.00836317021, 0.00139012934))


@contracted
def _power_of_two(n: Number) -> Number:
    """Return ``2**n`` for an integer from -126 to 127, and 0 for -127."""
    return np.int32(np.float32(n + _EXPONENT).view(np.int32) << 23).view(np.float32)


@contracted
def _exp_of_rest(x: Number, n: Number) -> Number:
    """Return ``exp(x - n log(2))``, where ``n`` is the integer next to ``x / log(2)``."""
    r = x - n * _LOG_2 - n * _LOG_2_REST
    return ((((_E4 * r + _E3) * r + _E2) * r + _E1) * r + _E0) * (r * r) + r + _ONE


@contracted
def exp(x: Number) -> Number:
    """Return e to the power of ``x``, within 1.1 ulp."""
    x = _MIN_EXPONENT if x < _MIN_EXPONENT else _MAX_EXPONENT if x > _MAX_EXPONENT else x
    n = x * _PER_E + _ROUNDING - _ROUNDING
    half = n * _HALF + _ROUNDING - _ROUNDING  # 2**n itself may be no normal number
    return _exp_of_rest(x, n) * _power_of_two(half) * _power_of_two(n - half)


@contracted
def exp_of_negative(x: Number) -> Number:
    """Return e to the power of ``x`` <= 0, within 1.1 ulp, but 0 for results that are no normal numbers."""
    x = _MIN_NORMAL_EXPONENT if x < _MIN_NORMAL_EXPONENT else x
    n = x * _PER_E + _ROUNDING - _ROUNDING
    return _exp_of_rest(x, n) * _power_of_two(n)


@contracted
def sigmoid(x: Number) -> Number:
    """Return ``1 / (1 + exp(-x))``, within 3 ulp."""
    return _ONE / (_ONE + exp(-x))


_TANH_IS_1_FROM: Final = _f32(9.02)  # from here on, tanh is 1, rounded to f32
# tanh(x) = x p(x²) / q(x²) for |x| <= 9.02, within 1.4e-9
_T0, _T1, _T2, _T3, _T4, _T5 = map(
    _f32, (0.9999999986915, 0.1367991669088, 0.0038683297592, 2.80074982e-5, 3.0585111e-8, -1.220352515e-11)
)
_U1, _U2, _U3, _U4 = map(_f32, (0.4701324875172, 0.0272458462235, 0.0003938634620, 1.287369265e-6))


@contracted
def tanh(x: Number) -> Number:
    """Return the hyperbolic tangent, within 5 ulp."""
    near = -_TANH_IS_1_FROM if x < -_TANH_IS_1_FROM else _TANH_IS_1_FROM if x > _TANH_IS_1_FROM else x
    v = near * near
    p = ((((_T5 * v + _T4) * v + _T3) * v + _T2) * v + _T1) * v + _T0
    q = (((_U4 * v + _U3) * v + _U2) * v + _U1) * v + _ONE
    y = near * p / q
    return -_ONE if x <= -_TANH_IS_1_FROM or y < -_ONE else _ONE if x >= _TANH_IS_1_FROM or y > _ONE else y


_ERF_IS_1_FROM: Final = _f32(3.93)  # from here on, erf is 1, rounded to f32
# erf(x) = x p(x²) / q(x²) for |x| <= 3.93, within 2e-8
_P0, _P1, _P2, _P3, _P4, _P5 = map(
    _f32, (1.128379145371, 0.190784303139, 0.0527903326145, 0.003779623020531, 0.000284807755109, 2.041953031e-6)
)
_Q1, _Q2, _Q3, _Q4, _Q5 = map(
    _f32, (0.502410906278, 0.114257702173, 0.014997468891503, 0.001165213735495, 3.800384465e-5)
)


@contracted
def erf(x: Number) -> Number:
    """Return the error function, within 6 ulp."""
    near = -_ERF_IS_1_FROM if x < -_ERF_IS_1_FROM else _ERF_IS_1_FROM if x > _ERF_IS_1_FROM else x
    v = near * near
    p = ((((_P5 * v + _P4) * v + _P3) * v + _P2) * v + _P1) * v + _P0
    q = ((((_Q5 * v + _Q4) * v + _Q3) * v + _Q2) * v + _Q1) * v + _ONE
    y = near * p / q
    return -_ONE if x <= -_ERF_IS_1_FROM or y < -_ONE else _ONE if x >= _ERF_IS_1_FROM or y > _ONE else y


@contracted
def in_order(x: Number) -> Number:
    """Return an i32 that compares with those of other numbers as the numbers do; NaN is beyond Inf or below -Inf.

    The compiler makes vector code of the maximum of integers, but not of that of floats, because of NaN.
    """
    bits = np.float32(x).view(np.int32)
    return np.int32(bits ^ ((bits >> 31) & 0x7FFFFFFF))


@contracted
def number_at(place: Number) -> Number:
    """Return the number that belongs to a result of ``in_order``, which is its own inverse but for the types."""
    return np.int32(place ^ ((place >> 31) & 0x7FFFFFFF)).view(np.float32)
