"""Memory that begins with a line of the cache, and that of constants."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from irrun.base import memory
from irrun.base.memory import aligned, lasting, lasting_zeros
from irrun.kernels.blocks import scratch
from irrun.running.pool import SMALL, Pool


@pytest.mark.parametrize("size", [1, 63, 64, 4097, 1 << 20])
def test_memory_begins_with_a_line_of_the_cache(size: int) -> None:
    held = [aligned(size) for _ in range(20)]
    assert {array.ctypes.data % 64 for array in held} == {0}
    assert {array.shape for array in held} == {(size,)}
    for number, array in enumerate(held):
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(held))


def test_large_arrays_of_layers_begin_with_a_line_of_the_cache() -> None:
    pool = Pool()
    arrays = [pool.take((SMALL // 4 + n,), np.dtype(np.float32)) for n in (1, 9, 1000)]
    arrays += [scratch(n, np.dtype(np.float32), 3, 1000) for n in range(3)]
    assert {array.ctypes.data % 64 for array in arrays} == {0}


def test_lasting_arrays_are_zeros_that_nothing_shares() -> None:
    sizes = [1, 63, 64, 4097, (1 << 24) + 1, 3 << 25]
    held = [lasting_zeros((size,), np.uint8) for size in sizes]
    assert all(not array.any() for array in held)
    assert {array.ctypes.data % 64 for array in held} == {0}
    for number, array in enumerate(held):
        array[:] = number + 1
    assert all((array == number + 1).all() for number, array in enumerate(held))


def test_lasting_arrays_of_threads_do_not_overlap() -> None:
    def fill(number: int) -> list[np.ndarray]:
        arrays = [lasting_zeros((number, 3), np.int64) for _ in range(200)]
        for array in arrays:
            array[:] = number
        return arrays

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(fill, range(1, 9)))
    assert all((array == number).all() for number, arrays in enumerate(parts, 1) for array in arrays)


def test_a_copy_keeps_values_and_order() -> None:
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4).swapaxes(0, 2)
    copy = lasting(array)
    assert copy.flags.c_contiguous
    np.testing.assert_array_equal(copy, array)


def test_memory_is_released_with_the_last_of_its_arrays() -> None:
    first = lasting_zeros((4,), np.float32)
    whole = weakref.ref(first.base)
    others = [lasting_zeros((1 << 20,), np.uint8) for _ in range(40)]  # the chunk that `first` is in becomes full
    assert whole() is not None
    del first
    others.clear()
    gc.collect()
    assert whole() is None


@pytest.mark.parametrize("fault", ["no such pages", "no room"])
def test_systems_without_large_pages_get_small_ones(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "no room":
        monkeypatch.setattr(
            memory, "mmap", SimpleNamespace(mmap=_refuse, MADV_HUGEPAGE=14, MAP_PRIVATE=2, MAP_ANONYMOUS=32)
        )
    else:
        monkeypatch.setattr(memory, "mmap", SimpleNamespace())
    for array in aligned(1 << 22), lasting_zeros((3 << 22,), np.uint8), lasting_zeros((5,), np.uint8):
        assert array.ctypes.data % 64 == 0
        array[:] = 1
    assert not lasting_zeros((1 << 25,), np.uint8).any()


def _refuse(*_: object, **__: object) -> None:
    raise OSError(12, "Cannot allocate memory")
