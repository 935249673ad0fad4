"""Memory for large arrays, used again instead of given back: fresh pages cost as much as computing what fills them."""

from __future__ import annotations

import ctypes
import weakref
from math import prod
from typing import Any, Final, cast

import numpy as np

__all__ = ["SMALL", "Pool", "lent_size"]

SMALL: Final = 1 << 20
"""Bytes up to which numpy's own allocation is the faster one."""

# glibc asks the system for fresh pages for each array beyond 128 KB, and gives them back, until one as large was freed;
# this is just below the most that it counts
np.empty((1 << 25) - (1 << 20), np.byte)


class Pool:
    """Lends arrays. The memory of one comes back when nobody refers to it any more, nor to a view of it."""

    def __init__(self) -> None:
        self._free: dict[int, list[ctypes.Array[ctypes.c_byte]]] = {}
        self._lent: dict[int, tuple[weakref.ref[np.ndarray], ctypes.Array[ctypes.c_byte]]] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array of undefined contents, C-contiguous."""
        size = prod(shape) * dtype.itemsize
        if size <= SMALL:
            return np.empty(shape, dtype)
        size = lent_size(size)
        free = self._free.setdefault(size, [])
        # not an array itself: views of what is lent then have that as their base, and keep it alive
        memory = free.pop() if free else (ctypes.c_byte * size).from_buffer(cast(Any, np.empty(size, np.byte)))
        array = np.ndarray(shape, dtype, cast(Any, memory))
        key = id(array)

        def back(_: object) -> None:
            free.append(self._lent.pop(key)[1])

        self._lent[key] = weakref.ref(array, back), memory
        return array

    def lends(self, array: np.ndarray) -> bool:
        """Whether this very array is lent, so that only views of it share its memory."""
        return id(array) in self._lent

    def trim(self) -> None:
        """Give back what is free."""
        self._free = {}


def lent_size(size: int) -> int:
    """The bytes that an array of ``size`` bytes takes: rounded, so that shapes that differ a little share."""
    if size <= SMALL:
        return size
    step = 1 << (size.bit_length() - 4)
    return -(-size // step) * step
