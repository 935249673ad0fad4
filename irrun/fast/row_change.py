"""Kernels that change rows of f32 in place, while a row is in the first-level cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.fast.arithmetic import WORK_PER_NUMBER, place
from irrun.fast.machine.memory import data_address
from irrun.fast.machine.sharing import share
from irrun.opdef import Call, Calls

__all__ = ["RowChange"]


class RowChange:
    """The function that changes an array of f32 in place with ``kernel``, on all threads.

    ``kernel(source, step, target, apart, columns, *numbers, first, last)`` fills rows that are ``apart`` floats apart
    with what becomes of those at ``source``, which may be the same: see ``arithmetic.moved``. A row is the last axis if
    that must stay ``whole``; otherwise a contiguous array has rows of any length.
    """

    def __init__(
        self, kernel: Callable[..., None], *numbers: int | np.float32 | np.ndarray, whole: bool = True
    ) -> None:
        self.kernel, self.numbers, self.whole = kernel, numbers, whole

    def __call__(self, x: np.ndarray) -> None:
        if not x.size:
            return
        columns = x.shape[-1] if x.ndim else 1
        apart = columns if x.flags.c_contiguous else _apart(x)
        if apart is None:
            copy = np.ascontiguousarray(x)
            self._change(data_address(copy), x.size // columns, columns, columns)
            np.copyto(x, copy)
        elif self.whole or not x.flags.c_contiguous:
            self._change(data_address(x), x.size // columns, columns, apart)
        else:
            rows, rest = divmod(x.size, _PIECE_FLOATS)
            self._change(data_address(x), rows, _PIECE_FLOATS, _PIECE_FLOATS)
            self._change(data_address(x) + 4 * rows * _PIECE_FLOATS, 1, rest, rest)

    def _change(self, address: int, rows: int, columns: int, apart: int) -> None:
        rows_at = address, apart
        share(self.kernel, rows, WORK_PER_NUMBER * rows * columns, *rows_at, *rows_at, columns, *self.numbers)

    def fill(self, x: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` with what becomes of ``x``."""
        np.copyto(out, x)
        self(out)

    def calls(self, x: np.ndarray) -> Calls:
        """Return the calls that change a matrix whose rows are contiguous."""
        return self.rows(x, out=x)

    def rows(self, x: np.ndarray, *_: np.ndarray | None, out: np.ndarray) -> Calls:
        """Return the calls that fill ``out`` with what becomes of ``x``: see ``Kernel.rows``."""
        return [Call(self.kernel, (*place(x), *place(out), out.shape[1], *self.numbers), len(out))]


_PIECE_FLOATS: Final = 1 << 10
"""Floats of a row, where rows have no meaning: enough for the compiler's loops, little enough to be shared evenly."""


def _apart(array: np.ndarray) -> int | None:
    """Return how many elements the rows of an array are apart, or None if they are not evenly so."""
    if array.strides[-1] != array.itemsize and array.shape[-1] > 1:
        return None
    apart = count = 0
    for n, step in zip(array.shape[-2::-1], array.strides[-2::-1]):
        if n > 1:
            if count and step != apart * count:
                return None
            apart, count = (apart, count * n) if count else (step, n)
    return apart // array.itemsize
