"""Large arrays by blocks that stay in the cache, and the memory that one block after the other uses."""

import itertools
import math
import threading
from functools import lru_cache

import numpy as np

Part = tuple[slice, ...]
"""A part of an array: a slice for each axis."""

BLOCK = 1 << 19
"""Bytes that stay in the second cache of a core."""


class _Scratch(threading.local):
    """Memory that one block, and one layer, after the other uses: fresh pages cost more than what is done in them."""

    def __init__(self) -> None:
        self._memory = [np.empty(0, np.uint8)] * 3

    def __call__(self, number: int, dtype: np.dtype, *shape: int) -> np.ndarray:
        """An array in the memory of this number, which no other uses until it is asked for again."""
        size = math.prod(shape) * dtype.itemsize
        if size > self._memory[number].size:
            self._memory[number] = np.empty(size, np.uint8)
        return self._memory[number][:size].view(dtype).reshape(shape)


scratch = _Scratch()


@lru_cache(1 << 12)
def blocks(
    counts: tuple[int, ...], size: int, limit: int = BLOCK, most: tuple[int, ...] | None = None
) -> tuple[Part, ...]:
    """Divide all axes so that a block has ``limit`` bytes where one of the last has ``size``, and at most ``most``."""
    steps: list[int] = []
    for count in reversed(most or counts):
        steps.insert(0, max(1, min(count, limit // max(size, 1))))
        size *= steps[0]
    ranges = ([slice(i, min(i + step, count)) for i in range(0, count, step)] for count, step in zip(counts, steps))
    return tuple(itertools.product(*ranges))


def large(filters: np.ndarray) -> int:
    """How many bytes to multiply ``filters`` with at once: where they are many, reading them again costs most."""
    return max(4 * BLOCK, min(filters.nbytes, 32 * BLOCK))
