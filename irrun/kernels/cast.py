"""Conversion between element types, as in C.  Spec: type/convert-1."""

from typing import Final

import numpy as np

from irrun.types import INF, NF4, Dim, ElementType, as_dim


def cast(array: np.ndarray, to: ElementType) -> np.ndarray:
    """Return ``array`` converted to ``to``. May return ``array`` itself.

    - Booleans become 1 and 0. Every number but 0 becomes true.
    - Integers wrap.
    - Floats become integers by truncation toward zero. A float that does not fit is undefined in C and gives the result
      of x86 here. For types of at most 32 bits but u32, the float is converted to i32, which then wraps; beyond i32 and
      for NaN, that is the lowest i32, whose low bits are zeros. For u32 and wider types, the same happens with i64.
    - Floats are rounded to the nearest, halves to even. Beyond the range of f4e2m1 and nf4, they become the largest
      value of the type.
    - Dims (an object array) become as much as is certain of the result. Raises UnknownDimError for unknown Dims as
      floats.
    """
    if array.dtype == object:
        return _cast_dims(array, to)
    with np.errstate(all="ignore"):
        if to.kind == "boolean":
            return array if array.dtype == to.dtype else np.asarray(plain(array) != 0)
        if not to.is_integer:
            return _to_float(array, to)
        x = plain(array)
        integers = (_truncated(x, to) if is_float(x) else x).astype(to.dtype, copy=False)
        return integers & ((1 << to.bits) - 1) if to.name in ("u1", "u3", "u6") else integers


def plain(array: np.ndarray) -> np.ndarray:
    """Return the same numbers in a dtype that numpy itself has. May return ``array`` itself.

    Floats narrower than f32 become f32, and u2, i4 and u4 become i8.
    """
    if array.dtype.isbuiltin != 2 and array.dtype != np.float16:  # 2: from ml_dtypes
        return array
    return array.astype(np.float32 if is_float(array) else np.int8)


def is_float(array: np.ndarray) -> bool:
    """Return whether the elements are floats of any width."""
    element_type = ElementType.of(array.dtype)
    return element_type is not None and element_type.kind == "float"


def limits(element_type: ElementType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    if element_type.kind == "int":
        return -(1 << element_type.bits - 1), (1 << element_type.bits - 1) - 1
    return 0, (1 << element_type.bits) - 1


def _truncated(x: np.ndarray, to: ElementType) -> np.ndarray:
    """Return floats as i32 or i64, by truncation. Those that do not fit become the lowest number."""
    wide = np.int64 if to.bits == 64 or to.name == "u32" else np.int32
    if to.name == "u64":
        x = np.where((x >= 2.0**63) & (x < 2.0**64), x - 2.0**64, x)
    lowest = float(np.iinfo(wide).min)
    fits = (x > lowest - 1) & (x < -lowest)
    return (x if fits.all() else np.where(fits, x, lowest)).astype(wide)


def _to_float(array: np.ndarray, to: ElementType) -> np.ndarray:
    if to.name == "nf4":
        middles = (NF4[1:] + NF4[:-1]) / 2
        return NF4[np.searchsorted(middles, np.nan_to_num(plain(array), nan=-1))]
    if array.dtype == to.dtype:
        return array
    x = plain(array)
    if to.name == "f8e8m0":
        x = _power_of_two(x)
    elif to.name == "f4e2m1":  # it has neither NaN nor Inf
        x = np.nan_to_num(x, nan=6)
    return x.astype(to.dtype)


def _power_of_two(x: np.ndarray) -> np.ndarray:
    """Return the power of two nearest to each element, from 2^-127 (also for elements that are not positive) to 2^127.

    NaN stays NaN.
    """
    mantissa, exponent = np.frexp(np.clip(x, 2.0**-127, 2.0**127))  # mantissa in [0.5, 1)
    exponent -= 1
    up = (mantissa > 0.75) | ((mantissa == 0.75) & (exponent % 2 == 0))  # ties to the even code, exponent + 127
    return np.where(np.isnan(x), np.nan, np.ldexp(1.0, exponent + up))


def _cast_dims(array: np.ndarray, to: ElementType) -> np.ndarray:
    if to.kind == "float":
        return cast(array.astype(np.int64), to)
    return np.asarray(np.frompyfunc(lambda n: _cast_dim(as_dim(n), to), 1, 1)(array), object)


def _cast_dim(dim: Dim, to: ElementType) -> Dim:
    if to.kind == "boolean":
        return Dim(1) if not dim.fits(0) else Dim(0, dim.hi and 1)
    least, most = limits(to)
    if to.bits >= 32:  # assume that an unknown dim fits
        least, most = -INF if least else 0, INF
    return dim if least <= dim.lo and dim.hi <= most else Dim(-INF, INF)


def rounded_to_bf16(array: np.ndarray) -> np.ndarray:
    """Return floats rounded to bf16, as a new array of f32: to the nearest number, halves to the even one.

    Subnormal numbers of f32 become zeros, and numbers beyond the range become infinite, as the instructions of x86 for
    bf16 have it. NaN stays NaN.
    """
    bits = np.array(array, np.float32, order="C").view(np.uint32)
    size = bits & _SIZE
    up = (bits >> np.uint32(16)) & np.uint32(1)
    up += np.uint32(0x7FFF)
    up += bits
    up = np.where(size > _INFINITY, bits | _QUIET, up)
    up = np.where(size < _LEAST_NORMAL, bits & _SIGN, up)
    up &= _UPPER
    return up.view(np.float32)


_SIZE: Final = np.uint32(0x7FFFFFFF)
_INFINITY: Final = np.uint32(0x7F800000)
_LEAST_NORMAL: Final = np.uint32(0x00800000)
_SIGN: Final = np.uint32(0x80000000)
_QUIET: Final = np.uint32(0x00400000)
_UPPER: Final = np.uint32(0xFFFF0000)
