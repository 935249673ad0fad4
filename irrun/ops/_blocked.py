"""What is computed block by block, so that each part is still in cache for what follows."""

from collections.abc import Collection, Sequence
from itertools import product
from math import prod
from typing import Final

import numpy as np

from irrun.opdef import Finish, Kernel, Value
from irrun.ops._pointwise import InPlace

Index = tuple[slice, ...]

BLOCK: Final = 1 << 15
"""Elements of a block: 128 KiB of f32, of which a few fit into the second cache of a core."""
_STRIP: Final = 64
"""Elements in a row that are not cut any further: whole lines of cache, whole vectors."""


def blocks(shape: Sequence[int], most: int = BLOCK, whole: Collection[int] = ()) -> list[Index]:
    """Indices of blocks that cover ``shape``, of about ``most`` elements each.

    The leading axes are cut first, so that a block is one piece of memory where that is possible; those in ``whole``
    are not.
    """
    sizes = list(shape)
    for axis, n in enumerate(shape):
        if axis not in whole:
            size = n * most // max(prod(sizes), 1)
            if axis == len(shape) - 1:
                size = max(size // _STRIP, 1) * _STRIP
            sizes[axis] = min(n, max(size, 1))
    cuts = [[slice(i, min(i + size, n)) for i in range(0, n, size or 1)] for n, size in zip(shape, sizes)]
    return list(product(*cuts))


def whole_along(function: InPlace, data: Value, axes: Collection[int]) -> Kernel:
    """The kernel of a function whose blocks must hold all of ``axes``, counted from the front; it may work in place."""
    known = data.shape.static
    cuts = None if known is None else blocks(known, whole=axes)

    def call(
        x: np.ndarray, *_: np.ndarray | None, out: np.ndarray | None = None, finish: Finish | None = None
    ) -> np.ndarray:
        if out is None:
            out = np.empty(x.shape, x.dtype)
        for index in cuts or blocks(x.shape, whole=axes):
            part = out[index]
            function(x[index], part)
            if finish is not None:
                finish(part, index)
        return out

    return Kernel(call, "in blocks", out=True, finish=known is not None)


def row_sums(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sums of products along the last axis, which stays as 1: by BLAS, faster than those of numpy."""
    return np.vecdot(x, y)[..., None]


def finish_in_blocks(out: np.ndarray, finish: Finish | None) -> np.ndarray:
    """``out``, finished."""
    if finish is not None:
        for index in blocks(out.shape):
            finish(out[index], index)
    return out
