"""Copies of transposed arrays, which numpy alone makes slowly where they miss the cache."""

import math
from itertools import product
from typing import Final

import numpy as np

_TILE: Final = 1 << 18
"""Bytes of a tile, a copy of which stays in the second cache of a core."""
_ROWS: Final = 256
"""Rows of a tile: a line of each stays in the first cache."""
_PADDED: Final = 16
"""Elements between the rows of that copy: rows a power of two apart would all fall into the same few lines."""
_PAGE: Final = 1 << 12
"""Bytes after which the lines of the first cache repeat."""
_WAYS: Final = 8
"""Lines of it that can hold the same place of a page."""
_NEAR: Final = 1 << 15
"""Bytes from which on a copy is made by tiles."""
_FEW: Final = 16
"""Elements in the last axis below which numpy's loops over it are too short."""


def copy_to(out: np.ndarray, view: np.ndarray) -> None:
    """``out[...] = view``, for an ``out`` in C order."""
    if view.nbytes < _NEAR or view.dtype.hasobject or view.flags.c_contiguous:
        out[...] = view
        return
    view = view.reshape(_merged(view))
    out = out.reshape(view.shape)
    last = view.ndim - 1
    rows, down = view.shape[last], view.strides[last]
    runs = [axis for axis in range(last) if view.strides[axis] == view.itemsize and view.shape[axis] >= 64]
    if runs and rows < _FEW:
        for i in range(rows):
            out[..., i] = view[..., i]
    elif runs and rows >= 32 and down > 0 and rows > _WAYS * min(64, _PAGE // math.gcd(down, _PAGE)):
        _by_tiles(np.moveaxis(out, (runs[0], last), (-1, -2)), np.moveaxis(view, (runs[0], last), (-1, -2)))
    else:
        out[...] = view


def _merged(view: np.ndarray) -> list[int]:
    """The shape of a view with axes joined that lie as one."""
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
    """Where the last axis is contiguous in ``view``, the one before it in ``out``: by tiles, along the rows of each."""
    if view.ndim == 2:
        out, view = out[None], view[None]
    count, rows, columns = view.shape[-3:]
    most = _TILE // view.itemsize
    high = min(rows, _ROWS)
    wide = min(columns, most // high)
    deep = min(count, most // (wide * high))
    room = np.empty((deep, high, wide + _PADDED), view.dtype)
    starts = list(product(range(0, count, deep), range(0, rows, high), range(0, columns, wide)))
    for place in np.ndindex(view.shape[:-3]):
        source, target = view[place], out[place]
        for i, j, k in starts:
            part = source[i : i + deep, j : j + high, k : k + wide]
            d, h, w = part.shape
            tile = room[:d, :h, :w]
            np.copyto(tile, part)
            np.copyto(target[i : i + deep, j : j + high, k : k + wide].mT, tile.mT)
