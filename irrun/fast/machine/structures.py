"""Where the C structures of the interpreter and of numpy hold what machine code reads of its arguments.

The offsets are part of the ABI of CPython and of numpy. ``are_known`` checks them in the running process, so that a
version with other structures is served by numpy's kernels: see docs/compiled-kernels.md.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

import numpy as np

__all__ = [
    "BYTE_ORDER", "DATA", "DTYPE", "FLAGS", "NDIM", "SHAPE", "STRIDES", "TYPE", "TYPE_NUMBER", "UNKNOWN", "are_known",
]  # fmt: skip

_HEADER: Final = object.__basicsize__
"""Bytes of the structure with which each object begins."""
TYPE: Final = _HEADER - 8
"""The type of an object."""
DATA, NDIM, SHAPE, STRIDES, DTYPE, FLAGS = (_HEADER + n for n in (0, 8, 16, 24, 40, 48))
"""Offsets in an array: address, number of axes, shape, strides, dtype and flags. The lowest flag is C-contiguous."""
BYTE_ORDER, TYPE_NUMBER = _HEADER + 10, _HEADER + 12
"""Of a dtype: the character of its byte order, and its number."""


UNKNOWN: Final = (
    f"numpy computes in place of compiled kernels: Python {sys.version.split()[0]} or numpy {np.__version__} holds "
    "arrays in another way than irrun knows; install another version, or set IRRUN_FAST=0"
)
"""The warning where the structures are others."""


def are_known() -> bool:
    """Return whether a few arrays and numbers of this process have the structures that machine code expects."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or np.ndarray.__basicsize__ < FLAGS + 4:
        return False
    if np.dtype.__basicsize__ < TYPE_NUMBER + 4:
        return False
    whole = np.zeros((3, 5), np.float32)
    views = whole[:, 1:4], whole[::-1], whole.T, whole[1, 2, ...]
    others = np.zeros(2, np.uint8), np.zeros((1, 2, 1), ">i8"), np.zeros((2, 1), np.uint16), np.zeros(3, np.int64)
    numbers = True, 1 << 20, 0.5, np.float32(0.5)
    typed = all(_i64(id(number) + TYPE) == id(type(number)) for number in numbers)
    return typed and all(_is_known(array) for array in (whole, *views, *others))


def _is_known(array: np.ndarray) -> bool:
    place, dtype, ndim = id(array), array.dtype, array.ndim
    shape, strides = _i64(place + SHAPE), _i64(place + STRIDES)
    if strides != shape + 8 * ndim:  # numpy allocates them together; a wrong address must not be followed
        return False
    return (
        _i64(place + TYPE) == id(type(array))
        and _i64(place + DATA) == array.ctypes.data
        and _i32(place + NDIM) == ndim
        and _i64(place + DTYPE) == id(dtype)
        and _i32(place + FLAGS) & 1 == array.flags.c_contiguous
        and (ctypes.c_int64 * (2 * ndim)).from_address(shape)[:] == [*array.shape, *array.strides]
        and ctypes.c_char.from_address(id(dtype) + BYTE_ORDER).value == dtype.byteorder.encode()
        and _i32(id(dtype) + TYPE_NUMBER) == dtype.num
    )


def _i64(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _i32(address: int) -> int:
    return ctypes.c_int32.from_address(address).value
