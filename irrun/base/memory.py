"""Tell the lack of memory from other errors."""

from __future__ import annotations

__all__ = ["lacks_memory"]

_TOO_BIG = ("array is too big", "iterator is too large", "Maximum allowed dimension exceeded")
"""How the messages begin with which numpy refuses an array that no address space holds."""


def lacks_memory(error: Exception) -> bool:
    """Return whether there was no room for an array: numpy raises a ValueError for one that is beyond all addresses."""
    return isinstance(error, MemoryError) or (isinstance(error, ValueError) and str(error).startswith(_TOO_BIG))
