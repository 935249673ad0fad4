"""Arithmetic on two tensors, element by element.  Spec: arithmetic/{add,subtract,multiply,…}-1."""

import math
from collections.abc import Callable

import numpy as np

from irrun.kernels.cast import plain
from irrun.kernels.elementwise import gives, larger, native, power, smaller, squared_difference
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


_Outer = Callable[[np.ndarray, np.ndarray, np.ndarray, int], None]


def _multiplying(outer: _Outer) -> Callable[..., np.ndarray]:
    """Return the function that multiplies, large outer products of short rows with ``outer``."""

    def multiply(a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        shared = _shared(a.shape, b.shape)
        if out is None or shared is None or not out.flags.c_contiguous:
            return np.multiply(a, b, out)
        outer(a, b, out, shared)
        return out

    return multiply


def _is_outer(a: Value, b: Value) -> bool:
    columns, rows = a.shape.static, b.shape.static
    known = columns is not None and rows is not None and _shared(columns, rows) is not None
    return known and native(a, b)


def _fast_multiply(a: Value, b: Value) -> Callable[..., np.ndarray] | None:
    return _multiplying(outer) if _is_outer(a, b) else None


def _compiled_multiply(a: Value, b: Value) -> Callable[..., np.ndarray] | None:
    if not _is_outer(a, b) or a.type.name != "f32":
        return None
    from irrun.fast import rows

    return _multiplying(rows.outer)


def _shared(columns: tuple[int, ...], rows: tuple[int, ...]) -> int | None:
    """Return how many leading axes both shapes share if the others are a large outer product of short rows, else None.

    In those other axes, all dims of ``rows`` but the last are 1, and the last of ``columns`` is 1.
    """
    if len(columns) != len(rows) or not columns or columns[-1] != 1 or not 8 <= rows[-1] <= 512:
        return None
    shared = next((i for i, (m, n) in enumerate(zip(columns, rows)) if m != n), 0)
    count = math.prod(columns[shared:])
    return shared if set(rows[shared:-1]) <= {1} and count * rows[-1] >= 1 << 16 else None


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
    compiled=_compiled_multiply,
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
