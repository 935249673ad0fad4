"""Copies of transposed arrays, which numpy alone makes slowly where they miss the cache, and kernels that move runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from irrun.opdef import Kernel

_TILE_BYTES: Final = 1 << 18
"""Bytes of a tile. A copy of it stays in the second-level cache of a core."""
_MAX_TILE_ROWS: Final = 256
"""The most rows of a tile, so that a cache line of each row stays in the first-level cache."""
_PADDING_ELEMENTS: Final = 16
"""Elements of padding between the rows of the copy of a tile. Without padding, rows that are a power of two apart would
all map to the same few cache lines."""
_PAGE_BYTES: Final = 1 << 12
"""Bytes after which addresses map to the same lines of the first-level cache again."""
_CACHE_WAYS: Final = 8
"""Lines of the first-level cache that can hold the same place of a page."""
_MIN_TILED_BYTES: Final = 1 << 15
"""The fewest bytes of an array that is copied by tiles. numpy copies smaller ones."""
_MIN_RUN_BYTES: Final = 64
"""The least bytes that all elements which stay neighbours take, for a copy of such runs. Its table of their places,
8 bytes for each, then takes an eighth of the value."""
_MAX_FOLLOWED: Final = 1 << 14
"""The most elements that are followed at once."""
_MIN_LOOP_ELEMENTS: Final = 16
"""The fewest elements in the last axis for which numpy's loops over it are long enough."""


def copy_to(out: np.ndarray, view: np.ndarray) -> None:
    """Copy ``view`` to ``out``, which is in C order and has the same shape."""
    if view.nbytes < _MIN_TILED_BYTES or view.dtype.hasobject or view.flags.c_contiguous:
        out[...] = view
        return
    view = view.reshape(_merged(view))
    out = out.reshape(view.shape)
    last = view.ndim - 1
    rows, down = view.shape[last], view.strides[last]
    runs = [axis for axis in range(last) if view.strides[axis] == view.itemsize and view.shape[axis] >= 64]
    if runs and rows < _MIN_LOOP_ELEMENTS:
        for i in range(rows):
            out[..., i] = view[..., i]
    elif runs and rows >= 32 and down > 0 and rows > _CACHE_WAYS * min(64, _PAGE_BYTES // math.gcd(down, _PAGE_BYTES)):
        _by_tiles(np.moveaxis(out, (runs[0], last), (-1, -2)), np.moveaxis(view, (runs[0], last), (-1, -2)))
    else:
        out[...] = view


def _merged(view: np.ndarray) -> list[int]:
    """Return the shape of ``view`` after neighbouring axes that are contiguous with each other are merged."""
    shape: list[int] = []
    before = 0
    for n, step in zip(view.shape, view.strides):
        if n == 1:
            continue
        if shape and before == step * n:
            shape[-1] *= n
        else:
            shape.append(n)
        before = step
    return shape or [1]


def _by_tiles(out: np.ndarray, view: np.ndarray) -> None:
    """Copy ``view`` to ``out`` by tiles, each of which is read and written along contiguous rows.

    The last axis is contiguous in ``view``, the one before it in ``out``.
    """
    if view.ndim == 2:
        out, view = out[None], view[None]
    count, rows, columns = view.shape[-3:]
    most = _TILE_BYTES // view.itemsize
    high = min(rows, _MAX_TILE_ROWS)
    wide = min(columns, most // high)
    deep = min(count, most // (wide * high))
    room = np.empty((deep, high, wide + _PADDING_ELEMENTS), view.dtype)
    starts = list(product(range(0, count, deep), range(0, rows, high), range(0, columns, wide)))
    for place in np.ndindex(view.shape[:-3]):
        source, target = view[place], out[place]
        for i, j, k in starts:
            part = source[i : i + deep, j : j + high, k : k + wide]
            d, h, w = part.shape
            tile = room[:d, :h, :w]
            np.copyto(tile, part)
            np.copyto(target[i : i + deep, j : j + high, k : k + wide].mT, tile.mT)


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The kernel that gives an array another shape."""

    shape: tuple[int, ...]

    def __call__(self, data: np.ndarray) -> np.ndarray:
        return data.reshape(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The kernel that copies runs of ``run`` elements to an array of a shape.

    ``table`` holds the place of each run in the input, counted in runs.
    """

    table: np.ndarray
    run: int
    shape: tuple[int, ...]

    def __call__(self, data: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        whole = np.empty(self.shape, data.dtype) if out is None else out
        # nothing is clipped, but with mode="raise" numpy writes to another array first
        np.take(data.reshape(-1, self.run), self.table, 0, whole.reshape(-1, self.run), "clip")
        return whole


def moving(moved: np.ndarray, count: int, itemsize: int) -> Kernel | None:
    """Return the kernel that copies each run of elements to its place, or None if the runs are short.

    ``moved`` holds the place of each element of the output among the ``count`` of the input.
    """
    places, run = (
        moved.ravel().astype(np.int32, copy=False),
        math.gcd(count, moved.size),
    )  # Pad gives the type of its value
    for begin in range(0, places.size, _MAX_FOLLOWED):  # parts, because the whole would take more memory than a run
        part = places[max(begin - 1, 0) : begin + _MAX_FOLLOWED]
        breaks = np.flatnonzero(part[1:] - part[:-1] != 1) + 1
        run = math.gcd(run, int(places[0]), *(breaks + max(begin - 1, 0)).tolist(), *part[breaks].tolist())
    target = moved.shape
    if places.size == run == count:
        return Kernel(Reshaped(target))
    if run * itemsize < _MIN_RUN_BYTES:
        return None
    return Kernel(Runs(places[::run].astype(np.intp) // run, run, target), "one copy", out="whole")
