"""Memory of arrays: its first address, and the error when memory runs out."""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["aligned", "lacks_memory"]

_CACHE_LINE_BYTES: Final = 64

_TOO_BIG = ("array is too big", "iterator is too large", "Maximum allowed dimension exceeded")
"""How the messages begin with which numpy refuses an array that no address space holds."""


def lacks_memory(error: Exception) -> bool:
    """Return whether there was no room for an array: numpy raises a ValueError for one that is beyond all addresses."""
    return isinstance(error, MemoryError) or (isinstance(error, ValueError) and str(error).startswith(_TOO_BIG))


def aligned(size: int) -> np.ndarray:
    """Return ``size`` bytes of memory with undefined contents, as u8, that begin with a line of the cache.

    Vectors of 64 bytes that lie across two lines take twice as long to load. numpy begins large arrays 16 bytes later.
    """
    memory = np.empty(size + _CACHE_LINE_BYTES, np.uint8)
    begin = -memory.ctypes.data % _CACHE_LINE_BYTES
    return memory[begin : begin + size]
