"""The types of a behaviour, and what the families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from irrun.opdef import Op
from irrun.types import ElementType, type_set

__all__ = [
    "Behaviour", "Inputs", "Undefined", "aligned", "doubles", "element_type", "fits", "in_reals", "is_float",
    "is_integer", "limits", "whole",
]  # fmt: skip

Inputs = Sequence[np.ndarray | None]
Undefined = bool | np.ndarray | tuple[bool | np.ndarray, ...]
Behaviour = Callable[[Any, Inputs], Undefined]
"""The operation is of the class that the version has, whose attributes and geometry the function reads."""


def element_type(array: np.ndarray) -> ElementType:
    """Return the element type of an array."""
    found = ElementType.of(array.dtype)
    assert found is not None
    return found


def is_float(array: np.ndarray) -> bool:
    """Return whether the elements are floats of any width."""
    return element_type(array).kind == "float"


def is_integer(array: np.ndarray | None) -> bool:
    """Return whether an array holds integers of any width."""
    return array is not None and element_type(array).is_integer


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


def limits(dtype: np.dtype) -> tuple[float, float]:
    """Return the least and the greatest integer of a dtype."""
    bounds = ml_dtypes.iinfo(dtype)
    return float(bounds.min), float(bounds.max)


def in_reals(op: Op, inputs: Inputs) -> tuple[np.ndarray, ...]:
    """Return the outputs for the same numbers in f64: integers neither wrap nor are rounded."""
    ports = [*op.inputs, *[op.inputs[-1]] * (len(inputs) - len(op.inputs))]
    widened = [
        array.astype(np.float64) if array is not None and is_integer(array) and _takes_reals(op, port.type) else array
        for port, array in zip(ports, inputs)
    ]
    with np.errstate(all="ignore"):
        outputs = op.run(*widened)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _takes_reals(op: Op, variable: str) -> bool:
    """Return whether an input of this type variable may be f64."""
    return any(type.name == "f64" for type in type_set(op.types.get(variable, variable)))
