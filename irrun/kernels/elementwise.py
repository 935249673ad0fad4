"""Element-wise kernels: numpy's own functions where these suffice, and functions that work in place, block by block.

Each kernel computes the same as ``run`` of its operation, within rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.kernels.blocks import SMALL_BLOCK_BYTES, InPlace
from irrun.opdef import Formula, Joins, Kernel, Value


def native(*values: Value | None) -> bool:
    """Return whether all values are f32, or all are f64: the types that numpy computes without a conversion.

    None for an absent value makes the answer False.
    """
    dtypes = {None if value is None else value.type.dtype for value in values}
    return len(dtypes) == 1 and dtypes <= {np.dtype(np.float32), np.dtype(np.float64)}


def gives(ufunc: np.ufunc, wanted: np.dtype, *values: Value) -> bool:
    """Return whether ``ufunc`` has a loop for these element types whose result is of dtype ``wanted``."""
    dtypes = [value.type.dtype for value in values]
    if not all(dtype.isbuiltin == 1 and dtype.kind in "fiub" for dtype in dtypes):
        return False
    try:
        return ufunc(*(np.empty(0, dtype) for dtype in dtypes)).dtype == wanted
    except TypeError:
        return False


def elementwise(
    call: Callable[..., np.ndarray], *inputs: Value | None, formula: Formula | None = None
) -> Kernel | None:
    """Return the element-wise kernel that calls ``call(*inputs, out=None)`` and computes ``formula``.

    Return None if all inputs are scalars or of unknown rank, because functions of numpy return no arrays for scalars.
    """
    ranked = any(value is not None and value.rank for value in inputs)
    return Kernel(call, out="elementwise", joins=Joins(formula)) if ranked else None


def out_of(kernel: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return a kernel that also takes ``out``, made from one that returns a new array."""

    def call(*inputs: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return copied(kernel(*inputs), out)

    return call


def copied(result: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """Copy ``result`` to ``out`` and return ``out``; without ``out``, return ``result`` itself."""
    if out is None:
        return result
    out[...] = result
    return out


def in_blocks(function: InPlace) -> Callable[..., np.ndarray]:
    """Return a kernel that applies ``function`` to its first input, block by block.

    The kernel ignores its other inputs, whose values ``function`` holds already.
    """

    def call(x: np.ndarray, *_: np.ndarray | None, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            out = np.empty(x.shape, x.dtype)
        count = SMALL_BLOCK_BYTES // x.itemsize
        if x.size <= count:
            function(x, out)
            return out
        if not (x.flags.c_contiguous and out.flags.c_contiguous):
            if not out.flags.c_contiguous:
                function(x, out)
                return out
            np.copyto(out, x)
            x = out
        flat, into = x.reshape(-1), out.reshape(-1)
        for start in range(0, flat.size, count):
            function(flat[start : start + count], into[start : start + count])
        return out

    return call


def converting(to: np.dtype) -> Callable[..., np.ndarray]:
    """Return a kernel that converts to the dtype ``to`` as numpy does."""

    def call(x: np.ndarray, *_: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return x.astype(to)
        np.copyto(out, x, casting="unsafe")
        return out

    return call


# ---------------------------------------------------------------------------------------------
# kernels of two inputs


def larger(a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """Return the maximum of ``a`` and the scalar ``b``."""
    return a.clip(b, _INFINITE[a.dtype], out)


def smaller(a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """Return the minimum of ``a`` and the scalar ``b``."""
    return a.clip(_NEGATIVE[a.dtype], b, out)


def squared_difference(a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    out = np.subtract(a, b, out)
    return np.multiply(out, out, out)


_Outer = Callable[[np.ndarray, np.ndarray, np.ndarray, int], None]
"""``outer(columns, rows, out, shared)``: see ``irrun.kernels.matmul.outer``."""


def multiplying(outer: _Outer) -> Callable[..., np.ndarray]:
    """Return the function that multiplies two arrays, and computes large outer products of short rows by ``outer``."""

    def multiply(a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        shared = _shared(a.shape, b.shape)
        if out is None or shared is None or not out.flags.c_contiguous:
            return np.multiply(a, b, out)
        outer(a, b, out, shared)
        return out

    return multiply


def is_outer(a: Value, b: Value) -> bool:
    """Return whether the product of two values, both f32 or both f64, is a large outer product of short rows."""
    columns, rows = a.shape.static, b.shape.static
    known = columns is not None and rows is not None and _shared(columns, rows) is not None
    return known and native(a, b)


def _shared(columns: tuple[int, ...], rows: tuple[int, ...]) -> int | None:
    """Return how many leading axes both shapes share if the others are a large outer product of short rows, else None.

    In those other axes, all dims of ``rows`` but the last are 1, and the last of ``columns`` is 1.
    """
    if len(columns) != len(rows) or not columns or columns[-1] != 1 or not 8 <= rows[-1] <= 512:
        return None
    shared = next((i for i, (m, n) in enumerate(zip(columns, rows)) if m != n), 0)
    count = math.prod(columns[shared:])
    return shared if set(rows[shared:-1]) <= {1} and count * rows[-1] >= 1 << 16 else None


def power(exponent: float) -> Callable[..., np.ndarray] | None:
    """Return a kernel for this constant exponent that multiplies or takes roots, or None if there is none.

    It gives the same as ``np.power`` but for -Inf and -0.
    """
    return _POWERS.get(exponent)


def _cube(a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    return np.multiply(np.multiply(a, a), a, out)


def _inverse_root(a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    return np.divide(1, np.sqrt(a), out)


_POWERS: Final[dict[float, Callable[..., np.ndarray]]] = {
    -1: lambda a, b, out=None: np.divide(1, a, out),
    -0.5: _inverse_root,
    0.5: lambda a, b, out=None: np.sqrt(a, out),
    1: lambda a, b, out=None: np.positive(a, out),
    2: lambda a, b, out=None: np.multiply(a, a, out),
    3: _cube,
}


def select(mask: np.ndarray, a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """Return ``a`` where ``mask`` is true, and ``b`` elsewhere.

    ``mask`` is boolean, and ``a`` and ``b`` are of one dtype. Working on their bits is faster than ``np.where``.
    """
    kind, whole = a.dtype, _WHOLE[a.dtype.itemsize]
    a, b = a.view(whole), b.view(whole)
    chosen = np.negative(mask.view(np.int8)).astype(whole)  # all bits or none
    differing = np.bitwise_and(np.bitwise_xor(a, b), chosen)
    if out is None:
        return np.bitwise_xor(differing, b).view(kind)
    np.bitwise_xor(differing, b, out.view(whole))
    return out


# ---------------------------------------------------------------------------------------------
# kernels of one input, which may be ``out``


def relu(x: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    return x.clip(_ZERO[x.dtype], _INFINITE[x.dtype], out)  # faster than np.maximum with a scalar


def clipping(low: float, high: float, dtype: np.dtype) -> Callable[..., np.ndarray]:
    least, most = np.array(low, dtype), np.array(high, dtype)

    def call(x: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        return x.clip(least, most, out)

    return call


def sigmoid(x: np.ndarray, out: np.ndarray) -> None:
    np.negative(x, out)
    np.exp(out, out)
    np.add(out, 1, out)
    np.divide(1, out, out)


def swish(beta: float = 1) -> InPlace:
    def function(x: np.ndarray, out: np.ndarray) -> None:
        power = np.multiply(x, -beta)
        np.exp(power, power)
        np.add(power, 1, power)
        np.divide(x, power, out)

    return function


def hsigmoid(x: np.ndarray, out: np.ndarray) -> None:
    np.add(x, 3, out)
    out.clip(0, 6, out)
    np.divide(out, 6, out)


def hswish(x: np.ndarray, out: np.ndarray) -> None:
    share = np.add(x, 3)
    share.clip(0, 6, share)
    np.divide(share, 6, share)
    np.multiply(x, share, out)


def hard_sigmoid(alpha: float, beta: float) -> InPlace:
    def function(x: np.ndarray, out: np.ndarray) -> None:
        np.multiply(x, alpha, out)
        np.add(out, beta, out)
        out.clip(0, 1, out)

    return function


def mish(x: np.ndarray, out: np.ndarray) -> None:
    power = x.clip(_NEGATIVE[x.dtype], 20)
    np.exp(power, power)
    ratio = np.add(power, 2)
    np.multiply(ratio, power, ratio)
    np.add(ratio, 2, power)
    np.divide(ratio, power, ratio)
    np.multiply(x, ratio, out)


def leaky(slope: float) -> InPlace:
    def function(x: np.ndarray, out: np.ndarray) -> None:
        if 0 < slope <= 1:
            np.maximum(x, np.multiply(x, slope), out=out)
            return
        below = x.clip(_NEGATIVE[x.dtype], _ZERO[x.dtype])
        np.multiply(below, slope, below)
        relu(x, out=out)
        np.add(out, below, out)

    return function


def leaky_along(slopes: np.ndarray) -> Callable[..., np.ndarray]:
    """Return the kernel of ``leaky`` with the slopes as its second input, which numpy broadcasts.

    ``slopes`` are the same slopes, constant and finite.
    """
    gentle = bool(((slopes > 0) & (slopes <= 1)).all())

    def call(x: np.ndarray, slope: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        if gentle:
            return np.maximum(x, np.multiply(x, slope), out=out)
        below = x.clip(_NEGATIVE[x.dtype], _ZERO[x.dtype])
        np.multiply(below, slope, below)
        return np.add(relu(x, out=out), below, out)

    return call


# The coefficients of p in log(1 + e) = 2 s + s³ p(s²) with s = e / (2 + e), for e in 0..1, within 5e-9.
# Our own minimax fit.
_LOG: Final = (0.66666413, 0.4002169973, 0.2799912533, 0.2802454311)


def soft_plus(x: np.ndarray, out: np.ndarray) -> None:
    e = np.abs(x)
    np.negative(e, e)
    np.exp(e, e)
    if e.dtype == np.float32:
        s = np.add(e, 2)
        np.divide(e, s, s)
        square = np.multiply(s, s)
        np.multiply(square, _LOG[-1], e)
        for c in _LOG[-2::-1]:
            np.add(e, c, e)
            np.multiply(e, square, e)
        np.add(e, 2, e)
        np.multiply(e, s, e)
    else:
        np.log1p(e, e)
    relu(x, out=out)
    np.add(out, e, out)


def elu(alpha: float, scale: float = 1) -> InPlace:
    """Return the function ``scale * x`` for positive x and ``scale * alpha * (exp(x) - 1)`` for negative x.

    ``exp(x) - 1`` is computed as ``2 t / (1 - t)`` with ``t = tanh(x / 2)``, which is accurate near 0, too.
    """

    def function(x: np.ndarray, out: np.ndarray) -> None:
        below = x.clip(_NEGATIVE[x.dtype], _ZERO[x.dtype])
        np.divide(below, 2, below)
        np.tanh(below, below)
        rest = np.subtract(1, below)
        np.divide(below, rest, below)
        np.multiply(below, 2 * alpha * scale, below)
        relu(x, out=out)
        if scale != 1:
            np.multiply(out, scale, out)
        np.add(out, below, out)

    return function


def has_elu(dtype: np.dtype, alpha: float, scale: float = 1) -> bool:
    """Return whether ``elu`` is right for these factors. It multiplies them by 0, which must not give NaN."""
    return all(abs(factor) <= np.finfo(dtype).max for factor in (2 * alpha * scale, scale))


def gelu_tanh(x: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out`` with ``x / (1 + exp(-2 y))``, which equals ``0.5 x (1 + tanh(y))``.

    Here ``y = sqrt(2 / π) (x + 0.044715 x³)``.
    """
    power = np.multiply(x, x)
    np.multiply(power, -0.044715 * _TWICE, power)
    np.subtract(power, _TWICE, power)
    np.multiply(power, x, power)
    np.exp(power, power)
    np.add(power, 1, power)
    np.divide(x, power, out)


_TWICE: Final = 2 * math.sqrt(2 / math.pi)

# Φ(x) = 1 / (1 + exp(x r)) with r = v + b0 + c0 / (v + b1 + c1 / (v + b2)) and v = a x². The error of x Φ(x) is at most
# 1.2e-7.
# Our own minimax fit.
_A: Final = np.array(-0.03450936976720974, np.float32)
_B: Final = [np.array(b, np.float32) for b in (-2.4892476102724306, 0.23450313414885485, -1.0569480777677047)]
_C: Final = [np.array(c, np.float32) for c in (-0.31846563102792474, 0.6245918511096585)]
_ONE: Final = np.array(1, np.float32)


def gelu_erf(x: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out`` with ``x Φ(x)``. Both arrays are f32."""
    v = np.multiply(x, _A)
    np.multiply(v, x, v)
    r = np.add(v, _B[2])
    np.divide(_C[1], r, r)
    np.add(r, v, r)
    np.add(r, _B[1], r)
    np.divide(_C[0], r, r)
    np.add(r, v, r)
    np.add(r, _B[0], r)
    np.multiply(r, x, r)
    np.exp(r, r)
    np.add(r, _ONE, r)
    np.divide(x, r, out)


_ZERO: Final = {np.dtype(t): np.array(0, t) for t in (np.float32, np.float64)}
_INFINITE: Final = {np.dtype(t): np.array(np.inf, t) for t in (np.float32, np.float64)}
_NEGATIVE: Final = {np.dtype(t): np.array(-np.inf, t) for t in (np.float32, np.float64)}
_WHOLE: Final = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
