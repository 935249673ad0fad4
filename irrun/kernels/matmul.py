"""Matrix products. Every operation multiplies matrices through this module."""

from __future__ import annotations

import math
import warnings
import weakref
from functools import cache
from typing import Any, Final, Self
from weakref import WeakValueDictionary

import numpy as np

from irrun.base.extras import install
from irrun.kernels.blas import asked
from irrun.kernels.blocks import BLOCK_BYTES
from irrun.kernels.copies import copy_to
from irrun.kernels.mkl import Cblas, mkl
from irrun.kernels.threads import each, only_numpy, products_are_shared, shared, shares
from irrun.opdef import Stored
from irrun.types import ElementType


def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return ``a @ b`` over the last two axes, with the leading axes broadcast.

    Both have the same dtype, and so has the result. f16, bf16 and narrower floats are summed in f32 and rounded once.
    Integers are exact and wrap. A product of f32 or f64 is written to ``out`` and returned, if that is an array; other
    dtypes ignore ``out``.
    """
    work = wide(a.dtype)
    if a.dtype == work and work.kind == "f":
        return _floats(a, b, out)
    if work.kind == "i":
        return narrow(_integers(a, b), a.dtype)
    return narrow(_floats(a.astype(work, copy=False), b.astype(work, copy=False)), a.dtype)


class ConstantForm:
    """A constant matrix in the form in which kernels read it.

    All kernels that use a constant share one instance, including those of different plans.
    """

    def __init__(self, source: Any) -> None:
        self.memory = weakref.ref(_memory(source.raw if isinstance(source, Stored) else source))

    @classmethod
    def of(cls, source: np.ndarray | Stored, *more: Any) -> Self:
        """Return the instance for ``source`` and ``more`` arguments, which is created if no kernel holds one."""
        if isinstance(source, Stored):
            key, memory = (cls, source.raw.ctypes.data, *source.origin, *more), _memory(source.raw)
        else:
            key, memory = (cls, source.ctypes.data, source.shape, source.strides, source.dtype, *more), _memory(source)
        form = _forms.get(key)
        if not isinstance(form, cls) or form.memory() is not memory:
            form = _forms[key] = cls(source, *more)
        return form


class TransposedConstant(ConstantForm):
    """A constant matrix, transposed and in C order. BLAS reads it faster this way, for row vectors by far."""

    def __init__(self, source: np.ndarray) -> None:
        super().__init__(source)
        self.array = np.empty(source.shape[::-1], source.dtype)
        copy_to(self.array, source.T)


class UnpackedConstant(ConstantForm):
    """A constant matrix that the file stores in f16 or as integers, in f32 and in C order, also if ``transposed``.

    A product reads f32 many times faster than numpy unpacks a row, so that a matrix is unpacked once. That happens in
    blocks: nothing but the result ever is in memory as a whole.
    """

    def __init__(self, source: Stored, transposed: bool) -> None:
        super().__init__(source)
        rows, columns = source.shape
        self.array = np.empty((columns, rows) if transposed else (rows, columns), np.float32)
        high = max(1, _OUTER_BLOCK_BYTES // (4 * max(columns, 1)))
        for start in range(0, rows, high):
            part = source.unpack_rows(slice(start, start + high))
            if transposed:
                copy_to(self.array[:, start : start + high], part.T)
            else:
                self.array[start : start + high] = part


def multiply_stored(a: np.ndarray, source: Stored, transposed: bool, out: np.ndarray) -> None:
    """Fill ``out`` with the product of ``a`` and a constant matrix of the file, which is ``transposed`` first or not.

    All are f32 [rows, columns]. The constant matrix is unpacked in blocks of rows that stay in the cache.
    """
    rows, columns = source.shape
    high = max(1, _UNPACKED_BLOCK_BYTES // (4 * max(columns, 1)))
    if not transposed:
        out.fill(0)
    for start in range(0, rows, high):
        block, part = source.unpack_rows(slice(start, start + high)), slice(start, min(start + high, rows))
        if transposed:
            out[:, part] = _floats(a, block.T)
        else:
            out += _floats(np.ascontiguousarray(a[:, part]), block)


_UNPACKED_BLOCK_BYTES: Final = 1 << 19
"""Bytes of a block of a constant matrix that is unpacked in each call. It stays in the second-level cache of a core."""


def _memory(array: np.ndarray) -> np.ndarray:
    """Return the array that ``array`` is a view of, or itself. For a constant in the .bin, that is the whole file."""
    return array.base if isinstance(array.base, np.ndarray) else array


_forms: Final[WeakValueDictionary[tuple[object, ...], ConstantForm]] = WeakValueDictionary()


few_rows: Final = np.dot
"""``few_rows(a, b, out)`` multiplies two matrices of f32 or f64. For an ``a`` of few rows, this function has the least
overhead."""


def outer(columns: np.ndarray, rows: np.ndarray, out: np.ndarray, shared: int) -> None:
    """Fill ``out`` with ``columns * rows``.

    The first ``shared`` axes are common to both, the last axis is that of ``rows``, and the axes between are those of
    ``columns``. np.multiply takes twice as long where rows are short, because it first copies what it broadcasts.
    """
    width = out.shape[-1]
    high = max(1, _OUTER_BLOCK_BYTES // (width * out.itemsize))
    by_blas = width <= _MAX_BLAS_OUTER_COLUMNS or math.prod(out.shape[shared:-1]) < 4 * high
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


_OUTER_BLOCK_BYTES: Final = 1 << 18
"""Bytes of a block of an outer product, which stays in the second-level cache of a core."""
_MAX_BLAS_OUTER_COLUMNS: Final = 64
"""The most elements in a row for which BLAS makes an outer product faster than two passes of numpy."""


def row_sums(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the sums of ``x * y`` along the last axis, which stays as 1. BLAS is faster here than np.sum."""
    return np.vecdot(x, y)[..., None]


def wide(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which sums over ``dtype`` are accumulated, before they are rounded or wrapped once."""
    element_type = ElementType.of(dtype)
    if element_type is not None and (element_type.is_integer or element_type.kind == "boolean"):
        return np.dtype(np.int64)
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def narrow(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return sums converted back to ``dtype``. Floats beyond its range become infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype, copy=False)


def _floats(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return the product of f32 or f64 matrices, in ``out`` if that is an array."""
    is_empty = not (a.size and b.size)
    if b.ndim == 2 < a.ndim and a.flags.c_contiguous and not is_empty and (out is None or out.flags.c_contiguous):
        # one product for the whole batch instead of one for each of its matrices
        rows = None if out is None else out.reshape(-1, out.shape[-1])
        product = _product(a.reshape(-1, a.shape[-1]), b, rows)
        return product.reshape(*a.shape[:-1], b.shape[-1]) if out is None else out
    return _product(a, b, out)


def _product(a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """Multiply f32 or f64 matrices, shared among threads if that is worth it."""
    if min(a.ndim, b.ndim) < 2 or a.size * b.shape[-1] < _MIN_LIBRARY_MULTIPLICATIONS:
        return np.matmul(a, b, out=out)
    if out is None:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        out = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    work = 2 * out.size * a.shape[-1]
    if not (products_are_shared() and shared(work)):
        _multiply(a, b, out)
        return out
    whole, rank = out, out.ndim
    # cut the batch, if there is one, or else the longer side: each part reads the whole other matrix
    longer = rank - 2 if whole.shape[-2] > whole.shape[-1] else rank - 1
    axis = next((axis for axis, n in enumerate(whole.shape[:-2]) if n > 1), longer)

    def part(cut: slice) -> None:
        left = a if axis == rank - 1 else _cut(a, axis - rank, cut)
        right = b if axis == rank - 2 else _cut(b, axis - rank, cut)
        _multiply(left, right, _cut(whole, axis - rank, cut))

    each(part, shares(whole.shape[axis], work, _PART_MULTIPLE if axis == longer else 1), work)
    return whole


def _cut(array: np.ndarray, axis: int, cut: slice) -> np.ndarray:
    """Return a part of ``array`` along ``axis``, or all of it if it is broadcast along this axis.

    ``axis`` is counted from the end.
    """
    if array.ndim < -axis or (axis < -2 and array.shape[axis] == 1):
        return array
    return array[(..., cut, *(slice(None),) * (-axis - 1))]


def _multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    library = None if only_numpy() else _library()
    large = a.shape[-2] * a.shape[-1] * b.shape[-1] >= _MIN_LIBRARY_MULTIPLICATIONS
    if library is None or not large or not library.product(a, b, out):
        np.matmul(a, b, out=out)


_MIN_LIBRARY_MULTIPLICATIONS: Final = 1 << 19
"""The fewest multiplications for which another library, or another thread, makes up for the time that calling it
takes."""
_PART_MULTIPLE: Final = 64
"""The parts of a product have a multiple of this number of rows or columns."""


def cuts(shape: tuple[int, ...], size: int) -> dict[str, Any]:
    """Return the arguments of ``each_block`` that divide a product with one matrix into blocks.

    ``shape`` is the shape of the product, ``size`` the bytes of an element. The product is divided along its longer
    side, because each block reads the whole of the other operand again.
    """
    *batch, rows, columns = shape
    by_columns = math.prod(batch) * rows <= columns
    other = math.prod(batch) * rows if by_columns else columns
    last = len(shape) - 1
    line = other * size
    whole = tuple(range(last)) if by_columns else (last,)
    return {
        "limit": max(BLOCK_BYTES // 2, _MIN_BLOCK_LINES * line),
        "least": _MIN_BLOCK_LINES // 2 * line,
        "whole": whole,
    }


_MIN_BLOCK_LINES: Final = 256
"""The least rows or columns of a block of a product (half as many where threads share the blocks): smaller blocks
spend too much time on reading the other operand again."""


def blas() -> str:
    """Return the name of the library that multiplies large matrices: ``numpy`` or ``mkl``."""
    library = _library()
    return "numpy" if library is None else library.name


@cache
def _library() -> Cblas | None:
    """Return the library that multiplies large matrices instead of numpy, or None.

    It is MKL, if that is installed and IRRUN_BLAS is not ``numpy``. Warns if IRRUN_BLAS names a library that is unknown
    or not installed.
    """
    wanted = asked()
    if wanted == "numpy":
        return None
    library = mkl()
    if wanted not in ("", "mkl") or (wanted and library is None):
        if wanted == "mkl":
            message = f"IRRUN_BLAS is mkl, but the package mkl is not installed; {install('mkl')}"
        else:
            message = f"IRRUN_BLAS is {wanted}, which irrun does not know: set it to numpy or mkl"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return library


def _integers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product in i64, which wraps. It is computed in f64 by BLAS where that is provably exact."""
    a, b = a.astype(np.int64, copy=False), b.astype(np.int64, copy=False)
    if _largest(a) * _largest(b) * a.shape[-1] <= 1 << 53:
        return _floats(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
    return np.matmul(a, b)


def _largest(a: np.ndarray) -> int:
    """Return the largest absolute value of an integer array, 0 for an empty one."""
    return max(abs(int(a.max())), abs(int(a.min()))) if math.prod(a.shape) else 0
