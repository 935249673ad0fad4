"""Arithmetic on two tensors, element by element.  Spec: arithmetic/{add,subtract,multiply,…}-1."""

import numpy as np

from irrun.opdef import attr, op
from irrun.ops._cast import plain
from irrun.ops._elementwise import Binary, binary, is_integer
from irrun.types import INF, Dim


def _mod(a: Dim, b: Dim) -> Dim:
    return a % b if a.lo >= 0 else Dim(-INF, INF)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integers exactly and wrapping; to a negative exponent by floats, cut back as C does."""
    if not is_integer(a):
        return np.power(a, b)
    exact = np.power(a, np.maximum(b, 0).astype(b.dtype))
    if not (b < 0).any():
        return exact
    return np.where(b < 0, np.power(a.astype(np.float64), b.astype(np.float64)).astype(exact.dtype), exact)


def _squared_difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    difference = np.subtract(plain(a), plain(b))
    return difference * difference


Add = binary("Add", np.add, Dim.__add__, doc="``a + b``.", spec="arithmetic/add-1")
Subtract = binary("Subtract", np.subtract, Dim.__sub__, doc="``a - b``.", spec="arithmetic/subtract-1")
Multiply = binary("Multiply", np.multiply, Dim.__mul__, doc="``a * b``.", spec="arithmetic/multiply-1")
Mod = binary("Mod", np.fmod, _mod, doc="The rest of the truncated ``a / b``, signed as ``a``.", spec="arithmetic/mod-1")
FloorMod = binary(
    "FloorMod", np.remainder, Dim.__mod__,
    doc="The rest of the floored ``a / b``, signed as ``b``.", spec="arithmetic/floormod-1",
)  # fmt: skip
Power = binary("Power", _power, doc="``a`` to the power of ``b``.", spec="arithmetic/power-1")
Maximum = binary("Maximum", np.maximum, Dim.max, doc="The larger of ``a`` and ``b``.", spec="arithmetic/maximum-1")
Minimum = binary("Minimum", np.minimum, Dim.min, doc="The smaller of ``a`` and ``b``.", spec="arithmetic/minimum-1")
SquaredDifference = binary(
    "SquaredDifference", _squared_difference, doc="``(a - b)²``.", spec="arithmetic/squared-difference-1"
)


@op("Divide", since=1, spec="arithmetic/divide-1")
class Divide(Binary):
    """``a / b``; of integers the floor of it, or with ``m_pythondiv`` false the part before the point.

    C1  none: both shapes are the same.
    C2  numpy: of two dims aligned from the right, either they are equal or one of them is 1.
    C3  pdpd: ``b``, without trailing 1s, lies within ``a`` from ``axis`` on; each dim is 1 or that of ``a``.
        ``axis`` is -1 (``b`` ends where ``a`` ends) or more, and the rank of ``b`` at most that of ``a``.
    """

    m_pythondiv = attr.bool(default=True)
    carries = True

    # "The result of division by zero is undefined": of integers it is 0 here
    # OpenVINO: the CPU plugin truncates integers, whatever m_pythondiv says
    def kernel(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if not is_integer(a):
            return np.true_divide(a, b)
        return np.floor_divide(a if self.m_pythondiv else a - np.fmod(a, b), b)

    def dims(self, a: Dim, b: Dim) -> Dim:
        return a // b if self.m_pythondiv or a.lo >= 0 else Dim(-INF, INF)
