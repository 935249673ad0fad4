"""Large arrays by blocks that stay in the cache, and the memory that one block after the other uses."""

import itertools
import math
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np

from irrun.kernels.threads import PIECES, each, shared, threads
from irrun.opdef import Finish, Kernel, Value

Index = tuple[slice, ...]
"""A part of an array: a slice for each axis."""

Done = Callable[[Index], object]
"""What is told of each part of an array as soon as that is computed, by the thread that did."""

BLOCK: Final = 1 << 19
"""Bytes that stay in the second cache of a core."""
SMALL: Final = BLOCK // 4
"""Bytes of a block where what is read, what is written and what stands between them shall stay there together."""
_STRIP: Final = 1 << 8
"""Bytes in a row that are not cut any further: whole lines of cache, whole vectors."""

InPlace = Callable[[np.ndarray, np.ndarray], None]
"""Fills its second argument, which may be the first; floats of 32 or 64 bits."""


@lru_cache(1 << 12)
def blocks(counts: tuple[int, ...], size: int, limit: int = BLOCK, whole: tuple[int, ...] = ()) -> tuple[Index, ...]:
    """Indices that divide the axes of ``counts`` into blocks of about ``limit`` bytes, where one element has ``size``.

    The leading axes are cut first, so that a block is one piece of memory where that is possible; those in ``whole``
    are not.
    """
    steps, size, last = list(counts), max(size, 1), len(counts) - 1
    strip = -(-_STRIP // size)
    size *= math.prod(max(counts[axis], 1) for axis in whole)
    for axis in reversed(range(len(counts))):
        if axis not in whole:
            step = limit // size
            if axis == last:
                step = max(step // strip, 1) * strip
            steps[axis] = max(1, min(step, counts[axis]))
            size *= steps[axis]
    cuts = ([slice(i, min(i + step, n)) for i in range(0, n, step or 1)] for n, step in zip(counts, steps))
    return tuple(itertools.product(*cuts))


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
    """Call ``function`` with each of these ``blocks``.

    If they are so much ``work`` that ``each`` shares it among threads, there are enough of them, not below ``least``
    bytes.
    """
    if shared(work):
        limit = max(least, min(limit, math.prod(counts) * size // (threads() * PIECES)))
    each(function, blocks(counts, size, limit, whole), work)


def finishing(function: Callable[[Index], object], out: np.ndarray, finish: Finish | None) -> Callable[[Index], object]:
    """What fills a part of ``out`` with ``function``, and finishes it. The last axes, if left out, are whole."""

    def both(index: Index) -> None:
        function(index)
        if finish is not None:
            finish(out[index], (*index, *map(slice, out.shape[len(index) :])))

    return both


def unfinished(_: Index) -> None:
    """``Done`` where nothing follows."""


def within(block: Index, size: int, limit: int = BLOCK) -> list[Index]:
    """Indices that divide a block into smaller ones, in the array that it is a block of."""
    inner = blocks(tuple(s.stop - s.start for s in block), size, limit)
    return [tuple(slice(s.start + of.start, s.start + of.stop) for s, of in zip(block, index)) for index in inner]


class _Scratch(threading.local):
    """Memory that one block, and one layer, after the other uses: fresh pages cost more than what is done in them."""

    def __init__(self) -> None:
        self._memory: defaultdict[int, np.ndarray] = defaultdict(lambda: np.empty(0, np.uint8))

    def __call__(self, number: int, dtype: np.dtype, *shape: int) -> np.ndarray:
        """An array in the memory of this number, which no other uses until it is asked for again.

        Kernels have the numbers 0 to 2; what finishes their parts has those from 3 on.
        """
        size = math.prod(shape) * dtype.itemsize
        if size > self._memory[number].size:
            self._memory[number] = np.empty(size, np.uint8)
        return self._memory[number][:size].view(dtype).reshape(shape)


scratch: Final = _Scratch()


def whole_along(function: InPlace, data: Value, axes: tuple[int, ...]) -> Kernel:
    """The kernel of a function whose blocks must hold all of ``axes``, counted from the front; it may work in place."""

    def call(
        x: np.ndarray, *_: np.ndarray | None, out: np.ndarray | None = None, finish: Finish | None = None
    ) -> np.ndarray:
        if out is None:
            out = np.empty(x.shape, x.dtype)
        filled = out
        fill = finishing(lambda index: function(x[index], filled[index]), filled, finish)
        each_block(fill, x.shape, x.itemsize, BLOCK, work=8 * x.nbytes, whole=axes)
        return filled

    return Kernel(call, "in blocks", out=True, finish=data.shape.is_static)


def finish_in_blocks(out: np.ndarray, finish: Finish | None) -> np.ndarray:
    """``out``, finished."""
    if finish is not None:
        each(lambda index: finish(out[index], index), blocks(out.shape, out.itemsize, SMALL), out.nbytes)
    return out
