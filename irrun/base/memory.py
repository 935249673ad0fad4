"""Memory of arrays: its first address, its pages, and the error when memory runs out."""

from __future__ import annotations

import math
import mmap
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, cast

import numpy as np

__all__ = ["aligned", "lacks_memory", "lasting", "lasting_zeros"]

_CACHE_LINE_BYTES: Final = 64
_LARGE_PAGE_BYTES: Final = 1 << 21
_CHUNK_BYTES: Final = 1 << 25

_TOO_BIG = ("array is too big", "iterator is too large", "Maximum allowed dimension exceeded")
"""How the messages begin with which numpy refuses an array that no address space holds."""


def lacks_memory(error: Exception) -> bool:
    """Return whether there was no room for an array: numpy raises a ValueError for one that is beyond all addresses."""
    return isinstance(error, MemoryError) or (isinstance(error, ValueError) and str(error).startswith(_TOO_BIG))


def aligned(size: int) -> np.ndarray:
    """Return ``size`` bytes of memory with undefined contents, as u8, that begin with a line of the cache.

    Vectors of 64 bytes that lie across two lines take twice as long to load. numpy begins large arrays 16 bytes later.
    Memory of 1 MB and more is in pages of 2 MB where the system has them: reading 200 MB takes 6.4 ms in place of 12.1,
    because the processor looks up fewer pages.
    """
    if 2 * size >= _LARGE_PAGE_BYTES and (memory := _in_large_pages(size)) is not None:
        return memory
    memory = np.empty(size + _CACHE_LINE_BYTES, np.uint8)
    begin = -memory.ctypes.data % _CACHE_LINE_BYTES
    return memory[begin : begin + size]


def lasting_zeros(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Return zeros for numbers that a plan keeps, such as packed weights. They begin with a line of the cache.

    Small arrays follow each other in pages of 2 MB, which are released when none of these arrays is left.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return _constants.take(size).view(dtype).reshape(shape)


def lasting(array: np.ndarray) -> np.ndarray:
    """Return a copy of an array in the memory of ``lasting_zeros``."""
    copy = lasting_zeros(array.shape, array.dtype)
    copy[...] = array
    return copy


def _in_large_pages(size: int) -> np.ndarray | None:
    """Return zeros u8 [size] that begin with a large page, or None if the system has no such pages.

    If less than half of the last page is needed, it consists of small pages.
    """
    if sys.platform != "linux" or not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    try:
        pages = mmap.mmap(-1, size + 2 * _LARGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):  # numpy raises the error of an array that is too large
        return None
    whole = np.frombuffer(pages, np.uint8)
    begin = -whole.ctypes.data % _LARGE_PAGE_BYTES
    if length := (size + _LARGE_PAGE_BYTES // 2) // _LARGE_PAGE_BYTES * _LARGE_PAGE_BYTES:
        with suppress(OSError):  # the system was built without large pages
            pages.madvise(mmap.MADV_HUGEPAGE, begin, length)
    return whole[begin : begin + size]


class _Constants:
    """Chunks of memory that are filled from their begin to their end. Nothing but its arrays keeps a chunk."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chunk: weakref.ref[np.ndarray] | None = None
        self._used = 0

    def take(self, size: int) -> np.ndarray:
        """Return zeros u8 [size] that no other array shares."""
        if 2 * size >= _CHUNK_BYTES:
            return _zeros(size)
        with self._lock:
            whole = None if self._chunk is None else self._chunk()
            if whole is None or self._used + size > len(whole):
                if (chunk := _in_large_pages(_CHUNK_BYTES)) is None:
                    return _zeros(size)
                whole = cast(np.ndarray, chunk.base)
                self._chunk, self._used = weakref.ref(whole), len(whole) - len(chunk)
            begin = self._used
            self._used += -(-size // _CACHE_LINE_BYTES) * _CACHE_LINE_BYTES
            return whole[begin : begin + size]


def _zeros(size: int) -> np.ndarray:
    if (memory := _in_large_pages(size)) is None:
        memory = aligned(size)
        memory[:] = 0
    return memory


_constants: Final = _Constants()
