"""The same numbers in other memory: every layout of an array that a caller may pass, and memory that ends at a wall."""

from __future__ import annotations

import ctypes
import mmap
import random
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

__all__ = ["FEEDS", "LAYOUTS", "in_layout", "repeated"]


def _new(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an array of NaN, or of other numbers that no one expects; strings are no text."""
    if dtype.hasobject:
        return np.empty(shape, dtype)
    numbers = np.full((*shape, dtype.itemsize), dtype.kind != "b" and 0xFF, np.uint8)
    return numbers.view(dtype).reshape(shape)


def _reversed(array: np.ndarray) -> np.ndarray:
    """Negative strides along all axes."""
    ends = ..., *[slice(None, None, -1)] * array.ndim
    return array[ends].copy()[ends]


def _every_second(array: np.ndarray) -> np.ndarray:
    """Each element is followed by a NaN, and each row, too."""
    wide = _new(tuple(2 * size for size in array.shape), array.dtype)
    part = wide[..., *[slice(None, None, 2)] * array.ndim]
    part[...] = array
    return part


def _swapped(array: np.ndarray) -> np.ndarray:
    """The last two axes lie in memory in the other order."""
    return array.swapaxes(-1, -2).copy().swapaxes(-1, -2) if array.ndim > 1 else array.copy()


def _offset(bytes: int) -> Callable[[np.ndarray], np.ndarray]:
    def moved(array: np.ndarray) -> np.ndarray:
        if array.dtype.hasobject:
            return array.copy()
        memory = np.zeros(array.nbytes + 64, np.uint8)
        start = -memory.ctypes.data % 64 + bytes
        part = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        part[...] = array
        return part

    return moved


def _read_only(array: np.ndarray) -> np.ndarray:
    held = array.copy()
    held.flags.writeable = False
    return held


def _walled(*, behind: bool) -> Callable[[np.ndarray], np.ndarray]:
    """Next to a page that no one may touch: the process dies of a byte too many."""

    def placed(array: np.ndarray) -> np.ndarray:
        protect = None if array.dtype.hasobject else _protection()
        if protect is None:
            return array.copy()
        page = mmap.PAGESIZE
        pages = -(-array.nbytes // page)
        memory = mmap.mmap(-1, (pages + 2) * page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for wall in (address, address + (pages + 1) * page):
            if protect(wall, page, 0) != 0:
                raise OSError("the memory around an array cannot be protected")
        start = page * (pages + 1) - array.nbytes if behind else page
        part = np.frombuffer(memory, np.uint8, array.nbytes, start).view(array.dtype).reshape(array.shape)
        part[...] = array
        return part

    return placed


def _protection() -> Callable[[int, int, int], int] | None:
    """Return the function of the system that forbids to touch memory, or None on Windows."""
    try:
        protect = ctypes.CDLL(None).mprotect
    except (AttributeError, OSError, TypeError):
        return None
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return protect


def repeated(array: np.ndarray) -> np.ndarray:
    """Return an array with stride 0 along the first axis: all its elements become the first one."""
    return np.broadcast_to(array[:1].copy(), array.shape) if array.ndim and len(array) else array.copy()


LAYOUTS: Final[Mapping[str, Callable[[np.ndarray], np.ndarray]]] = {
    "C": lambda array: np.array(array, order="C"),
    "Fortran": lambda array: np.array(array, order="F"),
    "swapped": _swapped,
    "reversed": _reversed,
    "every second": _every_second,
    "aligned": _offset(0),
    "4 bytes further": _offset(4),
    "1 byte further": _offset(1),
    "repeated": repeated,
    "read-only": _read_only,
    "before a wall": _walled(behind=True),
    "behind a wall": _walled(behind=False),
}
"""Functions that return the numbers of an array in memory of their own. ``repeated`` changes the numbers. Strings have
fewer layouts."""


class _Derived(np.ndarray):
    """A class of a user."""


def _other_bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of each number in the other order, where numpy has such types."""
    native = array.dtype.isbuiltin == 1 and not array.dtype.hasobject
    return array.astype(array.dtype.newbyteorder()) if native else array.copy()


FEEDS: Final[Mapping[str, Callable[[np.ndarray], np.ndarray]]] = {
    **{name: place for name, place in LAYOUTS.items() if place is not repeated},
    "other bytes": _other_bytes,
    "a class of its own": lambda array: array.copy().view(_Derived),
}
"""The arrays with the same numbers that a caller may pass to a model. The last two are read as plain arrays."""


def in_layout(array: np.ndarray, rng: random.Random) -> tuple[str, np.ndarray]:
    """Return the name of a layout drawn at random, and the array in it."""
    name = rng.choice(list(FEEDS))
    return name, FEEDS[name](array)
