"""Kernels of element-wise operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irrun.opdef import Kernel, Op, Value


def pointwise(op: Op, call: Callable[..., Any], *inputs: Value | None) -> Kernel:
    """``call(*inputs, out=None)`` as the kernel of ``op``; not of scalars, of which numpy makes no arrays."""
    if not any(value is not None and value.rank for value in inputs):
        return Kernel(op.run)
    return Kernel(call, out=True, elementwise=True)
