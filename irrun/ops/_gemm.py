"""Matrix products: the one door through which every operation multiplies matrices."""

import math

import numpy as np

from irrun.types import ElementType


def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``a @ b`` over the last two axes, the others broadcast; both are of one type, and so is the result.

    f16, bf16 and narrower floats are summed in f32 and rounded once; integers are exact and wrap.
    A product of f32 or f64 may go to ``out``.
    """
    if out is not None:
        return np.matmul(a, b, out=out)
    work = wide(a.dtype)
    if work.kind == "i":
        return narrow(_integers(a, b), a.dtype)
    return narrow(_floats(a.astype(work, copy=False), b.astype(work, copy=False)), a.dtype)


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


def _floats(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if b.ndim == 2 < a.ndim and a.flags.c_contiguous and a.size:
        # one product instead of one for each matrix of the batch
        return np.matmul(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
    return np.matmul(a, b)


def _integers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product in int64 (which wraps): through float64 and BLAS where that is provably exact."""
    a, b = a.astype(np.int64, copy=False), b.astype(np.int64, copy=False)
    if _largest(a) * _largest(b) * a.shape[-1] <= 1 << 53:
        return _floats(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
    return np.matmul(a, b)


def _largest(a: np.ndarray) -> int:
    return max(abs(int(a.max())), abs(int(a.min()))) if math.prod(a.shape) else 0
