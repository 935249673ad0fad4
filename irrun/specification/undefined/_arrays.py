"""Arrays of inputs as the behaviours need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irrun.opdef import Op
from irrun.types import ElementType

__all__ = ["Behaviour", "Inputs", "aligned", "doubles", "element_type", "fits", "is_float", "is_integer", "whole"]

Inputs = Sequence[np.ndarray | None]
Behaviour = Callable[[Op, Inputs], "bool | np.ndarray"]


def element_type(array: np.ndarray) -> ElementType:
    """Return the element type of an array."""
    found = ElementType.of(array.dtype)
    assert found is not None
    return found


def is_float(array: np.ndarray) -> bool:
    """Return whether the elements are floats of any width."""
    return element_type(array).kind == "float"


def is_integer(array: np.ndarray) -> bool:
    """Return whether the elements are integers of any width."""
    return element_type(array).is_integer


def doubles(array: np.ndarray) -> np.ndarray:
    """Return the numbers as f64."""
    return array.astype(np.float64)


def whole(array: np.ndarray) -> np.ndarray:
    """Return integers as Python's, which do not overflow."""
    return (array if array.dtype.itemsize == 8 else array.astype(np.int64)).astype(object)


def fits(numbers: np.ndarray, to: ElementType) -> np.ndarray:
    """Return which integers an integer type can hold."""
    least, beyond = (-(1 << to.bits - 1), 1 << to.bits - 1) if to.kind == "int" else (0, 1 << to.bits)
    return np.asarray((numbers >= least) & (numbers < beyond), bool)


def aligned(op: Op, first: np.ndarray | None, second: np.ndarray) -> np.ndarray:
    """Return the second input in a shape that numpy broadcasts to the first one as the operation does."""
    if first is not None and op.type in ("FakeQuantize", "PReLU") and second.ndim > first.ndim:
        return second.reshape(second.shape[second.ndim - first.ndim :])
    align = getattr(op, "aligned", None)
    return second if first is None or align is None else align(first, second)
