"""Kernels that are calls of machine code, which a step does by itself, or in turn with those of other steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irrun.fast.machine.processor import ROWS
from irrun.fast.machine.sharing import share_call
from irrun.opdef import Calls, Joins, Kernel, Packing

__all__ = ["MIN_PIECE_WINDOWS", "in_calls"]

MIN_PIECE_WINDOWS: Final = 4 * ROWS
"""The fewest windows that a thread computes at a time: it reads all filters for them."""

_NOTHING: Final = Packing()


def in_calls(
    name: str, calls: Callable[..., Calls], shape: tuple[int, ...], dtype: Any, work: int, *,
    flops: int = 0, packing: Packing = _NOTHING,
) -> Kernel:  # fmt: skip
    """Return the kernel that does calls (see ``Joins.calls``) to fill an array of this shape and dtype.

    The calls need no spare memory. ``work`` is that of all of them: see ``share``.
    """

    def in_turn(*arrays: np.ndarray, out: np.ndarray, spare: np.ndarray | None = None) -> Calls:
        return calls(*arrays, out=out)

    def call(*arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        whole = np.empty(shape, dtype) if out is None else out
        made = in_turn(*arrays, out=whole)
        for one in made:
            share_call(one, work // len(made))
        return whole

    return Kernel(call, name, out="whole", flops=flops, packing=packing, joins=Joins(calls=in_turn))
