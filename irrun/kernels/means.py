"""Means, of integers of 64 bits too, whose sums do not fit into 64 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irrun.kernels.matmul import narrow, wide

__all__ = ["floor_means", "means"]


def means(data: np.ndarray, sums: Callable[[np.ndarray], np.ndarray], counts: np.ndarray) -> np.ndarray:
    """Return the means ``sums(data) / counts`` in the dtype of ``data``, and 0 where the count is 0.

    Means of integers are rounded to the nearest, halves to even. ``sums`` adds up elements of an array in its dtype.
    """
    counts = np.maximum(counts, 1)  # OpenVINO: the CPU plugin gives NaN for a mean of nothing
    accumulator = wide(data.dtype)
    if accumulator.kind != "i":
        total = sums(data.astype(accumulator, copy=False))
        return narrow(total / counts.astype(total.dtype), data.dtype)
    down, rest = floor_means(data, sums, counts)
    return narrow(down + ((2 * rest > counts) | ((2 * rest == counts) & (down % 2 == 1))), data.dtype)


def floor_means(
    data: np.ndarray, sums: Callable[[np.ndarray], np.ndarray], counts: np.ndarray | int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of integers rounded down, as i64 or u64, and the remainders of the divisions.

    The sum of integers of 64 bits may overflow. The sums of their upper and of their lower halves do not.
    """
    elements = data if data.dtype in (np.int64, np.uint64) else data.astype(np.int64)
    upper, rest = np.divmod(sums((elements >> 32).astype(np.int64)), counts)
    lower, rest = np.divmod((rest << 32) + sums((elements & 0xFFFFFFFF).astype(np.int64)), counts)
    return ((upper << 32) + lower).astype(elements.dtype), rest
