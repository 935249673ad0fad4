"""Constants in another layout: what a converter does to a weight is done when the file is written, not in each run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irrun.export.call import Call
from irrun.export.graph import Constant

__all__ = ["array_of", "mapped", "reshaped", "transposed"]


def array_of(constant: Constant) -> np.ndarray:
    """Return the contents of a constant whose elements take whole bytes."""
    return np.frombuffer(constant.read(), constant.type.dtype).reshape(constant.shape)


def mapped(call: Call, name: str, shape: Sequence[int], function: Callable[[np.ndarray], np.ndarray]) -> str | None:
    """Return ``function`` of a constant, which has the same elements in ``shape``; None if the tensor is no constant.

    A Cast behind the constant stays behind it.
    """
    constant = call.graph.shared.constants.get(name)
    if constant is not None and constant.type.bits >= 8:
        moved = replace(
            constant, shape=tuple(shape), read=lambda: np.ascontiguousarray(function(array_of(constant))).tobytes()
        )
        return call.graph.lazy(moved, name)
    node = call.graph.producer(name)
    if node is not None and node.op_type == "Cast":
        inner = mapped(call, node.input[0], shape, function)
        return None if inner is None else call("Cast", inner, to=node.attribute[0].i)
    return None


def reshaped(call: Call, name: str, shape: Sequence[int]) -> str:
    """Return a tensor with another shape."""
    return mapped(call, name, shape, lambda array: array.reshape(shape)) or call("Reshape", name, list(shape))


def transposed(call: Call, name: str, order: Sequence[int], shape: Sequence[Any] | None) -> str:
    """Return a tensor with its axes in another order. ``shape`` is that of the tensor, if it is known."""
    known = None
    if shape is not None and all(isinstance(n, int) for n in shape):
        known = mapped(call, name, [shape[axis] for axis in order], lambda array: array.transpose(order))
    return known or call("Transpose", name, perm=list(order))
