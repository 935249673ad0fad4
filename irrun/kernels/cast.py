"""Conversion between element types, as C does it.  Spec: type/convert-1."""

import numpy as np

from irrun.types import INF, NF4, Dim, ElementType, as_dim


def cast(array: np.ndarray, to: ElementType) -> np.ndarray:
    """``array`` as ``to``; perhaps ``array`` itself.

    Booleans are 1 and 0, and whatever is not 0 is true. Integers wrap. Floats become integers toward zero; what
    does not fit (C leaves it undefined) wraps as well, of at most 32 bits as x86 has it, by way of i32: beyond
    that, and for NaN, the lowest i32, which has zeros in its low bits. u32 and wider: the same by way of i64.
    Floats are rounded to the nearest, halves to even; beyond its range f4e2m1 and nf4 keep their largest.
    Dims become what is certain of them.
    """
    if array.dtype == object:
        return _cast_dims(array, to)
    with np.errstate(all="ignore"):
        if to.kind == "boolean":
            return array if array.dtype == to.dtype else np.asarray(plain(array) != 0)
        if not to.is_integer:
            return _to_float(array, to)
        x = plain(array)
        found = (_truncated(x, to) if is_float(x) else x).astype(to.dtype, copy=False)
        return found & ((1 << to.bits) - 1) if to.name in ("u1", "u3", "u6") else found


def plain(array: np.ndarray) -> np.ndarray:
    """The same numbers in a type that numpy itself has: floats narrower than f32 as f32, u2, i4 and u4 as i8."""
    if array.dtype.isbuiltin != 2 and array.dtype != np.float16:  # 2: from ml_dtypes
        return array
    return array.astype(np.float32 if is_float(array) else np.int8)


def is_float(array: np.ndarray) -> bool:
    element_type = ElementType.of(array.dtype)
    return element_type is not None and element_type.kind == "float"


def limits(element_type: ElementType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if element_type.kind == "int":
        return -(1 << element_type.bits - 1), (1 << element_type.bits - 1) - 1
    return 0, (1 << element_type.bits) - 1


def _truncated(x: np.ndarray, to: ElementType) -> np.ndarray:
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
    """The power of two nearest to x, between 2^-127 (also for what is not positive) and 2^127."""
    mantissa, exponent = np.frexp(np.clip(x, 2.0**-127, 2.0**127))  # mantissa in [0.5, 1)
    exponent -= 1
    up = (mantissa > 0.75) | ((mantissa == 0.75) & (exponent % 2 == 0))  # the code is the exponent + 127
    return np.where(np.isnan(x), np.nan, np.ldexp(1.0, exponent + up))


def _cast_dims(array: np.ndarray, to: ElementType) -> np.ndarray:
    if to.kind == "float":
        return cast(array.astype(np.int64), to)
    return np.asarray(np.frompyfunc(lambda n: _cast_dim(as_dim(n), to), 1, 1)(array), object)


def _cast_dim(dim: Dim, to: ElementType) -> Dim:
    if to.kind == "boolean":
        return Dim(1) if not dim.fits(0) else Dim(0, dim.hi and 1)
    least, most = limits(to)
    if to.bits >= 32:  # an unknown dim is taken to fit
        least, most = -INF if least else 0, INF
    return dim if least <= dim.lo and dim.hi <= most else Dim(-INF, INF)
