"""Memory that begins with a line of the cache."""

from __future__ import annotations

import numpy as np
import pytest

from irrun.base.memory import aligned
from irrun.kernels.blocks import scratch
from irrun.running.pool import SMALL, Pool


@pytest.mark.parametrize("size", [1, 63, 64, 4097, 1 << 20])
def test_memory_begins_with_a_line_of_the_cache(size: int) -> None:
    held = [aligned(size) for _ in range(20)]
    assert {memory.ctypes.data % 64 for memory in held} == {0}
    assert {memory.shape for memory in held} == {(size,)}
    for number, memory in enumerate(held):
        memory[:] = number
    assert all((memory == number).all() for number, memory in enumerate(held))


def test_large_arrays_of_layers_begin_with_a_line_of_the_cache() -> None:
    pool = Pool()
    arrays = [pool.take((SMALL // 4 + n,), np.dtype(np.float32)) for n in (1, 9, 1000)]
    arrays += [scratch(n, np.dtype(np.float32), 3, 1000) for n in range(3)]
    assert {array.ctypes.data % 64 for array in arrays} == {0}
