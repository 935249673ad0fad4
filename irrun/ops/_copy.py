"""Copies of transposed arrays, which numpy alone makes slowly where they miss the cache."""

from itertools import product
from typing import Final

import numpy as np

_TILE: Final = 256
"""Rows and columns of a tile, a copy of which stays in the second cache of a core."""
_PADDED: Final = 16
"""Elements between the rows of that copy: rows a power of two apart would all fall into the same few lines."""
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
    elif runs and rows >= 32 and down > 0 and (rows > 128 or down % 1024 == 0):
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
    rows, columns = view.shape[-2:]
    room = np.empty((min(rows, _TILE), min(columns, _TILE) + _PADDED), view.dtype)
    for place in np.ndindex(view.shape[:-2]):
        source, target = view[place], out[place]
        for i, j in product(range(0, rows, _TILE), range(0, columns, _TILE)):
            part = source[i : i + _TILE, j : j + _TILE]
            tile = room[: part.shape[0], : part.shape[1]]
            np.copyto(tile, part)
            np.copyto(target[i : i + _TILE, j : j + _TILE].T, tile.T)
