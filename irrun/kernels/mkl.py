"""Matrix products by Intel's MKL, where the package ``mkl`` is installed. They use its cblas, without a copy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from irrun.kernels.blas import mkl_libraries

_ROWS, _PLAIN, _TRANSPOSED = 101, 111, 112
_SEQUENTIAL = 1
_LP64 = 0


@dataclass(frozen=True, slots=True)
class Cblas:
    """A library with ``cblas_sgemm`` and ``cblas_dgemm`` that takes integers of 32 bits."""

    name: str
    gemm: dict[np.dtype, Callable[..., None]]

    @staticmethod
    def of(library: ctypes.CDLL, name: str) -> Cblas:
        """Return the functions of ``library``. Raises AttributeError if it does not have them."""
        number, place = ctypes.c_int, ctypes.c_void_p
        gemm: dict[np.dtype, Callable[..., None]] = {}
        for function, scalar in ((library.cblas_sgemm, ctypes.c_float), (library.cblas_dgemm, ctypes.c_double)):
            function.restype = None
            function.argtypes = (*(number,) * 6, scalar, place, number, place, number, scalar, place, number)
            gemm[np.dtype(scalar)] = function
        return Cblas(name, gemm)

    def product(self, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
        """Compute ``out = a @ b`` for matrices or stacks of matrices of one dtype, and return True.

        Return False, and compute nothing, if an array is empty or its memory layout is not one that cblas takes.
        """
        if not a.size or not b.size:
            return False
        layouts = [layout for x in (a, b, out) if (layout := _layout(x)) is not None]
        if len(layouts) < 3 or layouts[2][0] is _TRANSPOSED:
            return False
        (a_way, a_step), (b_way, b_step), (_, step) = layouts
        gemm = self.gemm[out.dtype]
        rows, inner = a.shape[-2:]
        columns = b.shape[-1]
        if out.ndim == 2:
            at = [x.ctypes.data for x in (a, b, out)]
            gemm(_ROWS, a_way, b_way, rows, columns, inner, 1, at[0], a_step, at[1], b_step, 0, at[2], step)
            return True
        stacks = [np.broadcast_to(x, (*out.shape[:-2], *x.shape[-2:])) for x in (a, b)]
        places = [_places(x) for x in (*stacks, out)]
        for of_a, of_b, of_out in zip(*places):
            gemm(_ROWS, a_way, b_way, rows, columns, inner, 1, of_a, a_step, of_b, b_step, 0, of_out, step)
        return True


def _layout(x: np.ndarray) -> tuple[int, int] | None:
    """Return whether matrices are stored by rows or by columns, and the elements from one row or column to the next.

    Return None if they are stored in neither way.
    """
    size, (rows, columns), (down, right) = x.itemsize, x.shape[-2:], x.strides[-2:]
    if (right == size or columns == 1) and (rows == 1 or (down >= columns * size and down % size == 0)):
        return _PLAIN, max(down // size if rows > 1 else 0, columns)
    if (down == size or rows == 1) and (columns == 1 or (right >= rows * size and right % size == 0)):
        return _TRANSPOSED, max(right // size if columns > 1 else 0, rows)
    return None


def _places(x: np.ndarray) -> list[int]:
    """Return the address of each matrix of a stack."""
    addresses = np.array(x.ctypes.data)
    for n, step in zip(x.shape[:-2], x.strides[:-2]):
        addresses = addresses[..., None] + np.arange(n) * step
    return addresses.reshape(-1).tolist()


def mkl() -> Cblas | None:
    """Return MKL from the package ``mkl``, set to use one thread for a product, or None if it cannot be loaded."""
    for path in mkl_libraries():
        try:
            library = ctypes.CDLL(str(path))
            # mkl_rt loads the other libraries by these settings, so they come first
            library.MKL_Set_Threading_Layer(_SEQUENTIAL)
            library.MKL_Set_Interface_Layer(_LP64)
            return Cblas.of(library, "mkl")
        except (OSError, AttributeError):  # made for another machine, or another library
            continue
    return None
