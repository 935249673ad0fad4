"""Matrix products: the one door through which every operation multiplies matrices."""

from __future__ import annotations

import math
import warnings
import weakref
from functools import cache
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from irrun.kernels.blas import asked
from irrun.kernels.copies import copy_to
from irrun.kernels.mkl import Cblas, mkl
from irrun.kernels.threads import each, products_are_shared, shared, shares
from irrun.types import ElementType


def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``a @ b`` over the last two axes, the others broadcast; both are of one type, and so is the result.

    f16, bf16 and narrower floats are summed in f32 and rounded once; integers are exact and wrap.
    A product of f32 or f64 may go to ``out``.
    """
    work = wide(a.dtype)
    if a.dtype == work and work.kind == "f":
        return _floats(a, b, out)
    if work.kind == "i":
        return narrow(_integers(a, b), a.dtype)
    return narrow(_floats(a.astype(work, copy=False), b.astype(work, copy=False)), a.dtype)


class Turned:
    """A constant matrix transposed, in C order: BLAS reads it faster so, row vectors by far.

    Several kernels of one constant share it, those of several plans, too.
    """

    def __init__(self, source: np.ndarray) -> None:
        self.memory = weakref.ref(_memory(source))
        self.array = np.empty(source.shape[::-1], source.dtype)
        copy_to(self.array, source.T)

    @staticmethod
    def of(source: np.ndarray) -> Turned:
        place = source.ctypes.data, source.shape, source.strides, source.dtype
        found = _turned.get(place)
        if found is None or found.memory() is not _memory(source):
            found = _turned[place] = Turned(source)
        return found


def _memory(array: np.ndarray) -> np.ndarray:
    """The array that another one is a view of: for a constant in the .bin, the whole of that."""
    return array.base if isinstance(array.base, np.ndarray) else array


_turned: Final[WeakValueDictionary[tuple[object, ...], Turned]] = WeakValueDictionary()


few_rows: Final = np.dot
"""The product of two matrices of f32 or f64, the first of few rows, as ``(a, b, out)``: the quickest one to call."""


def outer(columns: np.ndarray, rows: np.ndarray, out: np.ndarray, shared: int) -> None:
    """``columns * rows``, the first ``shared`` axes common, the last that of ``rows``, the others those of ``columns``.

    numpy's multiplication takes twice as long where rows are short: first it copies what is broadcast.
    """
    width = out.shape[-1]
    high = max(1, _OUTER // (width * out.itemsize))
    by_blas = width <= _NARROW or math.prod(out.shape[shared:-1]) < 4 * high
    repeated = np.empty((0 if by_blas else high, width), out.dtype)
    for place in np.ndindex(out.shape[:shared]):
        left, right, whole = columns[place].reshape(-1, 1), rows[place].reshape(1, -1), out[place].reshape(-1, width)
        repeated[...] = right
        for start in range(0, len(whole), high):
            part = whole[start : start + high]
            if by_blas:
                np.dot(left[start : start + high], right, part)
            else:
                part[...] = left[start : start + high]
                np.multiply(part, repeated[: len(part)], part)


_OUTER: Final = 1 << 18
"""Bytes of an outer product that stay in the second cache of a core."""
_NARROW: Final = 64
"""Elements in a row up to which BLAS makes an outer product faster than two passes of numpy."""


def row_sums(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sums of products along the last axis, which stays as 1: by BLAS, faster than those of numpy."""
    return np.vecdot(x, y)[..., None]


def wide(dtype: np.dtype) -> np.dtype:
    """The type in which sums over ``dtype`` are kept, before they are rounded or wrapped once."""
    found = ElementType.of(dtype)
    if found is not None and (found.is_integer or found.kind == "boolean"):
        return np.dtype(np.int64)
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def narrow(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Sums as ``dtype`` again; floats beyond its range are infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype, copy=False)


def _floats(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    if b.ndim == 2 < a.ndim and a.flags.c_contiguous and a.size and (out is None or out.flags.c_contiguous):
        # one product instead of one for each matrix of the batch
        rows = None if out is None else out.reshape(-1, out.shape[-1])
        found = _product(a.reshape(-1, a.shape[-1]), b, rows)
        return found.reshape(*a.shape[:-1], b.shape[-1]) if out is None else out
    return _product(a, b, out)


def _product(a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    if min(a.ndim, b.ndim) < 2 or a.size * b.shape[-1] < _LARGE:
        return np.matmul(a, b, out=out)
    if out is None:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        out = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    work = 2 * out.size * a.shape[-1]
    if not (products_are_shared() and shared(work)):
        _multiply(a, b, out)
        return out
    whole, rank = out, out.ndim
    # along the batch, if there is one, or else the longer side: each part reads all of the other matrix
    longer = rank - 2 if whole.shape[-2] > whole.shape[-1] else rank - 1
    axis = next((axis for axis, n in enumerate(whole.shape[:-2]) if n > 1), longer)

    def part(cut: slice) -> None:
        left = a if axis == rank - 1 else _cut(a, axis - rank, cut)
        right = b if axis == rank - 2 else _cut(b, axis - rank, cut)
        _multiply(left, right, _cut(whole, axis - rank, cut))

    each(part, shares(whole.shape[axis], work, _LEAST if axis == longer else 1), work)
    return whole


def _cut(array: np.ndarray, axis: int, cut: slice) -> np.ndarray:
    """A part along an axis counted from the end; all of what is broadcast along it."""
    if array.ndim < -axis or (axis < -2 and array.shape[axis] == 1):
        return array
    return array[(..., cut, *(slice(None),) * (-axis - 1))]


def _multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    library = _library()
    large = a.shape[-2] * a.shape[-1] * b.shape[-1] >= _LARGE
    if library is None or not large or not library.product(a, b, out):
        np.matmul(a, b, out=out)


_LARGE: Final = 1 << 19
"""Multiplications from which on another library, or another thread, makes up for what calling it takes."""
_LEAST: Final = 64
"""Rows or columns of a part of a product, or a multiple of them."""


def blas() -> str:
    """Who multiplies large matrices: ``numpy`` or ``mkl``."""
    library = _library()
    return "numpy" if library is None else library.name


@cache
def _library() -> Cblas | None:
    """What multiplies large matrices in place of numpy: MKL if it is installed, unless IRRUN_BLAS says numpy."""
    wanted = asked()
    if wanted == "numpy":
        return None
    found = mkl()
    if wanted not in ("", "mkl") or (wanted and found is None):
        told = "mkl is not installed here (pip install irrun[mkl])" if wanted == "mkl" else "it can be numpy or mkl"
        warnings.warn(f"IRRUN_BLAS is {wanted}, but {told}", RuntimeWarning, stacklevel=2)
    return found


def _integers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product in int64 (which wraps): through float64 and BLAS where that is provably exact."""
    a, b = a.astype(np.int64, copy=False), b.astype(np.int64, copy=False)
    if _largest(a) * _largest(b) * a.shape[-1] <= 1 << 53:
        return _floats(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
    return np.matmul(a, b)


def _largest(a: np.ndarray) -> int:
    return max(abs(int(a.max())), abs(int(a.min()))) if math.prod(a.shape) else 0
