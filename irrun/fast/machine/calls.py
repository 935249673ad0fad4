"""Kernels made of calls of machine code. A step does the calls alone, or in turn with the calls of other steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irrun.fast.machine.sharing import InTurn, share_call
from irrun.kernels.blocks import scratch
from irrun.opdef import Calls, Epilogue, Joins, Kernel, Packing

__all__ = ["in_calls"]

_NOTHING: Final = Packing()


def in_calls(
    name: str, calls: Callable[..., Calls], shape: tuple[int, ...], dtype: Any, work: int, *, flops: int = 0,
    packing: Packing = _NOTHING, spare_bytes: int = 0, with_epilogue: Callable[[Epilogue], Kernel] | None = None,
    reads_view: Callable[[int, np.ndarray], bool] | None = None,
) -> Kernel:  # fmt: skip
    """Return the kernel that does calls to fill an array of this shape and dtype.

    ``work`` is that of all calls: see ``share``. For the other arguments, see ``Kernel`` and ``Joins``.
    """

    def call(*arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        whole = np.empty(shape, dtype) if out is None else out
        made = calls(*arrays, out=whole, spare=scratch(0, np.dtype(np.uint8), spare_bytes))
        if len(made) == 1:
            share_call(made[0], work)
        elif made:
            InTurn(made, work)()
        return whole

    joins = Joins(calls=calls, spare_bytes=spare_bytes, with_epilogue=with_epilogue, reads_view=reads_view)
    return Kernel(call, name, out="whole", flops=flops, packing=packing, joins=joins)
