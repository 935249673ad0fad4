"""The same numbers in another place: every layout of an array that a caller may pass, and memory that ends at a wall."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

__all__ = ["LAYOUTS", "odd"]


def _reversed(array: np.ndarray) -> np.ndarray:
    """Negative strides along all axes."""
    ends = (slice(None, None, -1),) * array.ndim
    return array[ends].copy()[ends]


def _every_second(array: np.ndarray) -> np.ndarray:
    """Each element is followed by a NaN, and each row, too."""
    wide = np.full([2 * size for size in array.shape], np.nan, array.dtype)
    part = wide[(slice(None, None, 2),) * array.ndim]
    part[...] = array
    return part


def _swapped(array: np.ndarray) -> np.ndarray:
    """The last two axes lie in memory in the other order."""
    return array.swapaxes(-1, -2).copy().swapaxes(-1, -2) if array.ndim > 1 else array.copy()


def _offset(bytes: int) -> Callable[[np.ndarray], np.ndarray]:
    def moved(array: np.ndarray) -> np.ndarray:
        memory = np.zeros(array.nbytes + 64, np.uint8)
        start = -memory.ctypes.data % 64 + bytes
        part = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        part[...] = array
        return part

    return moved


def _repeated(array: np.ndarray) -> np.ndarray:
    """Stride 0 along the first axis: all its elements become the first one."""
    return np.broadcast_to(array[:1].copy(), array.shape) if array.ndim and len(array) else array.copy()


def _read_only(array: np.ndarray) -> np.ndarray:
    held = array.copy()
    held.flags.writeable = False
    return held


def _walled(*, behind: bool) -> Callable[[np.ndarray], np.ndarray]:
    """Next to a page that no one may touch: the process dies of a byte too many."""

    def placed(array: np.ndarray) -> np.ndarray:
        page = mmap.PAGESIZE
        pages = -(-array.nbytes // page)
        memory = mmap.mmap(-1, (pages + 2) * page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        protect = ctypes.CDLL(None).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for wall in (address, address + (pages + 1) * page):
            assert protect(wall, page, 0) == 0
        start = page * (pages + 1) - array.nbytes if behind else page
        part = np.frombuffer(memory, array.dtype, array.size, start).reshape(array.shape)
        part[...] = array
        return part

    return placed


LAYOUTS: Final[Mapping[str, Callable[[np.ndarray], np.ndarray]]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "swapped": _swapped,
    "reversed": _reversed,
    "every second": _every_second,
    "aligned": _offset(0),
    "4 bytes further": _offset(4),
    "1 byte further": _offset(1),
    "repeated": _repeated,
    "read-only": _read_only,
    "before a wall": _walled(behind=True),
    "behind a wall": _walled(behind=False),
}
"""Functions that return the numbers of an array in memory of their own; ``repeated`` changes the numbers."""


def odd(array: np.ndarray, rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """Return a layout drawn at random, and the array in it."""
    name = str(rng.choice(list(LAYOUTS)))
    return name, LAYOUTS[name](array)
