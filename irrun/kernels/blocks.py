"""Blocks of large arrays that stay in the cache, and scratch memory that one block after the other uses."""

import itertools
import math
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from irrun.base.memory import aligned
from irrun.kernels.threads import each, shared, threads
from irrun.opdef import Calls, Change, Index, Joins, Kernel, OnTileReady, ignore_tile

BLOCK_BYTES: Final = 1 << 19
"""Bytes of a block that stays in the second-level cache of a core."""
SMALL_BLOCK_BYTES: Final = BLOCK_BYTES // 4
"""Bytes of a block whose inputs, outputs and intermediate arrays shall stay in that cache together."""
_ALIGNED_UNITS: Final = 64
_MIN_CUT_BYTES: Final = 1 << 8
"""Bytes of a row that blocks do not cut any further: several whole cache lines and SIMD vectors."""

InPlace = Callable[[np.ndarray, np.ndarray], None]
"""A function that fills its second argument from its first. Both may be the same array, of f32 or f64."""


@lru_cache(1 << 12)
def blocks(
    counts: tuple[int, ...], size: int, limit: int = BLOCK_BYTES, whole: tuple[int, ...] = (), multiple: int = 1
) -> tuple[Index, ...]:
    """Return indices that divide axes of the lengths ``counts`` into blocks of about ``limit`` bytes.

    An element takes ``size`` bytes. The leading axes are cut first, so that a block is contiguous where possible. The
    axes in ``whole`` are not cut. Blocks are of nearly the same size, none larger than the first. Where possible,
    their number is a multiple of ``multiple``, so that as many threads get the same share.
    """
    size, last = max(size, 1), len(counts) - 1
    strip = -(-_MIN_CUT_BYTES // size)
    size *= math.prod(max(counts[axis], 1) for axis in whole)
    units = [strip if axis == last else 1 for axis in range(len(counts))]
    parts = [1] * len(counts)
    for axis in reversed(range(len(counts))):
        if axis not in whole and counts[axis]:
            step = min(max(limit // size // units[axis], 1) * units[axis], counts[axis])
            parts[axis] = -(-counts[axis] // step)
            size *= step
    others = math.prod(parts)
    for axis in range(len(counts)):
        most = 1 if axis in whole else -(-counts[axis] // units[axis])
        more = (n for n in range(parts[axis], most + 1) if others // parts[axis] * n % multiple == 0)
        if (fitting := next(more, 0)) and fitting < parts[axis] + multiple:
            parts[axis] = fitting
            break
    return tuple(itertools.product(*map(_cut, counts, parts, units)))


def _cut(length: int, parts: int, unit: int) -> list[slice]:
    """Return slices of nearly the same length, the first of which is the largest.

    The length of all but the last is a multiple of ``unit``.
    """
    units = -(-length // unit)
    ends = [min(-(-units * n // parts) * unit, length) for n in range(parts + 1)]
    return [slice(begin, end) for begin, end in itertools.pairwise(ends) if begin < end]


def each_block(
    function: Callable[[Index], object],
    counts: tuple[int, ...],
    size: int,
    limit: int,
    *,
    work: int,
    least: int = 0,
    whole: tuple[int, ...] = (),
) -> None:
    """Call ``function`` with the index of each block. See ``blocks`` for ``counts``, ``size``, ``limit`` and ``whole``.

    If the total ``work`` is enough to be shared by the threads, the blocks are made so small that there are enough for
    all threads, but not smaller than ``least`` bytes.
    """
    multiple = 1
    if shared(work):
        limit, multiple = max(least, min(limit, math.prod(counts) * size // threads())), threads()
    each(function, blocks(counts, size, limit, whole, multiple), work)


def reporting(
    function: Callable[[Index], object], out: np.ndarray, on_tile_ready: OnTileReady
) -> Callable[[Index], object]:
    """Return a function that fills a tile of ``out`` with ``function`` and then reports it to ``on_tile_ready``.

    An index may leave out the last axes, which are then whole.
    """
    if on_tile_ready is ignore_tile:
        return function

    def fill_and_report(index: Index) -> None:
        function(index)
        on_tile_ready((*index, *map(slice, out.shape[len(index) :])))

    return fill_and_report


def changing(change: Change | None, out: np.ndarray, on_tile_ready: OnTileReady) -> OnTileReady:
    """Return the callback that applies ``change``, if there is one, to each tile of ``out`` before it is reported."""
    if change is None:
        return on_tile_ready

    def change_and_report(index: Index) -> None:
        change(out[index])
        on_tile_ready(index)

    return change_and_report


def within(block: Index, size: int, limit: int = BLOCK_BYTES) -> list[Index]:
    """Return indices that divide a block into smaller blocks of about ``limit`` bytes.

    The indices are those of the array that contains the block. An element takes ``size`` bytes.
    """
    inner = blocks(tuple(s.stop - s.start for s in block), size, limit)
    return [tuple(slice(s.start + of.start, s.start + of.stop) for s, of in zip(block, index)) for index in inner]


class _Scratch(threading.local):
    """Memory of one thread that one block, and one layer, after the other uses.

    Fresh pages of memory would cost more time than the computation in them.
    """

    def __init__(self) -> None:
        self._memory: defaultdict[int, np.ndarray] = defaultdict(lambda: np.empty(0, np.uint8))

    def __call__(self, number: int, dtype: np.dtype, *shape: int) -> np.ndarray:
        """Return an uninitialised array in the buffer with this number. The next call with the number uses it again.

        Kernels use the numbers 0 to 2, fused steps use numbers from 3 on.
        """
        size = math.prod(shape) * dtype.itemsize
        if size > self._memory[number].size:
            self._memory[number] = aligned(size)
        return self._memory[number][:size].view(dtype).reshape(shape)


scratch: Final = _Scratch()


def placed(lives: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Return where each value begins in memory that the values share, and the size of that memory.

    A value is its size, and the numbers of the first and of the last step that need it. Values are in the order of
    their first steps. Sizes and places are in units of the caller, of which ``_ALIGNED_UNITS`` are a line of the cache
    or more.
    """
    places: list[int] = []
    busy: list[tuple[int, int, int]] = []  # where, up to where, and the last step
    for size, first, last in lives:
        begin, busy = 0, sorted(entry for entry in busy if entry[2] >= first)
        for start, end, _ in busy:
            if begin + size <= start:
                break
            begin = max(begin, end)
        places.append(begin)
        busy.append((begin, begin + -(-size // _ALIGNED_UNITS) * _ALIGNED_UNITS, last))
    return places, max((place + size for place, (size, _, _) in zip(places, lives)), default=0)


def whole_along(function: InPlace, axes: tuple[int, ...], rows: Callable[..., Calls] | None = None) -> Kernel:
    """Return the kernel that applies ``function`` to blocks of its first input that are not cut along ``axes``.

    ``axes`` are counted from the front. ``rows`` is ``Joins.row_calls`` of the kernel.
    """

    def call(
        x: np.ndarray, *_: np.ndarray | None, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
    ) -> np.ndarray:
        if out is None:
            out = np.empty(x.shape, x.dtype)
        filled, work = out, 8 * x.nbytes
        if on_tile_ready is ignore_tile and 0 < x.nbytes <= BLOCK_BYTES and not shared(work):
            function(x, filled)
            return filled
        fill = reporting(lambda index: function(x[index], filled[index]), filled, on_tile_ready)
        each_block(fill, x.shape, x.itemsize, BLOCK_BYTES, work=work, whole=axes)
        return filled

    return Kernel(call, "in blocks", out="tiles", joins=Joins(row_calls=rows, row_inputs=(0,)))


def report_in_blocks(out: np.ndarray, on_tile_ready: OnTileReady) -> None:
    """Report each block of ``out``, which is complete, to ``on_tile_ready``."""
    if on_tile_ready is not ignore_tile:
        each(on_tile_ready, blocks(out.shape, out.itemsize, SMALL_BLOCK_BYTES), out.nbytes)
