"""Arithmetic on two tensors, element by element.  Spec: arithmetic/{add,subtract,multiply,…}-1."""

from collections.abc import Callable

import numpy as np

from irrun.kernels.cast import plain
from irrun.kernels.elementwise import gives, is_outer, larger, multiplying, native, power, smaller, squared_difference
from irrun.kernels.matmul import outer
from irrun.opdef import Value, attr, op
from irrun.ops._elementwise import Binary, binary, is_integer
from irrun.types import INF, Dim


def _mod(a: Dim, b: Dim) -> Dim:
    return a % b if a.lo >= 0 else Dim(-INF, INF)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute powers of integers exactly, wrapping; with negative exponents in f64, truncated as C does."""
    if not is_integer(a):
        return np.power(a, b)
    exact = np.power(a, np.maximum(b, 0).astype(b.dtype))
    if not (b < 0).any():
        return exact
    return np.where(b < 0, np.power(a.astype(np.float64), b.astype(np.float64)).astype(exact.dtype), exact)


def _squared_difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return ``(a - b) ** 2``, in the wider type that ``plain`` gives narrow elements."""
    difference = np.subtract(plain(a), plain(b))
    return difference * difference


def _fast_multiply(a: Value, b: Value) -> Callable[..., np.ndarray] | None:
    return multiplying(outer) if is_outer(a, b) else None


def _fast_power(a: Value, b: Value) -> Callable[..., np.ndarray] | None:
    """Return a kernel of multiplications and roots if the exponent is one known number, else None."""
    exponent = b.exact
    known = exponent is not None and exponent.size == 1 and (b.rank or 0) <= (a.rank or 0)
    return power(exponent.item()) if exponent is not None and known and native(a, b) else None


Add = binary("Add", np.add, Dim.__add__, doc="``a + b``.", spec="arithmetic/add-1")
Subtract = binary("Subtract", np.subtract, Dim.__sub__, doc="``a - b``.", spec="arithmetic/subtract-1")
Multiply = binary(
    "Multiply",
    np.multiply,
    Dim.__mul__,
    fast=_fast_multiply,
    doc="``a * b``.",
    spec="arithmetic/multiply-1",
)
Mod = binary(
    "Mod", np.fmod, _mod, doc="The remainder of the truncated ``a / b``, signed as ``a``.", spec="arithmetic/mod-1"
)
FloorMod = binary(
    "FloorMod", np.remainder, Dim.__mod__,
    doc="The remainder of the floored ``a / b``, signed as ``b``.", spec="arithmetic/floormod-1",
)  # fmt: skip
Power = binary(
    "Power", _power, fast=_fast_power,
    doc="``a`` to the power of ``b``.", spec="arithmetic/power-1",
)  # fmt: skip
Maximum = binary(
    "Maximum", np.maximum, Dim.max, fast=lambda a, b: larger if native(a, b) and b.shape.count() == 1 else None,
    doc="The larger of ``a`` and ``b``.", spec="arithmetic/maximum-1",
)  # fmt: skip
Minimum = binary(
    "Minimum", np.minimum, Dim.min, fast=lambda a, b: smaller if native(a, b) and b.shape.count() == 1 else None,
    doc="The smaller of ``a`` and ``b``.", spec="arithmetic/minimum-1",
)  # fmt: skip
SquaredDifference = binary(
    "SquaredDifference", _squared_difference, fast=lambda a, b: squared_difference if native(a, b) else None,
    doc="``(a - b)²``.", spec="arithmetic/squared-difference-1",
)  # fmt: skip


@op("Divide", since=1, spec="arithmetic/divide-1")
class Divide(Binary):
    """Compute ``a / b``. Quotients of integers are rounded down, or towards 0 if ``m_pythondiv`` is false.

    C1  auto_broadcast none: both shapes are equal.
    C2  auto_broadcast numpy: aligned from the right, two dims are equal, or one of them is 1.
    C3  auto_broadcast pdpd: each dim of ``b``, without trailing 1s, is 1 or equals the dim of ``a`` at the same place,
        counted from ``axis`` on. ``axis`` is at least -1, which aligns the last axes. The rank of ``b`` is at most that
        of ``a``.
    """

    m_pythondiv = attr.bool(default=True)
    carries = True

    # "The result of division by zero is undefined": for integers it is 0 here
    # OpenVINO's CPU plugin truncates integers, whatever m_pythondiv says
    def kernel(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if not is_integer(a):
            return np.true_divide(a, b)
        return np.floor_divide(a if self.m_pythondiv else a - np.fmod(a, b), b)

    def fast(self, a: Value, b: Value) -> Callable[..., np.ndarray] | None:
        if native(a, b):
            return np.true_divide
        floors = a.type.is_integer and self.m_pythondiv and gives(np.floor_divide, a.type.dtype, a, b)
        return np.floor_divide if floors else None

    def dims(self, a: Dim, b: Dim) -> Dim:
        return a // b if self.m_pythondiv or a.lo >= 0 else Dim(-INF, INF)
