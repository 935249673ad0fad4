"""A pool that reuses the memory of large arrays.

The system's first access to a fresh page costs as much as computing the numbers that fill it.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import defaultdict
from math import prod
from typing import Any, Final, Generic, TypeVar, cast

import numpy as np

from irrun.base.memory import aligned

__all__ = ["SMALL", "FreeBlocks", "Pool", "lent_size"]

SMALL: Final = 1 << 20
"""Bytes up to which an array does not use the pool, because numpy's own allocation is faster."""

# glibc maps fresh pages for each array above 128 KB and unmaps them when it is freed; freeing an array raises this
# limit to its size, at most 32 MiB, so an array just below that is allocated and freed here
np.empty((1 << 25) - (1 << 20), np.byte)


_T = TypeVar("_T")


class FreeBlocks(Generic[_T]):
    """Blocks of memory that can be used again, by their size in bytes."""

    def __init__(self) -> None:
        self.bytes = 0
        self._blocks: defaultdict[int, list[_T]] = defaultdict(list)

    def take(self, size: int) -> _T | None:
        """Remove and return a block of this size, or return None if there is none."""
        blocks = self._blocks[size]
        if not blocks:
            return None
        self.bytes -= size
        return blocks.pop()

    def give(self, size: int, block: _T) -> None:
        """Add a block of this size."""
        self.bytes += size
        self._blocks[size].append(block)


class Pool:
    """Lends arrays. The memory of an array returns to the pool when neither it nor a view of it is referenced."""

    def __init__(self) -> None:
        self._free: FreeBlocks[ctypes.Array[ctypes.c_byte]] = FreeBlocks()
        self._lent: dict[int, tuple[weakref.ref[np.ndarray], ctypes.Array[ctypes.c_byte]]] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return a C-contiguous array with undefined contents."""
        size = prod(shape) * dtype.itemsize
        if size <= SMALL:
            return np.empty(shape, dtype)
        size, free = lent_size(size), self._free
        # no numpy array: otherwise it would be the base of views of `array`, and `array` could die before its views
        memory = free.take(size) or (ctypes.c_byte * size).from_buffer(cast(Any, aligned(size)))
        array = np.ndarray(shape, dtype, cast(Any, memory))
        key = id(array)

        def give_back(_: object) -> None:
            free.give(size, self._lent.pop(key)[1])

        self._lent[key] = weakref.ref(array, give_back), memory
        return array

    @property
    def retained(self) -> int:
        """The bytes of memory that is not lent."""
        return self._free.bytes

    def lends(self, array: np.ndarray) -> bool:
        """Return whether this array itself (not a view) is lent. Only views of it then share its memory."""
        return id(array) in self._lent

    def trim(self) -> None:
        """Release the memory that is not lent. Memory that is lent now is released when it comes back."""
        self._free = FreeBlocks()


def lent_size(size: int) -> int:
    """Return the bytes that the pool allocates for an array of ``size`` bytes.

    Above ``SMALL``, this is up to an eighth more, so that arrays of slightly different sizes can use the same memory.
    """
    if size <= SMALL:
        return size
    step = 1 << (size.bit_length() - 4)
    return -(-size // step) * step
