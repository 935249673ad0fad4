"""The types of a behaviour, and what the families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from irrun.opdef import Op
from irrun.types import ElementType, type_set

__all__ = ["Behaviour", "Inputs", "Undefined", "in_reals", "is_integer", "limits"]

Inputs = Sequence[np.ndarray | None]
Undefined = bool | np.ndarray | tuple[bool | np.ndarray, ...]
Behaviour = Callable[[Any, Inputs], Undefined]
"""The operation is of the class that the version has, whose attributes and geometry the function reads."""


def is_integer(array: np.ndarray | None) -> bool:
    """Return whether an array holds integers."""
    element_type = None if array is None else ElementType.of(array.dtype)
    return element_type is not None and element_type.is_integer


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
