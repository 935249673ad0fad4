"""Kernels of element-wise operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irrun.opdef import Kernel, Op, Value


def pointwise(op: Op, call: Callable[..., Any], *inputs: Value | None) -> Kernel:
    """Return the element-wise kernel of ``op`` that calls ``call(*inputs, out=None)``.

    If all inputs are scalars or of unknown rank, the kernel is ``op.run``, because functions of numpy return no arrays
    for scalars.
    """
    if not any(value is not None and value.rank for value in inputs):
        return Kernel(op.run)
    return Kernel(call, out=True, elementwise=True)
