"""Integers that a formula for real numbers does not give, NaN, and what no page defines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs, Undefined, in_reals, is_integer, limits

__all__ = ["BEHAVIOURS"]


def _overflowing_sum(op: Any, inputs: Inputs) -> Undefined:
    """A sum of products beyond the range of the integer type of the output, which is the type of the first input."""
    data = inputs[0]
    if data is None or not is_integer(data) or any(array is None for array in inputs):
        return False
    least, greatest = limits(data.dtype)
    exact = in_reals(op, inputs)[0]
    return (exact < least) | (exact > greatest)


def _rounded_integer(op: Any, inputs: Inputs) -> Undefined:
    """A fraction that the integer type of the output, which is the type of the first input, cannot hold."""
    data = inputs[0]
    if data is None or not is_integer(data) or any(array is None for array in inputs):
        return False
    exact = in_reals(op, inputs)[0]
    return exact != np.floor(exact)


def _always(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements: the page does not define them."""
    return True


def _nan(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if an input has a NaN."""
    return any(array is not None and array.dtype.kind in "fV" and bool(np.isnan(array).any()) for array in inputs)


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "overflowing-sum": _overflowing_sum,
    "rounded-integer": _rounded_integer,
    "nan": _nan,
    "no-definition": _always,
}
